"""One iteration of a loop as a Python API. The engine uses it too. See docs/reference/api.md."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rooda.iteration.executor import IterationExecutor
    from rooda.iteration.iteration_history import HistoryConfig, HistorySummary, IterationHistory
    from rooda.iteration.session import CommandSession, IterationConfig, Response, Session
    from rooda.iteration.tracker import FileChangeTracker
    from rooda.iteration.types import Iteration, IterationResult, IterationStatus, Printed
    from rooda.testresults.results import TestDetail, TestResults, TestStatus
    from rooda.workspace.tree_changes import TreeScan

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
    "rooda.iteration.executor": ("IterationExecutor",),
    "rooda.iteration.iteration_history": ("HistoryConfig", "HistorySummary", "IterationHistory"),
    "rooda.iteration.session": ("CommandSession", "IterationConfig", "Response", "Session"),
    "rooda.iteration.tracker": ("FileChangeTracker",),
    "rooda.iteration.types": ("Iteration", "IterationResult", "IterationStatus", "Printed"),
    "rooda.workspace.tree_changes": ("TreeScan",),
    "rooda.testresults.results": ("TestDetail", "TestResults", "TestStatus"),
}


def __getattr__(name: str) -> Any:
    """Load a name's module on demand: a reader of the record needs no process and no git."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
