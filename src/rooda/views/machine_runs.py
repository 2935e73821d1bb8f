"""All runs of this machine: of every work tree that has a record."""

import contextlib
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

from msgspec import Struct, ValidationError, convert

from rooda.base.secrets.masking import Masker
from rooda.plan.world import World
from rooda.record.given_variables import given_variables
from rooda.record.reader import RecordReader
from rooda.record.rows import RUNNING, IterationRow, NoRecord, RunRow, StoreError, moment_of
from rooda.world.state.home import key_of
from rooda.world.state.lock_note import LockNote
from rooda.world.state.record_place import RecordPlace, known_places

MOST_RUNS = 200


class TreeRun(Struct, frozen=True):
    """A run, and the work tree of its record."""

    place: RecordPlace
    key: str  # of the tree, for addresses
    row: RunRow

    @property
    def tree(self) -> Path:
        """The work tree."""
        return self.place.tree


def machine_runs(
    masker: Masker,
    environ: Mapping[str, str],
    limit: int | None = MOST_RUNS,
    on_trouble: Callable[[Path, str], None] = lambda _tree, _why: None,
    **wanted: str | None,
) -> list[TreeRun]:
    """Return the runs, those at work first, then the newest first.

    `on_trouble` gets the work trees whose record can't be read, with the reason. `wanted` are
    conditions of `RecordReader.runs`, such as the status.
    """
    found: list[TreeRun] = []
    for place in known_places(environ):
        tree = place.tree
        try:
            rows = RecordReader.for_view(place.state, masker.tree).runs(limit=limit, **wanted)
        except NoRecord:
            continue
        except StoreError as error:
            on_trouble(tree, str(error))
            continue
        learn(masker, tree, environ, *rows)
        found += [TreeRun(place, key_of(place.state), row) for row in masker.tree(rows)]
    found.sort(key=_order, reverse=True)
    return found[:limit]


def when_last(place: RecordPlace) -> datetime | None:
    """Return when the last run of a work tree began or ended; None if that is unknown."""
    try:
        rows = RecordReader(place.state).runs(limit=1)
    except StoreError:
        return None
    times = [moment_of(text or "") for row in rows for text in (row.ended_at, row.started_at)]
    return next((time for time in times if time is not None), None)


def learn(masker: Masker, tree: Path, environ: Mapping[str, str], *rows: RunRow) -> None:
    """Let the masker know the secrets that these runs of a work tree were given."""
    if masker.is_on:
        for variables in given_variables(World(tree, environ), *rows):
            masker.learn(variables)


def _order(one: TreeRun) -> tuple[bool, float]:
    try:
        began = datetime.fromisoformat(one.row.started_at).timestamp()
    except (ValueError, OverflowError, OSError):  # an agent has changed the record
        began = 0.0
    return one.row.status == RUNNING, began


# The types of a record, made ready for reading in several threads.


def prepare_types() -> None:
    """Let msgspec examine the types of a record; a view calls it before it starts its threads.

    msgspec examines a type when it first reads a value of it. If two threads do that at the same
    moment, the process crashes (seen with 0.22).
    """
    for kind in (RunRow, IterationRow, LockNote):
        with contextlib.suppress(ValidationError):
            convert({}, kind)
