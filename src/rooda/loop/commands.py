"""Commands of the loop's own (hooks, `verify`, git), each with a tree and a time of its own."""

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rooda.loop.edge import Edge
from rooda.loop.events import CommandStarted
from rooda.process import events as process
from rooda.process.capture.order import Order, combined
from rooda.process.clocks import Clock, Since
from rooda.process.events import Named, ProcessEvent
from rooda.process.exits import (
    CalledOff,
    Exit,
    Exited,
    Interrupted,
    Lingered,
    Lost,
    NotStarted,
    Signalled,
    TimedOut,
)
from rooda.process.request import Request
from rooda.text.controls import clean
from rooda.text.durations import format_seconds

OUTPUT_LIMIT = 4 * 1024 * 1024

# What concerns the whole run, whichever program it happens to. The rest is told in our own words.
_PASSED_ON = (
    process.Tick,
    process.InterruptSeen,
    process.MachineSlept,
    process.ProcessPaused,
    process.ProcessResumed,
    process.ProcessSurvived,
    process.ProcessLost,
)


@dataclass(frozen=True, slots=True)
class Command:
    """What to run. `what` is how messages call it."""

    what: str
    argv: tuple[str, ...]
    cwd: Path
    environ: Mapping[str, str]
    timeout: float | None = None
    stdin: bytes = b""
    kill_grace: float = 5.0


def shell(command: str) -> tuple[str, ...]:
    """The words that have a shell run it."""
    return "sh", "-c", command


@dataclass(frozen=True, slots=True)
class Finished:
    """How it ended, and the end of what it printed on both streams, in order of arrival."""

    exit: Exit
    output: bytes
    duration: float
    cleaned_up: tuple[Named, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether it ended well."""
        return self.exit == Exited(0)

    @property
    def was_interrupted(self) -> bool:
        """Whether the user stopped it."""
        return isinstance(self.exit, Interrupted)

    @property
    def exit_code(self) -> int | None:
        """Its exit code, as a shell would report it."""
        return self.exit.code if isinstance(self.exit, Exited | Signalled) else None

    @property
    def error(self) -> str:
        """Why it failed; empty if it did not."""
        match self.exit:
            case Exited(0) | Lingered():
                return ""
            case Exited(code):
                return f"exit code {code}"
            case Signalled():
                return f"killed by {self.exit.name}"
            case TimedOut(_, after):
                return f"timed out after {format_seconds(after)}"
            case Interrupted():
                return "interrupted"
            case Lost(reason) | NotStarted(reason) | CalledOff(_, reason):
                return reason

    def last_words(self, most: int) -> str:
        """The end of the output, fit for reading."""
        text = clean(self.output[-4 * most :].decode("utf-8", "replace")).strip()
        return text[-most:]


def run(command: Command, edge: Edge) -> Finished:
    """Run it to its end, whatever it does."""

    def listen(event: ProcessEvent) -> None:
        if isinstance(event, process.ProcessStarted):
            edge.emit(CommandStarted(command.what, event.pid, event.started))
        elif isinstance(event, _PASSED_ON):
            edge.emit(event)

    limit = command.timeout
    try:
        with tempfile.TemporaryFile() as stdin:
            stdin.write(command.stdin)
            stdin.seek(0)
            request = Request(
                argv=command.argv,
                cwd=command.cwd,
                environ=command.environ,
                stdin=stdin,
                output_limit=OUTPUT_LIMIT,
                clocks=() if limit is None else (Clock("timeout", limit, Since.START),),
                kill_grace=command.kill_grace,
                tick=edge.tick,
            )
            result = edge.execute(request, edge.interrupts, listen)
    except OSError as error:  # no room for a temporary file
        return Finished(NotStarted(error.strerror or str(error), error.errno or 0), b"", 0.0)
    output = combined(result.order or Order(), result.stdout.tail, result.stderr.tail)
    return Finished(result.exit, output, result.duration, result.cleaned_up)
