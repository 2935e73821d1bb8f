"""One file or link of a work tree as rooda keeps it, and what is there now. Follows no link."""

import os
import stat
from pathlib import Path

from msgspec import Struct

from rooda.text.plain_files import read_plain_file

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


def look(path: str, most: int) -> KeptFile | Obstacle:
    """Return the file or link at a path; its folders have to be real ones.

    rooda does not read a file of more than `most` bytes.
    """
    try:
        found = os.lstat(path)
        kind = stat.S_IFMT(found.st_mode)
        if kind == stat.S_IFLNK:
            target = os.fsencode(os.readlink(path))  # noqa: PTH115 - a name of any bytes
            return KeptFile(target, is_link=True, owner=_owner(found))
        if kind != stat.S_IFREG:
            return Obstacle(_KINDS.get(kind, "a device"))
        if found.st_size > most:
            return Obstacle("a file", f"it has {found.st_size:,} bytes")
        content = read_plain_file(Path(path), most + 1)
    except FileNotFoundError:
        return Obstacle()
    except OSError as error:
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
