"""Bring the record of a work tree to its place: after a move, and from version 0.1.

The part for version 0.1 (`.rooda` in the work tree) is temporary.
"""

import contextlib
import os
import shutil
import sqlite3
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

from rooda.record.database import NAME, PATIENCE, Database
from rooda.record.reader import opened
from rooda.record.rows import StoreError
from rooda.record.store import copy_rows
from rooda.record.tables import STEPS, NewerSchema
from rooda.world.files.beneath import Beneath
from rooda.world.state.folder import StateFolder, make_folders, make_state_folder, new_file
from rooda.world.state.home import (
    OLD_FOLDER,
    NoStateHomeError,
    has_old_record,
    is_known_tree,
    state_folder_at,
    state_home,
)
from rooda.world.state.lock import is_locked
from rooda.world.state.record_place import RecordPlace, find_place, is_fleet_in, note_tree, place_at
from rooda.world.state.user_notes import notes_folder, waiting_notes, write_note

_RUNS = "runs"
_CHUNK = 1024 * 1024


def settled(
    folder: Path, environ: Mapping[str, str], tell: Callable[[str], object]
) -> RecordPlace | None:
    """Return the nearest record, from a folder upward, at the place where it belongs.

    `tell` gets a line about each record that came there now, and about one that did not.
    """
    try:
        home = state_home(environ)
    except NoStateHomeError:
        return None
    found = find_place(folder, environ)
    if (old := _old_tree(folder, found)) is not None:
        found = _taken_over(old, home, environ, tell) or found
    if found is not None and found.moved_from is not None:
        found = _moved(found, home, tell)
    return found


def _moved(place: RecordPlace, home: Path, tell: Callable[[str], object]) -> RecordPlace:
    """Give a state folder the name of the new path of its tree, unless one works there."""
    new = state_folder_at(home, place.tree)
    if is_locked(place.state) or is_fleet_in(place.state):
        return place
    try:
        place.state.rename(new)
        note_tree(new, place.tree)
    except OSError:
        return place  # a later command tries again
    tell(f"This work tree was moved from {place.moved_from}: its record came along.")
    return RecordPlace(place.tree, new)


# -- version 0.1 -----------------------------------------------------------------------------


def _old_tree(folder: Path, found: RecordPlace | None) -> Path | None:
    """Return the nearest folder with a record of version 0.1 that is nearer than `found`."""
    real = Path(os.path.realpath(folder))
    for tree in (real, *real.parents):
        if found is not None and tree == found.tree:
            return None
        if has_old_record(tree):
            return tree
    return None


def _taken_over(
    tree: Path, home: Path, environ: Mapping[str, str], tell: Callable[[str], object]
) -> RecordPlace | None:
    """Take over a record of version 0.1, if the user's own list has its work tree."""
    old, place = tree / OLD_FOLDER, place_at(tree, home)
    if not is_known_tree(tree, environ):
        tell(
            f"{old} has a record of rooda 0.1 that may be another user's. If it is yours, "
            f"take it over: rooda record import {OLD_FOLDER}"
        )
        return None
    try:
        import_old_record(StateFolder(old), place)
    except (StoreError, OSError) as error:
        tell(f"The record of rooda 0.1 in {old} can't be taken over: {error}")
        return None
    tell(f"rooda took the record in {old} over. It is in {place.state} now; {old} may be deleted.")
    return place


def import_old_record(old: StateFolder, place: RecordPlace) -> None:
    """Copy the runs, their files and the notes of version 0.1. Raises StoreError, OSError.

    Runs of the same name are replaced. Links and special files stay where they are.
    """
    if is_locked(place.tree):
        raise StoreError("a run is at work in that work tree")
    make_state_folder(place.state)
    note_tree(place.state, place.tree)
    make_folders(place.state, _RUNS)
    with contextlib.suppress(FileNotFoundError):
        _copy_files(old / _RUNS, place.state)
    if not notes_folder(old).is_symlink():
        for note in waiting_notes(old):
            write_note(place.state, note)
    try:  # at the end: a record is complete as soon as there is a database
        with (
            opened(old / NAME, STEPS, PATIENCE) as source,
            contextlib.closing(Database(place.state / NAME, STEPS)) as database,
        ):
            database.transact(lambda connection: copy_rows(source, connection))
    except (sqlite3.Error, NewerSchema) as error:
        raise StoreError(f"its database can't be read: {error}") from None


def _copy_files(source: Path, state: StateFolder) -> None:
    """Copy the regular files below a folder to `runs` in the state folder."""
    beneath = Beneath(source)
    for listing in beneath.walk():
        for entry in listing.entries:
            name = f"{listing.path}/{entry.name}" if listing.path else entry.name
            if stat.S_ISREG(entry.status.st_mode):
                with beneath.open(name) as data, new_file(state, f"{_RUNS}/{name}") as copy:
                    shutil.copyfileobj(data, copy, _CHUNK)
