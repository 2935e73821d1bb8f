"""The session log of a run: a block for each iteration, the agent's output, and what went wrong.

It is for people, and for `rooda follow`. If an agent prints without end, the log has the beginning
and the end of its output; the transcript has all that rooda keeps.
"""

from collections.abc import Callable, Sequence
from datetime import datetime

from msgspec import Struct, field

from rooda.base.controls import clean, one_line
from rooda.base.event import LogLevel
from rooda.base.numbers import count, money
from rooda.base.secrets.masking import Masker, SafeStream
from rooda.base.times import format_duration
from rooda.loop.events.agent import AgentSaid
from rooda.loop.events.emitter import Stamped
from rooda.loop.events.iteration import IterationEnded, IterationStarted
from rooda.loop.events.run import ConfigResolved, RunEnded, TasksLeft
from rooda.loop.outcome import Verdict
from rooda.world.agents.agent_report import Usage
from rooda.world.process.events import Output

# The blocks of a session log: header and footer of an iteration, summary of a run. Pure.


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


def header_block(iteration: int, mode: str, task: str, spec: str, started: datetime) -> str:
    """Return the block before an iteration."""
    about = [("Mode", mode), ("Task", task), ("Spec", spec), ("Start Time", moment(started))]
    return _block(_DOUBLE, f"ITERATION {iteration}", _DOUBLE, about, _SINGLE)


class Numbers(Struct, frozen=True):
    """The numbers that the agent's CLI reports; an unknown number is None."""

    requests: int | None = None
    model: str | None = None
    messages: int | None = None
    cost: str | None = None


def footer_block(
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


def summary_block(
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


_MOST = 1024 * 1024  # bytes of one iteration
_END = 64 * 1024
# Events that have a block of their own.
_BLOCKS = (IterationStarted, IterationEnded, RunEnded, ConfigResolved)


class SessionLog(Struct):
    """A listener that writes the log.

    `ended` says for each iteration whether its last attempt ended well; a resumed run passes those
    of its first part. `notes` are further lines of the summary.
    """

    write: Callable[[str], None]
    ended: dict[int, bool] = field(default_factory=dict)
    notes: Lines = ()
    masker: Masker = field(default_factory=Masker)
    _streams: dict[str, SafeStream] = field(default_factory=dict)
    _heard: int = 0
    _last_reason: str = ""
    _end: bytes = b""
    _at_line_start: bool = True
    _is_read: bool = False  # standard output has events; `AgentSaid` has the readable lines

    def __call__(self, stamped: Stamped) -> None:
        """Write an event, if it belongs into the log."""
        event = stamped.event
        match event:
            case IterationStarted():
                self._heard, self._is_read = 0, event.is_read
                about = (event.mode or event.procedure, event.task, event.spec or "none")
                self._line(header_block(event.iteration, *about, stamped.at).rstrip("\n"))
            case AgentSaid() if self._is_read:
                self._hear("events", f"{event.readable()}\n".encode("utf-8", "replace"))
            case Output(stream, data):
                if not (self._is_read and stream == "stdout"):
                    self._hear(stream, data)
            case IterationEnded():
                self._end_iteration(event, stamped)
            case TasksLeft():
                lines = [(f"{name.capitalize()} Tasks", names) for name, names in event.lists()]
                self.notes = (*self.notes, *lines)
            case RunEnded():
                self._end_run(event)
            case _ if event.log_level >= LogLevel.INFO and not isinstance(event, _BLOCKS):
                words = event.as_text()
                if words is not None:
                    self._line(f"[{stamped.at:%H:%M:%S}] {words}")

    def _end_iteration(self, event: IterationEnded, stamped: Stamped) -> None:
        facts = event.facts
        for stream in self._streams.values():
            self._print(stream.finish())
        self._streams.clear()
        end, self._end = self._end, b""
        left = self._heard - _MOST - len(end)
        if left > 0:
            words = f"{count(left, 'byte')} left out; rooda show {facts.number} --output has more"
            self._line(f"[... {words} ...]")
        self._print(self.masker.text(clean(end.decode("utf-8", "replace"))))
        self._last_reason = facts.reason or ""
        if event.verdict not in (Verdict.INTERRUPTED, Verdict.LIMITED):
            self.ended[facts.number] = event.verdict.is_good
        if event.verdict is Verdict.LIMITED or facts.failure is not None:
            self._line(f"[{stamped.at:%H:%M:%S}] {event.as_text()}")
        footer = footer_block(
            facts.number,
            stamped.at,
            facts.duration or 0.0,
            facts.status,
            retries=facts.attempt - 1,
            numbers=_numbers(event.usage),
        )
        self._line(footer.rstrip("\n"))
        self._line("")

    def _end_run(self, event: RunEnded) -> None:
        total, good = len(self.ended), sum(self.ended.values())
        summary = summary_block(
            total,
            good,
            total - good,
            event.facts.total or 0.0,
            event.why(self._last_reason),
            event.facts.exit_code or 0,
            self.notes,
        )
        self._line(summary.rstrip("\n"))

    def _hear(self, stream: str, data: bytes) -> None:
        """Write the beginning of the agent's output, and keep the end of the rest in memory."""
        room = max(0, _MOST - self._heard)
        self._heard += len(data)
        if room:
            if stream not in self._streams:
                self._streams[stream] = self.masker.cleaner()
            cleaner = self._streams[stream]
            # In pieces: cleaning a megabyte of control codes takes 50 MB of memory.
            for start in range(0, min(room, len(data)), _END):
                self._print(cleaner.feed(data[start : min(start + _END, room)]))
        if len(data) > room:
            self._end = (self._end + data[room:][-_END:])[-_END:]

    def _print(self, words: str) -> None:
        if words:
            self._at_line_start = words.endswith("\n")
            self.write(words)

    def _line(self, words: str) -> None:
        """Write lines of rooda's own, starting on a new line."""
        self.write(("" if self._at_line_start else "\n") + words + "\n")
        self._at_line_start = True


def _numbers(usage: Usage | None) -> Numbers | None:
    """Return the numbers that the agent's CLI reports."""
    if usage is None:
        return None
    cost = None if usage.cost is None else money(usage.cost)
    return Numbers(usage.turns, usage.model, usage.messages, cost)
