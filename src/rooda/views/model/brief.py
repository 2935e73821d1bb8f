"""The summary of a run for a list of many: from the row of the run, without its iterations."""

from datetime import datetime

from msgspec import Struct

from rooda.base.controls import one_line
from rooda.loop.history import HistorySummary
from rooda.loop.state import Status
from rooda.record.rows import RunRow, moment_of
from rooda.views.model.bounded import bounded_run
from rooda.views.model.open_tasks import is_doubtful, known_count, tasks_line
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
