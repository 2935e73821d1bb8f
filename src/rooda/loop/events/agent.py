"""What known agents do, and what the run does about their limits and failures."""

from datetime import datetime, timedelta

from rooda.base.controls import one_line
from rooda.base.event import Event, LogLevel, Message, Value, say
from rooda.base.times import format_duration
from rooda.base.widths import cut
from rooda.loop.wait_kinds import WaitKind

_TEXT = "text"
_NOTE_START = 80  # columns of a note that a line shows
_NOTES_ADVICE = "`rooda tell --list` shows the notes"


class AgentSaid(Event, frozen=True):
    """A known agent did something, as a line that a person can read."""

    level = LogLevel.DEBUG
    iteration: int  # the number of the iteration
    kind: str  # `text`, `tool`, `note` or `error`
    text: str  # the line

    def describe(self) -> Message:
        return say("Agent", said=self.text, kind=self.kind, iteration=self.iteration)

    def readable(self) -> str:
        """Return the agent's own words as they are, and the rest with a mark."""
        return self.text if self.kind == _TEXT else f"[{self.kind}] {self.text}"


class UsageSeen(Event, frozen=True):
    """A known agent tells what the iteration has used so far."""

    level = LogLevel.DEBUG
    iteration: int  # the number of the iteration
    model: str | None  # the model that the agent uses
    tokens: int | None  # how many tokens so far
    cost: float | None  # how many US dollars so far

    def describe(self) -> Message:
        return say(
            "Used so far",
            tokens=self.tokens,
            cost=self.cost,
            model=self.model,
            iteration=self.iteration,
        )


class NotesGiven(Event, frozen=True):
    """The agent has started with notes of the user (`rooda tell`) in its prompt."""

    level = LogLevel.DEBUG
    raised = (LogLevel.INFO, "a note is new")
    iteration: int  # the number of the iteration
    notes: tuple[str, ...]  # the beginning of each note
    is_new: bool = True  # one of them is in the prompt of this run for the first time

    def is_raised(self) -> bool:
        return self.is_new

    def describe(self) -> Message:
        words = "Notes from the user are in the prompt"
        return say(words, notes=len(self.notes), first=self._first(), iteration=self.iteration)

    def as_text(self) -> str:
        others = f" (and {len(self.notes) - 1} more)" if len(self.notes) > 1 else ""
        prefix = "" if self.is_new else "DEBUG: "
        return f"{prefix}Note from the user in the prompt: {self._first()}{others}"

    def _first(self) -> str:
        """Return the beginning of the first note, on one line."""
        text = one_line(self.notes[0]) if self.notes else ""
        return cut(text, _NOTE_START)


class NoteTrouble(Event, frozen=True):
    """Something is wrong with the notes of the user."""

    level = LogLevel.WARN
    iteration: int  # the number of the iteration
    error: str  # what is wrong, and what to do

    def describe(self) -> Message:
        return say(self.error, iteration=self.iteration)


class NotesWaiting(Event, frozen=True):
    """The run ends, and no agent has got these notes of the user."""

    level = LogLevel.WARN
    count: int  # how many notes

    def describe(self) -> Message:
        return say(self._words(), notes=self.count, suggestion=_NOTES_ADVICE)

    def as_text(self) -> str:
        return f"WARN: {self._words()} ({_NOTES_ADVICE})"

    def _words(self) -> str:
        notes = "A note was" if self.count == 1 else f"{self.count} notes were"
        waits = "it waits" if self.count == 1 else "they wait"
        return f"{notes} not delivered: {waits} for the next run"


class AgentChanged(Event, frozen=True):
    """Another agent does the work from now on."""

    level = LogLevel.WARN
    iteration: int  # the number of the iteration
    before: str  # the agent that worked until now
    agent: str  # the agent that works from now on
    reason: str  # why

    def describe(self) -> Message:
        words = f"{self.agent} takes over from {self.before}"
        return say(words, reason=self.reason, iteration=self.iteration)


class WaitStarted(Event, frozen=True):
    """The run waits before its next iteration."""

    level = LogLevel.WARN
    iteration: int  # the number of the next iteration
    kind: WaitKind  # see [record.md](record.md#what-a-run-waits-for)
    what: str  # the agent, before the next try the kind of the failure, else what needs disk space
    reason: str  # what the agent said, or how much disk space is free where
    until: datetime  # when the wait ends
    seconds: float  # how many seconds it takes
    tries: int  # how often in a row that happened
    known: bool  # the agent itself said until when
    capped: bool = False  # the run waits no longer than its settings allow, then it tries once more
    outage: str = ""  # the kind of outage
    lasted: float | None = None  # for how many seconds the outage has lasted so far
    account: str = ""  # the account of the agent: what `--account` names, else the agent
    ends: datetime | None = None  # when the limit itself ends, which can be after the wait

    def target(self) -> str:
        """Return what the run waits for, in a sentence after `waits`."""
        return self.kind.target(self.what, self.outage)

    def _line(self) -> str:
        return self.kind.line(self.what, self.outage)

    def describe(self) -> Message:
        fields: dict[str, Value] = {
            "until": f"{self.until:%Y-%m-%d %H:%M:%S %Z}".strip(),
            "for": format_duration(self.seconds),
            "lasted": None if self.lasted is None else format_duration(self.lasted),
            "tries": self.tries,
            "reason": self.reason,
            "note": self._note(),
            "iteration": self.iteration,
        }
        return say(self._line(), **fields)

    def as_text(self) -> str:
        """Leave out what the line above says: why the agent stopped."""
        began = self.until - timedelta(seconds=self.seconds)
        time = "%H:%M:%S" if began.date() == self.until.date() else "%Y-%m-%d %H:%M:%S"
        words = f"{one_line(self._line())} {self.kind.row.until} {self.until:{time}}"
        facts = [format_duration(self.seconds)]
        if self.lasted:
            facts.append(f"it has lasted {format_duration(self.lasted)}")
        if note := self._note():
            facts.append(note)
        line = f"WARN: {words} ({', '.join(facts)})"
        is_known = not self.kind.row.names_reason or not self.reason
        return line if is_known else f"{line}\n  Reason: {one_line(self.reason)}"

    def _note(self) -> str | None:
        if self.capped:
            return self.kind.row.capped
        return self.kind.row.unknown or None if not self.known else None


class StillWaiting(Event, frozen=True):
    """The run still waits."""

    iteration: int  # the number of the next iteration
    kind: WaitKind  # see [record.md](record.md#what-a-run-waits-for)
    left: float  # how many seconds are left

    def describe(self) -> Message:
        return say(f"Still waiting ({self.kind})", left=format_duration(self.left))


class WaitEnded(Event, frozen=True):
    """The run waits no longer."""

    text_level = LogLevel.DEBUG
    iteration: int  # the number of the next iteration
    kind: WaitKind  # see [record.md](record.md#what-a-run-waits-for)
    seconds: float  # how many seconds it waited
    is_over: bool = True  # the time has passed; false: a signal, `rooda stop` or a limit ended it

    def describe(self) -> Message:
        words = "Wait over" if self.is_over else "Waiting no longer"
        return say(words, waited=format_duration(self.seconds), iteration=self.iteration)
