"""Capture by files: nothing is lost when a program exits without waiting for its reader.

The program writes to the files itself, so its output is on disk even if rooda is killed.
"""

import contextlib
import os
import selectors
from collections.abc import Callable, Mapping, Sequence

from rooda.world.process.capture.buffers import STREAMS, OutputBuffer
from rooda.world.process.capture.disk import BoundedTranscript
from rooda.world.process.events import Stream
from rooda.world.process.libc import reserve, watch_writes

POLL = 0.08  # seconds between two reads without inotify: rooda sees a line within 100 ms
REST = 0.02  # seconds after each read, so that a flood does not wake rooda for each of its writes

_RESERVED = 64 * 1024  # bytes for each stream: the program may fill the disk itself
_FAR_BEHIND = 1024 * 1024 * 1024  # no program writes so much between two reads: it made a hole
_CHUNK = 128 * 1024  # larger blocks make the C library map memory for each read: a third slower
_CHUNKS = 256  # per read, so that rooda checks signals and clocks in between
_OVERLAP = 64  # bytes that must be the same as before, or the program has truncated the file


class WriteWatch:
    """`fd` is readable after a write to one of the files; None where there is no inotify."""

    def __init__(self, files: Sequence[int]) -> None:
        self.fd: int | None = None
        with contextlib.suppress(OSError, AttributeError):
            self.fd = watch_writes(files)

    def clear(self) -> None:
        """Take note of the writes so far, so that only later ones make `fd` readable."""
        if self.fd is not None:
            with contextlib.suppress(BlockingIOError):
                os.read(self.fd, 65536)

    def close(self) -> None:
        """Watch no longer."""
        fd, self.fd = self.fd, None
        if fd is not None:
            os.close(fd)


class FileCapture:
    """Two files that the program writes to and that rooda follows."""

    direct = True  # the program itself writes the transcript

    def __init__(
        self,
        files: Mapping[Stream, int],
        output: OutputBuffer,
        transcript: BoundedTranscript,
        now: Callable[[], float],
    ) -> None:
        """Raises OSError if the disk has no room for the last words of a program."""
        for fd in files.values():
            reserve(fd, _RESERVED)
        self._files = files
        self._output = output
        self._transcript = transcript
        self._now = now
        self._offsets = dict.fromkeys(STREAMS, 0)
        self._recent: dict[Stream, bytes] = dict.fromkeys(STREAMS, b"")
        self._writes = WriteWatch(tuple(files.values()))
        self._selector: selectors.BaseSelector | None = None
        self._listening = False
        self._next: float | None = None

    @property
    def files(self) -> tuple[int, int]:
        """What the program gets as standard output and error."""
        return self._files["stdout"], self._files["stderr"]

    @property
    def readers(self) -> tuple[int, ...]:
        """Rooda's own descriptors of the files that the program writes to."""
        return tuple(self._files.values())

    @property
    def sizes(self) -> Mapping[Stream, int]:
        """How far rooda has read each file."""
        return self._offsets

    def start(self, selector: selectors.BaseSelector) -> None:
        """Follow the files from now on."""
        self._selector = selector
        self._next = self._now()

    def next_read(self) -> float | None:
        """When to read although no descriptor is readable."""
        return self._next

    def read(self, _: int | None) -> None:
        """Read what is new, then rest for a moment."""
        # Listen first and read afterwards: a write in between wakes rooda again.
        self._listen()
        grown, more = self._read_all()
        if more:
            self._rest(0.0)
        elif grown:
            self._rest(REST)
        elif self._writes.fd is None:
            self._rest(POLL)
        else:
            self._next = None

    def may_grow(self, *, held: bool) -> bool:
        """Whether a process has one of the files open, according to the warden."""
        return held

    def finish(self) -> None:
        """Read up to the present end of the files: a surviving process may go on writing."""
        ends = {stream: os.fstat(fd).st_size for stream, fd in self._files.items()}
        more = True
        while more or any(self._offsets[stream] < end for stream, end in ends.items()):
            grown, more = self._read_all()
            more = more and any(self._offsets[stream] < end for stream, end in ends.items())
            if not grown:
                break

    def close(self) -> None:
        """Close everything except the files, which belong to the caller."""
        self._writes.close()

    def _listen(self) -> None:
        self._writes.clear()
        fd = self._writes.fd
        if fd is not None and self._selector is not None and not self._listening:
            self._selector.register(fd, selectors.EVENT_READ, self)
            self._listening = True

    def _ignore(self) -> None:
        if self._listening and self._selector is not None and self._writes.fd is not None:
            self._selector.unregister(self._writes.fd)
        self._listening = False

    def _rest(self, seconds: float) -> None:
        self._ignore()
        self._next = self._now() + seconds

    def _read_all(self) -> tuple[bool, bool]:
        """Read both files; whether something was new, and whether there is more."""
        try:
            return self._read_both()
        except OSError as error:  # the disk broke; rooda still waits for the program's end
            self._transcript.give_up(error.strerror or str(error))
            return False, False

    def _read_both(self) -> tuple[bool, bool]:
        grown = more = False
        for stream in STREAMS:
            self._notice_truncation(stream)
            self._catch_up(stream)
            for _ in range(_CHUNKS):
                data = os.pread(self._files[stream], _CHUNK, self._offsets[stream])
                if not data:
                    break
                grown = True
                self._offsets[stream] += len(data)
                self._recent[stream] = (self._recent[stream] + data[-_OVERLAP:])[-_OVERLAP:]
                self._output.take(stream, data)
                if len(data) < _CHUNK:
                    break
            else:
                more = True
        self._transcript.keep_within(self._offsets)
        return grown, more

    def _notice_truncation(self, stream: Stream) -> None:
        """Read from the start again if the program has truncated the file (`> /dev/stdout`)."""
        recent = self._recent[stream]
        start = self._offsets[stream] - len(recent)
        if recent and os.pread(self._files[stream], len(recent), start) != recent:
            self._offsets[stream], self._recent[stream] = 0, b""
            self._transcript.restart(stream)

    def _catch_up(self, stream: Stream) -> None:
        """Skip most of a huge hole that the program has made in its file."""
        behind = os.fstat(self._files[stream]).st_size - self._offsets[stream]
        if behind > _FAR_BEHIND:
            self._recent[stream] = b""
            self._offsets[stream] += self._output.skip(stream, behind)
