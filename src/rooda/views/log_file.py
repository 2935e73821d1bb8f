"""A log file that outlives what an agent does to it."""

import os
from collections.abc import Callable
from pathlib import Path


class LogFile:
    """Appends to a file, and opens it anew when somebody has deleted or replaced it.

    Raises OSError when it can't be written; who listens decides what to make of that.
    """

    def __init__(self, path: Path, open_file: Callable[[], int] | None = None) -> None:
        self._path = path
        self._open = open_file or self._open_anywhere
        self._fd = self._open()

    def write(self, text: str) -> None:
        """Append the text."""
        if not self._is_there():
            fd = self._open()  # first: where that fails, the old one is still ours
            os.close(self._fd)
            self._fd = fd
        rest = text.encode("utf-8", "replace")
        while rest:
            rest = rest[os.write(self._fd, rest) :]

    def close(self) -> None:
        """Nothing more will be written."""
        os.close(self._fd)

    def _open_anywhere(self) -> int:
        # Not blocking: a FIFO that nobody reads is an error and not a wait without end.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK
        return os.open(self._path, flags, 0o644)

    def _is_there(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._fd), self._path.stat())
        except OSError:
            return False
