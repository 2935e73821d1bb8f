"""Signals to rooda itself.

There are two ways to take one. Outside of a run there is nothing to clean up, so the program ends
at once, wherever it is. During a run (`deferred`) a signal is only noted and wakes the wait, so
that an iteration is never left half stopped.
"""

import contextlib
import os
import signal
from collections.abc import Iterator
from types import FrameType

from rooda.process.ending import end_at_once

# SIGQUIT too: who presses Ctrl+\\ does not want the agent to live on.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Interrupts:
    """Owns the handlers and a pipe that wakes a `select` when a signal or a child's end comes."""

    def __init__(self) -> None:
        self.received: list[int] = []
        self.acknowledged = 0
        self._deferred = False
        self.wake_fd, self._write_fd = os.pipe()
        os.set_blocking(self.wake_fd, False)
        os.set_blocking(self._write_fd, False)

    def install(self) -> None:
        """Take over the signals. One that we inherited as ignored stays ignored (`nohup`)."""
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._handle)
        # A handler of our own, and not SIG_IGN: ignored signals would be inherited by the child.
        signal.signal(signal.SIGCHLD, _nothing)
        # A careless parent may have left them blocked, and then no end of a child would be seen.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {*SIGNALS, signal.SIGCHLD})
        signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)

    @contextlib.contextmanager
    def deferred(self) -> Iterator[None]:
        """Note signals instead of ending; who runs the loop looks at `received`."""
        before, self._deferred = self._deferred, True
        try:
            yield
        finally:
            self._deferred = before

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

    def drain(self) -> None:
        """Empty the wake-up pipe."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.wake_fd, 4096):
                pass

    def _handle(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - signal's form
        self.received.append(number)
        if not self._deferred:
            end_at_once()


def _nothing(number: int, frame: FrameType | None) -> None:
    """Exist, so that the end of a child wakes the pipe."""
