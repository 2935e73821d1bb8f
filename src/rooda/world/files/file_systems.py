"""Finds out whether a folder is on a network file system. Linux tells; elsewhere rooda trusts."""

import os
import re
from pathlib import Path

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
