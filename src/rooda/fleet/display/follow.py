"""Shows the runs until they have ended, and what Ctrl+C does meanwhile."""

import time
from collections.abc import Callable, Sequence

from rooda.fleet.display.fleet_progress import Display
from rooda.fleet.run_model import Run
from rooda.world.process.interrupts import INTERRUPTED, Interrupts

_PACE = 0.5  # seconds between two looks at the database
_HINTS = (
    "Ctrl+C: finish the iterations at work, then stop",
    "finishing the iterations at work; Ctrl+C: stop them now",
    "stopping now",
)
_WATCHING = "Ctrl+C: stop watching; the runs go on"
_NEWS = (
    "no new iteration starts; press Ctrl+C again to stop those at work now",
    "stopping the iterations at work now",
)

# Returns the runs of the project, and the time of the database.
Look = Callable[[], tuple[Sequence[Run], float]]


class Viewer:
    """Looks at the database now and then, and shows what it finds.

    `with_worker`: this command has a worker, to which Ctrl+C is passed on.
    """

    def __init__(
        self, look: Look, display: Display, interrupts: Interrupts, *, with_worker: bool
    ) -> None:
        self._look = look
        self._display = display
        self._interrupts = interrupts
        self._with_worker = with_worker
        self._looked: float | None = None
        self._received = 0  # signals at the last look
        self._heard = 0  # signals that the user was told of
        self.runs: Sequence[Run] = ()

    def show(self) -> None:
        """Show the runs, unless that was done a moment ago and nothing new was heard."""
        is_new = len(self._interrupts.received) != self._received
        if is_new or self._looked is None or time.monotonic() - self._looked >= _PACE:
            self.show_now()

    def show_now(self) -> None:
        """Show the runs."""
        self._received = len(self._interrupts.received)
        self._looked = time.monotonic()
        heard = min(self._received, len(_NEWS))
        if self._with_worker:
            for news in _NEWS[self._heard : heard]:
                self._display.say(news)
        self._heard = heard
        self.runs, moment = self._look()
        self._display.update(self.runs, moment, _HINTS[heard] if self._with_worker else _WATCHING)


def follow_runs(
    viewer: Viewer, interrupts: Interrupts, is_over: Callable[[Sequence[Run]], bool]
) -> int:
    """Show the runs until they are over or the user has seen enough; return the exit code."""
    with interrupts.deferred():
        while not interrupts.received:
            viewer.show()
            if is_over(viewer.runs):
                return 0
            interrupts.rest(_PACE)
    return INTERRUPTED
