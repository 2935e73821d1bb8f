"""The YAML parser: YAML 1.2 scalars, a line number for each node, and hostile files refused."""

import math

import pytest

from rooda.base.problems import Problem, errors
from rooda.plan.document import (
    Entry,
    Mapping,
    Scalar,
    Sequence,
    parse,
    plain,
    resolve,
)
from rooda.plan.locate import LARGEST_FILE
from support.tables import each_row

FILE = "rooda-config.yml"


def tree(content: str | bytes) -> object:
    """Return the document as plain values. It must have no problems."""
    root, problems = parse(content.encode() if isinstance(content, str) else content, FILE)
    assert problems == []
    return None if root is None else plain(root)


def only_problem(content: str | bytes) -> Problem:
    """Return the one problem of an unusable document."""
    root, problems = parse(content.encode() if isinstance(content, str) else content, FILE)
    assert root is None
    assert len(problems) == 1
    assert problems == errors(problems)
    assert problems[0].file == FILE
    return problems[0]


def entries(content: str) -> dict[str, Entry]:
    root, problems = parse(content.encode(), FILE)
    assert problems == []
    assert isinstance(root, Mapping)
    return {entry.key: entry for entry in root.entries}


@each_row(
    "text,value",
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("Null", None),
        ("NULL", None),
        ("nULL", "nULL"),
        ("none", "none"),
        ("true", True),
        ("True", True),
        ("FALSE", False),
        ("tRUE", "tRUE"),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("Off", "Off"),
        ("y", "y"),
        ("0", 0),
        ("-0", 0),
        ("12", 12),
        ("+12", 12),
        ("-12", -12),
        ("014", 14),
        ("0o14", 12),
        ("0x1F", 31),
        ("0b11", "0b11"),
        ("-0x1F", "-0x1F"),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("190:20:30", "190:20:30"),
        ("1.5", 1.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e3", 1000.0),
        ("-1.5E-3", -0.0015),
        (".inf", math.inf),
        ("-.INF", -math.inf),
        ("+.Inf", math.inf),
        ("inf", "inf"),
        ("nan", "nan"),
        ("2024-01-01", "2024-01-01"),
        ("<<", "<<"),
        ("=", "="),
        ("5m", "5m"),
        ("1.2.3", "1.2.3"),
    ],
)
def test_plain_scalars_follow_yaml_1_2(text: str, value: object) -> None:
    found = resolve(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("text", [".nan", ".NaN", ".NAN"])
def test_nan_is_a_float(text: str) -> None:
    found = resolve(text)
    assert isinstance(found, float)
    assert math.isnan(found)


def test_very_long_numbers_are_no_error() -> None:
    assert resolve("9" * 5000) == math.inf
    assert isinstance(resolve("0x" + "f" * 5000), str)


@each_row(
    "text,value",
    [
        ("a: 'true'", "true"),
        ('a: "5"', "5"),
        ("a: ''", ""),
        ("a: !!str 5", "5"),
        ("a: ! 5", "5"),
        ("a: |\n  5\n", "5\n"),
        ("a: >-\n  two\n  lines\n", "two lines"),
        ('a: "\\x41\\u00e9"', "Aé"),
    ],
)
def test_quoted_and_block_scalars_are_text(text: str, value: str) -> None:
    assert tree(text) == {"a": value}


def test_scalar_keeps_its_original_text() -> None:
    node = entries("a: 0x1F")["a"].node
    assert node == Scalar(31, "0x1F", 1)


def test_keys_are_always_text() -> None:
    assert tree("1: a\ntrue: b\n~: c\n1.50: d\n") == {"1": "a", "true": "b", "~": "c", "1.50": "d"}


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_each_key_and_value_has_its_line(newline: str) -> None:
    lines = [
        "# a comment",
        "",
        "one: 1",
        "two:",
        "  - a",
        "  - b: |",
        "      x",
        "    c: 2",
        "d: 4",
    ]
    found = entries(newline.join(lines))
    assert {key: entry.line for key, entry in found.items()} == {"one": 3, "two": 4, "d": 9}
    two = found["two"].node
    assert isinstance(two, Sequence)
    assert [item.line for item in two.items] == [5, 6]
    second = two.items[1]
    assert isinstance(second, Mapping)
    assert [(entry.key, entry.line, entry.node.line) for entry in second.entries] == [
        ("b", 6, 6),
        ("c", 8, 8),
    ]


def test_value_on_the_next_line_has_its_own_line() -> None:
    entry = entries("a:\n\n  5\n")["a"]
    assert (entry.line, entry.node.line) == (1, 3)


def test_duplicate_key_is_an_error_and_the_first_value_is_kept() -> None:
    root, problems = parse(b"loop:\n  a: 1\n  b: 2\n  a: 3\nloop: {}\n", FILE)
    assert root is not None
    assert plain(root) == {"loop": {"a": 1, "b": 2}}
    assert problems == errors(problems)
    assert [(p.line, p.file) for p in problems] == [(4, FILE), (5, FILE)]
    assert "'a' stands here twice (first on line 2)" in problems[0].message
    assert "'loop' stands here twice (first on line 1)" in problems[1].message
    assert all(p.suggestion for p in problems)


@pytest.mark.parametrize("text", ["'a': 1\na: 2", "1: a\n'1': b", '{a: 1, "a": 2}'])
def test_keys_are_equal_whatever_their_quotes(text: str) -> None:
    _, problems = parse(text.encode(), FILE)
    assert len(problems) == 1
    assert "twice" in problems[0].message


def test_alias_stands_for_its_anchor() -> None:
    assert tree("a: &x {b: [1, 2]}\nc: *x\nd: &y 5\ne: *y\n") == {
        "a": {"b": [1, 2]},
        "c": {"b": [1, 2]},
        "d": 5,
        "e": 5,
    }


def test_anchor_can_be_redefined() -> None:
    assert tree("a: &x 1\nb: *x\nc: &x 2\nd: *x\n") == {"a": 1, "b": 1, "c": 2, "d": 2}


@each_row(
    "text,line,words",
    [
        ("a: 1\nb: *missing\n", 2, "*missing has no anchor"),
        ("a: &x {b: *x}\n", 1, "*x has no anchor"),
        ("a: &x\n  - 1\n  - *x\n", 3, "*x has no anchor"),
        ("a: 1\n? [b, c]\n: d\n", 2, "a key must be a word"),
        ("a: 1\n? {b: c}\n: d\n", 2, "a key must be a word"),
        ("a:\n  b: !!int 5\n", 2, "the tag"),
        ("a:\n  b: !!binary aGk=\n", 2, "the tag"),
        ("a:\n  b: !secret 5\n", 2, "!secret"),
        ("a: 1\n---\nb: 2\n", 2, "second YAML document"),
        ("---\n---\n", 2, "second YAML document"),
        ("a:\n\tb: 1\n", 2, "not valid YAML"),
        ("a: [1, 2\nb: 3\n", 2, "not valid YAML"),
        ("a: 'never closed\n", 2, "not valid YAML"),
        ("a: 1\n  b: 2\n", 2, "not valid YAML"),
        ("a: @x\n", 1, "not valid YAML"),
        ("a: %x\n", 1, "not valid YAML"),
        ('a: "\\q"\n', 1, "not valid YAML"),
        ('a: "\\ud800"\n', 1, "not valid YAML"),
        ("a: 1\nb\n", 3, "not valid YAML"),
        ("a: " + "[" * 60 + "]" * 60, 1, "levels deep"),
        ("- " * 10_000, 1, "levels deep"),
        ("[" * 500_000, 1, "levels deep"),
        ("{a: " * 500 + "}" * 500, 1, "levels deep"),
    ],
    ids=lambda value: repr(value[:20]) if isinstance(value, str) else None,
)
def test_unusable_yaml_is_refused_with_its_line(text: str, line: int, words: str) -> None:
    problem = only_problem(text)
    assert words in problem.message
    assert problem.line == line


@each_row(
    "text",
    [
        "a: 1\nb: !!set {x, y}\n",
        "a: 1\nb: !!python/object/apply:os.system [ls]\n",
        "a: 1\nb: !!python/object:os.path {}\n",
        "a: 1\nb: !custom {}\n",
    ],
)
def test_tag_on_a_collection_is_refused(text: str) -> None:
    problem = only_problem(text)
    assert "the tag" in problem.message
    assert problem.line == 2


def test_tags_of_plain_collections_are_accepted() -> None:
    assert tree("a: !!map {b: !!seq [1]}") == {"a": {"b": [1]}}


@each_row("character", ["\0", "\a", "\x1b", "\x7f", "\x9b", "\ufffe", "\uffff"], ids=ascii)
def test_control_character_is_refused_with_its_line_and_advice(character: str) -> None:
    problem = only_problem(f"loop:\n  ai_cmd: a{character}b\n")
    assert "not allowed" in problem.message
    assert problem.line == 2
    assert problem.suggestion


@each_row(
    "data,line",
    [
        (b"a: 1\nb: \xff\n", 2),
        (b"a: 1\n\nb: caf\xe9\n", 3),
        (b"a: \xed\xa0\x80\n", 1),
        (b"a: \xc0\x80\n", 1),
        ("a: 1\n".encode("utf-16"), 1),
        ("a: 1\n".encode("utf-32"), 1),
    ],
    ids=["stray byte", "latin-1", "surrogate", "overlong", "utf-16", "utf-32"],
)
def test_file_that_is_not_utf_8_is_refused(data: bytes, line: int) -> None:
    problem = only_problem(data)
    assert problem.message == "the file is not UTF-8 text"
    assert problem.line == line
    assert problem.suggestion == "Save it as UTF-8"


def test_byte_order_mark_is_ignored() -> None:
    assert tree(b"\xef\xbb\xbfa: 1\n") == {"a": 1}


@each_row(
    "data",
    [b"", b"\n", b"# nothing\n", b"---\n", b"---\n...\n", b"\xef\xbb\xbf", b"   \n", b"null", b"~"],
)
def test_empty_file_is_an_empty_document(data: bytes) -> None:
    assert tree(data) is None


def test_directives_and_an_explicit_end_are_accepted() -> None:
    assert tree("%YAML 1.2\n---\na: 1\n...\n") == {"a": 1}


def test_largest_file_is_read_and_a_larger_one_is_refused() -> None:
    text = b"a: 1\n#"
    assert tree(text + b"x" * (LARGEST_FILE - len(text))) == {"a": 1}
    problem = only_problem(text + b"x" * (LARGEST_FILE - len(text) + 1))
    assert "larger than 1,048,576 bytes" in problem.message


def multiplying_aliases(levels: int) -> str:
    """Return lists that each repeat the one before ten times."""
    lines = ["l0: &l0 [ha, ha, ha, ha, ha, ha, ha, ha, ha, ha]"]
    lines += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join(lines)


def test_aliases_that_multiply_are_refused() -> None:
    problem = only_problem(multiplying_aliases(50))
    assert "multiply" in problem.message
    assert problem.line == 5


def test_aliases_that_multiply_a_little_are_accepted() -> None:
    found = tree(multiplying_aliases(3))
    assert isinstance(found, dict)
    assert len(found["l2"]) == len(found["l2"][0]) == len(found["l2"][0][0]) == 10


@pytest.mark.real
def test_error_of_a_long_list_does_not_mention_aliases() -> None:
    root, problems = parse(b"a: [" + b"1," * 100_001 + b"1]", FILE)
    assert root is not None or "alias" not in problems[0].message


def nested_aliases(levels: int) -> str:
    """Return anchors that are each within the limit of depth and nest the one before."""
    lines = ["t0: &t0 " + "[" * 45 + "]" * 45]
    lines += [f"t{n}: &t{n} " + "[" * 45 + f"*t{n - 1}" + "]" * 45 for n in range(1, levels)]
    return "\n".join(lines)


@pytest.mark.parametrize("levels", [3, 30, 300])
def test_aliases_cannot_nest_deeper_than_the_limit(levels: int) -> None:
    assert "levels deep" in only_problem(nested_aliases(levels)).message
