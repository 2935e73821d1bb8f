"""From what was printed to the test results in it."""

from collections.abc import Callable, Iterable

from rooda.testresults.clean import decode, plain
from rooda.testresults.combine import combine
from rooda.testresults.events import unwrapped
from rooda.testresults.lines import lines
from rooda.testresults.parser import Parser
from rooda.testresults.quick import LIMIT, may_tell
from rooda.testresults.suites import Suite
from rooda.testresults.types import TestResults

Parsers = Iterable[Callable[[], Parser]]


def read(text: str, parsers: Parsers | None = None) -> TestResults | None:
    """The test results in the last megabytes of a text; None when there are none."""
    return combine(_suites(text, parsers))


def read_bytes(tail: bytes, limit: int = LIMIT) -> TestResults | None:
    """The same from what a program printed; a first line that was cut off is left out."""
    return read(_text(tail, limit))


def read_outputs(*outputs: bytes) -> TestResults | None:
    """The same from several outputs, the later ones last: the agent's streams, then verify's.

    Different runners add up. What a later output has of a runner replaces all that the earlier
    ones have of it, as a later run in the same output does.
    """
    told = [output for output in outputs if may_tell(output)]
    return combine(*(_suites(_text(output, LIMIT)) for output in told))


def _suites(text: str, parsers: Parsers | None = None) -> list[Suite]:
    """All that the parsers find, in no particular order."""
    from rooda.testresults.registry import PARSERS  # noqa: PLC0415 - hundreds of patterns to compile

    if len(text) > LIMIT:
        text = text[-LIMIT:].partition("\n")[2]
    text = plain(unwrapped(text))
    # Most parsers have nothing to find: their words aren't there.
    every = (parser() for parser in parsers or PARSERS)
    active = [parser for parser in every if any(mark in text for mark in parser.marks)]
    for line in lines(text) if active else ():
        for parser in active:
            parser.feed(line)
    return [suite for parser in active for suite in parser.finish()]


def _text(tail: bytes, limit: int) -> str:
    if len(tail) > limit:
        tail = tail[-limit:].partition(b"\n")[2]
    return decode(tail)
