"""Outputs of real test runners: the recorded outputs, and how several results are combined."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from rooda.world.testresults.read import read, read_bytes
from rooda.world.testresults.results import TestDetail, TestResults, TestStatus
from support.outputs import (
    RECORDED,
    Counts,
    Output,
    counts,
    handwritten_outputs,
    other_recorded_outputs,
    printed_outputs,
    recorded_outputs,
)
from support.tables import each_row

WRONG = (TestStatus.FAILED, TestStatus.ERROR)
FIELDS = ("total", "passed", "failed", "skipped")

# Names that an output does not print, or prints in another form.
OTHER_NAMES = {
    "compound_cargo_then_pytest.txt": ["test_xstrict"],
    "pytest_xfail_xpass.txt": ["test_xstrict"],
    "tox_two_envs.txt": ["../py/mix/test_calc.py::test_bad_sum"],
    "ui_claude_cargo_tail.txt": [],
}


def by_name(case: object) -> str | None:
    return case.path.name if isinstance(case, Output) else ""


def failed_names(results: TestResults) -> set[str]:
    return {detail.name for detail in results.details if detail.status in WRONG}


# -- recorded outputs --------------------------------------------------------------------------


@each_row("output,case", recorded_outputs(), ids=by_name)
def test_recorded_outputs_give_the_counts_and_names_of_the_manifest(
    output: Output, case: dict[str, Any]
) -> None:
    """A null in the manifest is a count that the runner did not print; rooda's is a lower bound."""
    results = output.read()
    if case["has_results"] == "partial":
        return
    if not case["has_results"]:
        assert results is None
        return
    assert results is not None
    readings = [
        all(reading[field] in {None, getattr(results, field)} for field in FIELDS)
        for reading in (case, *case.get("alt", []))
    ]
    assert any(readings), counts(results)
    expected = OTHER_NAMES.get(case["file"], case["failed_names"])
    assert failed_names(results) >= set(expected)


@each_row("output,expected", [*other_recorded_outputs(), *handwritten_outputs()], ids=by_name)
def test_other_recorded_and_handwritten_outputs_give_the_listed_counts(
    output: Output, expected: Counts | None
) -> None:
    assert counts(output.read()) == expected


@each_row("output,case", recorded_outputs(), ids=by_name)
def test_all_passed_is_true_only_for_successful_recorded_runs(
    output: Output, case: dict[str, Any]
) -> None:
    results = output.read()
    if results is not None:
        assert results.all_passed() == (case["outcome"] == "pass")


def test_packages_or_tasks_count_as_one_test_each_when_the_runner_prints_no_counts() -> None:
    plain = read("ok  \texample.com/m/a\t0.003s\nok  \texample.com/m/b\t(cached)\n")
    assert counts(plain) == (2, 2, 0, 0)
    assert counts(read(":compileJava\n:test\n\nBUILD SUCCESSFUL in 5s\n")) == (1, 1, 0, 0)


# -- decorations around the lines ----------------------------------------------------------------


def before_each(prefix: str, first: str | None = None) -> Callable[[str], str]:
    def decorate(text: str) -> str:
        head, *rest = text.split("\n")
        return "\n".join([(first or prefix) + head, *(prefix + line for line in rest)])

    return decorate


def numbered(pattern: str) -> Callable[[str], str]:
    return lambda text: "\n".join(
        pattern.format(number, line) for number, line in enumerate(text.split("\n"), 1)
    )


def around_each(before: str, after: str) -> Callable[[str], str]:
    return lambda text: "\n".join(before + line + after for line in text.split("\n"))


def in_a_box(text: str) -> str:
    return "\n".join(f"│ {_bare(line):200} │" for line in text.split("\n"))


def _bare(line: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\(B", "", line)


DECORATIONS: dict[str, Callable[[str], str]] = {
    "carriage returns": lambda text: text.replace("\n", "\r\n"),
    "indentation": before_each("        "),
    "Claude Code": before_each("     ", first="  ⎿  "),
    "a box": in_a_box,
    "a bar": before_each("│ "),
    "ASCII bar": before_each("  | "),
    "a quotation": before_each("> "),
    "nested quotation": before_each("> > "),
    "tree branch": before_each("    ", first="  └ "),
    "the stream": before_each("[stdout] "),
    "concurrently": before_each("[0] "),
    "the time": before_each("12:34:56 "),
    "the time in brackets": before_each("[12:34:56.789] "),
    "the date": before_each("2026-11-15T07:15:32.696Z "),
    "logger date": before_each("2026-11-15 07:15:32,696 "),
    "GitHub log": before_each("test\tRun tests\t2026-11-15T07:15:32.6963958Z "),
    "cat -n": numbered("{:6}\t{}"),
    "an arrow": numbered("{:6}→{}"),
    "line numbers in a margin": numbered("{:4} | {}"),
    "docker compose": before_each("app-1  | "),
    "turbo": before_each("web:test: "),
    "pnpm": before_each("packages/a test: "),
    "the time in a bar": before_each("│ 12:34:56 "),
    "GitLab log": before_each("2026-11-15T07:15:32.696395Z 01O "),
    "docker build": before_each("#12 3.456 "),
    "git push": before_each("remote: "),
    "lerna": before_each("@acme/web: "),
    "concurrently, by name": before_each("[web] "),
    "act": before_each("[CI/unit tests]   | "),
    "bat": numbered("{:4}   │ {}"),
    "code fence": lambda text: f"It says:\n\n```text\n{text}\n```\n\nSo 3 passed.\n",
    "colours": around_each("\x1b[1;31m", "\x1b[0m"),
    "8-bit color codes": around_each("\x9b38;5;1m", "\x9b0m"),
    "character sets": around_each("\x1b(B", "\x1b(B\x1b[m"),
    "links": around_each("\x1b]8;;https://example.com\x1b\\", "\x1b]8;;\x07"),
    "progress before": lambda text: "\rbuilding 1/2\rbuilding 2/2\r\n" + text,
    "words before": lambda text: "I will run the tests now: 3 passed, 4 failed.\n\n" + text,
    "words after": lambda text: text + "\nAll 12 tests passed:\n- 12 passed\n- 3 failed\n",
}


@pytest.mark.long
@each_row("name", DECORATIONS)
def test_decorations_of_agents_and_log_viewers_do_not_change_the_counts(name: str) -> None:
    for output in printed_outputs():
        moves_the_cursor = output.path.name == "bats_pretty.txt"
        if not (moves_the_cursor and name == "a box"):
            decorated = read(DECORATIONS[name](output.text))
            assert counts(decorated) == counts(output.read()), output.path.name


def test_byte_9b_starts_a_control_sequence() -> None:
    summary = b"\x9b32m1 passed\x9b0m in 0.12s, \xff\n".replace(b", \xff", b"")
    assert counts(read_bytes(summary)) == (1, 1, 0, 0)


def test_invalid_utf8_in_names_is_replaced() -> None:
    results = read_bytes(b"FAILED t.py::test_\xff - \xfe\n1 failed in 0.12s\n")
    assert results is not None
    assert results.details == (TestDetail("t.py::test_\ufffd", TestStatus.FAILED, error="\ufffd"),)


# -- several results -----------------------------------------------------------------------------

PASSING_PYTEST = "===== 2 passed in 0.10s =====\n"
FAILING_PYTEST = "FAILED a.py::test_b - no\n===== 1 failed, 1 passed in 0.10s =====\n"
CARGO = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out\n"
JEST = "Test Suites: 1 passed, 1 total\nTests:       3 passed, 3 total\n"
GO = "ok  \texample.com/{}\t0.01s\n"


@each_row(
    "text,expected",
    [
        pytest.param(FAILING_PYTEST + PASSING_PYTEST, (2, 2, 0, 0), id="same runner again"),
        pytest.param(
            PASSING_PYTEST + FAILING_PYTEST, (2, 1, 1, 0), id="same runner again, with a failure"
        ),
        pytest.param(CARGO + CARGO, (8, 6, 0, 2), id="two binaries"),
        pytest.param(
            CARGO + "\n● Once more.\n\n" + CARGO, (4, 3, 0, 1), id="cargo again in another command"
        ),
        pytest.param(
            f"$ cargo test\n{CARGO}$ pytest\n{PASSING_PYTEST}", (6, 5, 0, 1), id="two runners"
        ),
        pytest.param(
            f"{FAILING_PYTEST}{CARGO}{PASSING_PYTEST}", (6, 5, 0, 1), id="one of two runners again"
        ),
        pytest.param(GO.format("a") + GO.format("b"), (2, 2, 0, 0), id="two packages"),
        pytest.param(
            GO.format("a") + GO.format("b") + GO.format("a"),
            (1, 1, 0, 0),
            id="same go package again",
        ),
        pytest.param(
            f"a: commands[0]> pytest\n{PASSING_PYTEST}b: commands[0]> pytest\n{FAILING_PYTEST}",
            (4, 3, 1, 0),
            id="two tox environments",
        ),
        pytest.param(
            f"nox > Running session unit\n{PASSING_PYTEST}"
            f"nox > Running session unit\n{FAILING_PYTEST}",
            (2, 1, 1, 0),
            id="same nox session again",
        ),
        pytest.param(
            f"> a@1.0.0 test\n> jest\n\n{JEST}\n> b@1.0.0 test\n> jest\n\n{JEST}",
            (6, 6, 0, 0),
            id="npm workspaces",
        ),
        pytest.param(
            "web:test: Tests:       3 passed, 3 total\napi:test: Tests:       1 failed, 1 total\n",
            (4, 3, 1, 0),
            id="two turbo packages",
        ),
        pytest.param(
            "● Bash(npm test)\n> a@1.0.0 test\nTests:       3 passed, 3 total\n"
            "● Bash(npm run fast)\n> a@1.0.0 fast\nTests:       2 passed, 2 total\n",
            (2, 2, 0, 0),
            id="two commands of one package",
        ),
        pytest.param(
            "a:test: Ran 3 tests in 0.1s\nb:test: Ran 2 tests in 0.1s\na:test:\nb:test:\n"
            "b:test: OK\na:test: FAILED (failures=1)\n",
            (5, 4, 1, 0),
            id="two packages in parallel",
        ),
        pytest.param(
            f"{FAILING_PYTEST}<testsuite name='x'><testcase/><testcase><failure/></testcase>"
            "</testsuite>\n",
            (2, 1, 1, 0),
            id="XML report of the same run",
        ),
        pytest.param(
            f"{FAILING_PYTEST}<testsuite name='x'><testcase/></testsuite>\n",
            (3, 2, 1, 0),
            id="XML report of another run",
        ),
        pytest.param(
            f"{FAILING_PYTEST}<testsuite name='pytest'><testcase/></testsuite>\n",
            (1, 1, 0, 0),
            id="XML report of a later run",
        ),
        pytest.param(
            f"=== test session starts ===\n--- Captured stdout call ---\n{CARGO}{PASSING_PYTEST}",
            (2, 2, 0, 0),
            id="inside the output of another runner",
        ),
    ],
)
def test_later_runs_replace_earlier_ones_and_different_runners_add_up(
    text: str, expected: Counts
) -> None:
    assert counts(read(text)) == expected


def test_joined_outputs_of_different_runners_add_up() -> None:
    names = ["pytest_mixed_default.color", "cargo_workspace_ok", "jest_mixed", "ctest_mixed"]
    names += ["rspec_documentation", "mocha_spec", "playwright_dot", "unittest_mixed", "bats_tap"]
    outputs = [Output(RECORDED / f"{name}.txt") for name in names]
    for first in outputs:
        for second in outputs:
            one, other = counts(first.read()), counts(second.read())
            assert one is not None
            assert other is not None
            both = read(f"$ first\n{first.text}\n$ second\n{second.text}")
            sums = tuple(map(sum, zip(one, other, strict=True)))
            assert counts(both) == (other if first == second else sums), (first, second)


def test_repeated_run_counts_once() -> None:
    for output in [
        *printed_outputs(),
        *(output for output, _ in other_recorded_outputs() if output.path.suffix == ".txt"),
    ]:
        again = read(f"{output.text}\n● Let me run the tests again.\n\n{output.text}")
        compound = output.path.name.startswith(("compound", "ui_claude"))
        if not compound:  # compound outputs have several commands
            assert counts(again) == counts(output.read()), output.path.name


def test_details_of_a_replaced_run_are_dropped() -> None:
    results = read(FAILING_PYTEST + "\n● Fixed.\n" + PASSING_PYTEST)
    assert results is not None
    assert results.details == ()


# -- truncated outputs -----------------------------------------------------------------------------


@pytest.mark.long
def test_truncated_output_raises_no_error() -> None:
    for output in printed_outputs():
        text = output.text
        for tenth in range(1, 10):
            read(text[len(text) * tenth // 10 :])
            read(text[: len(text) * tenth // 10])


def test_truncated_first_line_is_ignored() -> None:
    line = b"=== 15 passed in 0.10s ===\n"
    assert read_bytes(line, limit=len(line)) is not None
    assert read_bytes(line + b"\n" * 5, limit=25) is None


def test_read_uses_only_the_last_megabytes_of_a_text() -> None:
    noise = f"{'compiling ' * 100}\n" * 5_000
    assert read(PASSING_PYTEST + noise) is None
    assert counts(read(noise + PASSING_PYTEST)) == (2, 2, 0, 0)


# -- the record ------------------------------------------------------------------------------------


def test_result_without_tests_is_not_a_success() -> None:
    nothing = TestResults(0, 0, 0, 0)
    assert not nothing.all_passed()
    assert nothing.success_rate() == 100.0


@each_row(
    "results,expected",
    [
        (TestResults(2, 2, 0, 0), True),
        (TestResults(3, 2, 0, 1), True),
        (TestResults(2, 1, 1, 0), False),
        (TestResults(2, 0, 0, 2), False),
        (TestResults(1, 1, 0, 0, (TestDetail("interrupted", TestStatus.ERROR),)), False),
    ],
)
def test_all_passed_requires_a_passed_test_and_no_failure(
    results: TestResults,
    expected: bool,  # noqa: FBT001 - a table column
) -> None:
    assert results.all_passed() == expected


def test_success_rate_is_the_percentage_of_passed_tests() -> None:
    assert TestResults(4, 3, 1, 0).success_rate() == 75.0
