"""Write to a descriptor without being held up by whoever should read it.

A terminal that was stopped with Ctrl+S, or a pager that nobody scrolls, must not stop a night's
work: after a while without any progress the rest is dropped, and said so when there is room again.
"""

import errno
import os
import select
import stat
import time
from collections.abc import Callable

PATIENCE = 2.0
HURRIED_PATIENCE = 0.3  # after Ctrl+C: enough for a slow reader to get the last words
_SLICE = 0.1
# What a terminal takes without blocking once it says that it has room.
_TERMINAL_CHUNK = 256


def _unblocked(fd: int) -> int:
    """The same terminal, opened anew: the shell's own must not become non-blocking."""
    try:
        return os.open(os.ttyname(fd), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return fd


class Sink:
    """An output that never blocks for long and never raises."""

    def __init__(self, fd: int, hurried: Callable[[], bool] = lambda: False) -> None:
        self.fd = fd
        self.is_terminal = os.isatty(fd)
        self._hurried = hurried
        self._closed = False
        self._stalled = False
        self._dropped = 0
        self._lost = 0  # to a full disk
        if self.is_terminal:
            fd = self.fd = _unblocked(fd)
        self._chunk = _TERMINAL_CHUNK if self.is_terminal else select.PIPE_BUF
        try:
            mode = os.fstat(fd).st_mode
            self._may_block = not stat.S_ISREG(mode)
        except OSError:
            self._closed = True
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)

    @property
    def missing(self) -> int:
        """Bytes that nobody read or that had no room, and of which nobody was told yet."""
        return self._dropped + self._lost

    def write(self, text: str) -> None:
        """Write the text, or as much of it as can be written."""
        if self._closed or not text:
            return
        if self._dropped and self._writable(0):
            notice = f"\n[{self._dropped:,} bytes not shown: nothing read them]\n"
            self._dropped = 0
            self._stalled = False
            self._put(notice.encode())
        self._put(text.encode("utf-8", "replace"))

    def _put(self, data: bytes) -> None:
        rest = memoryview(data)
        began = time.monotonic()
        while rest and not self._closed:
            if self._may_block and not self._wait():
                self._dropped += len(rest)
                return
            try:
                written = os.write(self.fd, rest[: self._chunk] if self._may_block else rest)
            except BlockingIOError:
                # It says that it has room, yet not for this.
                if self._stalled or time.monotonic() - began > self._patience():
                    self._stalled = True
                    self._dropped += len(rest)
                    return
                time.sleep(_SLICE / 10)
                continue
            except OSError as error:
                # A reader that left is no reason to end, nor is a full disk.
                self._closed = error.errno != errno.ENOSPC
                self._lost += 0 if self._closed else len(rest)
                return
            rest = rest[written:]

    def _wait(self) -> bool:
        """Wait for room; give up after a while, at once when that was in vain before."""
        if self._writable(0):
            self._stalled = False
            return True
        began = time.monotonic()
        while not self._stalled and time.monotonic() - began < self._patience():
            if self._writable(_SLICE):
                return True
        self._stalled = True
        return False

    def _patience(self) -> float:
        return HURRIED_PATIENCE if self._hurried() else PATIENCE

    def _writable(self, seconds: float) -> bool:
        return bool(self._poll.poll(seconds * 1000))
