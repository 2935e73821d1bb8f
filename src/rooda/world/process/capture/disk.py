"""The transcript on disk: both streams as files, of which head and tail are kept."""

import os
from collections.abc import Mapping

from msgspec import Struct

from rooda.world.process.capture.buffers import STREAMS
from rooda.world.process.events import Stream
from rooda.world.process.libc import punch_hole

BLOCK = 4096  # a file system frees only whole blocks of a file
NO_HOLES = "the file system can't free the middle of a file"
_STEP = 1024 * 1024  # holes grow by at least this much, except at the end of the program


class KeptBytes(Struct, frozen=True):
    """What is left of a stream on disk: everything except the bytes from `head` up to `tail`."""

    size: int
    head: int
    tail: int

    @property
    def is_whole(self) -> bool:
        """Whether nothing is missing."""
        return self.head >= self.tail

    @property
    def bytes(self) -> int:
        """How many bytes are there."""
        return self.size if self.is_whole else self.size - (self.tail - self.head)


def shares(limit: int, first: int, second: int) -> tuple[int, int]:
    """How much of two streams of these sizes may stay, so that both fit within the limit.

    The smaller stream may have half of the limit; the other one gets the rest.
    """
    if first + second <= limit:
        return first, second
    half = limit // 2  # an odd byte stays unused, so that no share grows when the streams grow
    if first <= second:
        mine = min(first, half)
        return mine, 2 * half - mine
    mine = min(second, half)
    return 2 * half - mine, mine


def hole(size: int, share: int) -> tuple[int, int]:
    """The middle to free, in whole blocks: half of the share stays before it, half behind it."""
    if size <= share:
        return 0, 0
    start = share // 2 // BLOCK * BLOCK
    end = -(-(size - (share - start)) // BLOCK) * BLOCK
    return (start, end) if start < end <= size else (0, 0)


class BoundedTranscript:
    """Keeps head and tail of each stream. `trouble` says why some bytes could not be kept."""

    def __init__(self, files: Mapping[Stream, int], limit: int) -> None:
        self.trouble = ""
        self._files = files
        self._limit = limit
        self._written = dict.fromkeys(STREAMS, 0)
        self._holes: dict[Stream, tuple[int, int]] = dict.fromkeys(STREAMS, (0, 0))
        self._can_punch = True
        self._is_full = False  # nothing more is written

    def write(self, stream: Stream, data: bytes) -> None:
        """Add to the file; used where the program itself does not write to it."""
        if self._is_full:
            return
        rest = memoryview(data)
        try:
            while rest:
                sent = os.write(self._files[stream], rest)
                self._written[stream] += sent
                rest = rest[sent:]
        except OSError as error:
            self.give_up(error.strerror or str(error))
            return
        self.keep_within(self._written)
        self._is_full = not self._can_punch and sum(self._written.values()) >= self._limit

    def restart(self, stream: Stream) -> None:
        """Forget the hole of a file that the program itself has emptied."""
        self._holes[stream] = (0, 0)

    def give_up(self, reason: str) -> None:
        """Write nothing from now on."""
        self.trouble, self._is_full = reason, True

    def keep_within(self, sizes: Mapping[Stream, int], step: int = _STEP) -> None:
        """Free the middle of files that are too long; `sizes` is how far rooda has read them."""
        if not self._can_punch or sum(sizes.values()) <= self._limit:
            return
        share = shares(self._limit, sizes["stdout"], sizes["stderr"])
        for stream, part in zip(STREAMS, share, strict=True):
            start, end = hole(sizes[stream], part)
            old_start, old_end = self._holes[stream]
            if (end - start) - (old_end - old_start) < step:
                continue
            if not punch_hole(self._files[stream], start, end):
                self._can_punch, self.trouble = False, NO_HOLES
                return
            self._holes[stream] = (start, end)

    def finish(self, printed: Mapping[Stream, int], *, direct: bool) -> dict[Stream, KeptBytes]:
        """Bring the files within the limit for good; returns what is left of each.

        `direct`: the program wrote the files itself. Where the file system can't make holes, the
        ends of such files are cut off now: earlier, rooda would have lost unread output.
        """
        for fd in self._files.values() if direct else ():
            os.truncate(fd, os.fstat(fd).st_size)  # frees what was reserved beyond the end
        sizes = printed if direct else self._written
        self.keep_within(sizes, step=1)
        gaps = {stream: gap for stream, gap in self._holes.items() if gap != (0, 0)}
        if direct and not self._can_punch:
            parts = zip(STREAMS, shares(self._limit, *sizes.values()), strict=True)
            for stream, part in parts:
                if sizes[stream] > part:
                    os.truncate(self._files[stream], part)
                    gaps[stream] = (part, sizes[stream])
        for stream, size in printed.items():
            if sizes[stream] < size:
                gaps[stream] = (min(gaps.get(stream, (sizes[stream],))[0], sizes[stream]), size)
        return {
            stream: KeptBytes(size, *gaps.get(stream, (size, size)))
            for stream, size in printed.items()
        }
