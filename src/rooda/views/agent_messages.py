"""What agents do, and what the run does about their limits, in words."""

from rooda.agents.failure_kinds import FailureKind
from rooda.loop import agent_events as agents
from rooda.loop.agent_events import AgentEvent
from rooda.loop.events import IterationEnded
from rooda.loop.waits import WaitKind
from rooda.text.controls import one_line
from rooda.text.times import format_duration
from rooda.views.message import Message

_TEXT = "text"
_SEVERAL = 3  # failures in a row that are worth a word when they are the same


def same_failures(event: IterationEnded) -> int | None:
    """How many iterations in a row have failed in the very same way, when that is worth a word."""
    return event.same_failures if event.same_failures >= _SEVERAL else None


def cannot_work(event: IterationEnded) -> str:
    """Why an agent can't work now, though that is no failure."""
    if event.kind is FailureKind.LIMIT:
        return f"usage limit of {one_line(event.agent)}"
    if event.kind is not None and event.kind.is_outage:
        return f"outage of {one_line(event.agent)} ({event.kind}): {one_line(event.reason)}"
    return f"{one_line(event.agent)} can't take over ({event.kind}): {one_line(event.reason)}"


def readable(event: agents.AgentSaid) -> str:
    """What an agent did, as a line for people: its own words as they are, the rest with a mark."""
    return event.text if event.kind == _TEXT else f"[{event.kind}] {event.text}"


def money(dollars: float) -> str:
    """An amount of dollars, to the cent where there are any."""
    return f"${dollars:.2f}" if dollars >= 1 else f"${dollars:.4f}"


def usage_words(tokens: int | None, cost: float | None) -> str:
    """`45,070 tokens, $0.21`, as far as it is known."""
    words = [f"{tokens:,} tokens"] if tokens else []
    return ", ".join([*words, money(cost)] if cost else words)


def of_agent(event: AgentEvent) -> Message | None:
    """What to say of an event, if anything."""
    match event:
        case agents.AgentSaid(iteration, kind, text):
            return Message("Agent", (("said", text), ("kind", kind), ("iteration", iteration)))
        case agents.UsageSeen(iteration, model, tokens, cost):
            return Message(
                "Used so far",
                (("tokens", tokens), ("cost", cost), ("model", model), ("iteration", iteration)),
            )
        case agents.AgentChanged(iteration, before, agent, reason):
            return Message(
                f"{agent} takes over from {before}",
                (("reason", reason), ("iteration", iteration)),
            )
        case agents.WaitStarted():
            return _wait_started(event)
        case agents.StillWaiting(_, kind, left):
            return Message(f"Still waiting ({kind})", (("left", format_duration(left)),))
        case agents.WaitEnded(iteration, _, seconds, is_over):
            return Message(
                "Going on" if is_over else "Waiting no longer",
                (("waited", format_duration(seconds)), ("iteration", iteration)),
            )


def wait_words(event: agents.WaitStarted) -> str:
    """What a run waits for."""
    if event.kind is WaitKind.LIMIT:
        return f"Usage limit of {event.what}: waiting"
    if event.kind is WaitKind.OUTAGE:
        return f"Outage of {event.what} ({event.outage}): waiting"
    return f"Waiting before the next try ({event.what})"


def _wait_started(event: agents.WaitStarted) -> Message:
    more = None
    is_limit = event.kind is WaitKind.LIMIT
    if event.capped and is_limit:
        more = "the limit lasts longer than max_limit_wait: one more try then"
    elif event.capped:
        more = "max_outage_wait is reached then: one more try"
    elif is_limit and not event.known:
        more = "the agent does not say when it is over (limit_wait)"
    lasted = None if event.lasted is None else format_duration(event.lasted)
    return Message(
        wait_words(event),
        (
            ("until", f"{event.until:%Y-%m-%d %H:%M:%S %Z}".strip()),
            ("for", format_duration(event.seconds)),
            ("lasted", lasted),
            ("tries", event.tries),
            ("reason", event.reason),
            ("note", more),
            ("iteration", event.iteration),
        ),
    )
