"""Runs of a fleet as values, for tests of what people see."""

from typing import Any

from rooda.fleet.run_model import Batch, FleetTask, Run

NOW = 1_800_000_000.0
BATCH = Batch("night", "abc", max_cost=40.0)


def a_run(
    name: str = "auth",
    after: tuple[str, ...] = (),
    labels: tuple[str, ...] = (),
    **fields: Any,
) -> Run:
    """Return a run of the project `app-1`."""
    task = FleetTask(name, name, "words", after=after, labels=labels)
    return Run("app-1", name, BATCH, task, **fields)
