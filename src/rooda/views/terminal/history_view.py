"""The runs of a record for people, one line each."""

from collections.abc import Sequence

from rooda.base.colors import Color
from rooda.base.numbers import money
from rooda.views.model.brief import RunBrief
from rooda.views.terminal.run_view import Page, status_color
from rooda.views.terminal.table import Cell, Column, table
from rooda.views.wording.labels import date_and_time
from rooda.views.wording.lines import brief

# The name of a run, its status and the reason stay; the name has the time of the start too.
_COLUMNS = (
    Column("RUN"),
    Column("STARTED", 6),
    Column("PROCEDURE", 3),
    Column("STATUS"),
    Column("ITERATIONS", 2),
    Column("TASKS", 3),
    Column("TIME", 1, is_right=True),
    Column("WAITED", 5, is_right=True),
    Column("VERIFY", 7, is_right=True),
    Column("COST", 4, is_right=True),
    Column("WHY"),
)
_TREE = Column("WORK TREE")


def runs_text(runs: Sequence[RunBrief], page: Page, trees: Sequence[str] = ()) -> str:
    """Return one line for each run; `trees` are their work trees, if those differ."""
    if not trees:
        return table(_COLUMNS, list(map(_row, runs)), room=page.room, paint=page.paint)
    rows = [(Cell(tree), *_row(run)) for tree, run in zip(trees, runs, strict=True)]
    return table((_TREE, *_COLUMNS), rows, room=page.room, paint=page.paint)


def _row(run: RunBrief) -> tuple[Cell, ...]:
    color = status_color(run.status, is_doubtful=run.is_doubtful)
    return (
        Cell(run.run, Color.NAME),
        Cell(date_and_time(run.started_at)),
        Cell(run.procedure),
        Cell(run.status, color),
        Cell(_counts(run)),
        Cell(run.tasks_done, color if run.is_doubtful else None),
        Cell("" if run.seconds is None else brief(run.seconds)),
        Cell(brief(run.waited) if run.waited else ""),
        Cell(brief(run.checked) if run.checked else ""),
        Cell("" if run.cost is None else money(run.cost)),
        Cell(run.why),
    )


def _counts(run: RunBrief) -> str:
    """Return `28 good, 2 failed`, without what there is none of."""
    kinds = ((run.good, "good"), (run.failed, "failed"), (run.other, "other"))
    return ", ".join(f"{number} {name}" for number, name in kinds if number) or "none"
