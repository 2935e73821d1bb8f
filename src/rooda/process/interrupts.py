"""Signals to rooda itself.

There are two ways to take one. Outside of a run there is nothing to clean up, so the program ends
at once, wherever it is. During a run (`deferred`) a signal is only noted and wakes the wait, so
that an iteration is never left half stopped.
"""

import contextlib
import os
import select
import signal
from collections.abc import Iterator
from types import FrameType

from rooda.process.clocks import Stopwatch
from rooda.process.ending import end_at_once, stays_ignored

# SIGQUIT too: who presses Ctrl+\\ does not want the agent to live on.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
END = signal.SIGUSR1  # `rooda stop`: go on until the iteration has ended


class Interrupts:
    """Owns the handlers and a pipe that wakes a `select` when a signal comes."""

    def __init__(self) -> None:
        self.received: list[int] = []
        self.acknowledged = 0
        self.told = False  # somebody has said that a signal came
        self.stopwatch = Stopwatch()  # stands still while we are stopped
        self.stop_wanted = False  # Ctrl+Z came while a program was watched
        self.end_wanted = False  # somebody asks for an end, when the work at hand is done
        self._deferred = False
        self._watching = False
        self.wake_fd, self._write_fd = os.pipe()
        os.set_blocking(self.wake_fd, False)
        os.set_blocking(self._write_fd, False)

    def install(self) -> None:
        """Take over the signals.

        SIGHUP that we inherited as ignored stays ignored (`nohup`). The others never do: a script
        that is not interactive starts `rooda ... &` with SIGINT ignored, and no wish of the user's
        is behind that.
        """
        for number in SIGNALS:
            if not stays_ignored(number):
                signal.signal(number, self._handle)
        if signal.getsignal(signal.SIGTSTP) is not signal.SIG_IGN:
            signal.signal(signal.SIGTSTP, self._handle_stop)
            signal.signal(signal.SIGCONT, self._handle_continue)
        signal.signal(END, self._handle_end)
        # A handler, so that it wakes us; a careless parent may even have ignored it.
        signal.signal(signal.SIGCHLD, _nothing)
        # Or blocked: a program would inherit that.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {*SIGNALS, END, signal.SIGTSTP, signal.SIGCHLD})
        signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)

    @contextlib.contextmanager
    def deferred(self) -> Iterator[None]:
        """Note signals instead of ending; who runs the loop looks at `received`."""
        before, self._deferred = self._deferred, True
        try:
            yield
        finally:
            self._deferred = before

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Note a Ctrl+Z as well: who watches a program stops that first, and then us."""
        self._watching = True
        try:
            yield
        finally:
            self._watching = False
            if self.stop_wanted:
                self.stop_ourselves()

    def stop_ourselves(self) -> float:
        """Be stopped as by Ctrl+Z; returns when we are continued, and says how long that took.

        Who was told to go on before he could stop does not: nobody would wake us again.
        """
        wanted, self.stop_wanted = self.stop_wanted, False
        return self.stopwatch.hold(self._be_stopped) if wanted else 0.0

    def _be_stopped(self) -> None:
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._handle_stop)

    def ignore_from_now_on(self) -> None:
        """The end has been decided; a signal changes nothing any more.

        Ignored, because Python gives every handler back at its end, and would die of one.
        """
        self._deferred = True
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)

    def acknowledge(self) -> None:
        """What was received so far is dealt with: it stops no process that is started from now."""
        self.acknowledged = len(self.received)

    def rest(self, seconds: float) -> None:
        """Let time pass, but no longer than until a signal comes."""
        select.select([self.wake_fd], [], [], seconds)
        self.drain()

    def drain(self) -> None:
        """Empty the wake-up pipe."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.wake_fd, 4096):
                pass

    def _handle(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - signal's form
        self.received.append(number)
        if not self._deferred:
            end_at_once()

    def _handle_end(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - as above
        self.end_wanted = True

    def _handle_stop(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - as above
        self.stop_wanted = True
        if not self._watching:
            self.stop_ourselves()

    def _handle_continue(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - as above
        self.stop_wanted = False


def _nothing(number: int, frame: FrameType | None) -> None:
    """Exist, so that a change of a child's state wakes the pipe."""
