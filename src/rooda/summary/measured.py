"""The numbers of a summary that `--json` prints beside what is in the rows. Pure."""

from collections.abc import Mapping
from typing import Any

from rooda.summary.brief import RunBrief
from rooda.summary.model import IterationSummary, RunSummary


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
