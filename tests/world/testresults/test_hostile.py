"""Hostile output is parsed in linear time and bounded memory."""

import time
from collections.abc import Callable

import pytest

from rooda.world.testresults.parser import Parser
from rooda.world.testresults.read import read
from rooda.world.testresults.registry import PARSERS
from rooda.world.testresults.results import LIMIT as WHOLE
from rooda.world.testresults.results import MOST_DETAILS
from support.outputs import counts
from support.runner_cases import CASES
from support.tables import each_row

ALL = each_row("parser", PARSERS, ids=lambda parser: parser.__name__)
MARKS_OF_ALL_PARSERS = "".join(f"{mark}\n" for parser in PARSERS for mark in parser().marks)


LIMIT = WHOLE // 4  # large enough to tell linear from quadratic time


def lines_of(parser: Callable[[], Parser]) -> str:
    return "".join(f"{case.text}\n" for case in CASES if case.parser == parser)


def test_number_and_length_of_details_are_limited() -> None:
    many = "".join(f"FAILED t.py::test_{number} - {'x' * 3000}\n" for number in range(3000))
    results = read(many + "3000 failed in 1.00s\n")
    assert results is not None
    assert len(results.details) == MOST_DETAILS
    assert all(len(detail.error or "") <= 1000 for detail in results.details)


def test_number_with_thousands_of_digits_is_not_counted() -> None:
    assert counts(read(f"{'9' * 3000} passed in 0.10s\n")) in {None, (0, 0, 0, 0)}


# -- time ------------------------------------------------------------------------------------------


def assert_linear(seconds: Callable[[int], float], size: int) -> None:
    """Assert that four times the input takes about four times as long, not 16 times.

    The measure is processor time, because other processes hardly affect it.
    """
    once = min(seconds(size) for _ in range(3))
    assert min(seconds(4 * size) for _ in range(2)) < 8 * once + 0.05


def reading(piece: str, *parsers: Callable[[], Parser]) -> Callable[[int], float]:
    """Return a function that measures the time to parse `size` characters of repeated pieces."""

    def seconds(size: int) -> float:
        text = MARKS_OF_ALL_PARSERS + (piece * (size // len(piece) + 1))[:size]
        start = time.process_time()
        read(text, parsers or PARSERS)
        return time.process_time() - start

    return seconds


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
    "points with growing indentation": "".join(f"{' ' * depth}ok 1 a\n" for depth in range(100)),
    "lines of a dot": ".\n",
    "tests that did not run": "".join(f"{n} - t{n} (Skipped)\n" for n in range(5000)),
    "open braces": "{\n",
    "open tags": "<testsuite\n",
    "small reports": "<testsuite>\n</testsuite>\n",
    "suites": "test result: ok. 1 passed; 0 failed; 0 ignored\n",
    "carriage returns": "x\r",
    "events": '{"type":"tool_result","output":"1 passed in 0.10s\\n"}\n',
    "deep events": '{"type":' + "[" * 900 + "]" * 900 + "}\n",
    "hunks": "@@ -1,999 +1,999 @@\n",
    "labels": "".join(f"p{n}: > p{n}@1.0.0 test\np{n}: x\n" for n in range(2000)),
    "packages": "".join(f"[p{n}] 1 passed in 0.10s\n" for n in range(2000)),
}


@pytest.mark.long
@pytest.mark.timeout(300)
@each_row("kind", HOSTILE)
def test_all_parsers_together_read_hostile_output_in_linear_time(kind: str) -> None:
    assert_linear(reading(HOSTILE[kind]), 16 * 1024)


@pytest.mark.long
@pytest.mark.timeout(300)
@ALL
def test_each_parser_reads_its_own_lines_in_linear_time(parser: Callable[[], Parser]) -> None:
    """The lines are repeated, joined into one line, truncated and reversed."""
    text = lines_of(parser)
    for piece in (text, text.replace("\n", " "), text[: len(text) // 2], f"{text[::-1]}\n"):
        assert_linear(reading(piece, parser), 16 * 1024)


@pytest.mark.long
@pytest.mark.timeout(300)
@ALL
def test_each_parser_reads_megabytes_of_near_matches_in_linear_time(
    parser: Callable[[], Parser],
) -> None:
    """The input is megabytes of lines that nearly match."""
    lines = lines_of(parser).split("\n")
    seconds = reading("".join(f"{line} {line} {line}\n" for line in lines if line), parser)
    assert seconds(LIMIT) < 8 * seconds(LIMIT // 4) + 0.5


@pytest.mark.long
@pytest.mark.timeout(300)
@ALL
def test_no_rule_backtracks_quadratically_on_a_near_match(
    parser: Callable[[], Parser],
) -> None:
    heads = [line.strip() for line in lines_of(parser).split("\n")]
    fillers = (" ", "1", ".", "(", ")", "-", "=", "a.", " (", " > ", "1, ", "::", "|", "--- ")

    def seconds(length: int) -> float:
        lines = (
            f"{head[:cut]}{filler * (length // len(filler))} x"
            for head in heads
            for cut in range(0, len(head), 7)
            for filler in fillers
        )
        text = "\n".join(line for line, _ in zip(lines, range(1000), strict=False))
        start = time.process_time()
        read(text, [parser])
        return time.process_time() - start

    assert_linear(seconds, 480)
