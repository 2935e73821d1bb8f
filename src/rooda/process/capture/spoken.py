"""What a program has said so far: the ends of both streams in memory, and their order."""

from collections.abc import Callable, Mapping
from typing import Final

from rooda.process.capture.order import Order
from rooda.process.capture.tail import Captured, TailBuffer
from rooda.process.events import Output, Stream

STREAMS: Final[tuple[Stream, Stream]] = ("stdout", "stderr")


class Spoken:
    """Takes every piece as it arrives and passes it on."""

    def __init__(
        self, limit: int, tell: Callable[[Output], None], now: Callable[[], float]
    ) -> None:
        self.order = Order()
        self.last_at: float | None = None
        self._now = now
        self._limit = limit
        self._tell = tell
        self._buffers: Mapping[Stream, TailBuffer] = {name: TailBuffer(limit) for name in STREAMS}

    def take(self, stream: Stream, data: bytes) -> None:
        """A piece has arrived."""
        self.last_at = self._now()
        self._buffers[stream].append(data, self.last_at)
        self.order.add(stream, len(data))
        self._tell(Output(stream, data))

    def skip(self, stream: Stream, available: int) -> int:
        """Pass over all but the end of what is there; how much that is."""
        count = max(0, available - self._limit)
        self._buffers[stream].skip(count)
        self.order.add(stream, count)
        return count

    def sizes(self) -> Mapping[Stream, int]:
        """How much each stream has said."""
        return {stream: buffer.total for stream, buffer in self._buffers.items()}

    @property
    def total(self) -> int:
        """How much both have said."""
        return sum(buffer.total for buffer in self._buffers.values())

    def captured(self, stream: Stream) -> Captured:
        """What is kept of a stream."""
        return self._buffers[stream].captured()
