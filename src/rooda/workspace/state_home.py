"""Where the state folder of a work tree is: outside of the tree and of its `.git`."""

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

from rooda.text.paths import state_home as state_home_of_programs

VARIABLE = "ROODA_STATE_HOME"
TREES = "trees"
_UNSAFE = re.compile(r"[^A-Za-z0-9._]+")
_LONGEST_NAME = 40  # characters of the readable part
_KEY = 16  # characters of the hash


def state_home(environ: Mapping[str, str]) -> Path | None:
    """Return the user's folder for the state of rooda; None if no variable names one.

    The first that is set: `$ROODA_STATE_HOME`, `$XDG_STATE_HOME/rooda`, `~/.local/state/rooda`.
    """
    own = Path(environ.get(VARIABLE, ""))
    if own.is_absolute():
        return own
    home = state_home_of_programs(environ)
    return None if home is None else home / "rooda"


def tree_key(tree: Path) -> str:
    """Return a short name for a work tree that is safe in an address and as the name of a file.

    `tree` is the real path of the top.
    """
    return hashlib.sha256(os.fsencode(tree)).hexdigest()[:_KEY]


def state_folder_name(tree: Path) -> str:
    """Return the name of the state folder of a work tree: the name of the tree, and its key."""
    name = _UNSAFE.sub("-", tree.name).strip("-.")[:_LONGEST_NAME].strip("-.")
    return f"{name or 'tree'}-{tree_key(tree)}"


def state_folder_at(home: Path, tree: Path) -> Path:
    """Return the state folder of the work tree at this real path, below a state home."""
    return home / TREES / state_folder_name(tree)
