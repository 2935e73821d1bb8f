"""The list of work trees that have a record, for views of all runs of this machine.

One small file for each work tree, in a private folder of the user (`$XDG_STATE_HOME/rooda/trees`):
two runs that start at the same moment do not disturb each other, and no agent in a sandbox sees it.
"""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from rooda.text.paths import state_home
from rooda.text.plain_files import read_plain_file, replace_file
from rooda.workspace.record_place import has_record
from rooda.workspace.state_home import tree_key

_FOLDER = "rooda/trees"
_LONGEST_PATH = 8192  # bytes


def remember_tree(tree: Path, environ: Mapping[str, str]) -> None:
    """Add a work tree to the list. A list that can't be written is no error."""
    folder = _folder(environ)
    if folder is None or (folder / tree_key(tree)).exists():
        return
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(folder / tree_key(tree), os.fsencode(tree))
        known_trees(environ)  # so that the list stays short without a reader


def known_trees(environ: Mapping[str, str]) -> list[Path]:
    """Return the work trees that have a record; the entries of others are removed."""
    folder = _folder(environ)
    found: list[Path] = []
    try:
        entries = [] if folder is None else sorted(folder.iterdir())
    except OSError:
        return []
    for entry in entries:
        if entry.name.startswith("."):
            continue  # another run writes it at this moment
        tree = _read(entry)
        if tree is None or tree_key(tree) != entry.name or not has_record(tree):
            with contextlib.suppress(OSError):
                entry.unlink()
        else:
            found.append(tree)
    return found


def _folder(environ: Mapping[str, str]) -> Path | None:
    home = state_home(environ)
    return None if home is None else home / _FOLDER


def _read(path: Path) -> Path | None:
    try:
        data = read_plain_file(path, _LONGEST_PATH)
    except OSError:
        return None
    tree = Path(os.fsdecode(data)) if data and b"\0" not in data else None
    return tree if tree is not None and tree.is_absolute() else None
