"""Listeners that write to the terminal: the live line, the agent's output, separators."""

import re

from msgspec import Struct, field
from msgspec.structs import replace

from rooda.loop.agent_events import AgentSaid, UsageSeen, WaitEnded, WaitStarted
from rooda.loop.emitter import Stamped
from rooda.loop.iteration_events import IterationEnded, IterationStarted, position
from rooda.loop.run_events import RunEnded
from rooda.process.events import Output, Tick
from rooda.text.controls import StreamCleaner
from rooda.text.numbers import approximate_size, usage_words
from rooda.text.times import format_duration
from rooda.views.terminal import Terminal

TICK = 0.5
_PHASE = re.compile(rb"OODA: (OBSERVE|ORIENT|DECIDE|ACT)\b")
_LONGEST_MARK = 16
_SEPARATOR = "=" * 24


class Activity(Struct, frozen=True):
    """What is known about the agent at work; times are seconds since the run began."""

    where: str
    began: float
    printed: int = 0
    last_output: float | None = None
    phase: str = ""
    doing: str = ""
    used: str = ""


class Pause(Struct, frozen=True):
    """What the run waits for, until when, and since when an outage lasts."""

    words: str
    until: float
    since: float | None = None


def wait_line(pause: Pause, now: float, width: int) -> str:
    """Return the line of a run that waits, cut to the terminal's width."""
    left = _whole(max(0.0, pause.until - now))
    lasted = "" if pause.since is None else f" · outage for {_whole(now - pause.since)}"
    return f"{pause.words} · {left} left{lasted} · Ctrl+C ends it"[: max(0, width - 1)]


def status_line(activity: Activity, now: float, width: int) -> str:
    """Return the line of an agent at work, cut to the terminal's width."""
    words = [f"Iteration {activity.where}", _whole(now - activity.began)]
    if activity.phase:
        words.append(activity.phase)
    if activity.used:
        words.append(activity.used)
    if activity.last_output is None:
        words.append("no output yet")
    else:
        words.append(f"{approximate_size(activity.printed)} of output")
        words.append(f"last {_whole(now - activity.last_output)} ago")
    if activity.doing:
        words.append(activity.doing)
    return " · ".join(words)[: max(0, width - 1)]


def _whole(seconds: float) -> str:
    return f"{int(seconds)}s" if seconds < 60 else format_duration(seconds)  # noqa: PLR2004


class LiveLine(Struct):
    """A listener that redraws the line when time passes."""

    terminal: Terminal
    activity: Activity | None = field(default=None)
    pause: Pause | None = field(default=None)
    _carry: bytes = b""

    def __call__(self, stamped: Stamped) -> None:
        """Update the line after an event."""
        event, now = stamped.event, stamped.elapsed
        match event:
            case IterationStarted():
                self.activity = Activity(position(event.iteration, event.max_iterations), now)
                self._carry = b""
            case Output(_, data) if self.activity is not None:
                self.activity = self._heard(self.activity, data, now)
            case AgentSaid(_, _, words) if self.activity is not None and words.strip():
                self.activity = replace(self.activity, doing=words.strip())
            case UsageSeen(_, _, tokens, cost) if self.activity is not None:
                self.activity = replace(self.activity, used=usage_words(tokens, cost))
            case WaitStarted():
                since = None if event.lasted is None else now - event.lasted
                self.pause = Pause(event.waits_for(), now + event.seconds, since)
            case Tick():
                self._draw(now)
            case IterationEnded() | RunEnded() | WaitEnded():
                self.activity = self.pause = None
                self.terminal.hide_status()
            case _:
                pass

    def _draw(self, now: float) -> None:
        width = self.terminal.width
        if self.activity is not None:
            self.terminal.show_status(status_line(self.activity, now, width))
        elif self.pause is not None:
            self.terminal.show_status(wait_line(self.pause, now, width))

    def _heard(self, activity: Activity, data: bytes, now: float) -> Activity:
        text = self._carry + data
        marks = _PHASE.findall(text)
        self._carry = text[-_LONGEST_MARK:]
        return replace(
            activity,
            printed=activity.printed + len(data),
            last_output=now,
            phase=marks[-1].decode() if marks else activity.phase,
        )


class AgentOutput(Struct):
    """A listener that streams what the agent prints."""

    terminal: Terminal
    to_stderr: bool
    cleaners: dict[str, StreamCleaner] = field(default_factory=dict)
    is_read: bool = False  # standard output has events; `AgentSaid` has the readable lines

    def __call__(self, stamped: Stamped) -> None:
        """Show output at once, and at the end of an iteration what the cleaner held back."""
        event = stamped.event
        if isinstance(event, IterationStarted):
            self.is_read = event.is_read
        elif isinstance(event, Output) and not (self.is_read and event.stream == "stdout"):
            cleaner = self.cleaners.setdefault(event.stream, StreamCleaner())
            self.terminal.agent(cleaner.feed(event.data), to_stderr=self.to_stderr)
        elif isinstance(event, AgentSaid) and self.is_read:
            self.terminal.agent(f"{event.readable()}\n", to_stderr=self.to_stderr)
        elif isinstance(event, IterationEnded):
            for cleaner in self.cleaners.values():
                self.terminal.agent(cleaner.finish(), to_stderr=self.to_stderr)
            self.cleaners.clear()


class Separators(Struct, frozen=True):
    """A listener that draws a line after each iteration."""

    terminal: Terminal

    def __call__(self, stamped: Stamped) -> None:
        """Draw the line with the number of the iteration that ended."""
        event = stamped.event
        if isinstance(event, IterationEnded):
            self.terminal.log(f"\n\n{_SEPARATOR} LOOP {event.iteration} {_SEPARATOR}\n\n")
