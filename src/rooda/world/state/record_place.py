"""Finds the record of a work tree: by the path of the tree, and by its identity after a move."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from rooda.world.git.work_tree import folders_to_top
from rooda.world.state.fleet_state import DATABASE as FLEET
from rooda.world.state.folder import DATABASE, StateFolder
from rooda.world.state.home import (
    NoStateHomeError,
    key_of,
    state_folder_at,
    state_folders,
    state_home,
)
from rooda.world.state.tree_identity import TreeIdentity, identity_of, recorded_identity


class RecordPlace(Struct, frozen=True):
    """A work tree, and the folder with its record, which may not exist yet.

    `moved_from` is the former path of a tree whose record is still under that path.
    """

    tree: Path
    state: StateFolder
    moved_from: Path | None = None


def place_for(folder: Path, environ: Mapping[str, str]) -> RecordPlace:
    """Return the place for the record of a new run: the top of the work tree of a folder.

    If a folder from this one up to the top has a record already, the run is added to that one.
    Without a repository, the tree is the folder itself. Raises NoStateHomeError.
    """
    home = state_home(environ)
    within = folders_to_top(folder)
    return _first_with_record(within, home) or place_at(within[-1], home)


def find_place(folder: Path, environ: Mapping[str, str]) -> RecordPlace | None:
    """Return the nearest folder with a record, from this one upward; None if there is none.

    The search goes on above the work tree: during a run, an agent can make any folder a repository
    of its own, or delete the repository.
    """
    try:
        home = state_home(environ)
    except NoStateHomeError:
        return None
    real = Path(os.path.realpath(folder))
    return _first_with_record((real, *real.parents), home)


def place_at(tree: Path, home: Path) -> RecordPlace:
    """Return the place for the record of the work tree at this path."""
    real = Path(os.path.realpath(tree))
    return RecordPlace(real, state_folder_at(home, real))


def known_places(environ: Mapping[str, str]) -> list[RecordPlace]:
    """Return all work trees of this user that have a record, also those that are gone."""
    try:
        home = state_home(environ)
    except NoStateHomeError:
        return []
    return [RecordPlace(one.tree, state) for state, one in _identities(home)]


def place_with_key(key: str, environ: Mapping[str, str]) -> RecordPlace | None:
    """Return the place whose state folder has this key; None if no record has it."""
    return next((one for one in known_places(environ) if key_of(one.state) == key), None)


def has_record(state: StateFolder) -> bool:
    """Return whether a state folder has runs or a fleet, also if the user may not read them."""
    try:
        return any((state / name).exists() for name in (DATABASE, FLEET))
    except PermissionError:
        return True  # the reader says why it can't be read


def _first_with_record(folders: Iterable[Path], home: Path) -> RecordPlace | None:
    known: list[tuple[StateFolder, TreeIdentity]] | None = None
    for tree in folders:
        here = place_at(tree, home)
        if has_record(here.state):
            return here
        if known is None:  # most commands start at the top, and need no search
            known = _identities(home)
        if (moved := _known_elsewhere(tree, known)) is not None:
            return moved
    return None


def _known_elsewhere(
    tree: Path, known: Iterable[tuple[StateFolder, TreeIdentity]]
) -> RecordPlace | None:
    """Return the record of this folder under another path: it was moved, or is mounted twice."""
    now = identity_of(tree)
    for state, then in known:
        if now is not None and then.is_same_folder(now):
            is_mounted_twice = then.is_same_folder(identity_of(then.tree))
            return RecordPlace(tree, state, None if is_mounted_twice else then.tree)
    return None


def _identities(home: Path) -> list[tuple[StateFolder, TreeIdentity]]:
    return [
        (state, identity)
        for state in state_folders(home)
        if has_record(state) and (identity := recorded_identity(state)) is not None
    ]
