"""The blocks of a session log: header and footer of an iteration, summary of a run. Pure."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from rooda.base.controls import one_line
from rooda.base.times import format_duration

_DOUBLE, _SINGLE = "=" * 80, "-" * 80
Lines = Sequence[tuple[str, str | int | None]]


def _block(*parts: str | Lines) -> str:
    """Return lines and `Name: value` lines, without those whose value is unknown."""
    lines: list[str] = []
    for part in parts:
        if isinstance(part, str):
            lines.append(part)
        else:
            known = [(name, value) for name, value in part if value is not None]
            lines += [f"{name}: {one_line(str(value))}" for name, value in known]
    return "\n".join(lines) + "\n"


def moment(at: datetime) -> str:
    """Return a time as the log has it."""
    return f"{at:%Y-%m-%d %H:%M:%S}"


def header(iteration: int, mode: str, task: str, spec: str, started: datetime) -> str:
    """Return the block before an iteration."""
    about = [("Mode", mode), ("Task", task), ("Spec", spec), ("Start Time", moment(started))]
    return _block(_DOUBLE, f"ITERATION {iteration}", _DOUBLE, about, _SINGLE)


class Numbers(Struct, frozen=True):
    """The numbers that the agent's CLI reports; an unknown number is None."""

    requests: int | None = None
    model: str | None = None
    messages: int | None = None
    cost: str | None = None


def footer(
    iteration: int,
    ended: datetime,
    seconds: float,
    status: str,
    *,
    retries: int = 0,
    numbers: Numbers | None = None,
) -> str:
    """Return the block after an iteration, with an empty line."""
    numbers = numbers or Numbers()
    about: Lines = [
        ("End Time", moment(ended)),
        ("Duration", format_duration(seconds)),
        ("Retries", retries or None),
        ("API Requests", numbers.requests),
        ("Model", numbers.model),
        ("Messages", numbers.messages),
        ("Cost", numbers.cost),
        ("Status", status),
    ]
    return _block(_SINGLE, f"ITERATION {iteration} COMPLETE", about, _DOUBLE, "")


def summary(
    total: int,
    successful: int,
    failed: int,
    seconds: float,
    reason: str,
    exit_code: int,
    notes: Lines = (),
) -> str:
    """Return the block at the end of a session; `notes` are further lines."""
    about: Lines = [
        ("Total Iterations", total),
        ("Successful", successful),
        ("Failed", failed),
        ("Total Duration", format_duration(seconds)),
        ("Exit Reason", reason),
        ("Exit Code", exit_code),
        *notes,
    ]
    return _block(_DOUBLE, "SESSION SUMMARY", _DOUBLE, about, _DOUBLE)
