"""The permissions of files that a tree of git can't tell: it knows only 0644 and 0755."""

import os
import stat
from collections.abc import Iterable, Mapping

_USUAL = (0o644, 0o755)
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class FileModes:
    """The unusual permissions of the files of one work tree."""

    def __init__(self) -> None:
        self._modes: dict[str, int] = {}
        self._watched: frozenset[str] = frozenset()

    def watch(self, top: str, names: Iterable[str]) -> None:
        """Note the permissions of these files below `top` also if they are usual ones."""
        self._watched = frozenset(names)
        self._modes.update(modes_of(top, self._watched))

    def note(self, name: str, found: os.stat_result) -> None:
        """Note the permissions of a file that a scan has looked at."""
        mode = stat.S_IMODE(found.st_mode) & 0o777
        if stat.S_ISREG(found.st_mode) and (mode not in _USUAL or name in self._watched):
            self._modes[name] = mode
        else:
            self._modes.pop(name, None)

    def forget(self, names: Iterable[str]) -> None:
        """Forget files that are not in the index any more."""
        for name in names:
            self._modes.pop(name, None)

    def clear(self) -> None:
        """Forget all files."""
        self._modes.clear()

    def sorted(self) -> dict[str, int]:
        """Return the permissions; those of the files that fewest users may read come first."""
        return dict(sorted(self._modes.items(), key=lambda one: (one[1] & 0o044, one[0])))


def modes_of(top: str, names: Iterable[str]) -> dict[str, int]:
    """Return the permissions of those of the names that are regular files."""
    found: dict[str, int] = {}
    for name in names:
        try:
            status = os.lstat(f"{top}/{name}")
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode):
            found[name] = stat.S_IMODE(status.st_mode) & 0o777
    return found


def set_modes(top: str, modes: Mapping[str, int]) -> list[str]:
    """Set the permissions of regular files; return the names for which that failed.

    The caller knows that no folder above them is a link. rooda does not follow a link in the place
    of a file.
    """
    failed: list[str] = []
    for name, mode in modes.items():
        try:
            fd = os.open(f"{top}/{name}", _FLAGS)
        except OSError:
            failed.append(name)
            continue
        try:
            os.fchmod(fd, mode)
        except OSError:
            failed.append(name)
        finally:
            os.close(fd)
    return failed
