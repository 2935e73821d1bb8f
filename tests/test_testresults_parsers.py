"""What holds for every parser of test results, and what each of them reads."""

import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooda.iteration.types import TestStatus
from rooda.testresults import read, read_bytes
from rooda.testresults.parser import MOST_DETAILS, Parser
from rooda.testresults.read import LIMIT
from rooda.testresults.registry import PARSERS
from support.outputs import GIVEN, counts
from support.runner_cases import CASES, Case

ALL = pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.__name__)


def cases_of(parser: Callable[[], Parser]) -> list[Case]:
    return [case for case in CASES if case.parser == parser]


# -- each runner -----------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parser.__name__}: {case.about}")
def test_a_runner_is_read(case: Case) -> None:
    results = read(case.text)
    assert counts(results) == case.counts
    wrong = {TestStatus.FAILED, TestStatus.ERROR}
    named = [detail.name for detail in results.details if detail.status in wrong] if results else []
    assert set(named) >= set(case.failed)


@ALL
def test_each_parser_reads_its_cases_alone(parser: Callable[[], Parser]) -> None:
    assert cases_of(parser), "a parser needs cases in support/runner_cases.py"
    for case in cases_of(parser):
        assert counts(read(case.text, [parser])) == case.counts, case.about


def test_messages_are_read() -> None:
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
        results = read_bytes((GIVEN / f"{name}.txt").read_bytes())
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


@pytest.mark.parametrize("text", PROSE, ids=range(len(PROSE)))
def test_talk_about_tests_is_no_result(text: str) -> None:
    assert read(text) is None


@ALL
def test_colours_prefixes_and_line_ends_change_no_answer(parser: Callable[[], Parser]) -> None:
    for case in cases_of(parser):
        lines = case.text.split("\n")
        for disguised in (
            "\r\n".join(lines),
            "\n".join(f"\x1b[32m{line}\x1b[0m" for line in lines),
            "\n".join(f"     {line}" for line in lines),
            "\n".join(f"│ {line}" for line in lines),
            "\n".join(f"> {line}" for line in lines),
            "\n".join(f"12:34:56 {line}" for line in lines),
            "\n".join(f"{number:4}→{line}" for number, line in enumerate(lines, 1)),
        ):
            assert counts(read(disguised)) == case.counts, (case.about, disguised)


@ALL
def test_an_output_can_be_cut_anywhere(parser: Callable[[], Parser]) -> None:
    for case in cases_of(parser):
        for cut in range(len(case.text)):
            read(case.text[cut:], [parser])
            read(case.text[:cut], [parser])


WORDS = sorted({mark for parser in PARSERS for mark in parser().marks})
PIECES = st.sampled_from([*WORDS, *(line for case in CASES for line in case.text.split("\n"))])


@given(st.binary(max_size=2000))
def test_any_bytes_are_no_error(data: bytes) -> None:
    read_bytes(data)


@settings(max_examples=300)
@given(st.lists(st.one_of(PIECES, st.text(max_size=20)), max_size=30), st.sampled_from("\n \r"))
def test_any_mixture_of_lines_is_no_error(pieces: list[str], joint: str) -> None:
    results = read(joint.join(pieces))
    if results is not None:
        assert min(counts(results) or ()) >= 0
        assert results.passed + results.failed + results.skipped <= results.total


# -- hostile output --------------------------------------------------------------------------------


def test_details_are_bounded() -> None:
    many = "".join(f"FAILED t.py::test_{number} - {'x' * 3000}\n" for number in range(3000))
    results = read(many + "3000 failed in 1.00s\n")
    assert results is not None
    assert len(results.details) == MOST_DETAILS
    assert all(len(detail.error or "") <= 1000 for detail in results.details)


def test_numbers_are_bounded() -> None:
    assert counts(read(f"{'9' * 3000} passed in 0.10s\n")) in {None, (0, 0, 0, 0)}


SMALL = 64 * 1024
HOSTILE = {
    "one line of spaces": " ",
    "one line of digits": "1",
    "one line of words": "1 passed ",
    "one line of brackets": "[({",
    "one line of escapes": "\x1b[",
    "one line of quotations": "> ",
    "one line of JSON": '{"Action":',
    "lines of spaces": " " * 4000 + "passed\n",
    "lines of digits": "1" * 4000 + "\n",
    "lines of dots": "." * 4000 + " [1%]\n",
    "lines of names": "a::" * 1300 + " FAILED\n",
    "lines of dashes": "FAILED a.py::b[" + " - " * 1300 + "\n",
    "lines of arrows": "a > " * 1000 + "PASSED\n",
    "lines of colons": "a: " * 1300 + "\n",
    "lines of rules": "=" * 80 + "\n",
    "lines of quotation marks": '"' * 4000 + "\n",
    "short lines": "a\n",
    "blank lines": "\n",
    "points": "ok 1 a\n",
    "deeper and deeper points": "".join(f"{' ' * depth}ok 1 a\n" for depth in range(100)),
    "lines of a dot": ".\n",
    "tests that did not run": "".join(f"{n} - t{n} (Skipped)\n" for n in range(5000)),
    "open braces": "{\n",
    "open tags": "<testsuite\n",
    "small reports": "<testsuite>\n</testsuite>\n",
    "suites": "test result: ok. 1 passed; 0 failed; 0 ignored\n",
    "carriage returns": "x\r",
}


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_output_takes_linear_time(kind: str) -> None:
    """Twice the text takes about twice the time, with every parser at work."""
    wake_all = "\n".join(WORDS) + "\n"
    piece = HOSTILE[kind]

    def seconds(size: int) -> float:
        text = wake_all + piece * (size // len(piece))
        start = time.process_time()
        read(text)
        return time.process_time() - start

    once = min(seconds(SMALL) for _ in range(2))
    twice = min(seconds(2 * SMALL) for _ in range(2))
    assert twice < 4 * once + 0.2


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_as_much_as_is_read_takes_linear_time() -> None:
    pieces = "".join(f"{piece}\n" for piece in HOSTILE.values())

    def seconds(size: int) -> float:
        start = time.process_time()
        read(pieces * (size // len(pieces)))
        return time.process_time() - start

    assert seconds(LIMIT) < 4 * seconds(LIMIT // 2) + 0.2


@pytest.mark.slow
@pytest.mark.timeout(300)
@ALL
def test_longer_lines_take_linear_time(parser: Callable[[], Parser]) -> None:
    """No rule goes back and forth over a line that nearly matches."""
    heads = [line.strip() for case in cases_of(parser) for line in case.text.split("\n")]
    fillers = (" ", "1", ".", "(", ")", "-", "=", "a.", " (", " > ", "1, ", "::", "|")

    def seconds(size: int) -> float:
        lines = [
            f"{head[:cut]}{filler * (size // len(filler))} x"
            for head in heads
            for cut in range(0, len(head), 7)
            for filler in fillers
        ]
        text = "\n".join(lines[:1500])
        start = time.process_time()
        read(text, [parser])
        return time.process_time() - start

    assert min(seconds(1800) for _ in range(2)) < 3.3 * seconds(900) + 0.2


@pytest.mark.slow
@pytest.mark.timeout(300)
@ALL
def test_a_parser_takes_linear_time(parser: Callable[[], Parser]) -> None:
    """Lines of its own, cut, repeated and strung together, are no harder for it."""
    text = "".join(case.text for case in cases_of(parser))
    for piece in (text + "\n", text.replace("\n", " "), text[: len(text) // 2], text[::-1] + "\n"):

        def seconds(size: int, piece: str = piece) -> float:
            start = time.process_time()
            read(piece * (size // len(piece)), [parser])
            return time.process_time() - start

        assert min(seconds(2 * SMALL) for _ in range(2)) < 4 * seconds(SMALL) + 0.2
