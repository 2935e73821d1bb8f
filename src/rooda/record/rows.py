"""What a store keeps: runs and their iterations, as plain rows.

Every text comes back as it was, whatever an agent or a file system put into it. JSON is pure
ASCII, so lone surrogates and NULs are escapes there. Elsewhere a text that UTF-8 can't have is
kept as bytes.
"""

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct, field

from rooda.record.places import is_run
from rooda.workspace.lock import ProcessIdentity

RUNNING, INTERRUPTED = "running", "interrupted"
UNFINISHED = ("pending", "pre_hooks", "executing", "post_hooks")

Value = str | bytes | int | float | None


class RunRow(Struct, frozen=True):
    """One run. The pid comes with its start time, and counts for one boot of one host."""

    run: str
    procedure: str
    status: str
    started_at: str
    ended_at: str | None
    pid: int
    pid_started: float
    host: str
    boot: str
    workspace: str
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def process(self) -> ProcessIdentity:
        """The process of the run."""
        return ProcessIdentity(self.pid, self.pid_started, self.host, self.boot)


class IterationRow(Struct, frozen=True):
    """One attempt at one iteration of a run; both are counted from 1."""

    run: str
    number: int
    attempt: int
    status: str
    started_at: str
    ended_at: str | None
    data: dict[str, Any] = field(default_factory=dict)


def is_run_alive(row: RunRow) -> bool:
    """Whether the process of the run still runs."""
    return row.process.is_alive


def run_values(row: RunRow) -> tuple[Value, ...]:
    """The row as the database takes it."""
    return (
        *map(stored, (row.run, row.procedure, row.status, row.started_at)),
        None if row.ended_at is None else stored(row.ended_at),
        row.pid,
        row.pid_started,
        *map(stored, (row.host, row.boot, row.workspace)),
        json.dumps(row.data),
    )


def iteration_values(row: IterationRow) -> tuple[Value, ...]:
    """The row as the database takes it."""
    return (
        stored(row.run),
        row.number,
        row.attempt,
        stored(row.status),
        stored(row.started_at),
        None if row.ended_at is None else stored(row.ended_at),
        json.dumps(row.data),
    )


def run_row(values: Sequence[Any]) -> RunRow | None:
    """The row as it was; None for one that only somebody else can have written."""
    try:
        run, procedure, status, started, ended, pid, pid_started, *where, data = values
        host, boot, workspace = map(_text, where)
        return RunRow(
            _run(run),
            _text(procedure),
            _text(status),
            _text(started),
            None if ended is None else _text(ended),
            int(pid),
            float(pid_started),
            host,
            boot,
            workspace,
            _data(data),
        )
    except (ValueError, TypeError, OverflowError, RecursionError):
        return None


def iteration_row(values: Sequence[Any]) -> IterationRow | None:
    """The row as it was; None for one that only somebody else can have written."""
    try:
        run, number, attempt, status, started, ended, data = values
        return IterationRow(
            _run(run),
            int(number),
            int(attempt),
            _text(status),
            _text(started),
            None if ended is None else _text(ended),
            _data(data),
        )
    except (ValueError, TypeError, OverflowError, RecursionError):
        return None


def stored(text: str) -> str | bytes:
    """A text as the database takes it, for keeping and for asking alike."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


def last_time(times: Iterable[str | None]) -> str | None:
    """The latest of these times, as it was written; what is no time doesn't count."""
    known = [(moment, text) for text in times if text and (moment := moment_of(text))]
    return max(known, key=lambda pair: pair[0])[1] if known else None


def moment_of(text: str) -> datetime | None:
    """The moment that a text names; without an offset it is meant here."""
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError, OSError):
        return None


def _run(value: object) -> str:
    name = _text(value)
    if not is_run(name):  # it becomes the name of a folder
        raise ValueError("no run of ours")
    return name


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogatepass")
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _data(value: object) -> dict[str, Any]:
    found = json.loads(_text(value))
    if not isinstance(found, dict):
        raise TypeError("no object")
    return found
