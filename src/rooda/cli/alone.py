"""One run per work tree: refuse a second one, and clear what a killed one left behind."""

import contextlib
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

from rooda.config.plan import Plan
from rooda.config.problems import InvalidInput, Problem
from rooda.config.settings import KEEP_PROCESSES
from rooda.loop.events import EarlierRunCleared, Event, Stamped, Unlocked
from rooda.process.events import ProcessStarted
from rooda.process.leftovers import Trace, identity, stop
from rooda.process.run import MARK
from rooda.workspace.lock import Lock, Note, Taken, here
from rooda.workspace.state import STATE_FOLDER, STDERR, STDOUT
from rooda.workspace.tree import work_tree

_GRACE = 2.0  # for processes of a run that nobody waits for any more


class Alone:
    """The only run in its work tree, as far as the file system can promise that."""

    def __init__(self, plan: Plan) -> None:
        self.run = f"{datetime.now().astimezone():%Y%m%d-%H%M%S}-{os.urandom(3).hex()}"
        self._lock: Lock | None = None
        self._earlier: Note | None = None
        self._trouble: OSError | None = None
        self._folder = str(plan.workspace)
        self._locks = ExitStack()
        try:
            self._lock = Lock(plan.workspace)
            self._locks.callback(self._lock.close)
            if work_tree(plan.working_dir) != self._lock.top:
                self._locks.callback(Lock(plan.working_dir).close)
        except Taken as taken:
            self._locks.close()
            raise InvalidInput([_taken(taken, plan.environ.get(MARK))]) from None
        except OSError as error:
            self._trouble = error
            if self._lock is None:
                return
        self._earlier = self._lock.left_behind()
        host, boot = here()
        keep = plan.values[KEEP_PROCESSES] or ()
        since = datetime.now().astimezone().isoformat(timespec="seconds")
        self._note = Note(
            self.run, plan.procedure, os.getpid(), since, self._folder, host, boot, (), keep
        )

    def clear_what_is_left(self, emit: Callable[[Event], None]) -> None:
        """Stop the processes of a run that was killed here, and say so. Then it is our turn."""
        if self._trouble is not None:
            emit(Unlocked(self._folder, self._trouble.strerror or str(self._trouble)))
        if self._lock is None:
            return
        earlier = self._earlier
        if earlier is not None:
            folder = Path(earlier.workspace) / STATE_FOLDER
            files = {identity(folder / name) for name in (STDOUT, STDERR)} - {None}
            trace = Trace(
                f"{MARK}={earlier.run}",
                earlier.workspace,
                earlier.agents,
                frozenset(file for file in files if file is not None),
                earlier.keep,
            )
            stopped, left = stop(trace, _GRACE)
            if stopped or left:
                emit(EarlierRunCleared(earlier.run, tuple(stopped), tuple(left)))
        self._lock.write(self._note)

    def note_agent(self, stamped: Stamped) -> None:
        """A listener: what to look for, should we be killed together with the warden."""
        if self._lock is not None and isinstance(stamped.event, ProcessStarted):
            self._lock.add_agent(stamped.event.pid, stamped.event.started)

    def close(self) -> None:
        """The run has ended in order."""
        self._locks.close()


@contextlib.contextmanager
def only_run(plan: Plan) -> Iterator[Alone]:
    """Hold the lock. Raises InvalidInput, with who holds it, when another run does."""
    alone = Alone(plan)
    try:
        yield alone
    finally:
        alone.close()


def _taken(taken: Taken, outer: str | None) -> Problem:
    note = taken.note
    pid = taken.pid or (note and note.pid)
    if note is None:
        who = f"pid {pid}" if pid else "pid unknown"
    else:
        since = note.since.replace("T", " ")
        who = f"{note.procedure}, pid {note.pid} on {note.host} since {since}"
    advice = f"Wait until it has ended, or stop it: kill {pid or 'PID'}"
    if note is not None and note.run == outer:
        advice = "You are inside of that run: do the work yourself, or go to another folder"
    return Problem(
        f"another run is at work in {taken.top}: {who}", advice, title="Work tree in use"
    )
