"""The messages about a run: plain text, short, and without anything that acts. Pure.

Words of agents reach chat programs, phones and desktops. These make links, mentions and markup of
plain text, so `inert` takes away what they react to.
"""

from datetime import datetime

from msgspec import Struct

from rooda.base.colors import Color
from rooda.base.controls import clean
from rooda.base.times import format_duration
from rooda.loop.events.agent import WaitStarted
from rooda.loop.events.iteration import IterationEnded
from rooda.loop.events.run import RunEnded
from rooda.loop.iteration_facts import IterationFacts
from rooda.loop.next_steps import NextCommand
from rooda.views.model.open_tasks import tasks_line
from rooda.views.model.summary import RunSummary
from rooda.views.wording.labels import money_of
from rooda.views.wording.lines import iterations_line, outcome_line, proof_line, tests_line

_LONGEST_LINE, _LONGEST_TITLE = 300, 120  # characters
_LOOK_ALIKE = str.maketrans({"<": "\u2039", ">": "\u203a", "@": "\uff20", "&": "\uff06", "`": "'"})
_MORE = "..."


class Message(Struct, frozen=True):
    """A title and lines of text. `kind`: info, success, warning or failure."""

    title: str
    body: str
    kind: str = "info"


class Named(Struct, frozen=True):
    """The run that a message is about, and the command that continues it."""

    project: str
    procedure: str
    run: str
    resume: str = ""

    def title(self, what: str) -> str:
        """Return the title of a message."""
        name = f"{self.project}: {self.procedure}" if self.project else self.procedure
        return inert(f"rooda: {name}: {what}", _LONGEST_TITLE)


def inert(text: str, most: int = _LONGEST_LINE) -> str:
    """Return a text on one line, without hidden characters, links, mentions and markup."""
    shown = clean(text[: 4 * most])
    shown = "".join(one if one.isprintable() else " " for one in shown)
    shown = " ".join(shown.replace("://", ":/ /").replace("](", "] (").split())
    shown = shown.translate(_LOOK_ALIKE)
    return shown if len(shown) <= most else shown[: most - len(_MORE)].rstrip() + _MORE


def _text(lines: list[str]) -> str:
    return "\n".join(line for one in lines if (line := inert(one)))


_KINDS = {Color.GOOD: "success", Color.BAD: "failure"}


def end_message(named: Named, ended: RunEnded, run: RunSummary | None) -> Message:
    """Return the message about the end of a run. `run` is None if the record can't be read."""
    kind = _KINDS.get(ended.tone or Color.WARNING, "warning")
    is_doubtful = run is not None and run.is_doubtful
    tasks = f", {ended.facts.tasks.words}" if is_doubtful and ended.facts.tasks else ""
    title = named.title(f"ended as {ended.status}{tasks}")
    if run is None:
        return Message(title, _text(ended.as_text().split("\n")), kind)
    lines = [
        outcome_line(run),
        run.rule_text,
        f"Iterations: {iterations_line(run)}",
        _named("Tests", tests_line(run)),
        f"Proof: {proof_line(run.proof)}",
        _named("Tasks", tasks_line(run)),
        _named("Cost", money_of(run)),
        _named("Agent says" if is_doubtful else "Done last", run.headline),
        _named("Agent says", run.closing),
        *_next(run),
    ]
    return Message(title, _text(lines), kind)


def _next(run: RunSummary) -> list[str]:
    """Return the command to run next, and the one that shows all of the run."""
    report = NextCommand("See all of it as one page", f"rooda report {run.run}")
    first = run.next_commands[:1]
    return [f"{one.why}: {one.command}" for one in (*first, report)]


def _named(name: str, value: str) -> str:
    return f"{name}: {value}" if value else ""


def failure_message(named: Named, event: IterationEnded, skipped: int) -> Message:
    """Return the message about an iteration that failed."""
    facts = event.facts
    what = f"iteration {facts.number} failed"
    lines = [
        f"Iteration {facts.number} failed ({facts.kind}): {facts.reason}",
        _in_a_row(facts),
        _named("Agent says", facts.headline or ""),
        _others(skipped),
        _look(named, facts.number),
    ]
    return Message(named.title(what), _text(lines), "warning")


def blocked_message(named: Named, event: IterationEnded, skipped: int) -> Message:
    """Return the message about an agent that signaled FAILURE."""
    facts = event.facts
    word = facts.signal or "FAILURE"
    lines = [
        f"The agent signaled {word} in iteration {facts.number}: it needs you.",
        facts.reason or "",
        _named("Agent says", facts.headline or ""),
        _in_a_row(facts),
        _others(skipped),
        _look(named, facts.number),
        "Write a note for the next prompt: rooda tell TEXT",
    ]
    return Message(named.title("the agent is blocked"), _text(lines), "warning")


def waiting_message(named: Named, event: WaitStarted, skipped: int) -> Message:
    """Return the message about a run that waits."""
    until = f"{format_duration(event.seconds)}, until {event.until:%Y-%m-%d %H:%M}"
    lines = [
        f"The run waits {event.target()}: {until}.",
        _named("Reason", event.reason),
        _others(skipped),
        "Watch it: rooda follow",
        "End it: rooda stop",
    ]
    return Message(named.title("the run waits"), _text(lines), "info")


def killed_message(named: Named) -> Message:
    """Return the message that is sent if rooda itself is killed."""
    lines = [
        "rooda itself was killed, or ended with an error: no rule ended the run.",
        _named("Continue it", named.resume),
    ]
    return Message(named.title("ended without a result"), _text(lines), "failure")


def trial_message(now: datetime) -> Message:
    """Return the message of `rooda notify --test`."""
    lines = [
        "This is a test message of rooda.",
        f"It was sent at {now:%Y-%m-%d %H:%M:%S} by `rooda notify --test`.",
    ]
    return Message("rooda: test", _text(lines), "info")


def _in_a_row(facts: IterationFacts) -> str:
    if not facts.failures_after:
        return ""
    return f"Failures in a row: {facts.failures_after} of {facts.threshold}"


def _others(skipped: int) -> str:
    return f"Since the last message of this kind: {skipped} more" if skipped else ""


def _look(named: Named, iteration: int) -> str:
    return f"Read it: rooda show {named.run} {iteration}"
