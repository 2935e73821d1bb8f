"""Recorded outputs of real agent CLIs, and a loop without processes that replays them."""

import json
import random
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from rooda.base.event import Event
from rooda.loop.events.iteration import IterationEnded
from rooda.loop.events.run import RunEnded
from rooda.loop.loop import run_loop
from rooda.plan.plan import Plan
from rooda.plan.prompts.parts import Part, TextPart
from rooda.plan.settings.settings import MAX_ITERATIONS, MAX_OUTAGE_WAIT, WAIT_FOR_LIMITS
from rooda.world.agents.agent_program import program_of
from rooda.world.agents.agent_report import AgentReport, Said
from rooda.world.agents.output_reader import OutputReader
from rooda.world.process.capture.buffers import HEAD, Captured
from rooda.world.process.events import Output, Stream
from rooda.world.process.exits import Exit, Exited, Signalled, from_returncode
from rooda.world.process.interrupts import Interrupts
from rooda.world.process.request import Listener, ProcessRequest, ProcessResult
from support.builders import Settings, built_plan, built_services

# A fixed time: rooda tries again at once just after the time of day at which a limit ends.
_MORNING = datetime(2026, 3, 1, 5, tzinfo=UTC)
_CORPUS = Path(__file__).parent.parent / "corpus" / "agents"

# The prompt of all recorded runs; several CLIs echo it.
PROMPT = (
    "You are in a loop. RIGCWD=/srv/project \n"
    "Do one task of the plan. When all tasks are done print <promise>SUCCESS</promise>, "
    "when stuck print <promise>FAILURE</promise>. PROMPT-ECHO-MARK\n"
)
PROJECT = "/srv/project"  # the working directory of the recorded runs

# The command for each form of output.
COMMANDS = {
    ("claude", "text"): "claude -p --dangerously-skip-permissions",
    ("claude", "json"): "claude -p --output-format json",
    ("claude", "stream"): "claude -p --output-format stream-json --verbose",
    ("codex", "text"): "codex exec --skip-git-repo-check -",
    ("codex", "json"): "codex exec --json -",
    ("codex", "stream"): "codex exec --json -",
    ("gemini", "text"): "gemini --yolo --skip-trust",
    ("gemini", "json"): "gemini --yolo --output-format=json",
    ("gemini", "stream"): "gemini --yolo -o stream-json",
    ("opencode", "text"): "opencode run --auto",
    ("opencode", "json"): "opencode run --auto --format json",
    ("opencode", "stream"): "opencode run --auto --format=json",
    ("qwen", "text"): "qwen --yolo",
    ("qwen", "json"): "qwen --yolo -o json",
    ("qwen", "stream"): "qwen --yolo -o stream-json",
    ("copilot", "text"): "copilot --allow-all -s",
    ("copilot", "stream"): "copilot --allow-all --output-format json",
    ("aider", "text"): "aider --yes-always --no-pretty --message-file /dev/stdin",
    ("kimi", "text"): "kimi --print --yolo",
    ("kimi", "stream"): "kimi --print --yolo --output-format stream-json",
}

Piece = tuple[Stream, bytes]


@dataclass(frozen=True)
class Transcript:
    """One recorded run of a real CLI: its output on both streams, and its exit code."""

    name: str
    cli: str
    scenario: str
    form: str
    exit_code: int

    @property
    def stdout(self) -> bytes:
        return (_CORPUS / f"{self.name}.txt").read_bytes()

    @property
    def stderr(self) -> bytes:
        return (_CORPUS / f"{self.name}.stderr.txt").read_bytes()

    @property
    def command(self) -> str:
        return COMMANDS[self.cli, self.form]

    @property
    def end(self) -> Exit:
        return from_returncode(self.exit_code)

    def pieces(self) -> list[Piece]:
        """Return each stream as one piece, without empty streams."""
        both: tuple[Piece, Piece] = ("stderr", self.stderr), ("stdout", self.stdout)
        return [piece for piece in both if piece[1]]


@cache
def transcripts() -> tuple[Transcript, ...]:
    """Return all recorded runs."""
    manifest = json.loads((_CORPUS / "manifest.json").read_text())
    return tuple(
        Transcript(
            one["file"].removesuffix(".txt"),
            one["cli"],
            one["scenario"],
            one["format"],
            one["exit_code"],
        )
        for one in manifest
    )


def transcript(name: str) -> Transcript:
    """Return the recorded run with this name."""
    return next(one for one in transcripts() if one.name == name)


def byte_by_byte(pieces: Iterable[Piece]) -> list[Piece]:
    """Return the same output in pieces of one byte."""
    return [(stream, bytes((byte,))) for stream, data in pieces for byte in data]


def cut_at_random(pieces: Sequence[Piece], chance: random.Random) -> list[Piece]:
    """Return the same output in pieces of random size, with both streams interleaved."""
    rests = {stream: data for stream, data in pieces if data}
    found: list[Piece] = []
    while rests:
        stream = chance.choice(sorted(rests))
        size = chance.choice((1, 2, 7, 60, 500, 5000))
        found.append((stream, rests[stream][:size]))
        rests[stream] = rests[stream][size:]
        if not rests[stream]:
            del rests[stream]
    return found


# -- the reader alone ----------------------------------------------------------------------


@dataclass(frozen=True)
class ReadOutput:
    """The result of reading a CLI's output."""

    report: AgentReport
    said: tuple[Said, ...]
    had_result: bool  # before the end of the output was announced

    @property
    def lines(self) -> list[str]:
        return [f"{line.kind}: {line.text}" for line in self.said]


def reader_of(command: str, adapter: str | None = None) -> OutputReader:
    """Return a reader for the output of this command."""
    program = program_of(shlex.split(command), adapter)
    return OutputReader(program.adapter, program.form, folder=PROJECT, model=program.model)


def read_output(
    command: str, pieces: Iterable[Piece], end: Exit | None = None, adapter: str | None = None
) -> ReadOutput:
    """Feed all pieces to a reader, and return the result."""
    reader = reader_of(command, adapter)
    said: list[Said] = []
    for stream, data in pieces:
        said += reader.feed(stream, data)
    had_result = reader.is_result_in
    said += reader.finish()
    return ReadOutput(reader.report(_code_of(end or Exited(0))), tuple(said), had_result)


def _code_of(end: Exit) -> int | None:
    return end.code if isinstance(end, Exited | Signalled) else None


# -- the loop ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Played:
    """How an iteration and its run ended, and all events."""

    iteration: IterationEnded
    run: RunEnded
    all_events: tuple[Event, ...]


@cache
def _interrupts() -> Interrupts:
    return Interrupts()


def play(
    folder: Path,
    command: str,
    pieces: Iterable[Piece],
    end: Exit | None = None,
    adapter: str | None = None,
) -> Played:
    """Run one iteration in which the agent prints these pieces and exits, without any waits."""
    all_events: list[Event] = []
    printed: dict[Stream, bytearray] = {"stdout": bytearray(), "stderr": bytearray()}

    def execute(request: ProcessRequest, _: Interrupts, listener: Listener) -> ProcessResult:
        request.stdin.read()
        for stream, data in pieces:
            printed[stream] += data
            listener(Output(stream, data))
        return ProcessResult(end or Exited(0), captured("stdout"), captured("stderr"), 1.0)

    def captured(stream: Stream) -> Captured:
        data = bytes(printed[stream])
        return Captured(data[:HEAD], data, len(data))

    services = built_services(all_events.append, _interrupts(), execute, now=lambda: _MORNING)
    run_ended = run_loop(_plan(folder, command, adapter), services)
    (iteration,) = (one for one in all_events if isinstance(one, IterationEnded))
    return Played(iteration, run_ended, tuple(all_events))


def _plan(folder: Path, command: str, adapter: str | None) -> Plan:
    settings: Settings = {MAX_ITERATIONS: 1, WAIT_FOR_LIMITS: False, MAX_OUTAGE_WAIT: 0.0}
    phases = {name: (Part(TextPart(name)),) for name in ("observe", "orient", "decide")}
    return built_plan(
        folder,
        settings,
        command=command,
        adapter=adapter,
        phases={**phases, "act": (Part(TextPart(PROMPT)),)},
    )
