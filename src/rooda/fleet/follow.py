"""Shows the runs until they have ended, and passes the user's Ctrl+C on to the worker."""

from collections.abc import Callable, Sequence
from typing import Protocol

from rooda.fleet.model import Run
from rooda.fleet.progress import Display
from rooda.process.interrupts import INTERRUPTED, Interrupts

_PACE = 0.5  # seconds between two looks at the database
_ONCE = "Ctrl+C: finish the iterations at work, then stop"
_TWICE = "finishing the iterations at work; Ctrl+C: stop them now"
_AT_ONCE = "stopping now"


class Crew(Protocol):
    """The worker of this command."""

    def finish(self) -> None:
        """Let each run at work end its iteration, and start no other."""

    def stop_now(self) -> None:
        """Stop the agents."""

    def ended(self) -> bool:
        """Return whether the worker has ended."""


class NoCrew:
    """For a command that only looks."""

    def finish(self) -> None:
        """Do nothing: other workers go on."""

    def stop_now(self) -> None:
        """Do nothing."""

    def ended(self) -> bool:
        """Return False."""
        return False


Look = Callable[[], tuple[Sequence[Run], float]]


def follow_runs(
    look: Look, display: Display, interrupts: Interrupts, names: frozenset[str], crew: Crew
) -> int:
    """Show these runs until all have ended or the worker has; return the exit code.

    With a worker, the first signal lets the iterations end and a second one stops them. `look`
    returns the runs of the project and the time of the database.
    """
    is_alone = isinstance(crew, NoCrew)
    with interrupts.deferred():
        heard = 0
        while True:
            has_ended = crew.ended()  # asked first: what it did last is then in the database
            runs, now = look()
            heard = _pass_on(interrupts, crew, display, heard)
            hint = "" if is_alone else (_ONCE, _TWICE, _AT_ONCE)[min(heard, 2)]
            display.update(runs, now, hint)
            own = [run for run in runs if run.run in names]
            if has_ended or (heard and is_alone) or all(run.state.is_end for run in own):
                break
            interrupts.rest(_PACE)
    return INTERRUPTED if heard else 0


def _pass_on(interrupts: Interrupts, crew: Crew, display: Display, heard: int) -> int:
    """Tell the worker of signals that came; return how many it has been told."""
    if len(interrupts.received) <= heard:
        return heard
    if heard == 0:
        crew.finish()
        display.say("no new iteration starts; press Ctrl+C again to stop those at work now")
    elif interrupts.is_urgent:
        crew.stop_now()
        display.say("stopping the iterations at work now")
    return len(interrupts.received)
