"""One run per work tree: refuse a second one, and clear what a killed one left behind."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from rooda.base.event import Event
from rooda.base.problems import InvalidInput, Problem
from rooda.loop.events.emitter import Stamped
from rooda.loop.events.run import EarlierRunCleared, Unlocked
from rooda.loop.events.work import CommandStarted
from rooda.plan.plan import Plan
from rooda.plan.settings.settings import KEEP_PROCESSES
from rooda.record.run_folders import run_folder
from rooda.world.git.work_tree import has_repository
from rooda.world.process.events import ProcessStarted
from rooda.world.process.leftovers import RunTrace, file_identity, stop_leftovers
from rooda.world.process.runner import MARK, mark_of
from rooda.world.state.folder import STDERR, STDOUT, StateFolder
from rooda.world.state.home import VARIABLE
from rooda.world.state.lock import Lock, LockHeldError
from rooda.world.state.lock_note import LockNote, ProcessIdentity, here, is_unique_run

_GRACE = 2.0  # seconds for the processes of a killed run to obey SIGTERM


class RunLock:
    """The only run in its work tree, as far as the file system can promise that."""

    def __init__(self, plan: Plan, name: str = "") -> None:
        """Take the lock for a run of this name; without one, rooda chooses the name."""
        # A resumed run keeps its own name.
        self.run = name or f"{datetime.now().astimezone():%Y%m%d-%H%M%S}-{os.urandom(3).hex()}"
        self._token = os.urandom(16).hex()
        self._plan = plan
        self._lock: Lock | None = None
        try:
            # The agent may work in another folder: no second run may use that one either.
            folders = (self._start(), plan.working_dir)
            self._lock = Lock(*folders, state=plan.state, workspace=plan.workspace)
            self._trouble = self._lock.trouble
        except LockHeldError as taken:
            raise InvalidInput([_taken(taken, plan.environ.get(MARK))]) from None
        except OSError as error:
            self._trouble = error

    @property
    def token(self) -> str:
        """The mark of the processes of this start; empty if the name of the run is mark enough."""
        return "" if is_unique_run(self.run) else self._token

    @property
    def is_held(self) -> bool:
        """Whether no other run can be at work here; False if the folder can't be locked."""
        return self._trouble is None

    def clear_what_is_left(self, emit: Callable[[Event], None]) -> None:
        """Stop the processes that a killed run left here, report them, and note this run."""
        if self._trouble is not None:
            folder = str(self._plan.workspace)
            emit(Unlocked(folder, self._trouble.strerror or str(self._trouble)))
        if self._lock is None:
            return
        for earlier in self._lock.left_behind():
            if not earlier.process.is_alive(lambda: not self.is_held):
                stopped, left = stop_leftovers(_trace(earlier), _GRACE)
                if stopped or left:
                    emit(EarlierRunCleared(earlier.run, tuple(stopped), tuple(left)))
        self._lock.write(self._note())

    def _note(self) -> LockNote:
        plan, us = self._plan, ProcessIdentity.own()
        return LockNote(
            run=self.run,
            procedure=plan.procedure,
            pid=us.pid,
            started=us.started,
            since=datetime.now().astimezone().isoformat(timespec="seconds"),
            workspace=str(plan.workspace),
            host=us.host,
            boot=us.boot,
            namespace=us.namespace,
            keep=plan.values[KEEP_PROCESSES],
            folder=str(self._start()),
            repository=has_repository(plan.workspace),
            began=time.time(),
            state=str(plan.state),
            token=self.token,
        )

    def _start(self) -> Path:
        """Return the folder where the user started the run; ralph's can be in another project."""
        plan = self._plan
        start = (plan.started_in or plan.workspace).resolve()
        return start if start.is_relative_to(plan.workspace) else plan.workspace

    def note_agent(self, stamped: Stamped) -> None:
        """Note the process, so that a later run can stop it if rooda and the warden were killed."""
        if self._lock is not None and isinstance(stamped.event, ProcessStarted | CommandStarted):
            self._lock.note_agent(stamped.event.pid, stamped.event.started)

    def close(self) -> None:
        """Release the lock: the run has ended cleanly."""
        if self._lock is not None:
            self._lock.close()


def _trace(earlier: LockNote) -> RunTrace:
    files = [
        file_identity(path) for path in _transcripts(StateFolder(Path(earlier.state)), earlier.run)
    ]
    return RunTrace(
        mark_of(earlier.run, earlier.token),
        earlier.workspace,
        earlier.agents if earlier.process.can_be_seen else (),
        frozenset(file for file in files if file is not None),
        earlier.keep,
    )


def _transcripts(state: StateFolder, run: str) -> list[Path]:
    """Return the files that the agents of a run printed to."""
    folder = run_folder(state, run)
    return [path for name in (STDOUT, STDERR) for path in folder.glob(f"*/{name}")]


@contextlib.contextmanager
def hold_run_lock(plan: Plan, name: str = "") -> Iterator[RunLock]:
    """Take the lock. Raises InvalidInput, which names the holder, if another run has it.

    `name` is that of the run; without one, rooda chooses it.
    """
    alone = RunLock(plan, name)
    try:
        yield alone
    finally:
        alone.close()


def _taken(taken: LockHeldError, outer: str | None) -> Problem:
    note = taken.note
    pid = taken.pid or (note and note.pid)
    if note is None:
        who = f"pid {pid}" if pid else "pid unknown"
    else:
        since = note.since.replace("T", " ")
        who = f"{note.procedure}, pid {pid} on {note.host} since {since}"
    advice = "Wait until it has ended, or end it with `rooda stop` in that folder (--now: at once)"
    if note is not None and note.host != here()[0]:
        advice = f"Wait until it has ended, or end it with `rooda stop` on {note.host}"
    elif note is not None and taken.pid is None and not note.process.can_be_seen:
        advice = "Wait until it has ended, or end it with `rooda stop` in the container of the run"
    if note is not None and note.run == outer:
        advice = "You are inside of that run: do the work yourself, or go to another folder"
    if taken.is_state:
        advice = f"{advice}; or set {VARIABLE} to another folder for one of them"
        where = f"{taken.top}, the state folder of this work tree"
        return Problem(f"another run uses {where}: {who}", advice, title="State folder in use")
    return Problem(
        f"another run is at work in {taken.top}: {who}", advice, title="Work tree in use"
    )
