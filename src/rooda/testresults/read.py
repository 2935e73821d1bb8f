"""From a text to the test results in it."""

from collections.abc import Callable, Iterable

from rooda.iteration.types import TestResults
from rooda.testresults.clean import decode, plain
from rooda.testresults.combine import combine
from rooda.testresults.lines import lines
from rooda.testresults.parser import Parser
from rooda.testresults.registry import PARSERS

LIMIT = 4 * 1024 * 1024


def read(text: str, parsers: Iterable[Callable[[], Parser]] = PARSERS) -> TestResults | None:
    """The test results in the last megabytes of a text; None when there are none."""
    if len(text) > LIMIT:
        text = text[-LIMIT:].partition("\n")[2]
    text = plain(text)
    # Most parsers have nothing to find: their words aren't there.
    every = (parser() for parser in parsers)
    active = [parser for parser in every if any(mark in text for mark in parser.marks)]
    if not active:
        return None
    for line in lines(text):
        for parser in active:
            parser.feed(line)
    return combine(suite for parser in active for suite in parser.finish())


def read_bytes(tail: bytes, limit: int = LIMIT) -> TestResults | None:
    """The same from what a program printed; a first line that was cut off is left out."""
    if len(tail) > limit:
        tail = tail[-limit:].partition(b"\n")[2]
    return read(decode(tail))
