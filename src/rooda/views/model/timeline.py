"""When a run did what: spans from its rows, in seconds since its start. Pure."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from rooda.loop.iteration_facts import Segment, SegmentKind
from rooda.loop.state import Status
from rooda.loop.wait_kinds import known_wait
from rooda.record.rows import IterationRow, RecordedWait, RunRow, Slept, moment_of
from rooda.views.model.summary import Span, SpanKind

_MOST = 1000  # segments or sleeps of an attempt
_LARGEST = 1e9  # seconds or dollars
_SHORTEST_PAUSE = 60.0  # seconds; a shorter gap between iterations is rooda's own work


def seconds_between(start: datetime, text: str | None) -> float | None:
    """Return the seconds from the start to a time of the record; None if that makes no sense."""
    moment = moment_of(text) if text else None
    return None if moment is None else (moment - start).total_seconds()


def spans_of(row: IterationRow, start: datetime) -> list[Span]:
    """Return how one attempt at an iteration spent its time."""
    begin = seconds_between(start, row.started_at)
    if begin is None:
        return []
    sleeps = list(_sleeps(row.slept[:_MOST], start))
    found = [Span(SpanKind.ASLEEP, at, seconds, row.number) for at, seconds in sleeps]
    for segment in row.segments[:_MOST] or _reconstructed(row):
        at, left = begin + limited(segment.start), limited(segment.seconds)
        # A segment does not count sleep: what comes after a sleep is that much later.
        for asleep, seconds in sleeps:
            if asleep <= at:
                at += seconds
            elif asleep < at + left:
                found.append(Span(SpanKind(segment.kind), at, asleep - at, row.number))
                at, left = asleep + seconds, left - (asleep - at)
        if left > 0:
            found.append(Span(SpanKind(segment.kind), at, left, row.number))
    return sorted(found, key=lambda span: span.start)


def _sleeps(slept: Iterable[Slept], start: datetime) -> Iterable[tuple[float, float]]:
    for one in slept:
        until, seconds = seconds_between(start, one.until), limited(one.seconds)
        if until is not None and seconds > 0:
            yield until - seconds, seconds


def limited(number: float | None) -> float:
    """Return seconds or dollars that make sense: an agent can write any into the record."""
    return min(max(number or 0.0, 0.0), _LARGEST)


def end_of(run: RunRow, start: datetime, now: datetime) -> float | None:
    """Return when a run ended, in seconds since its start; one that is at work goes on until now.

    None if the record does not tell.
    """
    end = seconds_between(start, run.ended_at)
    if end is None and run.status == Status.RUNNING:
        return (now - start).total_seconds()
    return end


def _reconstructed(row: IterationRow) -> list[Segment]:
    """Return the segments of a row of a version that kept none, in the order of the stages."""
    parts: list[tuple[SegmentKind, float]] = []
    before = [one for one in row.hooks if one.hook == "pre_iteration"]
    after = [one for one in row.hooks if one.hook != "pre_iteration"]
    parts.append((SegmentKind.HOOKS, sum(one.duration for one in before)))
    if row.result is not None:
        parts.append((SegmentKind.AGENT, row.result.duration_ms / 1000))
    if row.verify is not None:
        parts.append((SegmentKind.VERIFY, row.verify.duration))
    parts.append((SegmentKind.HOOKS, sum(one.duration for one in after)))
    found, at = [], 0.0
    for kind, seconds in parts:
        if seconds > 0:
            found.append(Segment(kind, at, seconds))
            at += seconds
    return found


def waits_of(run: RunRow, start: datetime, end: float) -> list[Span]:
    """Return the waits of a run; a wait that goes on lasts until `end`."""
    found = []
    for wait in run.waits or ():
        kind = known_wait(wait.kind)
        at = _begin_of(wait, start)
        if kind is None or at is None:
            continue
        is_over = wait.waited is not None
        seconds = limited(end - at if wait.waited is None else wait.waited)
        if not is_over and run.status != "running":
            seconds = min(seconds, limited(wait.seconds))
        if seconds > 0:
            found.append(Span(kind, at, seconds, wait.iteration))
    return found


def _begin_of(wait: RecordedWait, start: datetime) -> float | None:
    if wait.started_at is not None:
        return seconds_between(start, wait.started_at)
    until = seconds_between(start, wait.until)
    return None if until is None else until - limited(wait.seconds)


def pauses(busy: Sequence[tuple[float, float]]) -> list[Span]:
    """Return the times between these in which nothing happened: rooda did not run."""
    found: list[Span] = []
    last: float | None = None
    for begin, end in sorted(busy):
        if last is not None and begin - last >= _SHORTEST_PAUSE:
            found.append(Span(SpanKind.STOPPED, last, begin - last))
        last = end if last is None else max(last, end)
    return found
