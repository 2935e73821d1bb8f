"""Where the state folder of a work tree is: outside of the tree and of its `.git`."""

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

from rooda.base.paths import state_home as state_home_of_programs
from rooda.world.files.plain_files import open_plain_file
from rooda.world.state.folder import DATABASE, StateFolder

VARIABLE = "ROODA_STATE_HOME"
TREES = "trees"
_UNSAFE = re.compile(r"[^A-Za-z0-9._]+")
_LONGEST_NAME = 40  # characters of the readable part
_KEY = 16  # characters of the hash
_FOLDER = re.compile(rf"[A-Za-z0-9._-]+-([0-9a-f]{{{_KEY}}})")


class NoStateHomeError(Exception):
    """No variable names a folder for the state of rooda; the message says which one to set."""


def state_home(environ: Mapping[str, str]) -> Path:
    """Return the user's folder for the state of rooda. Raises NoStateHomeError.

    The first that is set: `$ROODA_STATE_HOME`, `$XDG_STATE_HOME/rooda`, `~/.local/state/rooda`.
    """
    if own := environ.get(VARIABLE, ""):
        if not Path(own).is_absolute():
            raise NoStateHomeError(f"{VARIABLE} is not an absolute path: {own}")
        return Path(os.path.realpath(own))
    home = state_home_of_programs(environ)
    if home is None:
        raise NoStateHomeError("rooda has no folder for its records: HOME is not set")
    return Path(os.path.realpath(home / "rooda"))


def tree_key(tree: Path) -> str:
    """Return a short name for a work tree that is safe in an address and as the name of a file.

    `tree` is the real path of the top.
    """
    return hashlib.sha256(os.fsencode(tree)).hexdigest()[:_KEY]


def state_folder_name(tree: Path) -> str:
    """Return the name of the state folder of a work tree: the name of the tree, and its key."""
    name = _UNSAFE.sub("-", tree.name).strip("-.")[:_LONGEST_NAME].strip("-.")
    return f"{name or 'tree'}-{tree_key(tree)}"


def state_folder_at(home: Path, tree: Path) -> StateFolder:
    """Return the state folder of the work tree at this real path, below a state home."""
    return StateFolder(home / TREES / state_folder_name(tree))


def key_of(state: Path) -> str:
    """Return the key in the name of a state folder; "" for another name."""
    found = _FOLDER.fullmatch(state.name)
    return found[1] if found else ""


def state_folders(home: Path) -> list[StateFolder]:
    """Return the folders in a state home, in the order of their names; none if it is missing."""
    try:
        with os.scandir(home / TREES) as entries:
            names = [one.name for one in entries if one.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return [StateFolder(home / TREES / name) for name in sorted(names) if _FOLDER.fullmatch(name)]


# Records of version 0.1: the folder `.rooda` in a work tree, and the list of these work trees.


OLD_FOLDER = ".rooda"  # rooda neither commits nor counts it where it still lies
_LONGEST_PATH = 8192  # bytes


def has_old_record(tree: Path) -> bool:
    """Return whether a folder has a record of version 0.1. Any user may have written it."""
    old = tree / OLD_FOLDER
    return not old.is_symlink() and (old / DATABASE).is_file()


def is_known_tree(tree: Path, environ: Mapping[str, str]) -> bool:
    """Return whether the user's own list of version 0.1 has a work tree, by its real path.

    A clone can contain a forged record. Only the user can write to this list.
    """
    home = state_home_of_programs(environ)
    if home is None:
        return False
    try:
        fd = open_plain_file(home / "rooda" / TREES / tree_key(tree))
    except OSError:
        return False
    with os.fdopen(fd, "rb") as file:
        is_own = os.fstat(fd).st_uid == os.geteuid()
        return is_own and file.read(_LONGEST_PATH) == os.fsencode(tree)
