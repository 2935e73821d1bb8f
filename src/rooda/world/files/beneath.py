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

from rooda.world.files.plain_files import open_plain_file
from rooda.world.files.walk import (
    FOLDER,
    ON_THE_WAY,
    Entry,
    Listing,
    Read,
    Walk,
    check_part,
    entries_of,
    set_mode,
)

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
