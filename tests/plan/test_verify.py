"""`verify` in its short and long form: a plain command stands for `verify.command`."""

from pathlib import Path
from typing import Any

import jsonschema
from hypothesis import given
from hypothesis import strategies as st

from rooda.base.problems import Severity, errors
from rooda.plan.settings.json_schema import schema
from rooda.plan.settings.settings import (
    VERIFY_COMMAND,
    VERIFY_FEEDBACK,
    VERIFY_TIMEOUT,
    VERIFY_WHEN,
)
from support.config import dumped, planned, read
from support.properties import examples
from support.tables import each_row

LONG = "{command: make all, when: on-success, timeout: 90, feedback: false}"


@each_row("where", ["loop: {%s}", "procedures: {build: {%s}}"])
@each_row("form", ["make test", "{command: make test}"])
def test_short_form_sets_the_command(form: str, where: str, tmp_path: Path) -> None:
    values = planned(tmp_path, "build", workspace=where % f"verify: {form}").values
    assert values[VERIFY_COMMAND] == "make test"
    assert values[VERIFY_TIMEOUT] == 1800.0
    assert values.origin(VERIFY_COMMAND).exact == "workspace: ./rooda-config.yml:1"


def test_command_is_not_split_and_may_have_many_lines(tmp_path: Path) -> None:
    text = "loop:\n  verify: |\n    set -e\n    make 'a b' && ! grep -r TODO src\n"
    values = planned(tmp_path, "build", workspace=text).values
    assert values[VERIFY_COMMAND] == "set -e\nmake 'a b' && ! grep -r TODO src\n"


def test_short_form_overrides_only_the_command(tmp_path: Path) -> None:
    values = planned(
        tmp_path,
        "build",
        global_=f"loop: {{verify: {LONG}}}",
        workspace="loop: {verify: make quick}",
    ).values
    assert values[VERIFY_COMMAND] == "make quick"
    assert values[VERIFY_WHEN] == "on-success"
    assert values[VERIFY_TIMEOUT] == 90.0
    assert values[VERIFY_FEEDBACK] is False


@each_row("null", ["verify: null", "verify: ", "verify: {command: null}"])
@each_row("where", ["loop: {%s}", "procedures: {build: {%s}}"])
def test_null_unsets_the_check(null: str, where: str, tmp_path: Path) -> None:
    values = planned(
        tmp_path, "build", global_="loop: {verify: make test}", workspace=where % null
    ).values
    assert values[VERIFY_COMMAND] is None
    assert str(values.origin(VERIFY_COMMAND)) == "workspace: ./rooda-config.yml"


def test_timeout_of_null_is_no_timeout(tmp_path: Path) -> None:
    values = planned(tmp_path, "build", workspace="loop: {verify: {timeout: null}}").values
    assert values[VERIFY_TIMEOUT] is None


@each_row(
    "env,command,origin",
    [
        ({"ROODA_LOOP_VERIFY": "true 'b c'"}, "true 'b c'", "ROODA_LOOP_VERIFY"),
        ({"ROODA_LOOP_VERIFY_COMMAND": "true long"}, "true long", "ROODA_LOOP_VERIFY_COMMAND"),
        (
            {"ROODA_LOOP_VERIFY": "true short", "ROODA_LOOP_VERIFY_COMMAND": "true long"},
            "true long",
            "ROODA_LOOP_VERIFY_COMMAND",
        ),
        (
            {"ROODA_LOOP_VERIFY": "true short", "ROODA_LOOP_VERIFY_COMMAND": ""},
            "true short",
            "ROODA_LOOP_VERIFY",
        ),
        ({"ROODA_LOOP_VERIFY": "none"}, None, "ROODA_LOOP_VERIFY"),
    ],
)
def test_variable_has_a_short_form(
    env: dict[str, str], command: str | None, origin: str, tmp_path: Path
) -> None:
    prepared = planned(
        tmp_path, "build", "--ai-cmd=true", workspace="loop: {verify: make test}", env=env
    )
    assert prepared.values[VERIFY_COMMAND] == command
    assert str(prepared.values.origin(VERIFY_COMMAND)) == f"env: {origin}"
    assert prepared.all_problems() == [], "both names are known"


def test_flag_sets_the_command(tmp_path: Path) -> None:
    values = planned(
        tmp_path, "build", "--verify", "make test", workspace="loop: {verify: make}"
    ).values
    assert values[VERIFY_COMMAND] == "make test"
    assert str(values.origin(VERIFY_COMMAND)) == "cli: --verify"


@each_row(
    "value,words",
    [
        ("5", "must be a command, not 5"),
        ("true", "must be a command, not true"),
        ("[make, test]", "must be a command, not a list"),
        ("''", "must not be empty"),
    ],
)
@each_row(
    "start,name",
    [("loop:\n  verify: ", "loop"), ("procedures:\n  p:\n    verify: ", "procedures.p")],
)
def test_invalid_short_form_is_reported_with_its_own_key(
    start: str, name: str, value: str, words: str
) -> None:
    layer, [problem] = read(start + value)
    assert words in problem.message
    assert problem.suggestion
    assert problem.severity is Severity.ERROR
    assert (problem.line, problem.field) == (start.count("\n") + 1, f"{name}.verify")
    assert not layer.loop


def test_invalid_value_in_the_long_form_is_reported_with_the_whole_key() -> None:
    _, problems = read("loop:\n  verify:\n    command: 5\n    when: sometimes\n    timout: 5\n")
    assert [(p.line, p.field) for p in errors(problems)] == [
        (3, "loop.verify.command"),
        (4, "loop.verify.when"),
        (5, "loop.verify.timout"),
    ]
    assert "'verify.timeout'" in problems[-1].suggestion


SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", " ", "5m", "make"])
VERIFY = st.dictionaries(
    st.sampled_from(["command", "when", "timeout", "feedback", "timout"]),
    SCALARS | st.sampled_from(["always", "on-success"]) | st.lists(SCALARS, max_size=1),
    max_size=3,
)
VALIDATOR: Any = jsonschema.Draft202012Validator(schema())


@examples(60)
@given(SCALARS | VERIFY | st.lists(SCALARS, max_size=2))
def test_schema_accepts_verify_exactly_if_the_reader_does(
    raw: object,
) -> None:
    for whole in ({"loop": {"verify": raw}}, {"procedures": {"build": {"verify": raw}}}):
        assert VALIDATOR.is_valid(whole) == (read(dumped(whole))[1] == [])
