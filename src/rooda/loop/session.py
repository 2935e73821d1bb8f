"""What answers a prompt: the protocol of a session, and a session that runs a command."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from msgspec import Struct, field

from rooda.base.event import Event
from rooda.loop.result import IterationStatus, Printed
from rooda.world.process.clocks import Clock, Since
from rooda.world.process.exits import Exit, Interrupted, TimedOut, describe, exit_code, succeeded
from rooda.world.process.interrupts import Interrupts
from rooda.world.process.request import ProcessRequest
from rooda.world.process.runner import Runner

_OUTPUT_LIMIT = 10 * 1024 * 1024


class IterationConfig(Struct, frozen=True):
    """Where and for how long an iteration may work, and what rooda checks afterwards."""

    timeout: float | None = None  # seconds; there is none unless the caller sets one
    working_dir: Path = Path()
    env_vars: Mapping[str, str] = field(default_factory=dict)  # added to the environment
    track_file_changes: bool = True
    parse_tests: bool = True
    test_reports: tuple[str, ...] = ()  # patterns of JUnit XML files


class Response(Struct, frozen=True):
    """How a session answered: how it ended, and the last bytes of its output.

    `spoken` is the agent's own text, where that differs from the output.
    """

    status: IterationStatus
    exit_code: int | None
    printed: Printed
    error: str = ""
    spoken: bytes | None = None


class Session(Protocol):
    """Answers one prompt at a time, each in a fresh context."""

    def execute_prompt(self, prompt: str, config: IterationConfig) -> Response:
        """Send the prompt and wait for the end."""

    def get_context_usage(self) -> int | None:
        """How full the agent's context was, in percent; None if that is unknown."""


def response_of(end: Exit, printed: Printed) -> Response:
    """The response of a process that has ended; only exit code 0 is a success."""
    if succeeded(end):
        return Response(IterationStatus.COMPLETED, 0, printed)
    match end:
        case TimedOut(clock):
            return Response(IterationStatus.TIMED_OUT, exit_code(end), printed, clock)
        case Interrupted():
            return Response(IterationStatus.INTERRUPTED, None, printed, end.name)
        case _:
            return Response(IterationStatus.FAILED, exit_code(end), printed, describe(end))


class CommandSession:
    """A command that gets the prompt on its standard input, as a new process each time.

    When it ends, nothing of its process tree is left. Use it in a `with` statement.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        self._argv = tuple(argv)
        self._runner = Runner()

    def __enter__(self) -> Self:
        """Start the warden."""
        self._runner.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop the warden and every process that is left."""
        self._runner.__exit__(kind, error, traceback)

    def execute_prompt(self, prompt: str, config: IterationConfig) -> Response:
        """Run the command once."""
        limit = config.timeout
        with tempfile.TemporaryFile() as stdin:
            stdin.write(prompt.encode("utf-8", "surrogateescape"))
            stdin.seek(0)
            request = ProcessRequest(
                argv=self._argv,
                cwd=config.working_dir.absolute(),
                environ={**os.environ, **config.env_vars},
                stdin=stdin,
                output_limit=_OUTPUT_LIMIT,
                clocks=() if limit is None else (Clock("timeout", limit, Since.START),),
            )
            result = self._runner.run(request, Interrupts(), _ignore)
        return response_of(result.exit, Printed(result.stdout.tail, result.stderr.tail))

    def get_context_usage(self) -> int | None:
        """Return None: a command does not report its context."""
        return None


def _ignore(event: Event) -> None:
    """Take an event that this session does not use."""
