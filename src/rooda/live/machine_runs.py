"""All runs of this machine: of every work tree that has a record."""

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from rooda.config.world import World
from rooda.record.given_variables import given_variables
from rooda.record.record_reader import RecordReader
from rooda.record.rows import RUNNING, NoRecord, RunRow, StoreError
from rooda.text.masking import Masker
from rooda.workspace.known_trees import known_trees
from rooda.workspace.state_home import tree_key

MOST_RUNS = 200


class TreeRun(Struct, frozen=True):
    """A run, and the work tree of its record."""

    tree: Path
    key: str  # of the tree, for addresses
    row: RunRow


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
    for tree in known_trees(environ):
        try:
            rows = RecordReader.for_view(tree, masker.tree).runs(limit=limit, **wanted)
        except NoRecord:
            continue
        except StoreError as error:
            on_trouble(tree, str(error))
            continue
        learn(masker, tree, environ, *rows)
        found += [TreeRun(tree, tree_key(tree), row) for row in masker.tree(rows)]
    found.sort(key=_order, reverse=True)
    return found[:limit]


def tree_of(key: str, environ: Mapping[str, str]) -> Path | None:
    """Return the work tree with this key; None if the list has none."""
    return next((tree for tree in known_trees(environ) if tree_key(tree) == key), None)


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
