"""Describes the waits of a run; waits for one outage, or after failures, are one group. Pure."""

from collections.abc import Sequence

from msgspec import Struct

from rooda.base.times import format_duration
from rooda.loop.wait_kinds import known_wait
from rooda.record.rows import RecordedWait
from rooda.views.wording.labels import date_and_time
from rooda.views.wording.sentences import target_of


class WaitGroup(Struct, frozen=True):
    """The waits of a run for one and the same outage, those after failures, or a single wait."""

    last: RecordedWait
    number: int = 1
    total: float = 0.0  # seconds

    @property
    def cause(self) -> str:
        """What the run waited for, or before what."""
        return target_of(self.last)

    def joined(self, wait: RecordedWait) -> "WaitGroup":
        """Return the group with one more wait."""
        return WaitGroup(wait, self.number + 1, self.total + (wait.waited or 0.0))

    def is_continued_by(self, wait: RecordedWait) -> bool:
        """Return whether the wait is for the same outage, or both are after the same failure."""
        kind = known_wait(wait.kind)
        if kind is not None and kind.row.is_grouped:
            return (wait.kind, wait.what) == (self.last.kind, self.last.what)
        before = self.last.lasted
        if wait.lasted is None or before is None:
            return False
        return wait.lasted > before and wait.lasted >= before + (self.last.waited or 0.0)

    def __str__(self) -> str:
        """Return how long the run waited, or until when it will wait."""
        last = self.last
        if last.waited is None:
            words = f"{format_duration(last.seconds)} until {date_and_time(last.until)}"
        else:
            words = f"{format_duration(last.waited)} of {format_duration(last.seconds)}"
        if self.number > 1:
            words = f"{self.number} waits of {format_duration(self.total)}, the last {words}"
        if last.lasted is None:
            return words
        lasted = format_duration(last.lasted + (last.waited or 0.0))
        return f"{words}, in an outage of {lasted}"


def grouped_waits(waits: Sequence[RecordedWait]) -> list[WaitGroup]:
    """Return the waits of a run; those for the same outage or failure are one group."""
    found: list[WaitGroup] = []
    for wait in waits:
        if found and found[-1].is_continued_by(wait):
            found[-1] = found[-1].joined(wait)
        else:
            found.append(WaitGroup(wait, total=wait.waited or 0.0))
    return found
