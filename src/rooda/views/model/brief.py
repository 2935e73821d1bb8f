"""The summary of a run for a list of many: from the row of the run, without its iterations."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct, to_builtins

from rooda.base.controls import one_line
from rooda.loop.history import HistorySummary
from rooda.loop.state import Status
from rooda.record.rows import RunRow, moment_of
from rooda.views.model.bounded import bounded_run
from rooda.views.model.open_tasks import is_doubtful, known_count, tasks_line
from rooda.views.model.summary import IterationSummary, RunSummary
from rooda.views.model.timeline import end_of, limited, waits_of
from rooda.world.tasks.standing import TaskCount

_LONGEST = 500  # characters of a reason or a headline


class RunBrief(Struct, frozen=True):
    """One run in a list: its row, and what follows from it."""

    row: RunRow  # within bounds, without its settings, its waits and its state
    good: int
    failed: int
    other: int  # interrupted or at work
    seconds: float | None  # from start to end; None if the end is unknown
    waited: float
    headline: str  # of the last good iteration
    why: str  # the reason of the end; of a run that is good or at work, what it did last
    is_doubtful: bool = False  # a success by the word of the agent, while tasks are open

    @property
    def run(self) -> str:
        """The name."""
        return self.row.run

    @property
    def procedure(self) -> str:
        """The procedure."""
        return self.row.procedure[:_LONGEST]

    @property
    def status(self) -> str:
        """The status in the record."""
        return self.row.status

    @property
    def started_at(self) -> str:
        """When it started."""
        return self.row.started_at

    @property
    def checked(self) -> float:
        """Seconds of verify."""
        return limited(self.row.verify_seconds)

    @property
    def cost(self) -> float | None:
        """What it cost, in US dollars."""
        return None if self.row.cost is None else limited(self.row.cost)

    @property
    def tasks(self) -> TaskCount | None:
        """How many tasks of the task file are done."""
        return known_count(self.row.tasks)

    @property
    def tasks_done(self) -> str:
        """`14 of 20`; "" without a task file."""
        return f"{self.tasks.done} of {self.tasks.total}" if self.tasks else ""


def brief_of(run: RunRow, headline: str, now: datetime) -> RunBrief:
    """Return the brief of a run. `headline` is that of its last good iteration."""
    counted = run.summary or HistorySummary()
    failed = counted.failed_iterations + counted.timed_out_iterations
    good = counted.successful_iterations
    start = moment_of(run.started_at) or now
    end = end_of(run, start, now)
    seconds = None if end is None else limited(end)
    is_bad = run.status not in (Status.SUCCESS, Status.RUNNING)
    reason = (run.ended_because or "")[:_LONGEST]
    why = reason if is_bad else headline[:_LONGEST] or reason
    if doubtful := is_doubtful(run):
        why = tasks_line(run)  # the agent's headline may claim that all is done
    return RunBrief(
        row=bounded_run(run),
        good=good,
        failed=failed,
        other=max(0, counted.total_iterations - good - failed),
        seconds=seconds,
        waited=sum(one.seconds for one in waits_of(run, start, seconds or 0.0)),
        headline=headline[:_LONGEST],
        why=one_line(why),
        is_doubtful=doubtful,
    )


# Summaries as the objects that `--json` and `--format json` print. Pure.


# What follows from other parts of a summary, and its row.
_UNPRINTED: Mapping[type, frozenset[str]] = {
    IterationSummary: frozenset({"row", "confirmation", "commits_of_agent", "wall"}),
    RunSummary: frozenset(
        {"row", "iterations", "is_running", "is_doubtful", "headline", "unpriced"}
    ),
}


def measured_run(run: RunSummary, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the object of a run has more; a cost in the row stays."""
    return {
        "headline": run.headline or None,
        "wall_seconds": run.seconds,
        "waited_seconds": run.waited,
        "cost": run.cost if row.get("cost") is None else row["cost"],
        "commits": run.commits,
        "lines": {"files": run.files, "added": run.added, "deleted": run.deleted},
    }


def measured_brief(run: RunBrief) -> dict[str, Any]:
    """Return what the object of a run in a list has more."""
    return {
        "headline": run.headline or None,
        "wall_seconds": run.seconds,
        "waited_seconds": run.waited,
    }


def measured_iteration(one: IterationSummary) -> dict[str, Any]:
    """Return what the object of an iteration has more."""
    return {
        "wall_seconds": one.wall,
        "waited_seconds": one.waited,
        "held_by": one.held_by,
        "held_in": one.held_in,
    }


def run_json(run: RunSummary) -> dict[str, Any]:
    """Return a summary as the JSON report has it."""
    return _printed(run) | {"iterations": [_printed(one) for one in run.iterations]}


def _printed(summary: RunSummary | IterationSummary) -> dict[str, Any]:
    """Return the fields and the properties of a summary, but not its row."""
    kind = type(summary)
    properties = (name for name, value in vars(kind).items() if isinstance(value, property))
    names = (*properties, *kind.__struct_fields__)
    printed = (name for name in names if name not in _UNPRINTED[kind])
    return {name: to_builtins(getattr(summary, name)) for name in printed}
