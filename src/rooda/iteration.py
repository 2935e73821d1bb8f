"""One iteration of a loop as a Python API. The engine uses it too. See docs/reference/api.md."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rooda.loop.executor import IterationExecutor
    from rooda.loop.history import HistoryConfig, HistorySummary, IterationHistory
    from rooda.loop.result import Iteration, IterationResult, IterationStatus, Printed
    from rooda.loop.session import CommandSession, IterationConfig, Response, Session
    from rooda.loop.tracker import FileChangeTracker
    from rooda.world.git.snapshots.tree_changes import TreeScan
    from rooda.world.testresults.results import TestDetail, TestResults, TestStatus

__all__ = [
    "CommandSession",
    "FileChangeTracker",
    "HistoryConfig",
    "HistorySummary",
    "Iteration",
    "IterationConfig",
    "IterationExecutor",
    "IterationHistory",
    "IterationResult",
    "IterationStatus",
    "Printed",
    "Response",
    "Session",
    "TestDetail",
    "TestResults",
    "TestStatus",
    "TreeScan",
]

_HOMES = {
    "rooda.loop.executor": ("IterationExecutor",),
    "rooda.loop.history": ("HistoryConfig", "HistorySummary", "IterationHistory"),
    "rooda.loop.session": ("CommandSession", "IterationConfig", "Response", "Session"),
    "rooda.loop.tracker": ("FileChangeTracker",),
    "rooda.loop.result": ("Iteration", "IterationResult", "IterationStatus", "Printed"),
    "rooda.world.git.snapshots.tree_changes": ("TreeScan",),
    "rooda.world.testresults.results": ("TestDetail", "TestResults", "TestStatus"),
}


def __getattr__(name: str) -> Any:
    """Load a name's module on demand: a reader of the record needs no process and no git."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
