"""Wait, until it is time or somebody wants an end."""

import math
from dataclasses import replace
from datetime import UTC, datetime

from rooda.config.command import Agent
from rooda.config.plan import Plan
from rooda.loop import hooks
from rooda.loop.agent_events import StillWaiting, WaitEnded, WaitStarted
from rooda.loop.edge import Edge
from rooda.loop.hooks import Moment, Story
from rooda.loop.outcome import Outcome, Verdict
from rooda.loop.state import Limits, State
from rooda.loop.waits import Limited, Patience, WaitKind, backoff, limited
from rooda.process.events import Tick

_LOOK = 1.0  # how often at the clock: a machine that slept finds out within that
_TELL = 900.0  # how often in the log that it still waits


def note_limit(
    state: State, agent: Agent, outcome: Outcome, patience: Patience, edge: Edge
) -> State:
    """The state once an agent has said that its usage limit is reached, or has worked."""
    command = agent.command.text
    others = tuple(one for one in state.limited if one.agent != command)
    if outcome.verdict is not Verdict.LIMITED or outcome.fault is None:
        return replace(state, limited=others)
    before = next((one for one in state.limited if one.agent == command), None)
    limit = limited(command, agent.name, outcome.fault, edge.now(), patience, before)
    return replace(state, limited=(*others, limit))


def next_wait(state: State, patience: Patience, edge: Edge) -> WaitStarted | None:
    """What there is to wait for before the next iteration."""
    if state.backoff_due:
        return _for_the_next_try(state, patience, edge)
    if state.blocked is not None:
        return _for_a_limit(state, state.blocked, patience, edge)
    return None


def _for_the_next_try(state: State, patience: Patience, edge: Edge) -> WaitStarted:
    seconds = backoff(state.backoffs, patience, edge.chance())
    kind = state.last.kind if state.last else None
    return WaitStarted(
        iteration=state.iteration + 1,
        kind=WaitKind.BACKOFF,
        what=str(kind or ""),
        reason=state.last.reason if state.last else "",
        until=_moment(edge.now(), seconds),
        seconds=seconds,
        tries=state.backoffs,
        known=True,
    )


def _for_a_limit(state: State, first: Limited, patience: Patience, edge: Edge) -> WaitStarted:
    now = edge.now()
    seconds, most = max(0.0, first.until - now.timestamp()), patience.max_limit_wait
    left = seconds if most is None else max(0.0, most - state.limit_waited)
    return WaitStarted(
        iteration=state.iteration + 1,
        kind=WaitKind.LIMIT,
        what=first.name,
        reason=first.evidence,
        until=_moment(now, min(seconds, left)),
        seconds=min(seconds, left),
        tries=first.times,
        known=first.known,
        capped=left < seconds,
    )


def _moment(now: datetime, seconds: float) -> datetime:
    return datetime.fromtimestamp(now.timestamp() + seconds, UTC).astimezone(now.tzinfo)


def wait(plan: Plan, edge: Edge, state: State, what: WaitStarted, limits: Limits) -> State:
    """Wait; the state after it, in which there is nothing to wait for any more."""
    edge.emit(what)
    began = edge.monotonic()
    objection = hooks.run(Moment.ON_WAIT, plan, edge, _story(what))
    if objection is not None and objection.verdict is Verdict.ABORT:
        return replace(state, last=objection)
    left = None if limits.max_duration is None else limits.max_duration - state.elapsed
    is_over = _rest(edge, what, began, left)
    waited = edge.monotonic() - began
    edge.emit(WaitEnded(what.iteration, what.kind, waited, is_over))
    if what.kind is WaitKind.BACKOFF:
        return replace(state, backoff_due=False)
    # A machine that slept has waited as well.
    counted = what.seconds if is_over else waited
    state = replace(state, limit_waited=state.limit_waited + counted)
    if not is_over:
        return state
    # One more try, whatever the limit says, once as long as may be was waited.
    latest = math.inf if what.capped else what.until.timestamp()
    return replace(state, limited=tuple(_over(one, latest) for one in state.limited))


def _over(limit: Limited, latest: float) -> Limited:
    """The limit as it stands once this time has come; how often it was met is remembered."""
    is_over = limit.until <= latest and math.isfinite(limit.until)
    return replace(limit, until=0.0) if is_over else limit


def _rest(edge: Edge, what: WaitStarted, began: float, most: float | None) -> bool:
    """Let the time pass; whether it did, and nobody wants an end."""
    told = began
    while not edge.interrupts.received and not edge.interrupts.end_wanted:
        passed = edge.monotonic() - began
        # By the wall clock, which goes on while the machine sleeps; and if somebody sets that
        # back, no longer than it was meant to be.
        left = min((what.until - edge.now()).total_seconds(), what.seconds - passed)
        if left <= 0:
            return True
        if most is not None and passed >= most:
            return False
        if edge.monotonic() - told >= _TELL:
            told = edge.monotonic()
            edge.emit(StillWaiting(what.iteration, what.kind, left))
        edge.rest(min(left, edge.tick or _LOOK))
        if edge.tick is not None:
            edge.emit(Tick())
    return False


def _story(event: WaitStarted) -> Story:
    return Story(
        event.iteration,
        "waiting",
        {
            "kind": str(event.kind),
            "reason": event.reason,
            "until": event.until.isoformat(),
            "seconds": event.seconds,
        },
    )
