"""The one door to a folder whose content an agent controls, such as a work tree.

rooda opens each folder from the one above it, so no link leads it elsewhere and no path is too
long. It opens regular files only, without waiting: a pipe would block rooda, a device has no end.
"""

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

from msgspec import Struct

from rooda.world.files.plain_files import open_plain_file

# A walk through folders by descriptors: at any depth, with few open files, following no link.


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


__all__ = ["FOLDER", "NEW", "Beneath", "Entry", "Listing", "Read", "set_mode"]

NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


_PIECE = 1024 * 1024
_LISTED = stat.S_IRUSR | stat.S_IXUSR  # what the owner of a folder needs to list it


class Above(NamedTuple):
    """An open folder, and the name of something in it."""

    folder: int
    name: str


class Beneath:
    """The files below a folder. Names are relative to it, with `/` between their parts.

    The path of the folder itself belongs to the user; it can also be an open folder. Every method
    raises OSError if a part of a name is missing, is a link or no folder, or is `.` or `..`.
    """

    def __init__(self, top: Path | str | int) -> None:
        self._top = top

    @contextlib.contextmanager
    def folder(self, name: str = "", *, make: bool = False) -> Iterator[int]:
        """Yield a descriptor of a folder; `make` creates what is missing."""
        fd = self._reach(name, FOLDER, make=make)
        try:
            yield fd
        finally:
            os.close(fd)

    @contextlib.contextmanager
    def above(self, name: str, *, make: bool = False) -> Iterator[Above]:
        """Yield the open folder that a name is in, and the last part of the name."""
        folder, _, last = name.rpartition("/")
        check_part(last)
        fd = self._reach(folder, ON_THE_WAY, make=make)
        try:
            yield Above(fd, last)
        finally:
            os.close(fd)

    def _reach(self, name: str, flags: int, *, make: bool) -> int:
        path, above = (".", self._top) if isinstance(self._top, int) else (self._top, None)
        parts = name.split("/") if name else []
        fd = os.open(path, ON_THE_WAY if parts else flags, dir_fd=above)
        try:
            for left, part in zip(range(len(parts) - 1, -1, -1), parts, strict=True):
                check_part(part)
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, dir_fd=fd)
                above, fd = fd, os.open(part, ON_THE_WAY if left else flags, dir_fd=fd)
                os.close(above)
        except OSError:
            os.close(fd)
            raise
        return fd

    # -- reading ---------------------------------------------------------------------------------

    def status(self, name: str) -> os.stat_result:
        """Return the status of a file, a folder, or a link itself."""
        with self.above(name) as (parent, last):
            return os.lstat(last, dir_fd=parent)

    def list(self, name: str = "") -> list[Entry]:
        """Return what is in a folder."""
        with self.folder(name) as fd:
            return entries_of(fd)

    def scan(self, name: str = "") -> Iterator[os.DirEntry[str]]:
        """Yield what is in a folder without its status: in large folders, that saves time."""
        with self.folder(name) as fd, os.scandir(fd) as entries:
            yield from entries

    def open(self, name: str) -> IO[bytes]:
        """Return a regular file, open for reading."""
        with self.above(name) as (parent, last):
            return os.fdopen(open_plain_file(last, dir_fd=parent), "rb")

    def read(self, name: str, most: int | None) -> bytes:
        """Return the first `most` bytes of a regular file (None: all of them)."""
        with self.open(name) as file:
            return file.read(-1 if most is None else most)

    def link(self, name: str) -> bytes | None:
        """Return the target of a link; None if something else is there."""
        with self.above(name) as (parent, last):
            if not stat.S_ISLNK(os.lstat(last, dir_fd=parent).st_mode):
                return None
            return os.readlink(os.fsencode(last), dir_fd=parent)

    def walk(
        self, tick: Callable[[], object] = int, name: str = "", read: Read | None = None
    ) -> Iterator[Listing]:
        """Yield each folder with what is in it, at any depth; a folder before those in it.

        The walk begins at the folder `name`. A folder that its owner has closed to itself gets the
        bits that rooda needs to list it. What `tick` raises ends the walk; `read` as for `Walk`.
        """
        yield from Walk(_LISTED, tick=tick, read=read).folders(
            self._reach(name, FOLDER, make=False)
        )

    # -- writing ---------------------------------------------------------------------------------

    def write_new(self, name: str, content: IO[bytes], mode: int, size: int | None = None) -> None:
        """Write a file that does not exist yet, and the folders above it.

        `size` is how many bytes of the content belong to it; without one, all of them.
        """
        with self.above(name, make=True) as (parent, last):
            fd = os.open(last, NEW, 0o600, dir_fd=parent)
            with os.fdopen(fd, "wb") as file:
                if size is None:
                    shutil.copyfileobj(content, file)
                else:
                    copy_bytes(content, file, size)
                os.fchmod(fd, mode)

    def make_link(self, name: str, target: bytes) -> None:
        """Make a link that does not exist yet, and the folders above it."""
        with self.above(name, make=True) as (parent, last):
            os.symlink(target, os.fsencode(last), dir_fd=parent)

    def remove_empty(self, name: str) -> None:
        """Delete an empty folder."""
        with self.above(name) as (parent, last):
            os.rmdir(last, dir_fd=parent)

    def remove(self, name: str) -> None:
        """Delete a file, a link, or a folder with all that is in it."""
        with self.above(name) as (parent, last):
            remove_at(parent, last)


def copy_bytes(source: IO[bytes], target: IO[bytes], size: int) -> None:
    """Copy this many bytes. Raises OSError if there are fewer."""
    while size:
        piece = source.read(min(size, _PIECE))
        if not piece:
            raise OSError(errno.EIO, "there is less than the content")
        target.write(piece)
        size -= len(piece)


def remove_at(parent: int, name: str) -> None:
    """Delete what has this name in an open folder. Raises OSError."""
    status = os.lstat(name, dir_fd=parent)
    if not stat.S_ISDIR(status.st_mode):
        os.unlink(name, dir_fd=parent)
        return
    walk = Walk(stat.S_IRWXU, leave=_remove_folder)
    for listing in walk.folders(walk.open(parent, name, status)):
        if listing.error is not None:
            raise listing.error
        for entry in listing.entries:
            if not stat.S_ISDIR(entry.status.st_mode):
                os.unlink(entry.name, dir_fd=listing.fd)
    os.rmdir(name, dir_fd=parent)


def copy_at(parent: int, name: str, target: int, new: str) -> None:
    """Copy a file, a link, or a folder with all that is in it, between open folders.

    Pipes, sockets and devices are left out. Raises OSError.
    """
    here, there = Beneath(parent), Beneath(target)
    status = here.status(name)
    if not stat.S_ISDIR(status.st_mode):
        _copy_file(here, name, status, there, new)
        return
    walk = Walk(_LISTED)
    for listing in walk.folders(walk.open(parent, name, status)):
        if listing.error is not None:
            raise listing.error
        folder = Beneath(listing.fd)
        with there.folder(f"{new}/{listing.path}".rstrip("/"), make=True) as fd:
            for entry in listing.entries:
                _copy_file(folder, entry.name, entry.status, Beneath(fd), entry.name)


def _copy_file(here: Beneath, name: str, status: os.stat_result, there: Beneath, new: str) -> None:
    if (link := here.link(name)) is not None:
        there.make_link(new, link)
    elif stat.S_ISREG(status.st_mode):
        with here.open(name) as file:
            there.write_new(new, file, 0o600)


def _remove_folder(parent: int, name: str) -> None:
    os.rmdir(name, dir_fd=parent)
