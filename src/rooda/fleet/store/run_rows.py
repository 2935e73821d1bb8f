"""The row of a run: made for a new run or one that git knows, and read."""

import secrets
from collections.abc import Mapping
from typing import Any

from msgspec import json

from rooda.fleet.run_model import (
    DEFAULT_ACCOUNT,
    Batch,
    FleetTask,
    Order,
    Run,
    RunProgress,
    RunState,
)
from rooda.fleet.store.tables import checked, decoded

_LONGEST_NAME = 80
# Of fields with another name.
_COLUMNS = {"where": "place", "order": "ordered", "max_iterations": "most_iterations"}


class KnownRun(RunProgress, frozen=True):
    """What git tells of a run that the database has lost."""

    task: FleetTask
    batch: Batch
    state: RunState
    turn: int
    reason: str = ""


def text_of(value: object) -> str:
    """Return a task or a batch as the text in its column."""
    return json.encode(value).decode()


def new_life() -> str:
    """Return a name for the time from `add` or `retry` until the run has ended."""
    return secrets.token_hex(4)


def columns_of(run: RunProgress) -> dict[str, Any]:
    """Return the columns that say how far a run is."""
    return {_COLUMNS.get(name, name): value for name, value in run.progress.items()}


def new_row(project: str, batch: Batch, task: FleetTask, number: int, now: float) -> dict[str, Any]:
    """Return the row of a new run."""
    is_blocked = bool(task.after)
    return {
        "project": project,
        "run": task.name,
        "batch": batch.name,
        "task": text_of(task),
        "account": task.account or DEFAULT_ACCOUNT,
        "state": RunState.BLOCKED if is_blocked else RunState.QUEUED,
        "turn": 1,
        "life": new_life(),
        "enqueued": 0,
        **columns_of(RunProgress(max_iterations=task.max_iterations)),
        "reason": "",
        "not_before": 0.0,
        "worker": "",
        "place": "",
        "ordered": Order.NONE,
        "number": number,
        "added": now,
        "changed": now,
        "ended": "",
    }


def known_row(project: str, run: KnownRun, number: int, now: float) -> dict[str, Any]:
    """Return the row of a run that git knows."""
    row = new_row(project, run.batch, run.task, number, now)
    is_begun = run.state.is_end or run.iteration > 0
    return {
        **row,
        "state": run.state if is_begun else row["state"],
        **columns_of(run),
        "turn": run.turn,
        "most_iterations": run.max_iterations or run.task.max_iterations,
        "reason": run.reason,
    }


def batch_of(data: str, name: str) -> Batch:
    """Return the batch of a row of the batches. Raises DataError."""
    return decoded(data, Batch, f"the column `data` of the batch {_shown(name)}")


def run_of(row: Mapping[Any, Any]) -> Run:
    """Return the run of a row, with its batch. Raises DataError."""
    place = f"the run {_shown(row['run'])}"
    found = {
        name: row[_COLUMNS.get(name, name)] for name in Run.__struct_fields__ if name != "batch"
    }
    found["batch"] = batch_of(row["data"], row["batch"])
    found["task"] = decoded(row["task"], FleetTask, f"the column `task` of {place}")
    return checked(found, Run, place)


def _shown(name: object) -> str:
    """Return a name for a message, whatever the column has."""
    return repr(name)[:_LONGEST_NAME]
