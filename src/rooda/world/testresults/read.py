"""Finds the test results in the output of programs."""

from collections.abc import Callable, Iterable

from rooda.world.testresults.agent_json import unwrapped
from rooda.world.testresults.census import TestCensus
from rooda.world.testresults.combine import census_of, combine
from rooda.world.testresults.output_lines import decode, lines, plain
from rooda.world.testresults.parser import Parser
from rooda.world.testresults.registry import PARSERS
from rooda.world.testresults.results import LIMIT, TestResults, may_have_results
from rooda.world.testresults.suites import Suite

Parsers = Iterable[Callable[[], Parser]]


def read(text: str, parsers: Parsers = PARSERS) -> TestResults | None:
    """Return the test results in the last megabytes of a text, or None."""
    return combine(_suites(text, parsers))


def read_bytes(tail: bytes, limit: int = LIMIT) -> TestResults | None:
    """Return the test results in the last `limit` bytes of an output, or None."""
    return read(_text(tail, limit))


def read_outputs(*outputs: bytes) -> TestResults | None:
    """Return the test results of several outputs: the agent's streams, then the verify output.

    Results of different runners add up. If a runner occurs in several outputs, its results in the
    last of them replace the earlier ones, like a later run in the same output.
    """
    worthwhile = [output for output in outputs if may_have_results(output)]
    return combine(*(_suites(_text(output, LIMIT)) for output in worthwhile))


def count_tests(output: bytes) -> TestCensus | None:
    """Return how many tests each runner had in the output of a check, or None."""
    if not may_have_results(output):
        return None
    return census_of(_suites(_text(output, LIMIT)))


def _suites(text: str, parsers: Parsers = PARSERS) -> list[Suite]:
    """Return the suites that the parsers find, in no particular order."""
    if len(text) > LIMIT:
        text = text[-LIMIT:].partition("\n")[2]
    text = plain(unwrapped(text))
    # A parser can only find results if one of its marks occurs in the text; skip the others.
    every = (parser() for parser in parsers)
    active = [parser for parser in every if any(mark in text for mark in parser.marks)]
    for line in lines(text) if active else ():
        for parser in active:
            parser.feed(line)
    return [suite for parser in active for suite in parser.finish()]


def _text(tail: bytes, limit: int) -> str:
    """Return the decoded end of an output, without a first line that the limit truncated."""
    if len(tail) > limit:
        tail = tail[-limit:].partition(b"\n")[2]
    return decode(tail)
