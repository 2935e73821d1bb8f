"""Keep the end of an endless stream, and a little of its beginning, in bounded memory."""

import io
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from rooda.world.process.events import Output, Stream

# The order in which a program wrote to its two streams, in bounded memory.


MOST = 1 << 16
_STREAMS: tuple[Stream, Stream] = ("stdout", "stderr")


class StreamOrder:
    """The lengths of the pieces that came, standard output and standard error by turns.

    When there are too many, neighboring pieces are joined: the order gets coarser, and nothing
    else is lost.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._lengths = array("Q")

    def add(self, stream: Stream, length: int) -> None:
        """Note that so many bytes came on this stream."""
        if length == 0:
            return
        turn = _STREAMS.index(stream)
        if not self._lengths and turn:
            self._lengths.append(0)
        if self._lengths and (len(self._lengths) - 1) % 2 == turn:
            self._lengths[-1] += length
            return
        if len(self._lengths) >= self._most:
            self._coarsen()
            self.add(stream, length)
            return
        self._lengths.append(length)

    def _coarsen(self) -> None:
        """Join each two turns of a stream into one; the last few stay as they are."""
        old = self._lengths
        joined = array("Q")
        whole = len(old) - len(old) % 4
        for place in range(0, whole, 4):
            joined.append(old[place] + old[place + 2])
            joined.append(old[place + 1] + old[place + 3])
        joined.extend(old[whole:])
        self._lengths = joined

    def pieces(self) -> Iterator[tuple[Stream, int]]:
        """The streams by turns, each with the number of bytes that came then."""
        for place, length in enumerate(self._lengths):
            if length:
                yield _STREAMS[place % 2], length

    def dump(self) -> bytes:
        """The order as bytes, for a file."""
        return self._lengths.tobytes()

    @classmethod
    def load(cls, data: bytes) -> "StreamOrder":
        """The order that `dump` wrote; an incomplete last number is left out."""
        order = cls()
        order._lengths.frombytes(data[: len(data) - len(data) % 8])
        return order


def combined(order: StreamOrder, stdout: bytes, stderr: bytes) -> bytes:
    """Both streams in order of arrival; bytes that the order does not cover come at the end.

    Each may be only the end of its stream, so the order is counted from its end as well.
    """
    left = {"stdout": stdout, "stderr": stderr}
    found: list[bytes] = []
    pieces = list(order.pieces())
    totals = {name: sum(n for stream, n in pieces if stream == name) for name in left}
    skip = {name: max(0, totals[name] - len(text)) for name, text in left.items()}
    at = {"stdout": 0, "stderr": 0}
    for stream, length in pieces:
        missing = min(skip[stream], length)
        skip[stream] -= missing
        end = at[stream] + length - missing
        found.append(left[stream][at[stream] : end])
        at[stream] = end
    found += [text[at[name] :] for name, text in left.items()]
    return b"".join(found)


HEAD = 4096
STREAMS: Final[tuple[Stream, Stream]] = ("stdout", "stderr")
# So large that the C library returns a block to the system as soon as it is freed (see `libc.py`).
_BLOCK = 512 * 1024
_FIRST_BLOCK = 64 * 1024  # most programs print less


class Captured(Struct, frozen=True):
    """What is left of a stream: its first and last bytes, how many there were, and when."""

    head: bytes
    tail: bytes
    total: int
    first_at: float = 0.0
    last_at: float = 0.0

    @property
    def truncated(self) -> bool:
        """Whether the tail is less than everything."""
        return self.total > len(self.tail)


class TailBuffer:
    """Takes pieces of any size and keeps the last `limit` bytes.

    The buffer copies the pieces into large blocks and overwrites the oldest block: a flood of
    output allocates no memory, and many small pieces cost no more than a few large ones.
    """

    def __init__(self, limit: int) -> None:
        self.total = 0
        self.limit = limit
        self._head = bytearray()
        self._first_at = self._last_at = 0.0
        self._full: deque[bytes | bytearray] = deque()
        self._open = bytearray()  # the block that is being filled
        self._capacity = 0  # of the open block
        self._used = 0  # bytes of the open block
        self._kept = 0  # bytes of all blocks

    def append(self, data: bytes, at: float = 0.0) -> None:
        """Add what was read, and when."""
        self._last_at = at
        self._first_at = self._first_at or at
        self.total += len(data)
        if len(self._head) < HEAD:
            self._head += data[: HEAD - len(self._head)]
        start = max(0, len(data) - self.limit)
        while start < len(data):
            start += self._fill(memoryview(data)[start:])

    def skip(self, count: int) -> None:
        """Count bytes that were not read: nothing from before them is the end any more."""
        if count:
            self.total += count
            self._start_with()

    @property
    def truncated(self) -> bool:
        """Whether more came than is kept."""
        return self.total > self.limit

    def last(self, count: int) -> bytes:
        """The last bytes, at most so many."""
        found = bytes(self._open[max(0, self._used - count) : self._used])
        for block in reversed(self._full):
            if len(found) >= count:
                break
            found = bytes(block[max(0, len(block) - count + len(found)) :]) + found
        return found

    def tail(self) -> bytes:
        """Everything that is kept. More may be appended afterwards."""
        excess = max(0, self._kept - self.limit)
        whole = io.BytesIO()
        while self._full:
            # Each block is freed as soon as it is copied, so there are never two copies of it all.
            block = self._full.popleft()
            whole.write(memoryview(block)[excess:])
            excess = max(0, excess - len(block))
        whole.write(memoryview(self._open)[excess : self._used])
        tail = whole.getvalue()
        self._start_with(tail)
        return tail

    def captured(self) -> Captured:
        """What is kept now."""
        head, tail = bytes(self._head), self.tail()
        return Captured(head, tail, self.total, self._first_at, self._last_at)

    def _start_with(self, *blocks: bytes) -> None:
        self._full = deque(blocks)
        self._open = bytearray()
        self._capacity = self._used = 0
        self._kept = sum(map(len, blocks))

    def _fill(self, data: memoryview) -> int:
        """Copy as much as fits into the open block, or into a new one; how much that was."""
        if self._used == self._capacity:
            self._open_next()
        count = min(len(data), self._capacity - self._used)
        # This overwrites an old block, and lengthens the first one.
        self._open[self._used : self._used + count] = data[:count]
        self._used += count
        self._kept += count
        return count

    def _open_next(self) -> None:
        """Open the oldest block again if all of its bytes are over the limit, else a new one."""
        if self._used:
            self._full.append(self._open)
            self._used = 0
        if not self._full:
            self._capacity, self._open = min(self.limit, _FIRST_BLOCK), bytearray()
            return
        self._capacity = min(self.limit, _BLOCK)
        oldest = self._full[0]
        if self._kept - len(oldest) >= self.limit:
            self._full.popleft()
            self._kept -= len(oldest)
            if isinstance(oldest, bytearray) and len(oldest) == self._capacity:
                self._open = oldest
                return
        self._open = bytearray(self._capacity)


class OutputBuffer:
    """Takes every piece of both streams as it arrives, keeps their ends, and passes it on."""

    def __init__(
        self, limit: int, listener: Callable[[Output], None], now: Callable[[], float]
    ) -> None:
        self.order = StreamOrder()
        self.last_at: float | None = None
        self._now = now
        self._limit = limit
        self._listener = listener
        self._buffers: Mapping[Stream, TailBuffer] = {name: TailBuffer(limit) for name in STREAMS}

    def take(self, stream: Stream, data: bytes) -> None:
        """Add a piece that was read."""
        self.last_at = self._now()
        self._buffers[stream].append(data, self.last_at)
        self.order.add(stream, len(data))
        self._listener(Output(stream, data))

    def skip(self, stream: Stream, available: int) -> int:
        """Skip the unread bytes except for the last `limit`; how many were skipped."""
        count = max(0, available - self._limit)
        self._buffers[stream].skip(count)
        self.order.add(stream, count)
        return count

    def sizes(self) -> Mapping[Stream, int]:
        """How many bytes came on each stream."""
        return {stream: buffer.total for stream, buffer in self._buffers.items()}

    @property
    def total(self) -> int:
        """How many bytes came on both streams."""
        return sum(buffer.total for buffer in self._buffers.values())

    def captured(self, stream: Stream) -> Captured:
        """What is kept of a stream."""
        return self._buffers[stream].captured()
