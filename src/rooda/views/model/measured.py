"""Summaries as the objects that `--json` and `--format json` print. Pure."""

from collections.abc import Mapping
from typing import Any

from msgspec import to_builtins

from rooda.views.model.brief import RunBrief
from rooda.views.model.summary import IterationSummary, RunSummary

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
