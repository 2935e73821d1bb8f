"""Finds the test results in the output of programs."""

from collections.abc import Callable, Iterable

from rooda.testresults.agent_json import unwrapped
from rooda.testresults.combine import combine
from rooda.testresults.output_lines import decode, lines, plain
from rooda.testresults.parser import Parser
from rooda.testresults.registry import PARSERS
from rooda.testresults.results import LIMIT, TestResults, may_have_results
from rooda.testresults.suites import Suite

Parsers = Iterable[Callable[[], Parser]]


def read(text: str, parsers: Parsers = PARSERS) -> TestResults | None:
    """Return the test results in the last megabytes of a text; None without any."""
    return combine(_suites(text, parsers))


def read_bytes(tail: bytes, limit: int = LIMIT) -> TestResults | None:
    """Return the test results in the last `limit` bytes of an output; None without any."""
    return read(_text(tail, limit))


def read_outputs(*outputs: bytes) -> TestResults | None:
    """Return the test results in several outputs: the agent's streams, then that of verify.

    The results of different runners add up. The results of a runner in a later output replace
    its results in the earlier ones, as a later run in the same output does.
    """
    worthwhile = [output for output in outputs if may_have_results(output)]
    return combine(*(_suites(_text(output, LIMIT)) for output in worthwhile))


def _suites(text: str, parsers: Parsers = PARSERS) -> list[Suite]:
    """Return the suites that the parsers find, in no particular order."""
    if len(text) > LIMIT:
        text = text[-LIMIT:].partition("\n")[2]
    text = plain(unwrapped(text))
    # Only parsers whose words occur in the text can find results; most drop out here.
    every = (parser() for parser in parsers)
    active = [parser for parser in every if any(mark in text for mark in parser.marks)]
    for line in lines(text) if active else ():
        for parser in active:
            parser.feed(line)
    return [suite for parser in active for suite in parser.finish()]


def _text(tail: bytes, limit: int) -> str:
    """Return the decoded end of an output, without a first line that the limit cut."""
    if len(tail) > limit:
        tail = tail[-limit:].partition(b"\n")[2]
    return decode(tail)
