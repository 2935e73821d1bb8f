"""The transcript: both streams as files, with a bound on what they take of the disk."""

import os
from collections.abc import Mapping

from rooda.process.capture.bounds import Kept, hole, shares
from rooda.process.capture.holes import punch
from rooda.process.capture.spoken import STREAMS
from rooda.process.events import Stream

NO_HOLES = "the file system can't free the middle of a file"
_STEP = 1024 * 1024  # holes grow by this much at least, but for the last time


class Disk:
    """Keeps head and tail of each stream. `trouble` says why something could not be kept."""

    def __init__(self, files: Mapping[Stream, int], limit: int) -> None:
        self.trouble = ""
        self._files = files
        self._limit = limit
        self._written = dict.fromkeys(STREAMS, 0)
        self._holes: dict[Stream, tuple[int, int]] = dict.fromkeys(STREAMS, (0, 0))
        self._can_punch = True
        self._is_full = False  # nothing more is written

    def write(self, stream: Stream, data: bytes) -> None:
        """Add to the file (where the program itself does not write to it)."""
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

    def begin_anew(self, stream: Stream) -> None:
        """The program has emptied the file itself: there is no hole in it any more."""
        self._holes[stream] = (0, 0)

    def give_up(self, reason: str) -> None:
        """Keep nothing from now on."""
        self.trouble, self._is_full = reason, True

    def keep_within(self, sizes: Mapping[Stream, int], step: int = _STEP) -> None:
        """Free the middle of what has grown too long; `sizes` is what may be looked at."""
        if not self._can_punch:
            return
        share = shares(self._limit, sizes["stdout"], sizes["stderr"])
        for stream, part in zip(STREAMS, share, strict=True):
            start, end = hole(sizes[stream], part)
            old_start, old_end = self._holes[stream]
            if (end - start) - (old_end - old_start) < step:
                continue
            if not punch(self._files[stream], start, end):
                self._can_punch, self.trouble = False, NO_HOLES
                return
            self._holes[stream] = (start, end)

    def finish(self, printed: Mapping[Stream, int], *, direct: bool) -> dict[Stream, Kept]:
        """Bring the files within the bound for good, and say what is left of each.

        `direct` are files that the program wrote itself. Where no hole can be made, their ends
        are cut off now: before, that would have lost what nobody had read yet.
        """
        for fd in self._files.values() if direct else ():
            os.truncate(fd, os.fstat(fd).st_size)  # gives back what was reserved beyond the end
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
            stream: Kept(size, *gaps.get(stream, (size, size))) for stream, size in printed.items()
        }
