"""Each test result parser on its own cases, and properties that all parsers share."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooda.world.testresults.parser import Parser
from rooda.world.testresults.read import read, read_bytes
from rooda.world.testresults.registry import PARSERS
from rooda.world.testresults.results import TestStatus
from support.outputs import RECORDED, counts
from support.properties import examples
from support.runner_cases import CASES, Case
from support.tables import each_row

ALL = each_row("parser", PARSERS, ids=lambda parser: parser.__name__)


def cases_of(parser: Callable[[], Parser]) -> list[Case]:
    return [case for case in CASES if case.parser == parser]


# -- each runner -----------------------------------------------------------------------------------


@each_row("case", CASES, ids=lambda case: f"{case.parser.__name__}: {case.about}")
def test_each_case_gives_its_counts_and_failed_names(case: Case) -> None:
    results = read(case.text)
    assert counts(results) == case.counts
    wrong = {TestStatus.FAILED, TestStatus.ERROR}
    named = [detail.name for detail in results.details if detail.status in wrong] if results else []
    assert set(named) >= set(case.failed)


@ALL
def test_each_parser_needs_no_other_parser_for_its_cases(parser: Callable[[], Parser]) -> None:
    assert cases_of(parser), "a parser needs cases in support/runner_cases.py"
    for case in cases_of(parser):
        assert counts(read(case.text, [parser])) == case.counts, case.about


def test_details_contain_the_failure_messages() -> None:
    for name, test, message in [
        ("cargo_workspace_fail_fast", "i1", "assertion `left == right` failed"),
        ("go_multi_plain", "TestBroken", "calc_test.go:4: got 4, want 5"),
        ("go_multi_json", "TestTable/two", "calc_test.go:8: bad 2"),
        ("jest_mixed", "sum › adds wrong", "Expected: 4"),
        ("maven_mixed", "CalcTest.wrong", "expected: <3> but was: <2>"),
        ("mocha_spec", "calc deep throws", "Error: 12 passing"),
        ("node_test_default_piped", "wrong", "1 !== 2"),
        ("playwright_dot", "a.spec.js:3:1 › bad", "Received: 1"),
        ("pytest_mixed_tb_short", "test_calc.py::test_param[2]", "assert 2 != 2"),
        ("rspec_documentation", "./spec/a_spec.rb:3", "Calc is wrong"),
        ("unittest_mixed", "test_mix.TMix.test_err", "KeyError: 'k'"),
        ("vitest_mixed_verbose", "sum.test.js > sum > adds wrong", "expected 3 to be 4"),
    ]:
        results = read_bytes((RECORDED / f"{name}.txt").read_bytes())
        assert results is not None
        assert any(d.name == test and message in (d.error or "") for d in results.details), name


# -- every runner ----------------------------------------------------------------------------------

PROSE = [
    "",
    "\n\n   \n",
    "Done! All tests passed and the build is green.",
    "I ran the whole suite: 148 passed, 0 failed, 2 skipped. Everything is green.",
    "Summary:\n- ✅ 10 tests passing\n- ❌ 2 tests failing (test_a, test_b)\n- 1 skipped\n",
    "| Suite | Passed | Failed |\n|-------|--------|--------|\n| unit  | 10     | 2      |\n",
    'unittest prints "Ran 5 tests in 0.002s" followed by "OK", or FAILED (failures=1).',
    '    assert "=== 10 passed, 2 failed in 0.12s ===" in banner(out)\n',
    "RESULTS:\n  Passed: 10\n  Failed: 2\n  Total: 12\n",
    "SUMMARY:\n\nTests: 12 passed, 12 total\n\nResults:\n\n12 passed\n0 failed\n",
    "+=== 5 passed in 0.12s ===\n-=== 4 passed in 0.12s ===\n",
    'print("test result: ok. 5 passed; 0 failed")\nconsole.log("3 passing (2s)")\n',
    "To run the tests: `go test ./...` prints `ok  pkg 0.1s`, or FAIL.\n",
    "1. ok 1 thing\n2. not ok yet\n",
    "No tests ran because the build failed. 3 tests were not found.\n",
    "FAIL\nPASS\nOK\nFAILED\nok\n",
    "## Test plan\n- [ ] 5 scenarios (all passed?)\n- [x] 6 examples, 2 failures\n",
    "Running 5 tests using 2 workers will take a while.\n",
    "2 tests passed\n1 test failed\n",
    "Finished in 3 seconds\n\nI fixed 3 tests, 0 failures remain.\n",
]


@each_row("text", PROSE, ids=range(len(PROSE)))
def test_prose_about_tests_gives_no_result(text: str) -> None:
    assert read(text) is None


@ALL
def test_colors_prefixes_and_line_endings_do_not_change_the_counts(
    parser: Callable[[], Parser],
) -> None:
    for case in cases_of(parser):
        lines = case.text.split("\n")
        for decorated in (
            "\r\n".join(lines),
            "\n".join(f"\x1b[32m{line}\x1b[0m" for line in lines),
            "\n".join(f"     {line}" for line in lines),
            "\n".join(f"│ {line}" for line in lines),
            "\n".join(f"> {line}" for line in lines),
            "\n".join(f"12:34:56 {line}" for line in lines),
            "\n".join(f"{number:4}→{line}" for number, line in enumerate(lines, 1)),
        ):
            assert counts(read(decorated)) == case.counts, (case.about, decorated)


@ALL
def test_output_truncated_at_any_position_raises_no_error(parser: Callable[[], Parser]) -> None:
    for case in cases_of(parser):
        for cut in range(0, len(case.text), 2):
            read(case.text[cut:], [parser])
            read(case.text[:cut], [parser])


WORDS = sorted({mark for parser in PARSERS for mark in parser().marks})
PIECES = st.sampled_from([*WORDS, *(line for case in CASES for line in case.text.split("\n"))])


@given(st.binary(max_size=2000))
def test_arbitrary_bytes_raise_no_error(data: bytes) -> None:
    read_bytes(data)


@pytest.mark.real
@examples(300)
@given(st.lists(st.one_of(PIECES, st.text(max_size=20)), max_size=30), st.sampled_from("\n \r"))
def test_any_mixture_of_lines_gives_consistent_counts_and_no_error(
    pieces: list[str], joint: str
) -> None:
    results = read(joint.join(pieces))
    if results is not None:
        assert min(counts(results) or ()) >= 0
        assert results.passed + results.failed + results.skipped <= results.total
