"""Finds out whether a folder is on a network file system. Linux tells; elsewhere rooda trusts."""

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from rooda.base.numbers import approximate_size, format_size
from rooda.world.state.folder import StateFolder, nearest_folder

_MOUNTS = Path("/proc/self/mountinfo")
# Kinds of file systems on which SQLite files can break: locks and shared memory do not reach from
# one machine to another.
_NETWORK = re.compile(
    r"(?:fuse\.)?(?:nfs\d?|cifs|smb\d?|smbfs|sshfs|ceph(?:-fuse)?|glusterfs|lustre|beegfs|gpfs|afs"
    r"|9p|ncpfs|davfs2?|s3fs|rclone|gcsfuse|blobfuse2?|ocfs2|gfs2|orangefs|coda|juicefs)"
)
_OCTAL = re.compile(r"\\([0-7]{3})")


def network_file_system(path: Path) -> str:
    """Return the kind of the network file system that a path is on; "" if it is on none."""
    kind = file_system(path)
    return kind if _NETWORK.fullmatch(kind) else ""


def file_system(path: Path) -> str:
    """Return the kind of the file system that a path is on; "" if the OS does not tell."""
    try:
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""
    return kind_of(os.path.realpath(path), mounts)


def kind_of(path: str, mounts: str) -> str:
    """Return the kind of file system of a path, from the text of mountinfo; "" if unknown.

    The last of the deepest mounts is the one that is seen.
    """
    found, deepest = "", -1
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) < 5 or not after:  # noqa: PLR2004 - the fifth field is the mount point
            continue
        point = _OCTAL.sub(lambda octal: chr(int(octal[1], 8)), fields[4])
        is_above = point in ("/", path) or path.startswith(f"{point}/")
        if is_above and len(point) >= deepest:
            found, deepest = after.split(" ")[0], len(point)
    return found


# How much disk space is free where a run writes, and whether that is enough.


class DiskShortage(Struct, frozen=True):
    """A disk with less free space than a run needs."""

    what: str  # is on it: `the work tree`
    folder: str
    free: int  # bytes
    floor: int

    def __str__(self) -> str:
        """Return how much is free, where, and how much should be."""
        return (
            f"only {approximate_size(self.free)} of disk space is free for {self.what} in "
            f"{self.folder}, less than {format_size(self.floor)} (min_free_disk)"
        )


def disk_places(working_dir: Path, state: StateFolder) -> Mapping[str, Path]:
    """Return the folders that a run writes to, by what is in them."""
    return {"the work tree": working_dir, "the record": nearest_folder(state)}


def find_shortage(floor: int | None, places: Mapping[str, Path]) -> DiskShortage | None:
    """Return the disk of the first place that has too little free space; None if all have enough.

    A file system that does not report its size, and a folder that is gone, have enough.
    """
    if not floor:
        return None
    seen: set[int] = set()
    for what, folder in places.items():
        try:
            device = folder.stat().st_dev
            if device in seen:
                continue
            seen.add(device)
            usage = shutil.disk_usage(folder)
        except OSError:
            continue
        if usage.total and usage.free < floor:
            return DiskShortage(what, str(folder), usage.free, floor)
    return None
