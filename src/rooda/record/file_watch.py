"""Notice what other programs do to the files of an open database."""

import contextlib
import os
from pathlib import Path
from typing import Final

CHANGED: Final = "was changed"


def beside(path: Path, suffix: str) -> Path:
    """One of the files that SQLite keeps beside a database."""
    return path.with_name(path.name + suffix)


def has_content(path: Path) -> bool:
    """Whether there is a file that is not empty."""
    try:
        return path.lstat().st_size > 0
    except FileNotFoundError:
        return False


class FileWatch:
    """Compares the files with their state after rooda's last write.

    The files stay open, so that each check is cheap: there are two for each write. SQLite maps
    `-shm` into memory, and SIGBUS would end rooda if SQLite touched a part that an agent has
    truncated. So the file gets its length back before each use.
    """

    def __init__(self, path: Path) -> None:
        """Begin to watch. Close this after the connection, which would otherwise lose its locks."""
        self._name = str(path)
        with contextlib.ExitStack() as opened:

            def held(suffix: str) -> int:
                fd = os.open(beside(path, suffix), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
                opened.callback(os.close, fd)
                return fd

            self._file = self._log = self._map = held("")
            with contextlib.suppress(FileNotFoundError):  # some file systems do not support these
                self._log = held("-wal")
                self._map = held("-shm")
            self._map_size = os.fstat(self._map).st_size
            found = os.fstat(self._file)
            self._identity = found.st_dev, found.st_ino
            self.note()
            self._opened = opened.pop_all()

    def note(self) -> None:
        """Remember the state after rooda's own write."""
        self._written = _trace(os.fstat(self._file)), _trace(os.fstat(self._log))

    def found(self) -> str | None:
        """What another program did since then: CHANGED may be harmless, anything else is damage."""
        was_cut = self.mend()
        try:
            file = os.lstat(self._name)
        except PermissionError:  # the agent took away the rights on the folder
            file = os.fstat(self._file)
        except (FileNotFoundError, NotADirectoryError):
            return "was deleted"
        log = os.fstat(self._log)
        if (file.st_dev, file.st_ino) != self._identity:
            return "was replaced"
        if log.st_nlink == 0 or self._is_map_gone:
            return "is not whole (a file beside it was deleted)"
        return CHANGED if was_cut or (_trace(file), _trace(log)) != self._written else None

    def mend(self) -> bool:
        """Whether `-shm` was truncated. SQLite takes the zeros that replace it for no index."""
        found = os.fstat(self._map)
        self._is_map_gone = found.st_nlink == 0
        if self._map == self._file:
            return False
        missing = self._map_size - found.st_size
        self._map_size = max(self._map_size, found.st_size)
        if missing <= 0:
            return False
        with contextlib.suppress(OSError):
            os.pwrite(self._map, bytes(missing), found.st_size)
        return True

    def close(self) -> None:
        """Stop watching."""
        self._opened.close()


def _trace(found: os.stat_result) -> tuple[int, int]:
    """The properties of a file that a write changes."""
    return found.st_size, found.st_mtime_ns
