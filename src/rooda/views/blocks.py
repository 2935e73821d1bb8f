"""The blocks of a session log: seed 002's header, footer and summary, to the letter. Pure."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from rooda.text.controls import one_line
from rooda.text.times import format_duration

_DOUBLE, _SINGLE = "=" * 80, "-" * 80
Lines = Sequence[tuple[str, str | int | None]]


def _block(*parts: str | Lines) -> str:
    """Lines and `Name: value` lines; one whose value is unknown is left out."""
    lines: list[str] = []
    for part in parts:
        if isinstance(part, str):
            lines.append(part)
        else:
            known = [(name, value) for name, value in part if value is not None]
            lines += [f"{name}: {one_line(str(value))}" for name, value in known]
    return "\n".join(lines) + "\n"


def moment(at: datetime) -> str:
    """A time as the log has it."""
    return f"{at:%Y-%m-%d %H:%M:%S}"


def header(iteration: int, mode: str, task: str, spec: str, started: datetime) -> str:
    """What stands before an iteration."""
    about = [("Mode", mode), ("Task", task), ("Spec", spec), ("Start Time", moment(started))]
    return _block(_DOUBLE, f"ITERATION {iteration}", _DOUBLE, about, _SINGLE)


class Numbers(Struct, frozen=True):
    """What an agent's CLI tells of itself, as far as it does."""

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
    """What stands behind an iteration, with an empty line."""
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
    """What stands at the end of a session; `notes` are further lines."""
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
