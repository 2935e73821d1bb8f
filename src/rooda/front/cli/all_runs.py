"""The runs of all work trees of this machine, for `rooda history --all`."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from rooda.base.controls import one_line
from rooda.base.problems import InvalidInput
from rooda.base.secrets.masking import Masker
from rooda.front.recorded import Recorded
from rooda.plan.preflight.state import readable_home
from rooda.plan.world import this_world
from rooda.record.rows import RunRow, StoreError
from rooda.views.machine_runs import machine_runs
from rooda.views.model.brief import RunBrief, brief_of


class ListedRun(Struct, frozen=True):
    """A run of a list, and the work tree of its record."""

    tree: Path
    row: RunRow
    brief: RunBrief


def listed(record: Recorded, rows: Sequence[RunRow]) -> list[ListedRun]:
    """Return runs of one record with their counts and headlines. Raises StoreError."""
    counted = [_counted(record, row) for row in rows]
    headlines = record.reader.headlines(row.run for row in counted)
    now = datetime.now().astimezone()
    return [
        ListedRun(record.place.tree, row, brief_of(row, headlines.get(row.run, ""), now))
        for row in counted
    ]


def _counted(record: Recorded, row: RunRow) -> RunRow:
    """Return the run with its counts; one that has ended has them, others are counted now."""
    is_known = row.rule is not None and row.summary is not None
    return row if is_known else record.summed_up(row)


def all_runs(masker: Masker, limit: int | None, wanted: Mapping[str, Any]) -> list[ListedRun]:
    """Return the runs that match, those at work first, then the newest first.

    A record that can't be read is named on standard error, and the others are shown. Raises
    InvalidInput if there can be no record at all.
    """
    world = this_world()
    readable_home(world)
    found = machine_runs(masker, world.environ, limit, _complain, **wanted)
    order = {(one.tree, one.row.run): number for number, one in enumerate(found)}
    runs: list[ListedRun] = []
    by_record = sorted(found, key=lambda one: one.place.state)
    for _, group in groupby(by_record, lambda one: one.place.state):
        rows = list(group)
        place = rows[0].place
        try:
            runs += listed(Recorded.at(place, masker), [one.row for one in rows])
        except (StoreError, InvalidInput) as error:
            _complain(place.tree, str(error))
    return sorted(runs, key=lambda one: order[one.tree, one.row.run])


def _complain(tree: Path, why: str) -> None:
    click.echo(f"Warning: the record of {one_line(str(tree))} can't be read: {why}", err=True)
