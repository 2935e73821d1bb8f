"""Finds the run that is at work in this work tree, signals it, and waits for its end."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from rooda.config.problems import InvalidInput, Problem
from rooda.config.world import this_world
from rooda.process.leftovers import start_time
from rooda.record.rows import StoreError
from rooda.text.controls import one_line
from rooda.workspace.lock import LockNote, here, lock_holder
from rooda.workspace.work_tree import work_tree

_PACE = 0.05  # seconds between two looks at the process


class AtWork(Struct, frozen=True):
    """The process of a run. Its start time tells it from a later process with the same pid."""

    pid: int
    started: float
    note: LockNote | None  # None when the agent has deleted it

    @classmethod
    def find(cls) -> "AtWork":
        """Return the run that holds the lock of this work tree. Raises InvalidInput."""
        pid, note = lock_holder(work_tree(this_world().folder))
        if note is not None and note.host != here()[0]:
            message = f"the run of {note.procedure} is at work on {note.host}"
            raise InvalidInput([Problem(message, "Stop it there")])
        started = None if pid is None else start_time(pid)
        if pid is None or started is None or (note is not None and started != note.started):
            raise _no_run()
        return cls(pid, started, note)

    def __str__(self) -> str:
        """Return the run's name in messages."""
        if self.note is None:
            return f"The run of pid {self.pid}"
        # The agent can write the note.
        return f"{one_line(self.note.procedure)} (run {self.note.run}, pid {self.pid})"

    @property
    def is_there(self) -> bool:
        """Whether the process still runs; a zombie does not."""
        return start_time(self.pid) == self.started

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the run. Raises InvalidInput when that is impossible."""
        if not self.is_there:
            raise _no_run()
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            raise _no_run() from None
        except PermissionError:
            problem = Problem(f"{self} belongs to another user", "Ask that user to stop it")
            raise InvalidInput([problem]) from None

    def wake(self) -> None:
        """Continue a run that is stopped (Ctrl+Z): a stopped process receives no other signal."""
        if self.is_there:
            os.kill(self.pid, signal.SIGCONT)

    def has_ended(self, seconds: float, progress: Callable[[float], None]) -> bool:
        """Wait until the run has ended, `seconds` at most; `progress` learns how long it takes."""
        began = time.monotonic()
        while self.is_there:
            waited = time.monotonic() - began
            if waited >= seconds:
                return False
            progress(waited)
            time.sleep(_PACE)
        return True

    def outcome(self) -> str:
        """Return the status of the run in its record; empty if there is none."""
        # Completion loads this module too, and needs no database.
        from rooda.record.record_reader import RecordReader

        if self.note is None:
            return ""
        try:
            reader = RecordReader(Path(self.note.workspace))
            return one_line(reader.run(self.note.run).status)
        except StoreError:
            return ""


def _no_run() -> InvalidInput:
    return InvalidInput([Problem("no run is at work here", "`rooda history` lists earlier runs")])
