"""One file or link of a work tree as rooda keeps it, and what is there now. Follows no link."""

import errno
import os
import stat

from msgspec import Struct

from rooda.world.files.beneath import Beneath

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
