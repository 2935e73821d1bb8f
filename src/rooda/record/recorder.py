"""A listener that records what happens, as it happens.

It commits twice for each iteration: before the agent starts, and when the iteration has ended.
Hooks add one commit for each stage.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Protocol, get_args, get_origin, get_type_hints

from msgspec import convert, to_builtins
from msgspec.structs import asdict, replace

from rooda.base.event import Event
from rooda.loop.events.agent import NotesGiven, WaitEnded, WaitStarted
from rooda.loop.events.emitter import Stamped
from rooda.loop.events.iteration import (
    IterationEnded,
    IterationStarted,
    PromptAssembled,
    StageEntered,
)
from rooda.loop.events.run import (
    ConfigResolved,
    RunEnded,
    RunStarted,
    StateUnwritable,
)
from rooda.loop.events.work import (
    BaselineEnded,
    ChangesUnknown,
    SnapshotTaken,
)
from rooda.loop.history import HistorySummary
from rooda.loop.iteration_facts import IterationFacts, SegmentKind
from rooda.loop.result import Iteration, IterationStatus
from rooda.loop.state import State
from rooda.record.rows import RUNNING, IterationRow, RecordedSetting, RecordedWait, RunRow, Slept
from rooda.world.process.events import LeftoversStopped, MachineSlept

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
        kind = type(event)
        if (handle := self._HANDLERS.get(kind)) is not None:
            handle(self, event, stamped.at.isoformat(timespec="milliseconds"))
        elif kind in _KEPT:
            name, is_list = _KEPT[kind]
            self._keep(name, event, is_list=is_list)
        elif kind in _NOTED:
            name, value_of = _NOTED[kind]
            self._keep(name, value_of(event))

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
            run=self._run.run,
            number=event.iteration,
            attempt=event.attempt,
            status=str(IterationStatus.PENDING),
            started_at=at,
            ended_at=None,
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

    def _keep(self, name: str, value: object, *, is_list: bool = False) -> None:
        """Keep a value with the current iteration, or with the run between iterations."""
        row = self._run if self._iteration is None else self._iteration
        if name not in row.__struct_fields__:
            return
        if is_list:
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
        facts = event.facts
        self._last_reason = facts.reason or ""
        status = IterationStatus(facts.status)
        self._count(Iteration(row.number, status=status, result=facts.result))
        checked = sum(one.seconds for one in facts.segments if one.kind is SegmentKind.VERIFY)
        self._run = replace(
            self._run,
            summary=self._summary_now(),
            verify_seconds=self._checked_for(checked),
            tasks=facts.tasks,
        )
        if (state := event.state) is not None:
            self._run = replace(
                self._run,
                state=state.saved(),
                tokens=state.tokens or None,
                cost=state.cost or None,
            )
        self._store.save(run=self._run, iteration=_ended(row, facts, at))

    def _checked_for(self, seconds: float) -> float | None:
        """Return the time of all checks, with so many seconds more; None if there were none."""
        return (self._run.verify_seconds or 0.0) + seconds or None

    def _end_run(self, event: RunEnded, at: str) -> None:
        self._run = replace(
            self._run,
            ended_at=at,
            reason=_reason(event, self._last_reason),
            **asdict(event.facts),
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


def _ended(row: IterationRow, facts: IterationFacts, at: str) -> IterationRow:
    """The row of an iteration that has ended."""
    error = {} if facts.status == IterationStatus.COMPLETED else {"error": facts.reason or ""}
    return replace(row, ended_at=at, metadata=error, **asdict(facts))


def _reason(event: RunEnded, last_failure: str) -> str:
    """Return why the run ended, and what is missing if SUCCESS was not confirmed."""
    words = event.why(last_failure)
    return f"{words}; not complete: {event.unconfirmed}" if event.unconfirmed else words


def _wait(event: WaitStarted, at: str) -> RecordedWait:
    until = event.until.isoformat(timespec="seconds")
    return convert(to_builtins(event) | {"until": until, "started_at": at}, RecordedWait)


def _events_in(hint: object, *, is_list: bool = False) -> Iterator[tuple[type, bool]]:
    """Yield the event in the type of a field, and whether the field has a list of them."""
    if isinstance(hint, type) and issubclass(hint, Event):
        yield hint, is_list
    for part in get_args(hint):
        yield from _events_in(part, is_list=is_list or get_origin(hint) is tuple)


def _fields_of_events() -> dict[type, tuple[str, bool]]:
    """Return the field that keeps each type of event: a row keeps the events that it has types of.

    A row and the one in which it is kept between iterations have the same names for the same type.
    """
    return {
        kind: (name, is_list)
        for row in (RunRow, IterationRow)
        for name, hint in get_type_hints(row).items()
        for kind, is_list in _events_in(hint)
    }


_KEPT = _fields_of_events()
# Events of which a row keeps one value only: the field, and the value.
_NOTED: Mapping[type, tuple[str, Callable[[Any], Any]]] = {
    PromptAssembled: ("prompt_size", lambda event: event.size),
    ChangesUnknown: ("changes_unknown", lambda event: event.error),
    StateUnwritable: ("unwritable", lambda event: event.error),
    LeftoversStopped: ("left_behind", lambda event: event.processes),
}
