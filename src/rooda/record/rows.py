"""What the record keeps of a run and of an iteration, as typed rows.

A row has columns of its own in the database; all other fields are one JSON object in the column
`data`. Version 0.1 wrote the same JSON. A field that a row does not know is ignored, a field
without a value is left out, and a field that makes no sense gets its default (see `unreadable`).

Every text comes back as it was, whatever an agent or a file system put into it. In JSON, lone
surrogates and NULs are escapes. Elsewhere a text that UTF-8 can't encode is kept as bytes.
"""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar

from msgspec import UNSET, Struct, UnsetType, ValidationError, convert, field, to_builtins
from msgspec.json import encode as json_encode
from msgspec.structs import fields, replace

from rooda.base.controls import one_line
from rooda.loop.events.agent import AgentChanged
from rooda.loop.events.protect import ProtectedChanged
from rooda.loop.events.publish import PublishEnded
from rooda.loop.events.run import HistoryPruned, TasksLeft
from rooda.loop.events.tree import UnsafeTree
from rooda.loop.events.verify import CleanCheckEnded
from rooda.loop.events.work import (
    BaselineEnded,
    CommitFailed,
    HookEnded,
    Pushed,
    PushFailed,
    SecretsLeftOut,
    SnapshotTaken,
    VerifyEnded,
)
from rooda.loop.headline import headline_of
from rooda.loop.history import HistorySummary
from rooda.loop.iteration_facts import IterationFacts
from rooda.loop.next_steps import RunCommands, earlier_commands
from rooda.loop.run_facts import RunFacts
from rooda.loop.state import SavedState
from rooda.record.given_flags import GivenFlags
from rooda.world.agents.agent_report import Tokens
from rooda.world.process.events import NamedProcess, TranscriptTrimmed
from rooda.world.state.folder import StateFolder, is_run
from rooda.world.state.lock import is_locked_by
from rooda.world.state.lock_note import ProcessIdentity

RUNNING, INTERRUPTED = "running", "interrupted"
UNFINISHED = ("pending", "pre_hooks", "executing", "post_hooks")
KILLED = "rooda was killed"

Value = str | bytes | int | float | None
TOO_LARGE: Final = "it is too large"
_MOST_PARTS = 1_000_000  # of JSON: an empty list takes three bytes as text, and 56 in memory
_LONGEST_COLUMN = 65_536  # characters; to clean and print millions would take minutes
_LONGEST_NUMBER = 18  # digits; a longer one does not fit into SQLite's integers either


class StoreError(Exception):
    """The record can't be opened or read; the message says why and what to do."""


class NoRecord(StoreError):  # noqa: N818 - it says what was found
    """There is no such run, or no run at all."""


class NothingRecorded(NoRecord):
    """There is no run at all."""


class RecordedSetting(Struct, frozen=True, array_like=True):
    """A setting of a run; in JSON a list of three texts."""

    name: str
    value: str
    origin: str  # the file and line, flag or variable that set it


class RecordedWait(Struct, frozen=True):
    """A wait of a run: the fields of the event `wait_started`, and how long it lasted."""

    iteration: int
    kind: str  # a name of `WaitKind`; other versions may know others
    what: str  # the agent, or the failure before a backoff
    reason: str
    until: str  # local time, ISO 8601
    seconds: float  # the planned length
    tries: int = 1
    known: bool = False  # the agent itself named the time
    capped: bool = False  # the named time is later than the longest wait
    outage: str = ""  # the kind of outage
    lasted: float | None = None  # the seconds of the outage before this wait
    waited: float | None = None  # the real length; unknown while the run waits
    started_at: str | None = None  # ISO 8601; version 0.1 wrote none


class Slept(Struct, frozen=True):
    """A time in which the machine was suspended."""

    until: str  # when it woke up; ISO 8601
    seconds: float


class EarlierAttempt(Struct, frozen=True):
    """An attempt at an iteration that was not the last one."""

    attempt: int
    status: str
    started_at: str
    ended_at: str | None = None
    kind: str | None = None
    reason: str | None = None
    agent: str | None = None
    tokens: Tokens | None = None
    cost: float | None = None


class RecordedRepository(Struct, frozen=True):
    """The repository in which a run started: rooda commits to no other one.

    Earlier versions wrote only the first two fields.
    """

    top: str  # the work tree; an absolute path
    git_dir: str  # an absolute path
    common: str = ""  # what all its work trees share; an absolute path
    links: dict[str, str] | None = None  # in git's own folders: names below `common`, and targets
    head: str = ""  # the commit of HEAD; empty before the first one


class RunRow(RunFacts, frozen=True, kw_only=True, omit_defaults=True):
    """The facts about one run, with what only the record knows. Times are ISO 8601 with an offset.

    The status of a run at work is `running`. Of a run that has not ended, the record has the facts
    that came with events.
    """

    # Columns, besides `status`.
    run: str  # the name, which is also the name of its folder
    procedure: str
    started_at: str
    ended_at: str | None
    pid: int  # pid, start time, host and boot together identify the process
    pid_started: float
    host: str
    boot: str
    workspace: str
    # JSON, besides the facts.
    pid_namespace: str | None = None
    reason: str | None = None  # why the run ended, in words
    summary: HistorySummary | None = None
    command: str | None = None  # of the agent
    verify_seconds: float | None = None  # of all checks together, that before the run included
    waits: tuple[RecordedWait, ...] | None = None
    settings: tuple[RecordedSetting, ...] | None = None
    schema_version: int | None = None
    state: SavedState | None = None  # where a resumed run continues
    repository: RecordedRepository | None = None  # earlier versions wrote none
    given: GivenFlags | UnsetType = UNSET  # the command line; private. Version 0.1 wrote none
    commands: RunCommands | None = None  # start and resume it; earlier versions wrote none
    # Events outside of iterations: the recorder keeps each event of such a type.
    hooks: tuple[HookEnded, ...] = ()
    baseline: BaselineEnded | None = None  # the check before the first iteration
    agents_changed: tuple[AgentChanged, ...] | None = None
    snapshot: SnapshotTaken | None = None  # of the work tree before the first iteration
    pruned: tuple[HistoryPruned, ...] | None = None  # older runs that its start deleted
    tasks_left: TasksLeft | None = None  # tasks of the plan that are not finished at the end
    # Not stored: the fields whose stored values make no sense, and what is wrong with them.
    unreadable: Mapping[str, str] = field(default_factory=dict)

    @property
    def process(self) -> ProcessIdentity:
        """The process of the run."""
        return ProcessIdentity(
            self.pid, self.pid_started, self.host, self.boot, self.pid_namespace or ""
        )

    @property
    def known_commands(self) -> RunCommands:
        """The commands that start the run again and resume it."""
        if self.commands is not None and self.commands.make_sense:
            return self.commands
        return earlier_commands(self.procedure, self.run)

    @property
    def ended_because(self) -> str | None:
        """The reason; a run that was interrupted without one was killed."""
        is_killed = self.status == INTERRUPTED and self.reason is None
        return KILLED if is_killed else self.reason


class IterationRow(IterationFacts, frozen=True, kw_only=True, omit_defaults=True):
    """The facts about one attempt at an iteration, with what only the record knows.

    Of an iteration that has not ended, the record has the facts that came with events.
    """

    # Columns, besides `number`, `attempt` and `status`.
    run: str
    started_at: str
    ended_at: str | None
    # JSON, besides the facts.
    metadata: dict[str, str] | None = None  # `error`, if the iteration did not complete
    adapter: str | None = None  # that reads the output of the agent
    prompt_size: int | None = None  # bytes
    told: tuple[str, ...] = ()  # notes of the user (`rooda tell`) in the prompt: their beginnings
    slept: tuple[Slept, ...] = ()  # when the machine was suspended
    left_behind: tuple[NamedProcess, ...] | None = None
    changes_unknown: str | None = None  # why rooda could not compare the work trees
    unwritable: str | None = None  # why the state folder could not be written
    earlier_attempts: tuple[EarlierAttempt, ...] | None = None
    # Events: the recorder keeps each event of such a type, or a list of them.
    snapshot: SnapshotTaken | None = None
    verify: VerifyEnded | None = None
    clean_check: CleanCheckEnded | None = None  # the check in a clean copy of the work
    hooks: tuple[HookEnded, ...] = ()
    commit_failed: CommitFailed | None = None
    protected: tuple[ProtectedChanged, ...] = ()  # protected files that changed
    secrets_left_out: SecretsLeftOut | None = None  # new files that rooda did not commit
    unsafe_tree: tuple[UnsafeTree, ...] = ()  # what could act outside of the sandbox
    push: Pushed | None = None
    push_failed: PushFailed | None = None
    publish: PublishEnded | None = None  # the user's command that publishes the work
    trimmed: tuple[TranscriptTrimmed, ...] | None = None
    # Not stored: the fields whose stored values make no sense, and what is wrong with them.
    unreadable: Mapping[str, str] = field(default_factory=dict)

    @property
    def known_headline(self) -> str:
        """The headline; version 0.1 wrote none, so it comes from the summary then."""
        return self.headline or headline_of(self.result.summary if self.result else None)


_RUN_COLUMNS: Final = (
    *("run", "procedure", "status", "started_at", "ended_at", "pid", "pid_started", "host"),
    *("boot", "workspace"),
)
_ITERATION_COLUMNS: Final = ("run", "number", "attempt", "status", "started_at", "ended_at")
# Views print these as they are; rooda writes no control codes into them.
_SHOWN: Final = (
    *("procedure", "status", "started_at", "ended_at", "host", "rule", "signal", "kind"),
    *("verdict", "agent", "adapter", "model", "session_id"),
)
_INTEGERS: Final = frozenset({"pid", "number", "attempt"})
_UNREADABLE: Final = "unreadable"

_Row = TypeVar("_Row", RunRow, IterationRow)


def is_run_alive(row: RunRow, state: StateFolder) -> bool:
    """Whether the run, in the record of this state folder, is still at work."""
    return row.process.is_alive(lambda: is_locked_by(state, row.run))


def for_terminal(row: _Row) -> _Row:
    """Return the row without control codes in the fields that views print as they are."""
    texts = {name: getattr(row, name) for name in _SHOWN if name in row.__struct_fields__}
    clean = {name: one_line(text) for name, text in texts.items() if text}
    return row if clean.items() <= texts.items() else replace(row, **clean)


def run_values(row: RunRow) -> tuple[Value, ...]:
    """The row as the database takes it."""
    return _values(row, _RUN_COLUMNS)


def iteration_values(row: IterationRow) -> tuple[Value, ...]:
    """The row as the database takes it."""
    return _values(row, _ITERATION_COLUMNS)


def run_row(values: Sequence[Any]) -> RunRow | None:
    """The stored row; None for one that rooda can't have written."""
    return _read(RunRow, _RUN_COLUMNS, values)


def iteration_row(values: Sequence[Any]) -> IterationRow | None:
    """The stored row; None for one that rooda can't have written."""
    return _read(IterationRow, _ITERATION_COLUMNS, values)


def _values(row: RunRow | IterationRow, names: Sequence[str]) -> tuple[Value, ...]:
    data: dict[str, Any] = to_builtins(row)
    for name in (*names, _UNREADABLE):
        data.pop(name, None)
    if isinstance(row, IterationRow) and row.result is not None:
        data["result"] = row.result.to_json(output=False)
    columns = (getattr(row, name) for name in names)
    stored_columns = (stored(one) if isinstance(one, str) else one for one in columns)
    return (*stored_columns, _json(data))


def _json(data: dict[str, Any]) -> str:
    try:
        return json_encode(data).decode()
    except (UnicodeEncodeError, OverflowError):  # msgspec refuses lone surrogates and huge numbers
        return json.dumps(data)


def _read(kind: type[_Row], names: Sequence[str], values: Sequence[Any]) -> _Row | None:
    try:
        columns = dict(zip((*names, "data"), values, strict=True))
        stored_data = columns.pop("data")
        read = {name: _column(name, value) for name, value in columns.items()}
        if stored_data is None:  # the reader left it out
            return convert(read | {_UNREADABLE: {"data": TOO_LARGE}}, kind)
        data = _data(stored_data)
        return _typed(kind, data, read)
    except (ValueError, TypeError, OverflowError, RecursionError):
        return None


def _column(name: str, value: object) -> Value:
    if isinstance(value, str | bytes) and len(value) > _LONGEST_COLUMN:
        raise ValueError(name)
    if name == "ended_at" and value is None:
        return None
    if name in _INTEGERS:
        return int(value)  # type: ignore[call-overload, no-any-return]  # or TypeError
    if name == "pid_started":
        return float(value)  # type: ignore[arg-type]  # or TypeError
    text = _text(value)
    if name == "run" and not is_run(text):  # it becomes the name of a folder
        raise ValueError("not the name of a run")
    return text


def _typed(kind: type[_Row], data: dict[str, Any], columns: dict[str, Value]) -> _Row:
    try:
        return convert(data | columns | {_UNREADABLE: {}}, kind)
    except ValidationError:
        pass
    good: dict[str, Any] = {}
    bad: dict[str, str] = {}
    for one in fields(kind):
        if one.name in columns or one.name == _UNREADABLE or one.name not in data:
            continue
        try:
            convert(data[one.name], one.type)
            good[one.name] = data[one.name]
        except ValidationError as error:
            bad[one.name] = str(error)
    return convert(good | columns | {_UNREADABLE: bad}, kind)


def stored(text: str) -> str | bytes:
    """A text as the database takes it, for keeping and for asking alike."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def last_time(times: Iterable[str | None]) -> str | None:
    """The latest of these times, as it was written; other texts are ignored."""
    known = [(moment, text) for text in times if text and (moment := moment_of(text))]
    return max(known, key=lambda pair: pair[0])[1] if known else None


def moment_of(text: str) -> datetime | None:
    """The time that a text names; without an offset it is local time."""
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError, OSError):
        return None


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogatepass")
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


def _data(value: object) -> dict[str, Any]:
    text = _text(value)
    if len(text) > _MOST_PARTS and sum(map(text.count, ",[{")) > _MOST_PARTS:
        raise ValueError("too many parts")
    found = json.loads(text, parse_int=_whole, parse_float=_finite, parse_constant=lambda _: None)
    if not isinstance(found, dict):
        raise TypeError("not an object")
    return found


def _whole(digits: str) -> int | None:
    return int(digits) if len(digits) <= _LONGEST_NUMBER else None


def _finite(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None
