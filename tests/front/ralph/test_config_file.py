"""The `config` file of ralph: parsed like shell assignments, and never executed."""

import time

from hypothesis import given
from hypothesis import strategies as st

from rooda.base.templates import SHELL, fill
from rooda.front.ralph.config_file import (
    KEYS,
    LARGEST_FILE,
    MOST_FINDINGS,
    ConfigFinding,
    RalphConfig,
    read_config,
)
from support.properties import examples
from support.tables import each_row

FILE = ".ralph/config"


def config(content: str | bytes) -> RalphConfig:
    """Return the settings of a valid file."""
    found, findings = read_config(content.encode() if isinstance(content, str) else content, FILE)
    assert findings == []
    return found


def findings(content: str | bytes) -> list[ConfigFinding]:
    return read_config(content.encode() if isinstance(content, str) else content, FILE)[1]


def only(content: str | bytes) -> ConfigFinding:
    (finding,) = findings(content)
    return finding


def test_whole_file_is_read() -> None:
    found = config(
        "# ralph's settings\n"
        "\n"
        "export PROJECT_ROOT=/srv/app   # where it is\n"
        "SPECS_DIR='docs/specs'\n"
        'AGENT_CLI="claude"\n'
        'AGENT_ARGS="-p --model \\"opus\\" --flag"\n'
        "  DEFAULT_MAX_ITERATIONS=25\n"
        "MAX_RETRIES='2'\n"
        "TEST_COMMAND=\"pytest -k 'a and b'\""
    )
    assert found.project_root == "/srv/app"
    assert found.specs_dir == "docs/specs"
    assert found.agent_cli == "claude"
    assert found.agent_args == '-p --model "opus" --flag'
    assert found.default_max_iterations == 25
    assert found.max_retries == 2
    assert found.test_command == "pytest -k 'a and b'"
    assert found.lines["AGENT_ARGS"] == 6


@each_row(
    "written,text",
    [
        ("plain", "plain"),
        ("'single $HOME'", "single $HOME"),
        ('"double"', "double"),
        ('"a \\"b\\" \\\\ c"', 'a "b" \\ c'),
        ('"a\\nb"', "a\\nb"),  # before other letters a backslash is an ordinary character
        ("a\\ b", "a b"),
        ("a\\'b", "a'b"),
        ("one'two'\"three\"", "onetwothree"),
        ("'it'\\''s'", "it's"),
        ("a#b", "a#b"),
        ("#a", "#a"),
        ("'a # b'", "a # b"),
        ("a # b 'c", "a"),
        ("a\t# b", "a"),
        ("a=b=c", "a=b=c"),
        ("Käse✓", "Käse✓"),
        ("'\\$HOME'", "\\$HOME"),
        ('"\\$HOME"', "$HOME"),
        ("a   ", "a"),
    ],
)
def test_quotes_are_removed_as_a_shell_does(written: str, text: str) -> None:
    assert config(f"AGENT_ARGS={written}\n").agent_args == text


@each_row(
    "content",
    [
        b"MAX_RETRIES=7",
        b"MAX_RETRIES=7\r\nSPECS_DIR=s\r\n",
        b"\xef\xbb\xbfMAX_RETRIES=7\n",
        b"\r\n\r\n  \t\r\nMAX_RETRIES=7\r",
        b"   # x\n\tMAX_RETRIES=7\n",
    ],
)
def test_line_endings_blanks_and_byte_order_mark_are_ignored(content: bytes) -> None:
    assert config(content).max_retries == 7


def test_empty_file_sets_nothing() -> None:
    assert config("") == RalphConfig()
    assert config("# only words\n\n") == RalphConfig()


def test_empty_test_command_is_not_the_same_as_a_missing_one() -> None:
    assert config("").test_command is None
    for empty in ("", "''", '""', "  # no tests", '"  "'):
        assert config(f"TEST_COMMAND={empty}\n").test_command == ""


def test_empty_value_of_another_key_counts_as_missing() -> None:
    keys = [key for key in KEYS if key != "TEST_COMMAND"]
    found = config("".join(f'{key}=""\n' for key in keys))
    assert {getattr(found, key.lower()) for key in keys} == {None}


def test_unquoted_words_are_joined_with_a_warning() -> None:
    found, (finding,) = read_config(b'TEST_COMMAND=pytest -k "a b" # all\n', FILE)
    assert found.test_command == 'pytest -k "a b"'
    assert not finding.is_error
    assert (finding.line, finding.key) == (1, "TEST_COMMAND")
    assert "quotes" in finding.suggestion


@each_row("text", ["$HOME/x", "${HOME}", "$(id)", "`id`", '"$HOME"', '"`id`"', "$1"])
def test_variables_are_not_expanded_with_a_warning(text: str) -> None:
    found, (finding,) = read_config(f"PROJECT_ROOT={text}\n".encode(), FILE)
    assert found.project_root == text.strip('"')
    assert not finding.is_error
    assert "not expanded" in finding.message


@each_row("text", ["'$HOME'", '"\\$HOME"', "\\$HOME", "a$", "'`x`'", "5$"])
def test_literal_dollar_gives_no_warning(text: str) -> None:
    assert config(f"PROJECT_ROOT={text}\n").project_root


def test_dollar_in_the_test_command_gives_no_warning() -> None:
    assert config('TEST_COMMAND="pytest $ARGS"\n').test_command == "pytest $ARGS"


@each_row(
    "key,guess",
    [
        ("TEST_COMAND", "TEST_COMMAND"),
        ("max_retries", "MAX_RETRIES"),
        ("SPEC_DIR", "SPECS_DIR"),
        ("ZEBRA", "known keys: PROJECT_ROOT"),
    ],
)
def test_unknown_key_is_an_error_with_a_suggestion(key: str, guess: str) -> None:
    found, (finding,) = read_config(f"\n{key}=1\n".encode(), FILE)
    assert found == RalphConfig()
    assert (finding.line, finding.key, finding.is_error) == (2, key, True)
    assert guess in finding.suggestion
    assert finding.file == FILE


def test_last_of_two_assignments_wins_with_a_warning() -> None:
    found, (finding,) = read_config(b"MAX_RETRIES=1\n#\nMAX_RETRIES=2\n", FILE)
    assert found.max_retries == 2
    assert found.lines == {"MAX_RETRIES": 3}
    assert (finding.line, finding.is_error) == (3, False)
    assert "line 1" in finding.message


@each_row(
    "line,word",
    [
        ("just words", "KEY=VALUE"),
        ("export", "KEY=VALUE"),
        ("export MAX_RETRIES", "KEY=VALUE"),
        ("source other", "KEY=VALUE"),
        ("MAX_RETRIES+=1", "KEY=VALUE"),
        ("2X=1", "KEY=VALUE"),
        ("=1", "KEY=VALUE"),
        ("MAX_RETRIES =1", "before"),
        ("MAX_RETRIES= 1", "after"),
        ("MAX_RETRIES = 1", "before"),
        ("AGENT_CLI='claude", "quote"),
        ('AGENT_CLI="claude', "quote"),
        ("AGENT_CLI=it's", "quote"),
        ("AGENT_CLI=claude\\", "backslash"),
        ("AGENT_CLI=a\x00b", "control"),
        ("AGENT_CLI=a\x1b[2Jb", "control"),
        ("MAX_RETRIES=0", "1 or more"),
        ("MAX_RETRIES=three", "whole number"),
        ("MAX_RETRIES=-1", "whole number"),
        ("MAX_RETRIES=1.5", "whole number"),
        ("MAX_RETRIES=3;", "whole number"),
        ("DEFAULT_MAX_ITERATIONS=٣", "whole number"),
        ("DEFAULT_MAX_ITERATIONS=99999999999", "at most"),
        ("DEFAULT_MAX_ITERATIONS=" + "9" * 5000, "whole number"),
    ],
)
def test_invalid_line_is_an_error_with_its_number(line: str, word: str) -> None:
    finding = only(f"# first\nSPECS_DIR=s\n{line}\n")
    assert finding.is_error
    assert finding.line == 3
    assert word in finding.message
    assert finding.suggestion
    assert len(finding.message) < 200
    assert finding.message.isprintable()


def test_all_problems_are_reported_at_once_and_valid_lines_are_read() -> None:
    found, problems = read_config(
        b"AGENT_CLI='x\nMAX_RETRIES=x\nNOPE=1\n\xff=1\nSPECS_DIR=s\n", FILE
    )
    assert [problem.line for problem in problems if problem.is_error] == [1, 2, 3, 4]
    assert "UTF-8" in problems[3].message
    assert found.specs_dir == "s"


def test_file_that_is_too_large_is_not_read() -> None:
    found, (finding,) = read_config(b"SPECS_DIR=s\n" + b"#" * LARGEST_FILE, FILE)
    assert found == RalphConfig()
    assert finding.is_error


@each_row(
    "unit",
    [b"A=1\n", b"\n", b"'a'", b"A=", b'"\\', b"\xff\n", b"MAX_RETRIES=1\n", b"A='x' "],
    ids=repr,
)
def test_hostile_file_is_read_in_linear_time_with_a_bounded_number_of_problems(unit: bytes) -> None:
    content = b"AGENT_ARGS=" + unit * (200_000 // len(unit))
    started = time.process_time()
    assert len(findings(content)) <= MOST_FINDINGS + 2
    assert time.process_time() - started < 3


@examples(60)
@given(st.binary(max_size=300) | st.text("AGENT_CLI='\"\\ #$`\n\r=x", max_size=80).map(str.encode))
def test_any_file_is_read_or_refused(data: bytes) -> None:
    found, problems = read_config(data, FILE)
    assert isinstance(found, RalphConfig)
    last = data.count(b"\n") + data.count(b"\r") + 1
    assert all(1 <= problem.line <= last and problem.message for problem in problems)


@examples(60)
@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1))
def test_any_value_in_single_quotes_is_read_back(text: str) -> None:
    quoted = text.replace("'", "'\\''")
    assert config(f"AGENT_ARGS='{quoted}'\n").agent_args == (text.strip() or None)


@each_row(
    "text,result",
    [
        ("${MODE}", "build"),
        ("a ${MODE} b ${MODE}", "a build b build"),
        ("$MODE", "$MODE"),
        ("${OTHER}", "${OTHER}"),
        ("${MODE:-x}", "${MODE:-x}"),
        ("$${MODE}", "$${MODE}"),
        ("${ MODE }", "${ MODE }"),
        ("${mode}", "${mode}"),
        ("${}", "${}"),
        ("${MODE", "${MODE"),
        ("${${MODE}}", "${build}"),
        ("${TRICKY}", "${MODE} \\1 $$"),
        ("`${MODE}`\n", "`build`\n"),
    ],
)
def test_only_given_names_are_replaced(text: str, result: str) -> None:
    assert fill(text, {"MODE": "build", "TRICKY": "${MODE} \\1 $$"}, SHELL) == result


@examples(60)
@given(st.text("${}MODE:- \n"))
def test_without_names_a_prompt_is_unchanged(text: str) -> None:
    assert fill(text, {}, SHELL) == text
