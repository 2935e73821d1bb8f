"""Kinds of values: what each accepts from YAML and from text, how it is shown, and its errors."""

import math
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooda.base.templates import fill
from rooda.plan.settings.feature_kinds import Hook, HookList
from rooda.plan.settings.kinds import Age, Boolean, Integer, Kind, Seconds, Size, WrongValue
from rooda.plan.settings.text_kinds import (
    DoneWhen,
    OneOf,
    PathText,
    ShellCommand,
    SignalWord,
    TemplateText,
    Text,
    TextMap,
)
from support.config import brief_id
from support.properties import examples
from support.tables import each_row

MB = 1024 * 1024
LEVELS = OneOf(("debug", "info", "warn", "error"))
MESSAGE = TemplateText(("procedure", "iteration"))
SPECIAL = Hook("make lint", timeout=300.0, on_error="abort")
SPECIAL_RAW = {"command": "make lint", "timeout": "5m", "on_error": "abort"}


@each_row(
    "kind,raw,value",
    [
        (Boolean(), True, True),
        (Boolean(), False, False),
        (Integer(1), 1, 1),
        (Integer(1), 5.0, 5),
        (Integer(0, 255), 255, 255),
        (Integer(-5), -5, -5),
        (Seconds(1), 1, 1.0),
        (Seconds(1), 1.5, 1.5),
        (Seconds(), 0, 0.0),
        (Seconds(1), "90", 90.0),
        (Seconds(1), "45s", 45.0),
        (Seconds(1), "5m", 300.0),
        (Seconds(1), "1h30m", 5400.0),
        (Seconds(1), "1h 30m", 5400.0),
        (Seconds(1), "1.5h", 5400.0),
        (Seconds(1), "2d", 172800.0),
        (Seconds(1), " 5m ", 300.0),
        (Size(1), 1024, 1024),
        (Size(1), "2048", 2048),
        (Size(1), "512KB", 512 * 1024),
        (Size(1), "10MB", 10 * MB),
        (Size(1), "10 mb", 10 * MB),
        (Size(1), "64k", 64 * 1024),
        (Size(1), "1.5 GiB", 1536 * MB),
        (Size(1), "7b", 7),
        (LEVELS, "warn", "warn"),
        (Text(), "some words", "some words"),
        (PathText(), "a/b", "a/b"),
        (SignalWord(), "ALL-DONE_2", "ALL-DONE_2"),
        (Age(1), "30d", 30 * 86400.0),
        (ShellCommand(), "a && b | c", "a && b | c"),
        (DoneWhen(), " tasks ", "tasks"),
        (DoneWhen(), "command:  ./done.sh a | b ", "command: ./done.sh a | b"),
        (MESSAGE, "no names", "no names"),
        (MESSAGE, "{procedure} {iteration} {procedure}", "{procedure} {iteration} {procedure}"),
        (MESSAGE, "{{literally}}", "{{literally}}"),
        (MESSAGE, "{{{iteration}}}", "{{{iteration}}}"),
        (HookList(), "make lint", (Hook("make lint"),)),
        (HookList(), {"command": "make lint"}, (Hook("make lint"),)),
        (HookList(), SPECIAL_RAW, (SPECIAL,)),
        (HookList(), ["one", SPECIAL_RAW, "one"], (Hook("one"), SPECIAL, Hook("one"))),
        (HookList(), [], ()),
        (TextMap(), {}, {}),
        (TextMap(), {"A": "b"}, {"A": "b"}),
        (
            TextMap(),
            {"A": None, "B": True, "C": 5, "D": ""},
            {"A": None, "B": "true", "C": "5", "D": ""},
        ),
    ],
    ids=brief_id,
)
def test_valid_yaml_values_are_accepted(kind: Kind[Any], raw: object, value: object) -> None:
    found = kind.check(raw)
    assert found == value
    assert type(found) is type(value)


@each_row(
    "kind,raw,words",
    [
        (Boolean(), "yes", "must be true or false, not 'yes'"),
        (Boolean(), 1, "must be true or false, not 1"),
        (Boolean(), None, "not nothing"),
        (Integer(1), 0, "must be 1 or more, not 0"),
        (Integer(1), -3, "must be 1 or more, not -3"),
        (Integer(0, 255), 256, "at most 255, not 256"),
        (Integer(1), 10**30, "at most 1000000000"),
        (Integer(1), 1.5, "whole number, not 1.5"),
        (Integer(1), True, "whole number, not true"),
        (Integer(1), "5", "whole number, not '5'"),
        (Integer(1), math.inf, "whole number, not inf"),
        (Integer(1), math.nan, "whole number, not nan"),
        (Integer(1), [1], "whole number, not a list"),
        (Seconds(1), 0.5, "must be 1s or more, not 0.5"),
        (Seconds(1), -10, "must be 1s or more, not -10"),
        (Seconds(1), "-5", "must be 1s or more, not -5"),
        (Seconds(1), "soon", "number of seconds, not 'soon'"),
        (Seconds(1), "", "number of seconds, not ''"),
        (Seconds(1), "m5", "number of seconds, not 'm5'"),
        (Seconds(1), "5 minutes", "number of seconds"),
        (Seconds(1), "30m1h", "number of seconds"),
        (Seconds(1), math.inf, "number of seconds, not inf"),
        (Seconds(1), "nan", "number of seconds, not 'nan'"),
        (Seconds(1), "inf", "number of seconds, not 'inf'"),
        (Seconds(1), "9" * 400, "number of seconds"),
        (Seconds(1), 10**400, "number of seconds"),
        (Seconds(1), True, "number of seconds"),
        (Seconds(1), None, "number of seconds"),
        (Seconds(1), {"a": 1}, "number of seconds"),
        (Size(1024), 1023, "must be 1024 bytes or more, not 1023"),
        (Size(1024), "1", "must be 1024 bytes or more, not '1'"),
        (Size(1024), "big", "number of bytes, not 'big'"),
        (Size(1024), "10 parsecs", "number of bytes, not '10 parsecs'"),
        (Size(1024), "-5MB", "number of bytes"),
        (Size(1024), 2048.5, "number of bytes"),
        (Size(1024), False, "number of bytes"),
        (Size(1024), "9" * 400 + ".0", "number of bytes"),
        (Size(1024), "9" * 5000, "number of bytes"),
        (LEVELS, "loud", "must be one of debug, info, warn, error, not 'loud'"),
        (LEVELS, 5, "not 5"),
        (LEVELS, ["info"], "not a list"),
        (Text(), "", "must not be empty"),
        (Text(), " \n", "must not be empty"),
        (Text(), 5, "must be text, not 5"),
        (Text(), None, "must be text, not nothing"),
        (PathText(), "", "must not be empty"),
        (SignalWord(), "two words", "must be one word"),
        (SignalWord(), "<b>", "must be one word"),
        (SignalWord(), "WORD\n", "must be one word"),
        (Age(1), 0, "must be 1s or more, not 0"),
        (ShellCommand(), 5, "must be a command, not 5"),
        (DoneWhen(), "command: ", "must be signal, tasks or 'command: CMD', not 'command: '"),
        (DoneWhen(), "task", "must be signal, tasks or 'command: CMD', not 'task'"),
        (DoneWhen(), ["tasks"], "must be signal, tasks or 'command: CMD', not a list"),
        (ShellCommand(), ["make", "test"], "must be a command, not a list"),
        (ShellCommand(), " ", "must not be empty"),
        (MESSAGE, "", "must not be empty"),
        (MESSAGE, "{iterations}", "'{iterations}' can't be filled in"),
        (MESSAGE, "{}", "'{}' can't be filled in"),
        (MESSAGE, "{iteration:03d}", "'{iteration:03d}' can't be filled in"),
        (MESSAGE, "{" + "x" * 500 + "}", "x... can't be filled in"),
        (MESSAGE, "{iteration", "a brace without its partner"),
        (MESSAGE, "iteration}", "a brace without its partner"),
        (MESSAGE, "{iteration}}", "a brace without its partner"),
        (MESSAGE, "{{iteration}", "a brace without its partner"),
        (HookList(), 5, "must be a command or a mapping with one, not 5"),
        (HookList(), None, "must be a command or a mapping with one, not nothing"),
        (HookList(), "", "must not be empty"),
        (HookList(), [["a"]], "must be a command or a mapping with one, not a list"),
        (HookList(), {}, "has no command"),
        (HookList(), {"timeout": 5}, "has no command"),
        (HookList(), {"command": "a", "comand": "b"}, "a hook has no 'comand'"),
        (HookList(), {"command": "a", "timeout": 0}, "timeout must be positive"),
        (HookList(), {"command": "a", "timeout": None}, "number of seconds, not nothing"),
        (HookList(), {"command": "a", "on_error": "explode"}, "must be one of ignore, fail, abort"),
        (TextMap(), ["A=b"], "must be a mapping"),
        (TextMap(), {"": "x"}, "can't be the name of a variable"),
        (TextMap(), {"A=B": "x"}, "can't be the name of a variable"),
        (TextMap(), {"A": ["x"]}, "the value of A must be text"),
        (TextMap(), {"A": "x\0y"}, "the value of A must be text"),
    ],
    ids=brief_id,
)
def test_invalid_yaml_values_give_an_error_with_advice(
    kind: Kind[Any], raw: object, words: str
) -> None:
    with pytest.raises(WrongValue) as caught:
        kind.check(raw)
    assert words in str(caught.value)
    assert caught.value.suggestion


@pytest.mark.parametrize("kind", [Text(), PathText()], ids=brief_id)
def test_text_with_nul_is_not_called_empty(kind: Kind[str]) -> None:
    with pytest.raises(WrongValue) as caught:
        kind.check("a\0b")
    assert "empty" not in str(caught.value)


@each_row(
    "kind,text,value",
    [
        (Boolean(), "true", True),
        (Boolean(), "FALSE", False),
        (Boolean(), "1", True),
        (Boolean(), "0", False),
        (Boolean(), "yes", True),
        (Boolean(), " off ", False),
        (Integer(1), "5", 5),
        (Integer(1), " 5 ", 5),
        (Integer(1), "+5", 5),
        (Integer(-5), "-5", -5),
        (Seconds(1), "90", 90.0),
        (Seconds(1), "1.5", 1.5),
        (Seconds(1), "5m", 300.0),
        (Size(1), "10MB", 10 * MB),
        (LEVELS, "info", "info"),
        (Text(), "two words", "two words"),
        (Text(), "5", "5"),
        (SignalWord(), "DONE", "DONE"),
        (ShellCommand(), "make 'a b'; true", "make 'a b'; true"),
        (MESSAGE, "{procedure}!", "{procedure}!"),
        (HookList(), "a; b 'c d'", (Hook("a; b 'c d'"),)),
        (TextMap(), "A=1 B='two words' C=", {"A": "1", "B": "two words", "C": ""}),
        (TextMap(), "A=x=y", {"A": "x=y"}),
        (TextMap(), "", {}),
    ],
    ids=brief_id,
)
def test_valid_text_is_accepted(kind: Kind[Any], text: str, value: object) -> None:
    found = kind.from_text(text)
    assert found == value
    assert type(found) is type(value)


@each_row(
    "kind,text,words",
    [
        (Boolean(), "perhaps", "must be true or false"),
        (Boolean(), "", "must be true or false"),
        (Integer(1), "0", "must be 1 or more, not 0"),
        (Integer(1), "five", "whole number, not 'five'"),
        (Integer(1), "1.5", "whole number"),
        (Integer(1), "", "whole number"),
        (Integer(1), "9" * 5000, "whole number"),
        (Seconds(1), "soon", "number of seconds"),
        (Size(1024), "10", "1024 bytes or more"),
        (LEVELS, "INFO", "must be one of"),
        (Text(), "  ", "must not be empty"),
        (MESSAGE, "{nope}", "can't be filled in"),
        (HookList(), "  ", "must not be empty"),
        (TextMap(), "A", "must be NAME=VALUE, not 'A'"),
        (TextMap(), "=x", "can't be the name"),
        (TextMap(), "A='x", "can't be split"),
    ],
    ids=brief_id,
)
def test_invalid_text_gives_an_error_with_advice(kind: Kind[Any], text: str, words: str) -> None:
    with pytest.raises(WrongValue) as caught:
        kind.from_text(text)
    assert words in str(caught.value)
    assert caught.value.suggestion


@each_row(
    "kind,value,shown",
    [
        (Boolean(), True, "true"),
        (Boolean(), False, "false"),
        (Integer(1), 5, "5"),
        (Seconds(), 60.0, "60s"),
        (Seconds(), 0.5, "0.5s"),
        (Seconds(), 86400.0, "86400s"),
        (Seconds(), 2_000_000.0, "2000000s"),
        (Size(1), 10 * MB, "10MB"),
        (Size(1), 512 * 1024, "512KB"),
        (Size(1), 2 * 1024 * MB, "2GB"),
        (Size(1), 1500, "1,500 bytes"),
        (LEVELS, "warn", "warn"),
        (Text(), "two words", "two words"),
        (Age(1), 30 * 86400.0, "30d"),
        (Age(1), 90.0, "90s"),
        (HookList(), (), "none"),
        (HookList(), (Hook("one"), Hook("two")), "one; two"),
        (HookList(), (SPECIAL,), "make lint (timeout 300s, on_error abort)"),
        (TextMap(), {}, "none"),
        (TextMap(), {"TOKEN": "secret", "B": "c"}, "TOKEN, B"),
    ],
    ids=brief_id,
)
def test_values_are_shown_in_readable_units(kind: Kind[Any], value: object, shown: str) -> None:
    assert kind.show(value) == shown


@each_row(
    "kind,raw,advice",
    [
        (Boolean(), "yes", "Write true"),
        (Boolean(), "off", "Write false"),
        (LEVELS, "wran", "Did you mean 'warn'?"),
        (LEVELS, "INFO", "Did you mean 'info'?"),
        (Integer(1), 0, "Set to 1 or more"),
        (Seconds(1), 0, "Set to 1s or more"),
        (Size(1024), 1, "Set to 1024 or more"),
    ],
    ids=brief_id,
)
def test_advice_says_what_to_write(kind: Kind[Any], raw: object, advice: str) -> None:
    with pytest.raises(WrongValue) as caught:
        kind.check(raw)
    assert caught.value.suggestion == advice


@each_row("kind", [Integer(1), Seconds(1), Size(1), LEVELS, SignalWord()], ids=brief_id)
def test_error_is_short_however_long_the_value(kind: Kind[Any]) -> None:
    with pytest.raises(WrongValue) as caught:
        kind.check("x" * 10_000 + " ")
    assert len(str(caught.value)) < 150


def test_error_for_a_huge_number_is_short() -> None:
    with pytest.raises(WrongValue) as caught:
        Integer(1).check(1e300)
    assert len(str(caught.value)) < 150


@examples(60)
@given(st.integers(0, 10**9))
def test_shown_seconds_can_be_read_back(seconds: int) -> None:
    kind = Seconds()
    assert kind.from_text(kind.show(float(seconds))) == seconds


@examples(60)
@given(st.integers(0, 99_999), st.integers(0, 9))
def test_shown_tenths_of_seconds_can_be_read_back(seconds: int, tenths: int) -> None:
    kind, value = Seconds(), float(f"{seconds}.{tenths}")
    assert kind.from_text(kind.show(value)) == value


@examples(60)
@given(st.integers(1, 2000), st.sampled_from([1024, MB, 1024 * MB]))
def test_shown_size_can_be_read_back(count: int, unit: int) -> None:
    kind = Size(1)
    assert kind.from_text(kind.show(count * unit)) == count * unit


@examples(60)
@given(st.integers(1, 10**12))
def test_shown_odd_size_can_be_read_back(size: int) -> None:
    kind = Size(1)
    assert kind.from_text(kind.show(size)) == size


@examples(60)
@given(st.integers(0, 10), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_parts_of_a_duration_add_up(days: int, hours: int, minutes: int, seconds: int) -> None:
    text = f"{days}d{hours}h{minutes}m{seconds}s"
    expected = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    assert Seconds().from_text(text) == expected


WHATEVER = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
KINDS = [
    Boolean(),
    Integer(0),
    Seconds(),
    Size(1),
    LEVELS,
    Text(),
    PathText(),
    SignalWord(),
    TextMap(),
    Age(1),
    ShellCommand(),
    MESSAGE,
    HookList(),
]


def outcome(kind: Kind[Any], read: Callable[[], object]) -> tuple[str, str]:
    """Return what the user sees: the shown value, or the error and its advice."""
    try:
        return kind.show(read()), "fine"
    except WrongValue as wrong:
        return str(wrong), wrong.suggestion


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("kind", KINDS, ids=brief_id)
@examples(60)
@given(raw=WHATEVER)
def test_any_yaml_value_is_accepted_or_gives_an_error(kind: Kind[Any], raw: object) -> None:
    shown, advice = outcome(kind, lambda: kind.check(raw))
    assert shown
    assert advice


@pytest.mark.parametrize("kind", KINDS, ids=brief_id)
@examples(60)
@given(text=st.text(max_size=40) | st.text(alphabet="0123456789.dhmskMGB-+e= '\"", max_size=12))
def test_any_text_is_accepted_or_gives_an_error(kind: Kind[Any], text: str) -> None:
    shown, advice = outcome(kind, lambda: kind.from_text(text))
    assert shown
    assert advice


# -- templates -----------------------------------------------------------------------------


@each_row(
    "template,filled",
    [
        ("{procedure}: iteration {iteration}", "build: iteration 3"),
        ("{procedure}{procedure}", "buildbuild"),
        ("{{procedure}}", "{procedure}"),
        ("{{{iteration}}}", "{3}"),
        ("{task}", "{iteration} {{ and }"),
        ("a{nothing}b", "ab"),
        ("{unknown} {} { }", "{unknown} {} { }"),
        ("{ {iteration", "{ {iteration"),
        ("}{", "}{"),
        ("", ""),
    ],
)
def test_known_names_are_replaced_once_and_the_rest_stays(template: str, filled: str) -> None:
    names = {"procedure": "build", "iteration": 3, "task": "{iteration} {{ and }", "nothing": None}
    assert fill(template, names) == filled


@examples(60)
@given(st.text(alphabet="{}ab \n\udcff\0") | st.text())
def test_without_known_names_only_doubled_braces_change(template: str) -> None:
    filled = fill(template, {})
    assert re.sub("[{}]", "", filled) == re.sub("[{}]", "", template)
    assert re.sub("{{|}}", "", template).count("{") <= filled.count("{") <= template.count("{")


@examples(60)
@given(st.text(st.characters(exclude_characters="{}")), st.text())
def test_inserted_value_is_not_expanded_again(around: str, value: str) -> None:
    assert fill(f"{around}{{a}}{around}", {"a": value, "b": "x"}) == around + value + around


@examples(60)
@given(st.text(st.characters(exclude_characters="\0"), min_size=1))
def test_any_text_with_doubled_braces_is_a_valid_message(text: str) -> None:
    doubled = text.replace("{", "{{").replace("}", "}}")
    if text.strip():
        assert fill(MESSAGE.check(doubled), {}) == text
