"""The context of a failure: command, output, evidence, and what the user can try."""

import errno
from collections.abc import Iterable, Mapping

from msgspec import Struct

from rooda.base.controls import clean, one_line
from rooda.base.event import Field, Value, advised, quoted
from rooda.base.secrets.sensitive import without_secret_values
from rooda.base.times import format_duration, format_seconds
from rooda.loop.outcome import Outcome, Verdict
from rooda.loop.stages.promises import Promises
from rooda.world.agents.agent_report import Fault
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.process.capture.buffers import HEAD, Captured
from rooda.world.process.exits import (
    Canceled,
    Exit,
    Exited,
    Lost,
    NotStarted,
    Signalled,
    TimedOut,
    describe,
    exit_code,
)
from rooda.world.process.request import ProcessResult

PREVIEW = 500
LONGEST_COMMAND = 1000

_TIMEOUT_ADVICE = {
    "first_output_timeout": "Run the command by hand: it may wait for a login or for a question",
    "idle_timeout": "Raise idle_timeout if it only waited, or see what it waits for with --verbose",
    "max_duration": "Raise max_duration to give the whole run more time",
}


class FailureContext(Struct, frozen=True):
    """What is known about a failure."""

    command: str  # the command of the agent
    kind: FailureKind  # the kind of failure
    reason: str  # why, in words
    duration: float  # how many seconds the agent ran
    exit_code: int | None  # the exit code of the agent; 128+n after a signal
    signal: str | None  # the signal that killed the agent
    timeout: float | None  # how many seconds the clock allowed that ran out
    promise_signal: str | None  # the signal of the agent, even if it does not count
    preview: str  # the beginning of the output, or all of it
    suffix: str  # the end of a long output
    truncated: bool  # rooda dropped the beginning of the output
    suggestion: str  # what to do
    evidence: str = ""  # what rooda saw when a clock ran out
    is_shown: bool = False  # the user saw the output while the agent worked (`--verbose`)

    def fields(self) -> tuple[Field, ...]:
        """Return the fields of a log line that say how it failed."""
        facts: dict[str, Value] = {
            "reason": str(self.kind),
            "timeout": format_seconds(self.timeout or 0),
            "signal": self.signal,
            "exit_code": self.exit_code,
            "promise_signal": self.promise_signal,
        }
        return tuple((name, facts[name]) for name in self.kind.row.logged)

    def lines(self) -> list[str]:
        """Return the lines for people, indented below the line of the failed iteration.

        They do not repeat what the warnings just above have told.
        """
        match self.kind.row.told:
            case "all":
                return []
            case "failure":
                return [advised(self.suggestion)]
            case "nothing":
                return self._lines(self._reason())

    def lines_alone(self) -> list[str]:
        """Return the lines for a log that shows no warnings."""
        seen = self.kind is FailureKind.TIMEOUT and self.evidence
        return self._lines(f"{self._reason()}; {self.evidence}" if seen else self._reason())

    def _lines(self, reason: str) -> list[str]:
        lines = [f"  Reason: {reason}", f"  Command: {one_line(self.command)}"]
        return [*lines, *self._output(), advised(self.suggestion)]

    def _output(self) -> list[str]:
        if self.is_shown or not self.preview:
            return []
        if not self.suffix:
            return quoted("Output", self.preview)
        return [
            *quoted(f"Output, first {PREVIEW} characters", self.preview),
            *quoted(f"Output, last {PREVIEW} characters", self.suffix),
        ]

    def _reason(self) -> str:
        said, code = self.promise_signal, self.exit_code
        killed = (
            f", killed by {self.signal}" if self.signal and self.signal not in self.reason else ""
        )
        return self.kind.row.cause_words.format(
            kind=self.kind,
            reason=one_line(self.reason),
            time=format_duration(self.duration),
            signal=said,
            exit="" if code is None else f"{killed}, exit code {code}",
            timeout=format_seconds(self.timeout or 0),
            ignored=f"; its {said} signal does not count" if said else "",
        )


def context(
    command: str,
    outcome: Outcome,
    result: ProcessResult,
    promise_signal: str | None = None,
    advice: Mapping[FailureKind, str] | None = None,
    spoken: bytes | None = None,
    *,
    is_shown: bool = False,
) -> FailureContext:
    """Return the context of a failure. `advice` comes from the adapter of the agent.

    `spoken` is the text of the agent, if its output consists of events. `is_shown`: the user sees
    the output already.
    """
    end, stdout, stderr = result.exit, result.stdout, result.stderr
    kind = outcome.kind or FailureKind.EXIT
    if spoken is not None:
        stdout = Captured(spoken[:HEAD], spoken, len(spoken), stdout.first_at, stdout.last_at)
    preview, suffix = excerpt(stdout, stderr) if kind.row.has_output else ("", "")
    return FailureContext(
        command=short_command(command),
        kind=kind,
        reason=outcome.reason,
        duration=result.duration,
        exit_code=exit_code(end),
        signal=end.name if isinstance(end, Signalled) else None,
        timeout=end.after if isinstance(end, TimedOut) else None,
        promise_signal=promise_signal,
        preview=preview,
        suffix=suffix,
        truncated=result.stdout.truncated or stderr.truncated,
        suggestion=_advised(outcome.fault, advice or {})
        or suggestion(kind, end, result.stdout.total + stderr.total, is_shown=is_shown),
        evidence=end.evidence if isinstance(end, TimedOut) else "",
        is_shown=is_shown,
    )


def _advised(fault: Fault | None, advice: Mapping[FailureKind, str]) -> str:
    return "" if fault is None else fault.advice or advice.get(fault.kind, "")


def evidence(outcome: Outcome, promises: Promises, result: ProcessResult | None) -> str:
    """Return what decided: the signal's line, the CLI's message, or how the process ended."""
    if outcome.done:
        return outcome.done
    by_signal = outcome.verdict is Verdict.COMPLETE or outcome.kind is FailureKind.SIGNAL
    if by_signal and promises.lines:
        return promises.lines[-1]
    if outcome.fault is not None:
        return outcome.fault.evidence
    if outcome.kind is not None and not outcome.kind.row.by_agent:
        return outcome.evidence
    if result is None:
        return ""
    match result.exit:
        case Canceled() | Exited() | Signalled():
            return describe(result.exit)
        case TimedOut(evidence=seen):
            return seen
        case _:
            return ""


def short_command(command: str) -> str:
    """Return a command that fits into a message, without the values of secrets."""
    command = without_secret_values(command)
    return command if len(command) <= LONGEST_COMMAND else f"{command[: LONGEST_COMMAND - 3]}..."


def room_advice(error: OSError) -> str:
    """Return what to do if rooda can't create a file."""
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return "Raise the limit of open files (ulimit -n)"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "Free some disk space"
    if error.errno == errno.EFBIG:
        return "Raise the limit of a file's size (ulimit -f)"
    return "Correct the mode of the folder"


def excerpt(stdout: Captured, stderr: Captured) -> tuple[str, str]:
    """Return the first and the last 500 characters of both streams, in the order of the output.

    If the output is short, the first part has all of it, and the second part is empty.
    """
    streams = [stream for stream in (stdout, stderr) if stream.total]
    first = _joined(stream.head for stream in sorted(streams, key=lambda s: s.first_at))
    if len(first) <= PREVIEW and all(stream.total <= len(stream.head) for stream in streams):
        return first, ""
    # The last output is the most likely reason, on either stream.
    last = _joined(stream.tail[-HEAD:] for stream in sorted(streams, key=lambda s: s.last_at))
    return first[:PREVIEW], last[-PREVIEW:]


def _joined(pieces: Iterable[bytes]) -> str:
    texts = (clean(piece.decode("utf-8", "replace")).strip() for piece in pieces)
    return "\n".join(text for text in texts if text)


def suggestion(kind: FailureKind, end: Exit, printed: int, *, is_shown: bool = False) -> str:
    """Return what the user can try next; not `--verbose` if the output is shown already."""
    match kind:
        case FailureKind.TIMEOUT if isinstance(end, TimedOut) and end.clock in _TIMEOUT_ADVICE:
            return _TIMEOUT_ADVICE[end.clock]
        case FailureKind.CRASH if isinstance(end, Lost):
            return "Find out what kills rooda's processes: the agent, or the system without memory?"
        case FailureKind.CRASH if isinstance(end, Signalled) and end.name == "SIGKILL":
            return "Look for an out-of-memory kill in the system's log"
        case FailureKind.NOT_STARTED if isinstance(end, NotStarted) and end.is_about_files:
            return "Check that it is installed and its folder there; a script needs a #! line"
    if kind.row.advice:
        return kind.row.advice
    if not printed:
        return "Run the command by hand: it printed nothing"
    return (
        "Read its output above"
        if is_shown
        else "Read its output above, or run again with --verbose"
    )
