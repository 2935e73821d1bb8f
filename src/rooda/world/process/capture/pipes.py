"""Capture by pipes: for programs that may open `/dev/stdout` again, which would truncate a file.

The pipes are as large as the system allows, and rooda reads them as soon as they hold something.
"""

import contextlib
import fcntl
import functools
import os
import selectors
import sys
from collections.abc import Mapping
from pathlib import Path

from rooda.world.process.capture.buffers import STREAMS, OutputBuffer
from rooda.world.process.capture.disk import BoundedTranscript
from rooda.world.process.events import Stream

_LARGEST = Path("/proc/sys/fs/pipe-max-size")
_CHUNK = 128 * 1024  # larger blocks make the C library map memory for each read: a third slower
_CHUNKS = 8  # per call of `read`: as much as the largest pipe of most systems (1 MB)
_LAST_CHUNKS = 512  # after the program's end, from each pipe


class PipeCapture:
    """Two pipes, read into memory and onto the disk."""

    direct = False  # rooda writes the transcript

    def __init__(self, output: OutputBuffer, transcript: BoundedTranscript | None) -> None:
        """Raises OSError if rooda can open no more descriptors."""
        self._output = output
        self._transcript = transcript
        self._read: dict[int, Stream] = {}
        self._write: list[int] = []
        self._selector: selectors.BaseSelector | None = None
        try:
            for stream in STREAMS:
                read, write = os.pipe()
                self._read[read] = stream
                self._write.append(write)
                os.set_blocking(read, False)
                _grow(write)
        except OSError:
            self.close()
            raise

    @property
    def files(self) -> tuple[int, int]:
        """What the program gets as standard output and error."""
        return self._write[0], self._write[1]

    @property
    def readers(self) -> tuple[int, ...]:
        """Rooda's own descriptors of the pipes that the program writes to."""
        return tuple(self._read)

    @property
    def sizes(self) -> Mapping[Stream, int]:
        """How many bytes rooda has read from each pipe."""
        return self._output.sizes()

    def start(self, selector: selectors.BaseSelector) -> None:
        """Read the pipes from now on; the program has its own copies of their other ends."""
        for fd in self._write:
            os.close(fd)
        self._write = []
        self._selector = selector
        for fd in self._read:
            selector.register(fd, selectors.EVENT_READ, self)

    def next_read(self) -> float | None:
        """Never: a pipe is readable as soon as it holds something."""
        return None

    def read(self, fd: int | None) -> None:
        """Read what a pipe can hold at once, and then let rooda check signals and clocks.

        Reading less would mix up the order: standard error comes before what is left in the pipe.
        """
        for _ in range(_CHUNKS):
            if fd is None or not self._take(fd):
                break

    def may_grow(self, *, held: bool) -> bool:
        """Whether a process still has one of the pipes open: then it has no end of file yet."""
        del held
        return bool(self._read)

    def finish(self) -> None:
        """Read the rest, within a bound: a surviving process may go on printing."""
        self._selector = None
        for fd in list(self._read):
            for _ in range(_LAST_CHUNKS):
                if not self._take(fd):
                    break

    def close(self) -> None:
        """Close all descriptors."""
        for fd in (*self._read, *self._write):
            with contextlib.suppress(OSError):
                os.close(fd)
        self._read, self._write = {}, []

    def _take(self, fd: int) -> bool:
        """Read once; whether there may be more."""
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return False
        stream = self._read[fd]
        if not data:
            if self._selector is not None:
                self._selector.unregister(fd)
            os.close(fd)
            del self._read[fd]
            return False
        if self._transcript is not None:
            self._transcript.write(stream, data)
        self._output.take(stream, data)
        return True


def _grow(fd: int) -> None:
    """Enlarge a pipe to the system's limit: a program that exits without waiting loses less."""
    if sys.platform != "linux":
        return
    with contextlib.suppress(OSError, ValueError):
        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, _largest())


@functools.cache
def _largest() -> int:
    return int(_LARGEST.read_text())
