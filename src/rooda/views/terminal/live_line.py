"""The live line: what the run does now, for how long, and how it stands.

The parts are in the order of their importance: the iteration and its phase, the time of the phase,
the time of the run, its tasks, its good and failed iterations, its cost. On a narrow terminal, the
words about the phase are cut first, down to a few columns, and then the last parts are left out. A
wide terminal also has room for less important parts.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from rooda.base.controls import one_line
from rooda.base.event import Event
from rooda.base.numbers import approximate_size, money
from rooda.base.times import HOUR, MINUTE, format_duration
from rooda.base.widths import cut, width
from rooda.loop.events.agent import AgentSaid, UsageSeen, WaitEnded, WaitStarted
from rooda.loop.events.emitter import Stamped
from rooda.loop.events.iteration import IterationEnded, IterationStarted, position
from rooda.loop.events.run import RunEnded, RunStarted
from rooda.loop.events.verify import CleanCheckEnded, VerifyRetried
from rooda.loop.events.work import (
    BaselineEnded,
    CommandStarted,
    HookEnded,
    SnapshotStarted,
    VerifyEnded,
)
from rooda.loop.outcome import Verdict
from rooda.views.terminal.terminal import Terminal
from rooda.world.process.events import Output, ProcessStarted, Tick
from rooda.world.tasks.standing import TaskCount

TICK = 0.5
_OODA = re.compile(rb"OODA: (OBSERVE|ORIENT|DECIDE|ACT)\b")
_LONGEST_MARK = 16
_LONGEST_WORDS = 300  # characters of the agent's words that are looked at
_LEAST_WORDS = 24  # columns of the words about a phase beside the other parts
_SHORTEST_WORDS = 6  # columns; fewer tell nothing
_ENDLESS = 10**6  # columns
_BETWEEN = " · "
_AGENT = "agent"
_PUSHING = ("git push", "git ls-remote")


class Phase(Struct, frozen=True):
    """What the run does now; times are seconds since the run began.

    `name` is always shown; `words` follow it directly and may be cut. `until` is the end of a wait.
    """

    name: str
    began: float
    words: str = ""
    until: float | None = None
    outage_since: float | None = None

    def time(self, now: float) -> str:
        """Return how long it has lasted, or how long a wait still takes."""
        if self.until is not None:
            return f"{_clock(max(0.0, self.until - now))} left"
        return _clock(now - self.began)


class AgentActivity(Struct, frozen=True):
    """What is known about the agent of an iteration."""

    printed: int = 0
    last_output: float | None = None
    tokens: int = 0
    cost: float = 0.0


class RunStanding(Struct, frozen=True):
    """How the run stands: the iterations that have ended, what they cost, and its tasks."""

    good: int = 0
    failed: int = 0
    cost: float = 0.0
    elapsed_before: float = 0.0  # seconds that a resumed run was at work before
    tasks: TaskCount | None = None  # of the task file

    def after(self, ended: IterationEnded) -> "RunStanding":
        """Return the standing after an iteration."""
        cost = self.cost + (ended.facts.cost or 0.0)
        good = self.good + ended.verdict.is_good
        failed = self.failed + (ended.verdict in (Verdict.FAILURE, Verdict.ABORT))
        return replace(self, good=good, failed=failed, cost=cost, tasks=ended.facts.tasks)

    def counts(self) -> str:
        """Return `3 good, 1 failed`."""
        good = [f"{self.good} good"] if self.good or self.failed else []
        return ", ".join([*good, f"{self.failed} failed"] if self.failed else good)


def live_line(
    where: str,
    phase: Phase,
    standing: RunStanding,
    agent: AgentActivity | None,
    now: float,
    columns: int,
) -> str:
    """Return the line in fewer columns than the terminal has. `where` is like `4/20`, or empty."""
    cost = standing.cost + (agent.cost if agent is not None else 0.0)
    since = phase.outage_since
    parts = [
        phase.time(now),
        "" if since is None else f"outage for {_clock(now - since)}",
        f"total {_rough(now + standing.elapsed_before)}",
        standing.tasks.words if standing.tasks else "",
        standing.counts(),
        money(cost) if cost else "",
    ]
    start = f"Iteration {where}{_BETWEEN}" if where else ""
    more = _less_important(phase, agent, now)
    return _fitted(f"{start}{phase.name}", phase.words, parts, more, columns - 1)


def _less_important(phase: Phase, agent: AgentActivity | None, now: float) -> Sequence[str]:
    if phase.until is not None:
        return ("Ctrl+C ends it",)
    if agent is None or not phase.name.startswith(_AGENT):
        return ()
    tokens = f"{agent.tokens:,} tokens" if agent.tokens else ""
    if agent.last_output is None:
        return tokens, "no output yet"
    size = approximate_size(agent.printed)
    return tokens, f"{size} of output, last {_clock(now - agent.last_output)} ago"


def _fitted(start: str, words: str, parts: Sequence[str], more: Sequence[str], most: int) -> str:
    """Return the line with the parts that fit beside the beginning of the words.

    It has those of `more` that fit beside all of the words.
    """
    room = most - width(start)
    end = _beginning(parts, room - min(width(words), _LEAST_WORDS))
    if end == _beginning(parts, _ENDLESS):
        end += _beginning(more, room - width(words) - width(end))
    left = room - width(end)
    shown = "" if left < min(width(words), _SHORTEST_WORDS) else cut(words, left)
    return cut(f"{start}{shown}{end}", most)


def _beginning(parts: Sequence[str], room: int) -> str:
    """Return the first parts that fit."""
    end = ""
    for part in filter(None, parts):
        if width(end) + width(_BETWEEN + part) > room:
            break
        end += _BETWEEN + part
    return end


def _clock(seconds: float) -> str:
    """Return `0m07s`, `41m12s`, `1h02m05s`."""
    return f"0m{int(seconds):02d}s" if seconds < MINUTE else format_duration(int(seconds))


def _rough(seconds: float) -> str:
    """Return `12s`, `41m`, `2h05m`."""
    if seconds < MINUTE:
        return f"{int(seconds)}s"
    hours, minutes = int(seconds // HOUR), int(seconds % HOUR // MINUTE)
    return f"{hours}h{minutes:02d}m" if hours else f"{minutes}m"


class LiveLine(Struct):
    """A listener that redraws the line when time passes."""

    terminal: Terminal
    where: str = ""
    maximum: int | None = None
    phase: Phase | None = None
    pause: Phase | None = None  # the wait, also while its hooks run
    agent: AgentActivity | None = None
    standing: RunStanding = field(default_factory=RunStanding)
    _carry: bytes = b""

    def __call__(self, stamped: Stamped) -> None:
        """Update the line after an event."""
        handle = _HANDLERS.get(type(stamped.event))
        if handle is not None:
            handle(self, stamped.event, stamped)

    def draw(self, _: Tick, stamped: Stamped) -> None:
        """Draw the line."""
        if self.phase is not None:
            now, columns = stamped.elapsed, self.terminal.width
            line = live_line(self.where, self.phase, self.standing, self.agent, now, columns)
            self.terminal.show_status(line)

    def start_run(self, event: RunStarted, _: Stamped) -> None:
        """Note how a resumed run stands."""
        cost, elapsed = event.cost_before, event.elapsed_before
        self.standing = RunStanding(cost=cost, elapsed_before=elapsed, tasks=event.tasks)

    def start_iteration(self, event: IterationStarted, stamped: Stamped) -> None:
        """Begin the line of an iteration."""
        self.maximum = event.max_iterations
        self.where = position(event.iteration, event.max_iterations)
        self.phase, self.agent, self._carry = Phase("starting", stamped.elapsed), None, b""

    def start_agent(self, _: ProcessStarted, stamped: Stamped) -> None:
        """Show the agent."""
        self.phase, self.agent = Phase(_AGENT, stamped.elapsed), AgentActivity()

    def hear(self, event: Output, stamped: Stamped) -> None:
        """Count the agent's output, and look for an OODA phase in it."""
        if self.agent is None or self.phase is None:
            return
        text = self._carry + event.data
        marks = _OODA.findall(text)
        self._carry = text[-_LONGEST_MARK:]
        printed = self.agent.printed + len(event.data)
        self.agent = replace(self.agent, printed=printed, last_output=stamped.elapsed)
        if marks:
            self.phase = replace(self.phase, name=f"{_AGENT} {marks[-1].decode()}")

    def say(self, event: AgentSaid, _: Stamped) -> None:
        """Show the agent's last tool or words."""
        words = _on_one_line(event.text)
        if words and self.agent is not None and self.phase is not None:
            self.phase = replace(self.phase, words=f": {words}")

    def use(self, event: UsageSeen, _: Stamped) -> None:
        """Count what the agent uses."""
        if self.agent is not None:
            tokens, cost = event.tokens or 0, event.cost or 0.0
            self.agent = replace(self.agent, tokens=tokens, cost=cost)

    def look_at_tree(self, _: SnapshotStarted, stamped: Stamped) -> None:
        """Show that rooda looks at the work tree."""
        self.phase = Phase("snapshot", stamped.elapsed)

    def run_command(self, event: CommandStarted, stamped: Stamped) -> None:
        """Show a command of the user, or what rooda does with git."""
        name, words = "committing", ""
        if event.command:
            name = "verifying" if event.what == "verify" else "hook"
            words = f": {_on_one_line(event.command)}"
        elif event.what in _PUSHING:
            name = "pushing"
        elif not event.what.startswith("git "):
            return
        if self.phase is None or (self.phase.name, self.phase.words) != (name, words):
            self.phase = Phase(name, stamped.elapsed, words)

    def end_command(self, _: Event, stamped: Stamped) -> None:
        """Show what comes after a command of the user."""
        if self.pause is not None:
            self.phase = self.pause
        elif self.where:
            self.phase = Phase("finishing", stamped.elapsed)
        else:
            self.rest()

    def wait(self, event: WaitStarted, stamped: Stamped) -> None:
        """Show for what and until when the run waits."""
        now, end = stamped.elapsed, event.until
        is_today = end.date() == stamped.at.astimezone(end.tzinfo).date()
        moment = f"{end:%H:%M}" if is_today else f"{end:%a %H:%M}"
        since = None if event.lasted is None else now - event.lasted
        name = f"waiting {event.kind.row.until} {moment}"
        words = f" {_on_one_line(event.target())}"
        self.where = position(event.iteration, self.maximum)
        self.phase = self.pause = Phase(name, now, words, now + event.seconds, since)

    def end_iteration(self, event: IterationEnded, _: Stamped) -> None:
        """Count the iteration."""
        self.standing = self.standing.after(event)
        self.rest()

    def rest(self, *_: object) -> None:
        """Show nothing until something begins."""
        self.phase = self.pause = self.agent = None
        self.where = ""
        self.terminal.hide_status()


_HANDLERS: Mapping[type[Event], Callable[..., None]] = {
    Tick: LiveLine.draw,
    Output: LiveLine.hear,
    AgentSaid: LiveLine.say,
    UsageSeen: LiveLine.use,
    RunStarted: LiveLine.start_run,
    IterationStarted: LiveLine.start_iteration,
    ProcessStarted: LiveLine.start_agent,
    SnapshotStarted: LiveLine.look_at_tree,
    CommandStarted: LiveLine.run_command,
    VerifyEnded: LiveLine.end_command,
    VerifyRetried: LiveLine.end_command,
    CleanCheckEnded: LiveLine.end_command,
    HookEnded: LiveLine.end_command,
    BaselineEnded: LiveLine.end_command,
    WaitStarted: LiveLine.wait,
    WaitEnded: LiveLine.rest,
    IterationEnded: LiveLine.end_iteration,
    RunEnded: LiveLine.rest,
}


def _on_one_line(words: str) -> str:
    return " ".join(one_line(words[:_LONGEST_WORDS]).split())
