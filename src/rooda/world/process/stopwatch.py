"""A clock that stands still while the machine sleeps and while rooda is stopped (Ctrl+Z)."""

import time
from collections.abc import Callable

SHORTEST_SLEEP = 1.0  # seconds; a shorter gap is no sleep of the machine


class Stopwatch:
    """Counts the seconds that a program could have used.

    `monotonic` stands still while the machine is suspended, `boottime` goes on.
    """

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
        """Call a function without counting its time; returns how long it took."""
        before = self._monotonic()
        act()
        took = self._monotonic() - before
        self._held += took
        return took

    def uncounted(self) -> float:
        """The seconds that `now` has left out: sleep of the machine, and `hold`."""
        return self._held + self._boottime() - self._monotonic()

    def slept(self) -> float:
        """How long the machine was suspended since the last call; 0 if it was not."""
        asleep = self._boottime() - self._monotonic()
        took, self._asleep = asleep - self._asleep, asleep
        return took if took >= SHORTEST_SLEEP else 0.0


def _boottime() -> float:
    # On macOS CLOCK_MONOTONIC counts sleep, and `time.monotonic` reads a clock that does not.
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)
