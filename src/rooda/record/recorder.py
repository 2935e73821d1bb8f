"""A listener that writes down what happens, as it happens.

Two commits for each iteration: one before the agent is started, one when all is over. Hooks add one
for each stage.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from msgspec.structs import replace

from rooda.agents.report import Usage
from rooda.iteration.history import HistorySummary
from rooda.iteration.types import Iteration, IterationResult, IterationStatus
from rooda.loop.agent_events import AgentChanged, WaitEnded, WaitStarted
from rooda.loop.emitter import Stamped
from rooda.loop.iteration_events import (
    IterationEnded,
    IterationStarted,
    PromptAssembled,
    StageEntered,
)
from rooda.loop.run_events import ConfigResolved, RunEnded, RunStarted, StateUnwritable
from rooda.loop.state import State
from rooda.loop.work_events import (
    ChangesUnknown,
    CommitFailed,
    Committed,
    HookEnded,
    Pushed,
    PushFailed,
    SnapshotTaken,
    VerifyEnded,
)
from rooda.process.events import LeftoversStopped, TranscriptTrimmed
from rooda.record.rows import IterationRow, RunRow
from rooda.text.event import Event
from rooda.text.formats import to_builtins

SCHEMA_VERSION = 1


class Saves(Protocol):
    """Where rows go; saving never fails, trouble is told elsewhere."""

    def save(self, run: RunRow | None = None, iteration: IterationRow | None = None) -> None:
        """Both in one go."""


class Recorder:
    """Folds the events of a run into its rows."""

    def __init__(
        self,
        store: Saves,
        row: RunRow,
        earlier: Iterable[Iteration] = (),
    ) -> None:
        """`earlier` are the iterations of a run that goes on, in their order."""
        self._store = store
        self._run = row
        self._settings: list[list[str]] = []
        self._summary = HistorySummary()
        self._last: Iteration | None = None
        for one in earlier:
            self._count(one)
        self._iteration: IterationRow | None = None

    def __call__(self, stamped: Stamped) -> None:
        """Write down what must not be lost; remember the rest until then."""
        event = stamped.event
        at = stamped.at.isoformat(timespec="milliseconds")
        match event:
            case ConfigResolved(setting, value, origin):
                self._settings.append([setting, value, origin])
            case RunStarted():
                self._run = self._started(event)
                self._store.save(run=self._run)
            case IterationStarted(_, number, _, attempt):
                data: dict[str, Any] = {"hooks": [], "agent": event.agent}
                status = str(IterationStatus.PENDING)
                self._iteration = IterationRow(
                    self._run.run, number, attempt, status, at, None, data
                )
            case StageEntered(_, status) if self._iteration is not None:
                self._iteration = replace(self._iteration, status=str(status))
                self._store.save(iteration=self._iteration)
            case IterationEnded():
                self._end_iteration(event, at)
            case RunEnded():
                self._end_run(event, at)
            case WaitStarted():
                # Whoever looks in the night sees what it waits for.
                self._note(event)
                self._store.save(run=self._run)
            case WaitEnded(_, _, seconds) if self._run.data.get("waits"):
                self._run.data["waits"][-1]["waited"] = seconds
                self._store.save(run=self._run)
            case SnapshotTaken(0, tree) if "state" not in self._run.data:
                # Or a run that is killed in its first iteration would take another when it goes on.
                self._note(event)
                self._run.data["state"] = State(trees=((tree, 0),)).to_json()
                self._store.save(run=self._run)
            case _:
                self._note(event)

    def _started(self, event: RunStarted) -> RunRow:
        data = self._run.data | {
            "schema_version": SCHEMA_VERSION,
            "command": event.command,
            "max_iterations": event.max_iterations,
            "settings": self._settings,
            "hooks": self._run.data.get("hooks", []),
            "summary": self._summary_now().to_json(),
            "reason": None,
            "rule": None,
            "exit_code": None,
        }
        return replace(self._run, status="running", ended_at=None, data=data)

    def _note(self, event: Event) -> None:
        """What belongs to the iteration that is at work, or to the run where none is."""
        noted = _NOTED.get(type(event))
        if noted is None:
            return
        key, is_list, shown = noted
        row = self._iteration
        data = self._run.data if row is None else row.data
        if is_list:
            data.setdefault(key, []).append(shown(event))
        else:
            data[key] = shown(event)

    def _end_iteration(self, event: IterationEnded, at: str) -> None:
        row = self._iteration
        if row is None:
            return
        self._iteration = None
        self._count(_iteration_of(event, row))
        row = replace(row, status=str(event.status), ended_at=at, data=row.data | _ended(event))
        data: dict[str, Any] = {"summary": self._summary_now().to_json()}
        if event.state is not None:
            data["state"] = event.state.to_json()
            data |= {"tokens": event.state.tokens or None, "cost": event.state.cost or None}
        self._run = replace(self._run, data=self._run.data | data)
        self._store.save(run=self._run, iteration=row)

    def _end_run(self, event: RunEnded, at: str) -> None:
        data = {
            "reason": event.reason or event.rule.row.recorded,
            "rule": str(event.rule),
            "exit_code": event.exit_code,
            "signal": event.signal,
            "total": event.total,
            "iterations": event.iterations,
            "consecutive_failures": event.consecutive_failures,
            "threshold": event.threshold,
            "stats": event.stats.summary(),
            "tokens": event.tokens or None,
            "cost": event.cost or None,
        }
        self._run = replace(
            self._run, status=str(event.status), ended_at=at, data=self._run.data | data
        )
        self._store.save(run=self._run)

    def _count(self, iteration: Iteration) -> None:
        """Of several attempts at an iteration the last one counts."""
        if self._last is not None and self._last.number != iteration.number:
            self._summary = self._summary.add(self._last)
        self._last = iteration

    def _summary_now(self) -> HistorySummary:
        return self._summary if self._last is None else self._summary.add(self._last)


def _iteration_of(event: IterationEnded, row: IterationRow) -> Iteration:
    return Iteration(row.number, status=event.status, result=event.result)


def _ended(event: IterationEnded) -> dict[str, Any]:
    """What the record says of an iteration that has ended."""
    result = event.result or IterationResult(exit_code=None)
    return {
        "result": None if event.result is None else result.to_json(),
        "metadata": {} if event.status is IterationStatus.COMPLETED else {"error": event.reason},
        "duration": event.duration,
        "verdict": str(event.verdict),
        "signal": event.promise_signal,
        "truncated": event.truncated,
        "despite_exit": event.despite_exit,
        "kind": event.kind and str(event.kind),
        "reason": event.reason,
        "evidence": event.evidence,
        "returned_to": event.returned_to,
        "failures_before": event.failures_before,
        "failures_after": event.consecutive_failures,
        "threshold": event.threshold,
        "cleaned_up": [to_builtins(one) for one in event.cleaned_up],
        "failure": event.failure and to_builtins(event.failure),
        "incomplete": event.incomplete,
        "same_failures": event.same_failures,
        **(event.usage or Usage()).to_json(),
    }


def _wait(event: WaitStarted) -> dict[str, Any]:
    until = event.until.isoformat(timespec="seconds")
    return to_builtins(event) | {"until": until, "waited": None}


# event: (where it is kept, whether there can be several, how)
_NOTED: Mapping[type, tuple[str, bool, Callable[[Any], Any]]] = {
    PromptAssembled: ("prompt_size", False, lambda event: event.size),
    SnapshotTaken: ("snapshot", False, to_builtins),
    ChangesUnknown: ("changes_unknown", False, lambda event: event.error),
    HookEnded: ("hooks", True, to_builtins),
    VerifyEnded: ("verify", False, to_builtins),
    Committed: ("commit", False, to_builtins),
    CommitFailed: ("commit_failed", False, to_builtins),
    Pushed: ("push", False, to_builtins),
    PushFailed: ("push_failed", False, to_builtins),
    StateUnwritable: ("unwritable", False, lambda event: event.error),
    WaitStarted: ("waits", True, _wait),
    AgentChanged: ("agents_changed", True, to_builtins),
    TranscriptTrimmed: ("trimmed", True, to_builtins),
    LeftoversStopped: (
        "left_behind",
        False,
        lambda event: [to_builtins(p) for p in event.processes],
    ),
}
