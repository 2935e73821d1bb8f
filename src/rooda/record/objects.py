"""Rows as the objects that `--json` prints and the views read: seed 003's names, and more beside.

What is unknown is null. Prompt and output come from their files.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from rooda.iteration.history import HistorySummary
from rooda.iteration.types import Iteration, IterationStatus
from rooda.record.given import masked_in
from rooda.record.places import iteration_folder
from rooda.record.rows import IterationRow, RunRow
from rooda.record.transcript import end_of
from rooda.workspace.state_folder import PROMPT, STDERR, STDOUT

SCHEMA_VERSION = 1
_LONGEST_PROMPT = 16 * 1024 * 1024
_LONGEST_OUTPUT = 10 * 1024 * 1024

_RUN_KEYS = (
    "rule",
    "command",
    "max_iterations",
    "signal",
    "stats",
    "total",
    "tokens",
    "cost",
    "hooks",
    "waits",
    "agents_changed",
    "settings",
)
_EARLIER = "earlier_attempts"
# What an iteration has beside seed 003's fields; null until somebody knows it.
_EXTRAS = (
    "verdict",
    "signal",
    "kind",
    "reason",
    "evidence",
    "truncated",
    "despite_exit",
    "cleaned_up",
    "left_behind",
    "returned_to",
    "failures_before",
    "failures_after",
    "threshold",
    "snapshot",
    "changes_unknown",
    "verify",
    "hooks",
    "commit",
    "commit_failed",
    "push",
    "push_failed",
    "trimmed",
    "unwritable",
    "prompt_size",
    "duration",
    "failure",
    _EARLIER,
    "agent",
    "incomplete",
    "same_failures",
    "model",
    "session_id",
    "turns",
    "tokens",
    "cost",
)


def run_object(row: RunRow) -> dict[str, Any]:
    """A run without its iterations."""
    data = row.data
    reason = data.get("reason")
    if row.status == "interrupted" and reason is None:
        reason = "rooda was killed"
    return {
        "schema_version": SCHEMA_VERSION,
        "run": row.run,
        "procedure": row.procedure,
        "status": row.status,
        "reason": reason,
        "exit_code": data.get("exit_code"),
        "started_at": row.started_at,
        "ended_at": row.ended_at,
        "summary": data.get("summary") or HistorySummary().to_json(),
        "workspace": row.workspace,
        "flags": masked_in(data),
        **{key: data.get(key) for key in _RUN_KEYS},
    }


def summarized(rows: Iterable[IterationRow]) -> dict[str, Any]:
    """The summary, made anew from the iterations; of several attempts the last one counts."""
    summary = HistorySummary()
    for row in last_attempts(rows):
        summary = summary.add(iteration_of(row))
    return summary.to_json()


def last_attempts(rows: Iterable[IterationRow]) -> list[IterationRow]:
    """One row an iteration: its last attempt, which names the earlier ones.

    A row that only somebody else can have written is left out.
    """
    last: dict[int, IterationRow] = {}
    known = filter(_makes_sense, rows)
    for row in sorted(known, key=lambda row: (row.number, row.attempt)):
        before = last.get(row.number)
        earlier = [] if before is None else [*before.data[_EARLIER], _attempt(before)]
        last[row.number] = replace(row, data=row.data | {_EARLIER: earlier})
    return list(last.values())


def _makes_sense(row: IterationRow) -> bool:
    try:
        HistorySummary().add(iteration_of(row))
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
        return False
    return True


def _attempt(row: IterationRow) -> dict[str, Any]:
    """What is said of an attempt that was not the last."""
    return {
        "attempt": row.attempt,
        "status": row.status,
        "started_at": row.started_at,
        "ended_at": row.ended_at,
        **{key: row.data.get(key) for key in ("kind", "reason", "agent", "tokens", "cost")},
    }


def iteration_of(row: IterationRow) -> Iteration:
    """The row as the API has it, without prompt and output."""
    return Iteration.from_json(
        {
            "number": row.number,
            "started_at": row.started_at,
            "ended_at": row.ended_at,
            "status": row.status,
            "metadata": row.data.get("metadata") or {},
            "result": row.data.get("result"),
        }
    )


def iteration_object(
    row: IterationRow, workspace: Path | None = None, *, exit_code: int | None = None
) -> dict[str, Any]:
    """One iteration; with a workspace, prompt and output are read from their files."""
    data = row.data
    result = data.get("result")
    files = None
    if workspace is not None:
        files = iteration_folder(workspace, row.run, row.number, row.attempt)
    if result is not None:
        result = {
            "exit_code": result.get("exit_code", exit_code),
            "stdout": None if files is None else _text(files / STDOUT, _LONGEST_OUTPUT),
            "stderr": None if files is None else _text(files / STDERR, _LONGEST_OUTPUT),
            **result,
        }
    error = data.get("reason") if row.status != IterationStatus.COMPLETED else None
    return {
        "number": row.number,
        "attempt": row.attempt,
        "started_at": row.started_at,
        "ended_at": row.ended_at,
        "status": row.status,
        "prompt": None if files is None else _text(files / PROMPT, _LONGEST_PROMPT),
        "metadata": data.get("metadata") or ({"error": error} if error else {}),
        "result": result,
        **{key: data.get(key) for key in _EXTRAS},
    }


def _text(path: Path, most: int) -> str | None:
    """The end of a file as text; None where there is none."""
    try:
        return end_of(path, most).decode("utf-8", "replace")
    except OSError:
        return None
