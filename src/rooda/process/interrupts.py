"""Signals to rooda itself.

There are two ways to take one. Before and after a run, a signal raises `Interrupt` wherever the
program is, so that nothing has to ask. During a run (`deferred`), it is only noted and wakes the
wait, so that an iteration is never left half stopped.
"""

import contextlib
import os
import signal
from collections.abc import Iterator
from types import FrameType

from rooda.process.exits import signal_name

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupt(BaseException):
    """The user wants us to end; not an Exception, so that nothing swallows it by accident."""

    def __init__(self, number: int) -> None:
        super().__init__(signal_name(number))
        self.number = number


class Interrupts:
    """Owns the handlers and a pipe that wakes a `select` when a signal or a child's end comes."""

    def __init__(self) -> None:
        self.received: list[int] = []
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
        signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)

    @contextlib.contextmanager
    def deferred(self) -> Iterator[None]:
        """Note signals instead of raising; who runs the loop looks at `received`."""
        before, self._deferred = self._deferred, True
        try:
            yield
        finally:
            self._deferred = before

    def settle(self) -> None:
        """What was received so far has been dealt with."""
        self.received.clear()

    def defer_for_good(self) -> None:
        """From here on a signal changes nothing any more: the end has been decided."""
        self._deferred = True

    def drain(self) -> None:
        """Empty the wake-up pipe."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.wake_fd, 4096):
                pass

    def _handle(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - signal's form
        self.received.append(number)
        if not self._deferred:
            raise Interrupt(number)


def _nothing(number: int, frame: FrameType | None) -> None:
    """Exist, so that the end of a child wakes the pipe."""
