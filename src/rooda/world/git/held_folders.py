"""Folders that rooda keeps open, to notice when something else takes the place of one of them."""

import os
import weakref
from collections.abc import Iterable, Mapping
from pathlib import Path


class HeldFolders:
    """Open folders and their paths. While a folder is open, the system can't reuse its inode."""

    def __init__(self, paths: Iterable[Path]) -> None:
        """Open the folders. Raises OSError."""
        self._held: dict[Path, int] = {}
        self.close = weakref.finalize(self, _close, self._held)
        for path in dict.fromkeys(paths):
            self._held[path] = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def replaced(self) -> Path | None:
        """Return the first path that does not lead to its folder any more; None if all do."""
        return next((path for path, fd in self._held.items() if not _is_same(path, fd)), None)


def _is_same(path: Path, fd: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(fd))
    except OSError:
        return False


def _close(held: Mapping[Path, int]) -> None:
    for fd in held.values():
        os.close(fd)
