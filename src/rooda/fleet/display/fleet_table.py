"""The table of `rooda fleet`: each run with its state, iterations, cost, place, branch. Pure."""

import contextlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from rooda.base.colors import Color, Painter
from rooda.base.controls import one_line
from rooda.base.numbers import count
from rooda.base.widths import cut
from rooda.fleet.display.run_words import (
    budget_words,
    color_of,
    cost_words,
    iteration_words,
    label_words,
    state_words,
    time_of,
    total_words,
)
from rooda.fleet.place import Place
from rooda.fleet.run_model import Run, RunState
from rooda.views.terminal.table import Cell, Column, table

if TYPE_CHECKING:
    from rooda.fleet.store.accounts import Hold
    from rooda.fleet.store.store import FleetStore
    from rooda.fleet.store.workers import WorkerRow


_PLAIN = Painter()
_DEAD = "dead"
_NAME = 16  # columns that a name has at least; on a narrow terminal a long one leaves room
# The state is last: it is the longest, and a narrow terminal cuts its end.
_COLUMNS = (
    Column("TASK"),
    Column("ITERATION", 3, is_right=True),
    Column("COST", 4, is_right=True),
    Column("WHERE", 2),
    Column("BRANCH", 5),
    Column("STATE"),
)


class Sight(Struct, frozen=True):
    """All that the database has of a project; `now` is the time of the database."""

    runs: "Sequence[Run]"
    now: float
    holds: "Sequence[Hold]" = ()
    workers: "Sequence[WorkerRow]" = ()

    @classmethod
    def of(cls, store: "FleetStore", project: str, runs: "Sequence[Run] | None" = None) -> "Sight":
        """Return all that the database has about a project, or that about these runs."""
        found = store.runs(project) if runs is None else runs
        return cls(found, store.now(), store.accounts.holds(), store.workers.all(project))

    @property
    def states(self) -> dict[str, RunState]:
        """The state of each run, by its name."""
        return {run.run: run.state for run in self.runs}


def table_text(sight: Sight, *, room: int | None = None, paint: Painter = _PLAIN) -> str:
    """Return the table, the totals, what all runs of an account wait for, and the workers."""
    states = sight.states
    rows = [
        (
            Cell(run.run if room is None else cut(run.run, max(_NAME, room // 3)), Color.NAME),
            Cell(iteration_words(run)),
            Cell(cost_words(run.cost, run.unknown_costs, run.iteration)),
            Cell(run.where if run.state is RunState.WORKING else ""),
            Cell(run.branch if run.iteration else ""),
            Cell(state_words(run, states, sight.now), color_of(run)),
        )
        for run in sight.runs
    ]
    lines = [total_words(sight.runs), *budget_words(sight.runs), *hold_words(sight)]
    lines += worker_words(sight)
    below = "".join(f"{one_line(line)}\n" for line in lines)
    return f"{table(_COLUMNS, rows, room=room, paint=paint)}\n{below}"


def hold_words(sight: Sight) -> list[str]:
    """Return a line for each account that holds its runs back."""
    found = []
    for hold in sight.holds:
        if hold.until > sight.now:
            until = time_of(hold.until, sight.now)
            found.append(f"Account {hold.account} waits until {until}: {hold.reason}")
        if hold.most is not None and hold.most_until > sight.now:
            until = time_of(hold.most_until, sight.now)
            most = f"at most {count(hold.most, 'run')} at work until {until}"
            found.append(f"Account {hold.account} has {most}: {hold.reason}")
    return found


def has_worker(sight: Sight) -> bool:
    """Return whether a worker is there, as far as the database knows."""
    return any(one.state != _DEAD for one in sight.workers)


def worker_words(sight: Sight) -> list[str]:
    """Return a line about the workers, or how to start one if runs wait in vain."""
    alive = [one for one in sight.workers if one.state != _DEAD]
    waits = any(not run.state.is_end for run in sight.runs)
    if not alive:
        start = f"rooda worker --drain{_labels_needed(sight.runs)}"
        return [f"No worker is at work here. Start one with `{start}`"] if waits else []
    hosts: dict[str, int] = {}
    for one in alive:
        hosts[one.host] = hosts.get(one.host, 0) + 1
    places = ", ".join(f"{host} ({count(slots, 'slot')})" for host, slots in hosts.items())
    lacking = [
        f"No worker has {label_words(run.task.labels)}, which {run.run} needs. Start one with "
        f"`rooda worker --labels {','.join(run.task.labels)}`"
        for run in sight.runs
        if run.state is RunState.QUEUED
        and not any(set(run.task.labels) <= set(one.labels) for one in alive)
    ]
    return [f"Workers: {places}", *lacking]


def _labels_needed(runs: Sequence[Run]) -> str:
    """Return the flag without which a worker could take none of the runs that wait."""
    queued = [run for run in runs if run.state is RunState.QUEUED]
    if not queued or not all(run.task.labels for run in queued):
        return ""
    return f" --labels {','.join(queued[0].task.labels)}"


def as_object(sight: Sight) -> dict[str, Any]:
    """Return the same for programs."""
    states = sight.states
    return {
        "runs": [run_object(run, states, sight.now) for run in sight.runs],
        "cost": sum(run.cost for run in sight.runs),
        "unknown_costs": sum(run.unknown_costs for run in sight.runs),
        "holds": [
            {
                "account": hold.account,
                "until": _iso(hold.until),
                "reason": hold.reason,
                "most": hold.most,
                "most_until": _iso(hold.most_until),
            }
            for hold in sight.holds
        ],
        "workers": [
            {
                "id": one.id,
                "host": one.host,
                "pid": one.pid,
                "slot": one.slot,
                "labels": list(one.labels),
                "state": one.state,
            }
            for one in sight.workers
        ],
    }


def run_object(run: Run, states: dict[str, RunState], now: float) -> dict[str, Any]:
    """Return one run for programs. The flags of its batch may have secrets, and are left out."""
    return {
        "run": run.run,
        "title": run.task.title,
        "state": str(run.state),
        "words": one_line(state_words(run, states, now)),
        **run.progress,
        "reason": run.reason,
        "until": _iso(run.not_before) if run.state is RunState.QUEUED else None,
        "where": run.where,
        "worker": run.worker,
        "order": str(run.order),
        "branch": run.branch,
        "ended": run.ended,
        "after": list(run.task.after),
        "priority": run.task.priority,
        "labels": list(run.task.labels),
        "account": run.task.account,
        "procedure": run.task.procedure,
        "batch": run.batch.name,
        "added": _iso(run.added),
        "changed": _iso(run.changed),
    }


def _iso(moment: float) -> str | None:
    return datetime.fromtimestamp(moment, UTC).isoformat() if moment else None


# What the database of a fleet has, for views that stay open: a database that fails is words.


def sight_at(place: Place) -> Sight | str:
    """Return what the database has, or one sentence that says why it can't be used.

    Needs the packages of the fleet.
    """
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415 - a part of the extra

    from rooda.fleet.store.check import database_words  # noqa: PLC0415 - likewise
    from rooda.fleet.store.store import FleetStore  # noqa: PLC0415 - likewise

    try:
        with contextlib.closing(FleetStore(place.url)) as store:
            return Sight.of(store, place.project)
    except SQLAlchemyError as error:
        words = database_words(error, place.url)
        return f"The database {place.shown_url} can't be used: {words}"
