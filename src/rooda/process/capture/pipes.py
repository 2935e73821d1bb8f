"""Capture by pipes: for programs that may open `/dev/stdout` anew, which would truncate a file.

The pipes are as large as the system allows and drained at once.
"""

import contextlib
import fcntl
import os
import selectors
import sys
from collections.abc import Mapping
from pathlib import Path

from rooda.process.capture.disk import Disk
from rooda.process.capture.spoken import STREAMS, Spoken
from rooda.process.events import Stream

_LARGEST = Path("/proc/sys/fs/pipe-max-size")
_READ = 1024 * 1024


class Pipes:
    """Two pipes, read into memory and onto the disk."""

    direct = False  # we write the transcript

    def __init__(self, spoken: Spoken, disk: Disk | None) -> None:
        """Raises OSError when there is no descriptor left."""
        self._spoken = spoken
        self._disk = disk
        self._read: dict[int, Stream] = {}
        self._write: list[int] = []
        self._selector: selectors.BaseSelector | None = None
        try:
            for stream in STREAMS:
                ours, theirs = os.pipe()
                self._read[ours] = stream
                self._write.append(theirs)
                os.set_blocking(ours, False)
                _grow(theirs)
        except OSError:
            self.close()
            raise

    @property
    def files(self) -> tuple[int, int]:
        """What the program gets as standard output and error."""
        return self._write[0], self._write[1]

    @property
    def readers(self) -> tuple[int, ...]:
        """Our own descriptors of what the program writes to."""
        return tuple(self._read)

    @property
    def sizes(self) -> Mapping[Stream, int]:
        """How much has come."""
        return self._spoken.sizes()

    def start(self, selector: selectors.BaseSelector) -> None:
        """The program has its ends, so ours of those are closed."""
        for fd in self._write:
            os.close(fd)
        self._write = []
        self._selector = selector
        for fd in self._read:
            selector.register(fd, selectors.EVENT_READ, self)

    def next_look(self) -> float | None:
        """No need: pipes wake us."""
        return None

    def look(self, fd: int | None) -> None:
        """Read what is there, once: who prints without end must not keep us here."""
        if fd is not None:
            self._take(fd)

    def may_grow(self, *, held: bool) -> bool:  # noqa: ARG002 - the pipes themselves know better
        """Whether somebody still holds one of the pipes."""
        return bool(self._read)

    def finish(self) -> None:
        """Read the rest; who goes on printing is not waited for (a pipe holds a megabyte)."""
        self._selector = None  # nobody waits any more
        for fd in list(self._read):
            for _ in range(64):
                if not self._take(fd):
                    break

    def close(self) -> None:
        """Let go of everything."""
        for fd in (*self._read, *self._write):
            with contextlib.suppress(OSError):
                os.close(fd)
        self._read, self._write = {}, []

    def _take(self, fd: int) -> bool:
        """Read once; whether there may be more."""
        try:
            data = os.read(fd, _READ)
        except BlockingIOError:
            return False
        stream = self._read[fd]
        if not data:
            if self._selector is not None:
                self._selector.unregister(fd)
            os.close(fd)
            del self._read[fd]
            return False
        if self._disk is not None:
            self._disk.write(stream, data)
        self._spoken.take(stream, data)
        return True


def _grow(fd: int) -> None:
    """As large as the system lets us: a program that exits without waiting loses less."""
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError, ValueError):
        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, int(_LARGEST.read_text()))
