"""What a failed iteration leaves for the person who reads about it in the morning."""

from dataclasses import dataclass

from rooda.loop.outcome import FailureKind
from rooda.process.exits import Exit, Signalled, TimedOut
from rooda.process.tail import Captured
from rooda.text.controls import clean

PREVIEW = 500
_HEAD_BYTES = 4 * PREVIEW  # enough for PREVIEW characters of UTF-8


@dataclass(frozen=True, slots=True)
class FailureContext:
    """Seed 004's context of a failure. `exit_code` is unknown after a timeout."""

    command: str
    kind: FailureKind
    reason: str
    duration: float
    exit_code: int | None
    signal: str | None
    timeout: float | None
    preview: str
    suffix: str
    truncated: bool
    suggestion: str


def context(
    command: str,
    kind: FailureKind,
    reason: str,
    end: Exit,
    stdout: Captured,
    stderr: Captured,
    duration: float,
) -> FailureContext:
    """Gather the context from what the process left behind."""
    preview, suffix = excerpt(stdout, stderr)
    return FailureContext(
        command=command,
        kind=kind,
        reason=reason,
        duration=duration,
        exit_code=getattr(end, "code", None),
        signal=end.name if isinstance(end, Signalled) else None,
        timeout=end.after if isinstance(end, TimedOut) else None,
        preview=preview,
        suffix=suffix,
        truncated=stdout.truncated or stderr.truncated,
        suggestion=suggestion(kind, end, stdout.total + stderr.total),
    )


def excerpt(stdout: Captured, stderr: Captured) -> tuple[str, str]:
    """First and last 500 characters. Errors go to standard error, so its end is the last word.

    Short output is whole in the first part, and the second is empty.
    """
    shown = [stream for stream in (stdout, stderr) if stream.total]
    if not shown:
        return "", ""
    if all(stream.total <= 2 * _HEAD_BYTES and not stream.truncated for stream in shown):
        text = "\n".join(_text(stream.tail) for stream in shown)
        return (text, "") if len(text) <= PREVIEW else (text[:PREVIEW], text[-PREVIEW:])
    first, last = shown[0], shown[-1]
    return _text(first.head)[:PREVIEW], _text(last.tail[-_HEAD_BYTES:])[-PREVIEW:]


def _text(data: bytes) -> str:
    return clean(data.decode("utf-8", "replace")).strip()


def suggestion(kind: FailureKind, end: Exit, printed: int) -> str:
    """What to try next."""
    match kind:
        case FailureKind.TIMEOUT:
            return "Raise iteration_timeout if the work takes longer, or give the agent less to do"
        case FailureKind.SIGNAL:
            return "Read the end of the output: the agent says what it is blocked by"
        case FailureKind.CRASH if isinstance(end, Signalled) and end.name == "SIGKILL":
            return "Look for an out-of-memory kill in the system's log"
        case FailureKind.CRASH:
            return "Run the command by hand to see whether it crashes there too"
        case FailureKind.NOT_STARTED:
            return "Check that the program is installed, executable, and starts with a #! line"
    if not printed:
        return "It printed nothing: run the command by hand, or with --verbose"
    return "Read its output above, or run again with --verbose"
