"""Finds the folder with the record of runs: one for each work tree."""

from collections.abc import Iterable
from pathlib import Path

from rooda.workspace.state_folder import DATABASE, STATE_FOLDER
from rooda.workspace.work_tree import folders_to_top, is_foreign


def workspace_for(folder: Path) -> Path:
    """Return the folder for the record of a new run: the top of the work tree.

    If a folder from this one up to the top has a record already, the run is added to that one.
    Without a repository, the record is in the folder itself.
    """
    within = folders_to_top(folder)
    return _first_with_record(within) or within[-1]


def find_workspace(folder: Path) -> Path | None:
    """Return the nearest folder with a record, from this one upward; None if there is none.

    The search goes on above the work tree: during a run, an agent can make any folder a repository
    of its own, or delete the repository.
    """
    real = folder.resolve()
    return _first_with_record([real, *real.parents])


def _first_with_record(folders: Iterable[Path]) -> Path | None:
    return next((one for one in folders if has_record(one)), None)


def has_record(folder: Path) -> bool:
    """Return whether the folder has a record, also one that the user may not read."""
    state = folder / STATE_FOLDER
    try:
        return (state / DATABASE).exists() and not is_foreign(state)
    except PermissionError:
        return not is_foreign(state)  # the reader says why it can't be read
