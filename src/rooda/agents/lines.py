"""Split a stream of bytes into lines, in bounded memory."""

from collections.abc import Iterator

LONGEST = 1024 * 1024  # a line that is kept whole
END = 256 * 1024  # of a longer one its beginning and its end are kept
GAP = b" [...] "
_ESCAPE = 6  # bytes of the longest escape in JSON


class Lines:
    """Takes pieces and gives lines; of a huge one the middle is left out.

    What is left out of a huge JSON event is nearly always the middle of one long text, so that
    the rest is still JSON.
    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self._head = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The lines that are complete now, without their ends."""
        start = 0
        while (end := data.find(b"\n", start)) != -1:
            self._add(data[start:end])
            yield self._take()
            start = end + 1
        if start < len(data):
            self._add(data[start:] if start else data)

    def finish(self) -> bytes:
        """What came after the last end of a line."""
        return self._take()

    @property
    def pending(self) -> int:
        """How much of an unfinished line is there."""
        return self._size + len(self._head)

    def peek(self) -> bytes:
        """The unfinished line as it is now."""
        self._pieces = [b"".join(self._pieces)]
        return self._joined(self._pieces[0])

    def _add(self, data: bytes) -> None:
        self._pieces.append(data)
        self._size += len(data)
        if self._size > LONGEST:
            whole = b"".join(self._pieces)
            if not self._head:
                self._head, whole = whole[:END], whole[END:]
            self._pieces = [whole[-END:]]
            self._size = len(self._pieces[0])

    def _take(self) -> bytes:
        line = self._joined(b"".join(self._pieces))
        self._pieces, self._size, self._head = [], 0, b""
        return line

    def _joined(self, rest: bytes) -> bytes:
        return _without_half_escape(self._head) + GAP + rest if self._head else rest


def _without_half_escape(head: bytes) -> bytes:
    """The head without an escape that was cut in two."""
    last = head.rfind(b"\\", len(head) - _ESCAPE)
    return head if last == -1 else head[:last].rstrip(b"\\")
