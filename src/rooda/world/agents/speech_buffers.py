"""Buffers of bounded size for what an agent prints: its lines, and the end of its text."""

from collections.abc import Iterator

from rooda.world.process.capture.buffers import TailBuffer

LONGEST = 1024 * 1024  # bytes of a line that is kept whole
END = 256 * 1024  # bytes kept at the beginning and at the end of a longer line
GAP = b" [...] "
_ESCAPE = 6  # bytes of the longest escape in JSON
_MOST_SPACE = 1024  # bytes of white space that may follow a text


class LineBuffer:
    """Takes pieces of output and returns lines; of a very long line the middle is left out.

    The middle of a very long JSON event is nearly always the middle of one long string, so the rest
    is still valid JSON.
    """

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self._head = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Add a piece, and yield the lines that are complete now, without their newlines."""
        start = 0
        while (end := data.find(b"\n", start)) != -1:
            self._add(data[start:end])
            yield self._take()
            start = end + 1
        if start < len(data):
            self._add(data[start:] if start else data)

    def finish(self) -> bytes:
        """Return what came after the last newline."""
        return self._take()

    @property
    def pending(self) -> int:
        """The number of bytes kept of the unfinished line."""
        return self._size + len(self._head)

    def peek(self) -> bytes:
        """Return the unfinished line as it is now."""
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
    """Return the head without a JSON escape that was cut in two."""
    last = head.rfind(b"\\", len(head) - _ESCAPE)
    return head if last == -1 else head[:last].rstrip(b"\\")


class SpeechTail(TailBuffer):
    """Keeps the last `limit` bytes of an agent's text, and knows how the text ends."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.is_blank = True  # nothing but white space was added

    def add(self, text: bytes) -> None:
        """Add a piece of text."""
        self.is_blank = self.is_blank and not text.strip()
        self.append(text)

    def end_line(self) -> None:
        """Make the next piece begin a new line."""
        if self.total and self.last(1) != b"\n":
            self.append(b"\n")

    def ends_with(self, text: bytes) -> bool:
        """Return whether the last piece is this text, ignoring white space around it."""
        text = text.strip()[-self.limit :]
        return self.last(len(text) + _MOST_SPACE).rstrip().endswith(text)
