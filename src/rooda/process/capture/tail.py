"""Keep the end of an endless stream, and a little of its beginning, in bounded memory."""

import io
from collections import deque
from dataclasses import dataclass, field

HEAD = 4096
_BLOCK = 64 * 1024


@dataclass(frozen=True, slots=True)
class Captured:
    """What is left of a stream: its first and last bytes, how many there were, and when."""

    head: bytes
    tail: bytes
    total: int
    first_at: float = field(default=0.0, compare=False)
    last_at: float = field(default=0.0, compare=False)

    @property
    def truncated(self) -> bool:
        """Whether the tail is less than everything."""
        return self.total > len(self.tail)


class TailBuffer:
    """Takes pieces of any size and keeps the last `limit` bytes.

    Small pieces are gathered in blocks: a program that writes byte by byte costs no more memory
    than one that writes megabytes.
    """

    def __init__(self, limit: int) -> None:
        self.total = 0
        self._limit = limit
        self._head = bytearray()
        self._blocks: deque[bytes | bytearray] = deque()
        self._kept = 0
        self._first_at = self._last_at = 0.0

    def append(self, data: bytes, at: float = 0.0) -> None:
        """Add what was read, and when."""
        self._last_at = at
        self._first_at = self._first_at or at
        self.total += len(data)
        if len(self._head) < HEAD:
            self._head += data[: HEAD - len(self._head)]
        last = self._blocks[-1] if self._blocks else b""
        if isinstance(last, bytearray) and len(last) + len(data) <= _BLOCK:
            last += data
        else:
            self._blocks.append(data if len(data) >= _BLOCK else bytearray(data))
        self._kept += len(data)
        while self._kept - len(self._blocks[0]) >= self._limit:
            self._kept -= len(self._blocks.popleft())

    def skip(self, count: int) -> None:
        """So many bytes were passed over: nothing from before them is the end any more."""
        if count:
            self.total += count
            self._blocks.clear()
            self._kept = 0

    def captured(self) -> Captured:
        """What is kept now."""
        excess = max(0, self._kept - self._limit)
        if excess:
            self._blocks[0] = self._blocks[0][excess:]
            self._kept -= excess
        tail = self._joined()
        return Captured(bytes(self._head), tail, self.total, self._first_at, self._last_at)

    def _joined(self) -> bytes:
        """All blocks in one, each let go as soon as it was copied."""
        whole = io.BytesIO()
        while self._blocks:
            whole.write(self._blocks.popleft())
        tail = whole.getvalue()
        self._blocks.append(tail)
        return tail
