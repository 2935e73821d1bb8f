"""The order in which a program wrote to its two streams, in bounded memory."""

from array import array
from collections.abc import Iterator

from rooda.world.process.events import Stream

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
