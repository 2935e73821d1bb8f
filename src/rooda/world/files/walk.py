"""A walk through folders by descriptors: at any depth, with few open files, following no link."""

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from typing import NamedTuple

from msgspec import Struct

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A folder on the way to another one, which rooda may not be able to list. macOS has no such flag.
ON_THE_WAY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OFTEN = 1000  # entries between two calls of `tick`
_MOST_OPEN = 32  # folders that a walk keeps open


class Entry(NamedTuple):
    """What is in a folder. The status is that of a link itself."""

    name: str
    status: os.stat_result

    @property
    def is_file_or_link(self) -> bool:
        """Whether it is a regular file or a link."""
        return stat.S_ISREG(self.status.st_mode) or stat.S_ISLNK(self.status.st_mode)


Read = Callable[[int, Callable[[], object]], list[Entry]]


class Listing(Struct):
    """A folder and what is in it.

    `path` is relative to the start of the walk. The caller may take folders out of `enter`, and the
    walk does not enter them. A folder that was closed to its owner had the mode `closed`. One that
    rooda can't list has an `error`.
    """

    path: str
    fd: int
    entries: list[Entry]
    enter: list[str]
    closed: int | None = None
    error: OSError | None = None

    def name(self, entry: str) -> str:
        """Return the path of an entry, relative to the start of the walk."""
        return f"{self.path}/{entry}" if self.path else entry


class _Level(Struct):
    """An open folder on the way to the one that the walk is in."""

    name: str
    fd: int  # -1 if it is closed for now
    inode: tuple[int, int]
    listing: Listing
    folders: dict[str, os.stat_result]


class Walk:
    """One walk. The owner of a folder needs these bits of its mode; rooda sets them if need be.

    `leave` is called with the open folder above, and the name, when the walk leaves a folder.
    `tick` is called often: what it raises ends the walk. `read` lists a folder; it may return
    less than there is, if that has all folders to enter.
    """

    def __init__(
        self,
        bits: int,
        leave: Callable[[int, str], None] | None = None,
        tick: Callable[[], object] = int,
        read: "Read | None" = None,
    ) -> None:
        self._bits = bits
        self._read = read or entries_of
        self._leave = leave
        self._tick = tick
        self._closed: int | None = None  # the mode that the folder had which was opened last

    def open(self, parent: int, name: str, status: os.stat_result) -> int:
        """Return a descriptor of a folder. Raises OSError."""
        self._closed = None
        mode, is_owner = stat.S_IMODE(status.st_mode), status.st_uid == os.geteuid()
        if is_owner and mode & self._bits != self._bits:
            set_mode(parent, name, mode | self._bits)
            self._closed = mode
        return os.open(name, FOLDER, dir_fd=parent)

    def folders(self, top: int) -> Iterator[Listing]:
        """Yield the listing of this folder and of all below it; close its descriptor."""
        levels: list[_Level] = []
        try:
            levels.append(self._level(top, "", ""))
            yield levels[0].listing
            while levels:
                here = levels[-1]
                if not here.listing.enter:
                    self._up(levels)
                    continue
                name = here.listing.enter.pop()
                path = here.listing.name(name)
                try:
                    fd = self.open(here.fd, name, here.folders[name])
                    levels.append(self._level(fd, name, path))
                except OSError as error:
                    if error.errno not in _GONE:
                        yield Listing(path, -1, [], [], self._closed, error)
                    continue
                if len(levels) > _MOST_OPEN:
                    _close(levels[-_MOST_OPEN - 1])
                yield levels[-1].listing
        finally:
            for level in levels:
                _close(level)

    def _level(self, fd: int, name: str, path: str) -> _Level:
        try:
            self._tick()
            entries = self._read(fd, self._tick)
        except BaseException:
            os.close(fd)
            raise
        folders = {one.name: one.status for one in entries if stat.S_ISDIR(one.status.st_mode)}
        listing = Listing(path, fd, entries, [*folders], self._closed)
        return _Level(name, fd, _inode(fd), listing, folders)

    def _up(self, levels: list[_Level]) -> None:
        """Go back to the folder above."""
        left = levels.pop()
        try:
            if levels and levels[-1].fd < 0:
                levels[-1].fd = _open_above(left.fd, levels[-1].inode)
        finally:
            _close(left)
        if levels and self._leave is not None:
            self._leave(levels[-1].fd, left.name)


# The folder is gone, or something else is in its place: no program of the agent runs any more, but
# one of the user may.
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


def _open_above(fd: int, inode: tuple[int, int]) -> int:
    """Return a descriptor of the folder above, which has to have this inode. Raises OSError."""
    above = os.open("..", FOLDER, dir_fd=fd)
    if _inode(above) != inode:
        os.close(above)
        raise OSError(errno.ESTALE, "a folder was moved while rooda read it")
    return above


def _inode(fd: int) -> tuple[int, int]:
    status = os.fstat(fd)
    return status.st_dev, status.st_ino


def _close(level: _Level) -> None:
    if level.fd >= 0:
        os.close(level.fd)
        level.fd = -1


def entries_of(fd: int, tick: Callable[[], object] = int) -> list[Entry]:
    """Return what is in an open folder; call `tick` now and then. Raises OSError."""
    found: list[Entry] = []
    with os.scandir(fd) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                found.append(Entry(entry.name, entry.stat(follow_symlinks=False)))
            if len(found) % _OFTEN == 0:
                tick()
    return found


def check_part(part: str) -> None:
    """Raise OSError for a part of a name that leads to another folder than the one below."""
    if part in ("", ".", "..") or "/" in part or "\0" in part:
        raise OSError(errno.EINVAL, f"is not a name of a file: {part!r}")


def set_mode(parent: int, name: str, mode: int) -> None:
    """Set the permissions of a file or folder, which may be closed to rooda itself.

    Follows no link. Raises OSError.
    """
    if os.chmod in os.supports_follow_symlinks:
        os.chmod(name, mode, dir_fd=parent, follow_symlinks=False)
        return
    fd = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        if stat.S_ISLNK(os.fstat(fd).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
        os.chmod(f"/proc/self/fd/{fd}", mode)  # noqa: PTH101 - Linux has no other way
    finally:
        os.close(fd)
