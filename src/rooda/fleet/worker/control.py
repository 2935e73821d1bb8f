"""How the threads of a slot process stop its work: turn, heart and signals share it."""

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from msgspec import DecodeError, Struct, ValidationError, json

from rooda.fleet.run_model import Order
from rooda.run.outcome import RunOutcome
from rooda.world.files.plain_files import read_plain_file
from rooda.world.process.first_moment import own_module

# One iteration of a run: `rooda` as a child that ends when this process ends.


_LARGEST_RESULT = 1024 * 1024
_GRACE = 30.0  # seconds in which rooda stops its agent; the warden does it if rooda is killed


class Child:
    """A rooda at work. `shared` are descriptors that it keeps open as long as it lives."""

    def __init__(
        self,
        words: Sequence[str],
        *,
        folder: Path,
        environment: Mapping[str, str],
        log: Path,
        shared: Sequence[int] = (),
    ) -> None:
        reading, self._lifeline = os.pipe()
        os.set_inheritable(reading, True)  # noqa: FBT003 - the name of the function says it
        command = own_module("rooda", *words, "--lifeline", str(reading))
        try:
            with log.open("ab") as output:
                self._process = subprocess.Popen(
                    command,
                    cwd=folder,
                    env=dict(environment),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    pass_fds=(reading, *shared),
                    start_new_session=True,  # Ctrl+C is a matter of the worker
                )
        except OSError:
            self._close()
            raise
        finally:
            os.close(reading)

    @property
    def pid(self) -> int:
        """The process of rooda."""
        return self._process.pid

    def wait(self) -> int:
        """Wait for the end; return the exit code."""
        code = self._process.wait()
        self._close()
        return code

    def stop(self) -> None:
        """Ask rooda to stop its agent and to end."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)

    def end(self) -> None:
        """Stop rooda, and wait until it is gone; kill it if that takes too long."""
        self.stop()
        with contextlib.suppress(ProcessLookupError):  # a halted process can't end by itself
            self._process.send_signal(signal.SIGCONT)
        try:
            self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _close(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._lifeline)
        self._lifeline = -1


def read_result(path: Path) -> RunOutcome | None:
    """Return what the child wrote; None if it wrote nothing that can be read."""
    try:
        return json.decode(read_plain_file(path, _LARGEST_RESULT), type=RunOutcome)
    except (OSError, ValueError, DecodeError, ValidationError):
        return None


class ActiveTurn(Struct, frozen=True):
    """The run that has the slot now."""

    run: str
    turn: int


class Control:
    """What was asked of the slot process, and the child that works for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._parked = threading.Event()
        self._draining = threading.Event()
        self._hurry = threading.Event()
        self._hurried_at = 0.0
        self._drained_at = 0.0
        self._is_at_git = False
        self._order = Order.NONE
        self.at_work: ActiveTurn | None = None

    @property
    def is_draining(self) -> bool:
        """Whether the turn is to end after this iteration."""
        return self._draining.is_set()

    @property
    def is_stopped(self) -> bool:
        """Whether the turn is to give up at once, also while it waits for git."""
        return self._parked.is_set() or self._hurry.is_set() or self._order is Order.NOW

    @property
    def order(self) -> Order:
        """What the user asked of the run at work."""
        return self._order

    def drain(self) -> None:
        """Let the turn end after this iteration."""
        self._drained_at = self._drained_at or time.monotonic()
        self._draining.set()

    @contextlib.contextmanager
    def at_git(self) -> Iterator[None]:
        """Note that the turn waits for git, and that nothing is lost if it does not wait."""
        self._is_at_git = True
        try:
            yield
        finally:
            self._is_at_git = False

    def obey(self, at_work: ActiveTurn, order: Order) -> None:
        """Note what the user asked of a run, if it is still at work; `now` stops its agent."""
        with self._lock:
            if at_work == self.at_work and order is not self._order:
                self._order = order
                if order is Order.NOW and self._child is not None:
                    self._child.stop()

    def begin(self, at_work: ActiveTurn) -> None:
        """Note that a turn begins."""
        with self._lock:
            self._order = Order.NONE
            self.at_work = at_work

    def attach(self, child: Child | None) -> None:
        """Note which child works for the turn; None: it is gone."""
        with self._lock:
            self._child = child
            if child is not None and self.is_stopped:
                child.stop()

    def hurry(self) -> None:
        """Stop the agent of the iteration at work: the worker wants an end now."""
        self._hurry.set()
        with self._lock:
            self._hurried_at = self._hurried_at or time.monotonic()
            if self._child is not None:
                self._child.stop()

    def is_late(self, seconds: float) -> bool:
        """Return whether the worker wanted an end so long ago, and no agent is at work any more.

        A turn that waits for git without any work to publish is late, too: git may hang.
        """
        now = time.monotonic()
        with self._lock:
            if self._is_at_git and self.is_draining and now - self._drained_at > seconds:
                return True
            is_late = now - self._hurried_at > seconds
            return self._hurry.is_set() and self._child is None and is_late

    def rest(self, seconds: float) -> None:
        """Wait, or until the process is to give up."""
        self._parked.wait(seconds)

    def check(self) -> None:
        """Stay here for ever if this process must not do anything more."""
        if self._parked.is_set():
            self.park()

    def park(self) -> NoReturn:
        """Stay here for ever: the process is about to be replaced."""
        while True:
            threading.Event().wait()

    def give_up(self) -> None:
        """Stop the child with its agent, and let every thread of the turn stay where it is."""
        self._parked.set()
        with self._lock:
            child = self._child
        if child is not None:
            child.end()
