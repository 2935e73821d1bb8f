"""The runs of this machine as a list: how each of them stands, in one line."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from rooda.base.colors import Color, Painter
from rooda.base.numbers import money
from rooda.base.secrets.masking import Masker
from rooda.front.watch.run_head import mark_of
from rooda.record.json_objects import last_attempts, with_summary
from rooda.record.reader import RecordReader
from rooda.record.rows import RUNNING, RunRow, StoreError
from rooda.views.machine_runs import TreeRun, machine_runs
from rooda.views.model.brief import RunBrief, brief_of
from rooda.views.terminal.run_view import status_color
from rooda.views.terminal.table import Cell, Column, table
from rooda.views.wording.labels import day
from rooda.views.wording.lines import brief
from rooda.world.state.folder import StateFolder
from rooda.world.state.record_place import RecordPlace

# The first to give way on a narrow terminal is the start.
_COLUMNS = (
    Column("STATUS"),
    Column("PROJECT"),
    Column("PROCEDURE", 3),
    Column("ITERATIONS", 2),
    Column("TASKS", 3),
    Column("TIME", 1, is_right=True),
    Column("COST", 4, is_right=True),
    Column("STARTED", 5),
    Column("LAST"),
)


class ListedRun(Struct, frozen=True):
    """A run of the machine, and its line in the list."""

    place: RecordPlace
    run: str
    brief: RunBrief

    @property
    def tree(self) -> Path:
        """The work tree."""
        return self.place.tree

    @property
    def key(self) -> str:
        """What tells it from all others."""
        return f"{self.place.state}\0{self.run}"

    @property
    def is_running(self) -> bool:
        """Whether it is at work."""
        return self.brief.status == RUNNING


class RunList(Struct, frozen=True):
    """The runs, and the work trees whose record can't be read, with the reason."""

    runs: Sequence[ListedRun] = ()
    troubles: Sequence[str] = ()


class ListReader:
    """Reads the list again and again; a run that has ended is read once."""

    def __init__(self, masker: Masker, environ: Mapping[str, str]) -> None:
        self._masker, self._environ = masker, environ
        self._ended: dict[tuple[Path, str, str | None], RunBrief] = {}

    def look(self) -> RunList:
        """Return the runs as they stand now."""
        troubles: list[str] = []

        def note(tree: Path, why: str) -> None:
            troubles.append(f"{tree}: {why}")

        found = machine_runs(self._masker, self._environ, on_trouble=note)
        return RunList([self._listed(one) for one in found], troubles)

    def _listed(self, one: TreeRun) -> ListedRun:
        key = one.place.state, one.row.run, one.row.ended_at
        known = self._ended.get(key)
        if known is None or one.row.status == RUNNING:
            known = self._brief(one.place.state, one.row)
            if one.row.status != RUNNING:
                self._ended[key] = known
        return ListedRun(one.place, one.row.run, known)

    def _brief(self, state: StateFolder, row: RunRow) -> RunBrief:
        headline = ""
        try:
            reader = RecordReader.for_view(state, self._masker.tree)
            headline = reader.headlines([row.run]).get(row.run, "")
            if row.rule is None or row.summary is None:
                row = with_summary(row, last_attempts(reader.iterations(row.run)))
        except StoreError:
            pass  # the next look tells it
        return brief_of(row, headline, datetime.now().astimezone())


def list_text(runs: Sequence[ListedRun], room: int, paint: Painter) -> str:
    """Return one line for each run, below a line of titles."""
    return table(_COLUMNS, list(map(_row, runs)), room=room, paint=paint)


def _row(one: ListedRun) -> tuple[Cell, ...]:
    run = one.brief
    mark = mark_of(run.status, is_doubtful=run.is_doubtful)
    color = status_color(run.status, is_doubtful=run.is_doubtful)
    return (
        Cell(f"{mark} {run.status}", color),
        Cell(one.tree.name, Color.NAME),
        Cell(run.procedure),
        Cell(_counts(run)),
        Cell(run.tasks_done, color if run.is_doubtful else None),
        Cell("" if run.seconds is None else brief(run.seconds)),
        Cell("" if run.cost is None else money(run.cost)),
        Cell(day(run.started_at)),
        Cell(run.why),
    )


def _counts(run: RunBrief) -> str:
    total = run.good + run.failed + run.other
    return f"{total} ({run.failed} failed)" if run.failed else str(total or "")
