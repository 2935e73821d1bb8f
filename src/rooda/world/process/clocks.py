"""The time limits of a running program: when each clock expires, and on what evidence.

All times are those of a `Stopwatch`.
"""

from collections.abc import Sequence
from enum import Enum

from msgspec import Struct

from rooda.base.numbers import approximate_size
from rooda.base.times import format_seconds

BUSY = 0.02  # the share of one core from which on a process tree counts as working
_CHECKS = 8  # of the tree's CPU time within one idle limit
_SHORTEST_PACE, _LONGEST_PACE = 0.05, 30.0


class Since(Enum):
    """What a clock counts from."""

    START = "start"
    FIRST_OUTPUT = "first output"  # from the start, and off after the first output
    ACTIVITY = "activity"
    RESULT = "result"  # off until the program has reported its result


class Clock(Struct, frozen=True):
    """A limit in seconds and its name.

    `setting` is the limit that the user wrote, where a part of it was used up before the start.
    """

    name: str
    limit: float
    since: Since
    setting: float | None = None

    @property
    def shown(self) -> float:
        """The limit for messages."""
        return self.limit if self.setting is None else self.setting


class ClockFacts(Struct, frozen=True):
    """What is known of a program at one moment, as far as clocks depend on it."""

    began: float
    last_output: float | None = None
    printed: int = 0
    last_activity: float = 0.0
    cpu: float = 0.0  # seconds that the tree used between the last two measurements
    result_at: float | None = None


def expires_at(clock: Clock, facts: ClockFacts) -> float | None:
    """When the clock expires if nothing happens before; None while the clock is off."""
    since = {
        Since.START: facts.began,
        Since.FIRST_OUTPUT: None if facts.printed else facts.began,
        Since.ACTIVITY: facts.last_activity,
        Since.RESULT: facts.result_at,
    }[clock.since]
    return None if since is None else since + clock.limit


def expired(clocks: Sequence[Clock], facts: ClockFacts, now: float) -> Clock | None:
    """The clock that expired first, or None."""
    late = [
        (at, clock)
        for clock in clocks
        if (at := expires_at(clock, facts)) is not None and at <= now
    ]
    return min(late, key=lambda pair: pair[0])[1] if late else None


def evidence(clock: Clock, facts: ClockFacts, now: float) -> str:
    """What rooda saw of the program when the clock expired."""
    if clock.since is Since.RESULT:
        return "it printed its result, but did not exit"
    if facts.last_output is None:
        printed = "nothing was printed"
    else:
        ago = format_seconds(round(now - facts.last_output, 1))
        printed = f"{approximate_size(facts.printed)} printed, the last {ago} ago"
    if clock.since is not Since.ACTIVITY:
        return printed
    used = f"its processes used {facts.cpu:.2f}s of CPU time between the last two checks"
    return f"{printed}; {used}; no file changed"


class CpuActivity:
    """Tells from the CPU time, measured now and then, whether a silent process tree is working.

    Silence is no proof of a hang: most programs print once, at their end.
    """

    def __init__(self, limit: float, now: float) -> None:
        self._pace = min(_LONGEST_PACE, max(_SHORTEST_PACE, limit / _CHECKS))
        self._measured: tuple[float, float] | None = None
        self.used = 0.0  # seconds of CPU between the last two measurements
        self.next_check = now
        self.is_asked = False

    def ask(self) -> None:
        """Note that the warden was asked for the CPU time; its answer comes as a message."""
        self.is_asked, self.next_check = True, float("inf")

    def take(self, cpu: float, now: float) -> bool:
        """Note the tree's CPU time; whether the tree has worked since the last measurement."""
        before, self._measured = self._measured, (cpu, now)
        self.is_asked, self.next_check = False, now + self._pace
        if before is None:
            return False
        # The total can drop when a process exits unreaped. That also counts as activity.
        self.used = abs(cpu - before[0])
        return self.used > 0 and self.used >= BUSY * (now - before[1])

    def is_fresh(self, now: float) -> bool:
        """Whether the last measurement is recent enough to decide that the tree is idle."""
        return self._measured is not None and now - self._measured[1] < self._pace / 2
