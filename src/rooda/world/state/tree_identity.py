"""Tell a work tree that was moved from a copy: `tree.json` in its state folder.

The key of a record is the path of the work tree. The inode with its time of birth is the same
after a move, and another one in a copy. The kernel uses the inode of a deleted folder again, but
never with the same time of birth.
"""

import contextlib
import json
import os
from pathlib import Path

from msgspec import Struct, convert
from msgspec.structs import asdict

from rooda.world.files.plain_files import read_plain_file, replace_file
from rooda.world.process.libc import birth_time
from rooda.world.state.folder import StateFolder, make_state_folder

FILE = "tree.json"
_LONGEST = 64 * 1024


class TreeIdentity(Struct, frozen=True):
    """A work tree as rooda last saw it. The path need not be UTF-8."""

    path: str
    device: int
    inode: int
    birth: int | None = None  # nanoseconds since the epoch; None: the file system keeps none

    @property
    def tree(self) -> Path:
        """The path of the top."""
        return Path(self.path)

    def is_same_folder(self, other: "TreeIdentity | None") -> bool:
        """Return whether both are one folder, whatever its path; False without a time of birth."""
        return (
            other is not None
            and self.birth is not None
            and (self.device, self.inode, self.birth) == (other.device, other.inode, other.birth)
        )


def identity_of(tree: Path) -> TreeIdentity | None:
    """Return the identity of a folder; None if it is gone."""
    try:
        found = tree.stat()
    except OSError:
        return None
    return TreeIdentity(str(tree), found.st_dev, found.st_ino, birth_time(tree))


def recorded_identity(state: StateFolder) -> TreeIdentity | None:
    """Return what a state folder says about its work tree; None if it says nothing readable."""
    try:
        found = json.loads(read_plain_file(state / FILE, _LONGEST))
        identity = convert(found, TreeIdentity)
    except (OSError, ValueError, RecursionError):  # ValueError: also of msgspec
        return None
    return identity if Path(identity.path).is_absolute() else None


def note_tree(state: StateFolder, tree: Path) -> None:
    """Write down which work tree a state folder belongs to. Raises OSError.

    A bind mount shows the same folder at a second path: then the first path stays.
    """
    known, now = recorded_identity(state), identity_of(tree)
    if now is None or known == now:
        return
    if known is not None and known.path != now.path:
        is_mounted_twice = known.is_same_folder(now) and known.is_same_folder(
            identity_of(known.tree)
        )
        if is_mounted_twice:
            return
    make_state_folder(state)
    replace_file(state / FILE, json.dumps(asdict(now)).encode() + b"\n")


def note_tree_again(state: StateFolder, tree: Path) -> None:
    """Write `tree.json` again if an agent without a sandbox has deleted the state folder."""
    if not os.path.lexists(state / FILE):
        with contextlib.suppress(OSError):
            note_tree(state, tree)
