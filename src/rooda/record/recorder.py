"""A listener that records what happens, as it happens.

It commits twice for each iteration: before the agent starts, and when the iteration has ended.
Hooks add one commit for each stage.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Protocol

from msgspec import Struct, convert, to_builtins
from msgspec.structs import replace

from rooda.agents.agent_report import Usage
from rooda.iteration.iteration_history import HistorySummary
from rooda.iteration.types import Iteration, IterationStatus
from rooda.loop.agent_events import AgentChanged, NotesGiven, WaitEnded, WaitStarted
from rooda.loop.emitter import Stamped
from rooda.loop.iteration_events import (
    IterationEnded,
    IterationStarted,
    PromptAssembled,
    SegmentKind,
    StageEntered,
)
from rooda.loop.protect_events import ProtectedChanged
from rooda.loop.publish_events import PublishEnded
from rooda.loop.run_events import (
    ConfigResolved,
    HistoryPruned,
    RunEnded,
    RunStarted,
    StateUnwritable,
    TasksLeft,
)
from rooda.loop.state import State
from rooda.loop.tree_events import UnsafeTree
from rooda.loop.verify_events import CleanCheckEnded, TestsLost
from rooda.loop.work_events import (
    BaselineEnded,
    ChangesUnknown,
    CommitFailed,
    Committed,
    HookEnded,
    Pushed,
    PushFailed,
    SecretsLeftOut,
    SnapshotTaken,
    VerifyEnded,
)
from rooda.process.events import LeftoversStopped, MachineSlept, TranscriptTrimmed
from rooda.record.rows import RUNNING, IterationRow, RecordedSetting, RecordedWait, RunRow, Slept
from rooda.text.event import Event

SCHEMA_VERSION = 1


class Saves(Protocol):
    """Where rows go. Saving never fails: the store reports its trouble itself."""

    def save(self, run: RunRow | None = None, iteration: IterationRow | None = None) -> None:
        """Save both in one transaction."""


class Recorder:
    """Turns the events of a run into its rows."""

    def __init__(
        self,
        store: Saves,
        row: RunRow,
        earlier: Iterable[Iteration] = (),
    ) -> None:
        """`earlier` are the iterations of a resumed run, in their order."""
        self._store = store
        self._run = row
        self._settings: list[RecordedSetting] = []
        self._summary = HistorySummary()
        self._last: Iteration | None = None
        self._last_reason = ""
        for one in earlier:
            self._count(one)
        self._iteration: IterationRow | None = None

    def __call__(self, stamped: Stamped) -> None:
        """Save what must not be lost; keep the rest in memory until then."""
        event = stamped.event
        if type(event) in _NOTED:
            self._note(event)
        elif (handle := self._HANDLERS.get(type(event))) is not None:
            handle(self, event, stamped.at.isoformat(timespec="milliseconds"))

    def _add_setting(self, event: ConfigResolved, _: str) -> None:
        self._settings.append(RecordedSetting(event.setting, event.value, event.origin))

    def _start_run(self, event: RunStarted, _: str) -> None:
        self._run = replace(
            self._run,
            status=RUNNING,
            ended_at=None,
            schema_version=SCHEMA_VERSION,
            command=event.command,
            max_iterations=event.max_iterations,
            settings=tuple(self._settings),
            summary=self._summary_now(),
            reason=None,
            rule=None,
            exit_code=None,
            tasks=event.tasks,
            tasks_left=None,
        )
        self._store.save(run=self._run)

    def _start_iteration(self, event: IterationStarted, at: str) -> None:
        self._iteration = IterationRow(
            self._run.run,
            event.iteration,
            event.attempt,
            str(IterationStatus.PENDING),
            at,
            None,
            agent=event.agent,
            adapter=event.adapter or None,
        )

    def _enter_stage(self, event: StageEntered, _: str) -> None:
        if self._iteration is not None:
            self._iteration = replace(self._iteration, status=str(event.status))
            self._store.save(iteration=self._iteration)

    def _note_sleep(self, event: MachineSlept, at: str) -> None:
        if self._iteration is not None:
            slept = (*self._iteration.slept, Slept(at, event.seconds))
            self._iteration = replace(self._iteration, slept=slept)

    def _note_told(self, event: NotesGiven, _: str) -> None:
        # Saved at once: the user who wrote the note sees that the agent has got it.
        if self._iteration is not None:
            self._iteration = replace(self._iteration, told=event.notes)
            self._store.save(iteration=self._iteration)

    def _start_wait(self, event: WaitStarted, at: str) -> None:
        # Saved at once: the user who looks in the night sees what the run waits for.
        self._run = replace(self._run, waits=(*(self._run.waits or ()), _wait(event, at)))
        self._store.save(run=self._run)

    def _end_wait(self, event: WaitEnded, _: str) -> None:
        if self._run.waits:
            *others, last = self._run.waits
            waits = (*others, replace(last, waited=event.seconds))
            self._run = replace(self._run, waits=waits)
            self._store.save(run=self._run)

    def _change_agent(self, event: AgentChanged, _: str) -> None:
        changed = (*(self._run.agents_changed or ()), event)
        self._run = replace(self._run, agents_changed=changed)

    def _note(self, event: Event) -> None:
        """Keep an event with the current iteration, or with the run between iterations."""
        name, kept = _NOTED[type(event)]
        row = self._run if self._iteration is None else self._iteration
        if name not in row.__struct_fields__:
            return
        value = kept(event)
        if name in _LISTS:
            value = (*(getattr(row, name) or ()), value)
        if self._iteration is None:
            self._run = replace(self._run, **{name: value})
        else:
            self._iteration = replace(self._iteration, **{name: value})

    def _note_baseline(self, event: BaselineEnded, _: str) -> None:
        checked = self._checked_for(event.duration)
        self._run = replace(self._run, baseline=event, verify_seconds=checked)
        self._store.save(run=self._run)

    def _note_snapshot(self, event: SnapshotTaken, _: str) -> None:
        if self._iteration is not None:
            self._iteration = replace(self._iteration, snapshot=event)
            return
        self._run = replace(self._run, snapshot=event)
        if event.iteration == 0 and self._run.state is None:
            # Save the tree: a run that is killed in its first iteration is compared with it later.
            state = State(trees=((event.tree, 0),)).saved()
            self._run = replace(self._run, state=state)
            self._store.save(run=self._run)

    def _end_iteration(self, event: IterationEnded, at: str) -> None:
        row = self._iteration
        if row is None:
            return
        self._iteration = None
        self._last_reason = event.reason
        self._count(Iteration(row.number, status=event.status, result=event.result))
        checked = sum(one.seconds for one in event.segments if one.kind is SegmentKind.VERIFY)
        self._run = replace(
            self._run,
            summary=self._summary_now(),
            verify_seconds=self._checked_for(checked),
            tasks=event.tasks,
        )
        if (state := event.state) is not None:
            self._run = replace(
                self._run,
                state=state.saved(),
                tokens=state.tokens or None,
                cost=state.cost or None,
            )
        self._store.save(run=self._run, iteration=_ended(row, event, at))

    def _checked_for(self, seconds: float) -> float | None:
        """Return the time of all checks, with so many seconds more; None if there were none."""
        return (self._run.verify_seconds or 0.0) + seconds or None

    def _end_run(self, event: RunEnded, at: str) -> None:
        self._run = replace(
            self._run,
            status=str(event.status),
            ended_at=at,
            reason=_reason(event, self._last_reason),
            rule=str(event.rule),
            exit_code=event.exit_code,
            signal=event.signal,
            total=event.total,
            iterations=event.iterations,
            consecutive_failures=event.consecutive_failures,
            threshold=event.threshold,
            stats=event.stats.summary(),
            tokens=event.tokens or None,
            cost=event.cost or None,
            tasks=event.tasks,
        )
        self._store.save(run=self._run)

    _HANDLERS: ClassVar[Mapping[type, Callable[["Recorder", Any, str], None]]] = {
        ConfigResolved: _add_setting,
        RunStarted: _start_run,
        IterationStarted: _start_iteration,
        StageEntered: _enter_stage,
        SnapshotTaken: _note_snapshot,
        BaselineEnded: _note_baseline,
        IterationEnded: _end_iteration,
        RunEnded: _end_run,
        WaitStarted: _start_wait,
        WaitEnded: _end_wait,
        AgentChanged: _change_agent,
        MachineSlept: _note_sleep,
        NotesGiven: _note_told,
    }

    def _count(self, iteration: Iteration) -> None:
        """Add an iteration to the summary; of several attempts only the last one counts."""
        if self._last is not None and self._last.number != iteration.number:
            self._summary = self._summary.add(self._last)
        self._last = iteration

    def _summary_now(self) -> HistorySummary:
        return self._summary if self._last is None else self._summary.add(self._last)


def _ended(row: IterationRow, event: IterationEnded, at: str) -> IterationRow:
    """The row of an iteration that has ended."""
    usage = event.usage or Usage()
    return replace(
        row,
        status=str(event.status),
        ended_at=at,
        result=event.result,
        metadata={} if event.status is IterationStatus.COMPLETED else {"error": event.reason},
        duration=event.duration,
        verdict=str(event.verdict),
        signal=event.promise_signal,
        truncated=event.truncated,
        despite_exit=event.despite_exit,
        kind=event.kind and str(event.kind),
        reason=event.reason,
        evidence=event.evidence,
        headline=event.headline or None,
        segments=event.segments,
        commits=event.commits or None,
        lines=event.lines,
        returned_to=event.returned_to,
        failures_before=event.failures_before,
        failures_after=event.consecutive_failures,
        threshold=event.threshold,
        cleaned_up=event.cleaned_up,
        failure=event.failure,
        incomplete=event.incomplete,
        same_failures=event.same_failures,
        successes=event.successes or None,
        confirm=event.confirm if event.successes else None,
        tasks=event.tasks,
        model=usage.model,
        session_id=usage.session_id,
        turns=usage.turns,
        messages=usage.messages,
        tokens=usage.tokens,
        cost=usage.cost,
    )


def _reason(event: RunEnded, last_failure: str) -> str:
    """Return why the run ended, and what is missing if SUCCESS was not confirmed."""
    words = event.why(last_failure)
    return f"{words}; not complete: {event.unconfirmed}" if event.unconfirmed else words


def _wait(event: WaitStarted, at: str) -> RecordedWait:
    until = event.until.isoformat(timespec="seconds")
    return convert(to_builtins(event) | {"until": until, "started_at": at}, RecordedWait)


def _itself(event: Struct) -> Struct:
    return event


# Event: the field of the row that keeps it, and what is kept of it.
_NOTED: Mapping[type, tuple[str, Callable[[Any], Any]]] = {
    PromptAssembled: ("prompt_size", lambda event: event.size),
    ChangesUnknown: ("changes_unknown", lambda event: event.error),
    HookEnded: ("hooks", _itself),
    VerifyEnded: ("verify", _itself),
    TestsLost: ("tests_lost", _itself),
    CleanCheckEnded: ("clean_check", _itself),
    Committed: ("commit", _itself),
    CommitFailed: ("commit_failed", _itself),
    ProtectedChanged: ("protected", _itself),
    SecretsLeftOut: ("secrets_left_out", _itself),
    UnsafeTree: ("unsafe_tree", _itself),
    Pushed: ("push", _itself),
    PushFailed: ("push_failed", _itself),
    PublishEnded: ("publish", _itself),
    HistoryPruned: ("pruned", _itself),
    TasksLeft: ("tasks_left", _itself),
    StateUnwritable: ("unwritable", lambda event: event.error),
    TranscriptTrimmed: ("trimmed", _itself),
    LeftoversStopped: ("left_behind", lambda event: event.processes),
}
_LISTS = frozenset({"hooks", "trimmed", "pruned", "unsafe_tree", "protected"})
