"""The iterations of a run as the API has them, and rows as the objects that `--json` prints.

What is unknown is null in these objects. The prompt and the output come from their files.
"""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from rooda.loop.history import HistorySummary
from rooda.loop.result import Iteration, IterationStatus
from rooda.record.given_flags import masked_flags
from rooda.record.rows import EarlierAttempt, IterationRow, RunRow
from rooda.record.run_folders import iteration_folder
from rooda.record.transcript_files import end_of
from rooda.world.state.folder import PROMPT, STDERR, STDOUT, StateFolder

SCHEMA_VERSION = 1
_LONGEST_PROMPT = 16 * 1024 * 1024
_LONGEST_OUTPUT = 10 * 1024 * 1024
# Fields of a run that only rooda itself needs.
_INTERNAL = frozenset(
    {
        *("pid", "pid_started", "host", "boot", "given", "state", "snapshot", "unreadable"),
        *("iterations", "consecutive_failures", "threshold", "pid_namespace", "repository"),
        "commands",
    }
)


def run_object(row: RunRow) -> dict[str, Any]:
    """A run without its iterations."""
    body = _builtins(row, [name for name in row.__struct_fields__ if name not in _INTERNAL])
    return body | {
        "schema_version": SCHEMA_VERSION,
        "reason": row.ended_because,
        "summary": to_builtins(row.summary or HistorySummary()),
        "flags": masked_flags(row.given),
    }


def iteration_object(row: IterationRow, state: StateFolder | None = None) -> dict[str, Any]:
    """One iteration; with a state folder, its prompt and output are read from their files."""
    files = None
    if state is not None:
        files = iteration_folder(state, row.run, row.number, row.attempt)
    result = None
    if row.result is not None:
        result = {
            "exit_code": row.result.exit_code,
            "stdout": None if files is None else _text(files / STDOUT, _LONGEST_OUTPUT),
            "stderr": None if files is None else _text(files / STDERR, _LONGEST_OUTPUT),
            **row.result.to_json(output=False),
        }
    error = row.reason if row.status != IterationStatus.COMPLETED else None
    names = [name for name in row.__struct_fields__ if name not in ("run", "unreadable")]
    return _builtins(row, names) | {
        "prompt": None if files is None else _text(files / PROMPT, _LONGEST_PROMPT),
        "metadata": row.metadata or ({"error": error} if error else {}),
        "result": result,
    }


def _builtins(row: RunRow | IterationRow, names: Iterable[str]) -> dict[str, Any]:
    return {name: to_builtins(getattr(row, name)) for name in names}


def with_summary(row: RunRow, iterations: Iterable[IterationRow]) -> RunRow:
    """The run with a summary of its iterations as they are now."""
    summary = HistorySummary()
    for one in iterations:
        summary = summary.add(iteration_of(one))
    return replace(row, summary=summary)


def last_attempts(rows: Iterable[IterationRow]) -> list[IterationRow]:
    """One row for each iteration: its last attempt, which names the earlier ones.

    Rows with a status or a time that rooda can't have written are left out.
    """
    last: dict[int, IterationRow] = {}
    known = filter(_makes_sense, rows)
    for row in sorted(known, key=lambda row: (row.number, row.attempt)):
        before = last.get(row.number)
        earlier = () if before is None else (*(before.earlier_attempts or ()), _attempt(before))
        last[row.number] = replace(row, earlier_attempts=earlier)
    return list(last.values())


def _makes_sense(row: IterationRow) -> bool:
    try:
        iteration_of(row)
    except (ValueError, OverflowError):
        return False
    return True


def _attempt(row: IterationRow) -> EarlierAttempt:
    return EarlierAttempt(*(getattr(row, name) for name in EarlierAttempt.__struct_fields__))


def iteration_of(row: IterationRow) -> Iteration:
    """The row as the API has it, without prompt and output. Raises ValueError, OverflowError."""
    return Iteration(
        number=row.number,
        started_at=datetime.fromisoformat(row.started_at),
        ended_at=None if row.ended_at is None else datetime.fromisoformat(row.ended_at),
        status=IterationStatus(row.status),
        metadata=dict(row.metadata or {}),
        result=row.result,
    )


def _text(path: Path, most: int) -> str | None:
    """The end of a file as text; None where there is none."""
    try:
        return end_of(path, most).decode("utf-8", "replace")
    except OSError:
        return None
