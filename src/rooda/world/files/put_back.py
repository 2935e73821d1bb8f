"""Write one file of a work tree back to its place, whatever an agent has put there.

rooda opens each folder from the one above it and follows no link, so it can't write outside of the
work tree. What is in the way moves to another folder if that is possible.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from rooda.world.files.beneath import FOLDER, NEW, Beneath, copy_at, remove_at, set_mode

# One file or link of a work tree as rooda keeps it, and what is there now. Follows no link.


# A file is missing, or something else is in the place of a folder above it.
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a link",
    stat.S_IFREG: "a file",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


class KeptFile(Struct, frozen=True):
    """The content and the permissions of a file, or the target of a link.

    `owner` is the user and the group, if rooda can set them.
    """

    content: bytes
    mode: int = 0
    is_link: bool = False
    owner: tuple[int, int] | None = None

    @property
    def kind(self) -> str:
        """What it is, in words."""
        return "a link" if self.is_link else "a file"


class Obstacle(Struct, frozen=True):
    """What is at a path instead of a file that rooda can read; `kind` is empty for nothing."""

    kind: str = ""
    error: str = ""


def look(tree: Beneath, name: str, most: int) -> KeptFile | Obstacle:
    """Return the file or link with this name; nothing, if a folder above it is a link or a file.

    rooda does not read a file of more than `most` bytes.
    """
    try:
        found = tree.status(name)
        kind = stat.S_IFMT(found.st_mode)
        if kind == stat.S_IFLNK:
            return KeptFile(tree.link(name) or b"", is_link=True, owner=_owner(found))
        if kind != stat.S_IFREG:
            return Obstacle(_KINDS.get(kind, "a device"))
        if found.st_size > most:
            return Obstacle("a file", f"it has {found.st_size:,} bytes")
        content = tree.read(name, most + 1)
    except OSError as error:
        if error.errno in _NOT_THERE:
            return Obstacle()
        return Obstacle("", error.strerror or str(error))
    if len(content) > most:
        return Obstacle("a file", "it grows while rooda reads it")
    return KeptFile(content, stat.S_IMODE(found.st_mode), owner=_owner(found))


def _owner(found: os.stat_result) -> tuple[int, int] | None:
    return (found.st_uid, found.st_gid) if os.geteuid() == 0 else None


def difference(before: KeptFile, now: KeptFile | Obstacle) -> str:
    """Return what happened to a file, in words; empty if it is as it was. Pure.

    The owner does not count: rooda may not be able to set it.
    """
    if now == before:
        return ""
    if isinstance(now, Obstacle) and now.kind != before.kind:
        if now.kind:
            return f"replaced by {now.kind}"
        return f"out of reach: {now.error}" if now.error else "deleted"
    if isinstance(now, KeptFile) and now.is_link is not before.is_link:
        return f"replaced by {now.kind}"
    if isinstance(now, Obstacle) or now.content != before.content:
        return "changed"
    return "permissions changed" if now.mode != before.mode else ""


_USUAL_FOLDER = 0o755
_LONGEST_NAME = 100  # bytes of the name of a file that was in the way


def move_aside(parent: int, name: str, target: int) -> None:
    """Move what has this name in an open folder to another one, under a new flat name.

    A flat name: what was moved before may be a link that leads elsewhere. Raises OSError.
    """
    _loosen(parent, name)
    end, number = os.fsdecode(os.fsencode(name)[-_LONGEST_NAME:]), 1
    while _status(target, f"{number}-{end}") is not None:
        number += 1
    try:
        os.rename(name, f"{number}-{end}", src_dir_fd=parent, dst_dir_fd=target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        copy_at(parent, name, target, f"{number}-{end}")
        remove_at(parent, name)


class Aside:
    """Keeps what is in the way in a folder, which `make` creates; deletes it if that fails."""

    def __init__(self, make: Callable[[], str]) -> None:
        self._make = make

    def take(self, parent: int, name: str) -> None:
        """Move what has this name in an open folder. Raises OSError."""
        try:
            target = os.open(self._make(), FOLDER)
            try:
                move_aside(parent, name, target)
            finally:
                os.close(target)
        except OSError:  # an agent has damaged the folder
            _loosen(parent, name)
            remove_at(parent, name)


def put_back(top: Path, name: str, kept: KeptFile, modes: Mapping[str, int], aside: Aside) -> None:
    """Write the file. Raises OSError. `modes` has the permissions of the folders above it.

    The folder at the top has the name "", and its path has to be free of links.
    """
    folder, _, last = name.rpartition("/")
    with contextlib.ExitStack() as closing:
        if "" in modes and stat.S_IMODE(top.stat().st_mode) != modes[""]:
            top.chmod(modes[""])
        parent = os.open(top, FOLDER)
        closing.callback(os.close, parent)
        for above, part in _steps(folder):
            parent = _enter(parent, part, modes.get(above, _USUAL_FOLDER), aside)
            closing.callback(os.close, parent)
        _write(parent, last, kept, aside)


def _steps(folder: str) -> Iterator[tuple[str, str]]:
    """Yield each folder of a path from the top down: its path, and its name."""
    path = ""
    for part in folder.split("/") if folder else ():
        path = f"{path}/{part}" if path else part
        yield path, part


def _enter(parent: int, name: str, mode: int, aside: Aside) -> int:
    """Return a descriptor of a folder; something else in its place makes room for a new one."""
    found = _status(parent, name)
    if found is not None and not stat.S_ISDIR(found.st_mode):
        aside.take(parent, name)
        found = None
    if found is None:
        os.mkdir(name, dir_fd=parent)
        if os.geteuid() == 0:
            above = os.fstat(parent)
            _give(parent, name, (above.st_uid, above.st_gid))
    if found is None or stat.S_IMODE(found.st_mode) != mode:
        set_mode(parent, name, mode)
    return os.open(name, FOLDER, dir_fd=parent)


def _write(parent: int, name: str, kept: KeptFile, aside: Aside) -> None:
    draft = f".rooda-{os.urandom(8).hex()}"
    try:
        if kept.is_link:
            os.symlink(kept.content, os.fsencode(draft), dir_fd=parent)
        else:
            fd = os.open(draft, NEW, 0o600, dir_fd=parent)
            with os.fdopen(fd, "wb") as file:
                file.write(kept.content)
                file.flush()
                _give(parent, draft, kept.owner)  # it clears some bits of the mode
                os.fchmod(file.fileno(), kept.mode)
        if kept.is_link:
            _give(parent, draft, kept.owner)
        if _status(parent, name) is not None:
            aside.take(parent, name)
        os.rename(draft, name, src_dir_fd=parent, dst_dir_fd=parent)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(draft, dir_fd=parent)
        raise


def _give(parent: int, name: str, owner: tuple[int, int] | None) -> None:
    """Set the owner, if rooda may do that: root works on the files of other users too."""
    if owner is not None:
        with contextlib.suppress(PermissionError):
            os.chown(name, *owner, dir_fd=parent, follow_symlinks=False)


def _status(parent: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _loosen(parent: int, name: str) -> None:
    """Let rooda move a folder: that needs the right to write to it."""
    found = _status(parent, name)
    if found is not None and stat.S_ISDIR(found.st_mode) and not found.st_mode & stat.S_IWUSR:
        set_mode(parent, name, stat.S_IMODE(found.st_mode) | stat.S_IRWXU)
