"""The clocks of a program that runs: when each runs out, and on what evidence.

Time is what the program could have used: it stands still while the machine sleeps and while we
are stopped ourselves (Ctrl+Z).
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from rooda.text.numbers import approximate_size
from rooda.text.times import format_seconds

SLEPT = 1.0  # less than this is no sleep of the machine
BUSY = 0.02  # the share of one core from which on a tree counts as working
_LOOKS = 8  # at the tree within one idle limit
_SHORTEST_LOOK, _LONGEST_LOOK = 0.05, 30.0


class Since(Enum):
    """What a clock counts from."""

    START = "start"
    FIRST_OUTPUT = "first output"  # from the start, and off once something was printed
    ACTIVITY = "activity"
    RESULT = "result"  # off until somebody says that the result is in


@dataclass(frozen=True, slots=True)
class Clock:
    """A limit in seconds, and the name that it is known by.

    `setting` is the limit as people know it, where some of it was used up before.
    """

    name: str
    limit: float
    since: Since
    setting: float | None = None

    @property
    def shown(self) -> float:
        """The limit for messages."""
        return self.limit if self.setting is None else self.setting


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a program at a moment: what the clocks look at."""

    began: float
    last_output: float | None = None
    printed: int = 0
    last_activity: float = 0.0
    cpu: float = 0.0  # seconds that the tree used between the last two looks
    result_at: float | None = None


def alarm(clock: Clock, facts: Facts) -> float | None:
    """When the clock runs out, if nothing happens until then; None while it is off."""
    since = {
        Since.START: facts.began,
        Since.FIRST_OUTPUT: None if facts.printed else facts.began,
        Since.ACTIVITY: facts.last_activity,
        Since.RESULT: facts.result_at,
    }[clock.since]
    return None if since is None else since + clock.limit


def expired(clocks: Sequence[Clock], facts: Facts, now: float) -> Clock | None:
    """The clock that ran out first."""
    late = [
        (at, clock) for clock in clocks if (at := alarm(clock, facts)) is not None and at <= now
    ]
    return min(late, key=lambda pair: pair[0])[1] if late else None


def evidence(clock: Clock, facts: Facts, now: float) -> str:
    """What was seen when the clock ran out."""
    if clock.since is Since.RESULT:
        return "its result was in, and it did not exit"
    if facts.last_output is None:
        printed = "nothing was printed"
    else:
        ago = format_seconds(round(now - facts.last_output, 1))
        printed = f"{approximate_size(facts.printed)} printed, the last {ago} ago"
    if clock.since is not Since.ACTIVITY:
        return printed
    used = f"CPU time of its processes: {facts.cpu:.2f}s of late"
    return f"{printed}; {used}; no change of a file was seen"


class Stopwatch:
    """Seconds of use. `monotonic` stands still in a suspended machine, `boottime` goes on."""

    def __init__(
        self,
        monotonic: Callable[[], float] = time.monotonic,
        boottime: Callable[[], float] | None = None,
    ) -> None:
        self._monotonic = monotonic
        self._boottime = boottime or _boottime
        self._held = 0.0
        self._asleep = self._boottime() - monotonic()

    def now(self) -> float:
        """The time to compare clocks with."""
        return self._monotonic() - self._held

    def hold(self, act: Callable[[], None]) -> float:
        """Let the clocks stand still while something is done; how long that was."""
        before = self._monotonic()
        act()
        took = self._monotonic() - before
        self._held += took
        return took

    def uncounted(self) -> float:
        """Seconds that no clock has counted: of sleep, and of standing still."""
        return self._held + self._boottime() - self._monotonic()

    def slept(self) -> float:
        """How long the machine was suspended since this was last asked; 0 when it was not."""
        asleep = self._boottime() - self._monotonic()
        took, self._asleep = asleep - self._asleep, asleep
        return took if took >= SLEPT else 0.0


def _boottime() -> float:
    # On macOS this one counts sleep, and `time.monotonic` uses another that does not.
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)


class Pulse:
    """Whether a silent tree is at work: its CPU time, looked at now and then.

    Silence is no proof of a hang: most programs print once, at their end.
    """

    def __init__(self, limit: float, now: float) -> None:
        self._pace = min(_LONGEST_LOOK, max(_SHORTEST_LOOK, limit / _LOOKS))
        self._measured: tuple[float, float] | None = None
        self.used = 0.0  # seconds of CPU between the last two looks
        self.next_look = now
        self.is_asked = False

    def ask(self) -> None:
        """The CPU time was asked for; it comes in a moment."""
        self.is_asked, self.next_look = True, float("inf")

    def take(self, cpu: float, now: float) -> bool:
        """Note the CPU time; whether the tree has worked since the last look."""
        before, self._measured = self._measured, (cpu, now)
        self.is_asked, self.next_look = False, now + self._pace
        if before is None:
            return False
        # It may also shrink, when somebody ends whom nobody waits for: that is life as well.
        self.used = abs(cpu - before[0])
        return self.used > 0 and self.used >= BUSY * (now - before[1])

    def is_fresh(self, now: float) -> bool:
        """Whether the last look is so recent that it may decide."""
        return self._measured is not None and now - self._measured[1] < self._pace / 2
