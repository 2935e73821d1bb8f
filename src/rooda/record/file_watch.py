"""Notice what others do to the files of an open database."""

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
    """What the files looked like after our last write.

    They are held open, so that a look costs next to nothing: there are two for each write. And
    SQLite maps `-shm` into memory. To touch a part that somebody has cut off would end the process
    at once, so it is made whole before each use.
    """

    def __init__(self, path: Path) -> None:
        """From now on. Close it after the connection, which would else lose its locks."""
        self._name = str(path)
        with contextlib.ExitStack() as opened:

            def held(suffix: str) -> int:
                fd = os.open(beside(path, suffix), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
                opened.callback(os.close, fd)
                return fd

            self._file = self._log = self._map = held("")
            with contextlib.suppress(FileNotFoundError):  # not every file system allows for these
                self._log = held("-wal")
                self._map = held("-shm")
            self._map_size = os.fstat(self._map).st_size
            found = os.fstat(self._file)
            self._identity = found.st_dev, found.st_ino
            self.note()
            self._opened = opened.pop_all()

    def note(self) -> None:
        """Remember how we left them."""
        self._written = _trace(os.fstat(self._file)), _trace(os.fstat(self._log))

    def found(self) -> str | None:
        """What somebody did since then: CHANGED is not yet a damage, anything else is one."""
        was_cut = self.mend()
        try:
            file = os.lstat(self._name)
        except PermissionError:  # out of reach by name, but not for us
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
        """Whether `-shm` was cut short. Zeros in its place mean to SQLite that nothing is known."""
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
    """What writing to a file changes."""
    return found.st_size, found.st_mtime_ns
