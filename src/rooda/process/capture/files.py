"""Capture by files: nothing is lost when a program exits without waiting for its reader.

The program writes to the file itself, so what it printed is on disk even if we are killed.
"""

import os
import selectors
from collections.abc import Callable, Mapping

from rooda.process.capture.disk import Disk
from rooda.process.capture.follow import LOOK, REST, Follower
from rooda.process.capture.holes import reserve
from rooda.process.capture.spoken import STREAMS, Spoken
from rooda.process.events import Stream

_LAST_WORDS = 64 * 1024  # reserved for each stream: the program may fill the disk itself
_FAR_BEHIND = 1024 * 1024 * 1024  # a file with a hole of terabytes, and not what anybody wrote
_CHUNK = 1024 * 1024
_CHUNKS = 32  # per look, so that signals and clocks are looked at in between
_OVERLAP = 64  # bytes that must be the same as before, or the file is another one by now


class Files:
    """Two files that the program writes to and that we follow."""

    direct = True  # the program itself writes the transcript

    def __init__(
        self,
        files: Mapping[Stream, int],
        spoken: Spoken,
        disk: Disk,
        now: Callable[[], float],
    ) -> None:
        """Raises OSError when the disk has no room for the last words of a program."""
        for fd in files.values():
            reserve(fd, _LAST_WORDS)
        self._files = files
        self._spoken = spoken
        self._disk = disk
        self._now = now
        self._offsets = dict.fromkeys(STREAMS, 0)
        self._recent: dict[Stream, bytes] = dict.fromkeys(STREAMS, b"")
        self._follower = Follower(tuple(files.values()))
        self._selector: selectors.BaseSelector | None = None
        self._listening = False
        self._next: float | None = None

    @property
    def files(self) -> tuple[int, int]:
        """What the program gets as standard output and error."""
        return self._files["stdout"], self._files["stderr"]

    @property
    def readers(self) -> tuple[int, ...]:
        """Our own descriptors of what the program writes to."""
        return tuple(self._files.values())

    def start(self, selector: selectors.BaseSelector) -> None:
        """Follow the files from now on."""
        self._selector = selector
        self._next = self._now()

    def next_look(self) -> float | None:
        """When to look, although nothing wakes us."""
        return self._next

    def look(self, fd: int | None) -> None:  # noqa: ARG002 - one form for both kinds
        """Read what is new, then rest for a moment: a flood would wake us for each write."""
        # Listen first and read then: what comes in between wakes us again.
        self._listen()
        grown, more = self._read_all()
        if more:
            self._rest(0.0)
        elif grown:
            self._rest(REST)
        elif self._follower.fd is None:
            self._rest(LOOK)
        else:
            self._next = None

    def may_grow(self, *, held: bool) -> bool:
        """Whether somebody has one of the files open."""
        return held

    def finish(self) -> None:
        """Read the rest, as far as there is one now: a survivor may go on writing."""
        ends = {stream: os.fstat(fd).st_size for stream, fd in self._files.items()}
        more = True
        while more or any(self._offsets[stream] < end for stream, end in ends.items()):
            grown, more = self._read_all()
            more = more and any(self._offsets[stream] < end for stream, end in ends.items())
            if not grown:
                break

    @property
    def sizes(self) -> Mapping[Stream, int]:
        """How far we have read."""
        return self._offsets

    def close(self) -> None:
        """Let go of everything but the files, which are the caller's."""
        self._follower.close()

    def _listen(self) -> None:
        self._follower.clear()
        fd = self._follower.fd
        if fd is not None and self._selector is not None and not self._listening:
            self._selector.register(fd, selectors.EVENT_READ, self)
            self._listening = True

    def _ignore(self) -> None:
        if self._listening and self._selector is not None and self._follower.fd is not None:
            self._selector.unregister(self._follower.fd)
        self._listening = False

    def _rest(self, seconds: float) -> None:
        self._ignore()
        self._next = self._now() + seconds

    def _read_all(self) -> tuple[bool, bool]:
        """Read both files; whether something was new, and whether there is more."""
        try:
            return self._read_both()
        except OSError as error:  # a disk that broke; the program's end is still to be seen
            self._disk.give_up(error.strerror or str(error))
            return False, False

    def _read_both(self) -> tuple[bool, bool]:
        grown = more = False
        for stream in STREAMS:
            self._recognise(stream)
            self._catch_up(stream)
            for _ in range(_CHUNKS):
                data = os.pread(self._files[stream], _CHUNK, self._offsets[stream])
                if not data:
                    break
                grown = True
                self._offsets[stream] += len(data)
                self._recent[stream] = (self._recent[stream] + data[-_OVERLAP:])[-_OVERLAP:]
                self._spoken.take(stream, data)
                if len(data) < _CHUNK:
                    break
            else:
                more = True
        self._disk.keep_within(self._offsets)
        return grown, more

    def _recognise(self, stream: Stream) -> None:
        """Begin anew when the program has truncated the file (`> /dev/stdout`)."""
        recent = self._recent[stream]
        start = self._offsets[stream] - len(recent)
        if recent and os.pread(self._files[stream], len(recent), start) != recent:
            self._offsets[stream], self._recent[stream] = 0, b""
            self._disk.begin_anew(stream)

    def _catch_up(self, stream: Stream) -> None:
        """Pass over what no program can have written since the last look."""
        behind = os.fstat(self._files[stream]).st_size - self._offsets[stream]
        if behind > _FAR_BEHIND:
            self._recent[stream] = b""
            self._offsets[stream] += self._spoken.skip(stream, behind)
