"""The end of a growing text, in bounded memory."""

_SPACE = 1024  # that may stand behind a text


class Tail:
    """Keeps the last bytes of what is added to it."""

    def __init__(self, limit: int) -> None:
        self.truncated = False
        self._limit = limit
        self._kept = bytearray()

    def add(self, data: bytes) -> None:
        """Something more came."""
        self._kept += data[-self._limit :]
        # Now and then, so that many small pieces cost no more than a few large ones.
        if len(self._kept) > self._limit + max(self._limit // 8, _SPACE):
            self._cut()

    def get(self) -> bytes:
        """What is kept."""
        self._cut()
        return bytes(self._kept)

    def end_line(self) -> None:
        """What comes now begins a new line."""
        if self._kept and not self._kept.endswith(b"\n"):
            self._kept += b"\n"

    def ends_with(self, text: bytes) -> bool:
        """Whether this came last, but for space around it."""
        text = text.strip()[-self._limit :]
        return self._kept[-len(text) - _SPACE :].rstrip().endswith(text)

    @property
    def is_blank(self) -> bool:
        """Whether nothing came but space."""
        return not self._kept.strip()

    def _cut(self) -> None:
        over = len(self._kept) - self._limit
        if over > 0:
            self.truncated = True
            del self._kept[:over]
