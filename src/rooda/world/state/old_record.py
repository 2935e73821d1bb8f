"""Records of version 0.1: the folder `.rooda` in a work tree, and the list of these work trees."""

import os
from collections.abc import Mapping
from pathlib import Path

from rooda.base.paths import state_home as state_home_of_programs
from rooda.world.files.plain_files import open_plain_file
from rooda.world.state.folder import DATABASE
from rooda.world.state.home import TREES, tree_key

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
