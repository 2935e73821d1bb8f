"""Wait for the end of a limit, an outage or a pause, or until the user ends the run."""

import contextlib
import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from msgspec.structs import replace

from rooda.config.command import Agent
from rooda.config.plan import Plan
from rooda.loop import hooks
from rooda.loop.agent_events import StillWaiting, WaitEnded, WaitStarted
from rooda.loop.hooks import HookPayload, Moment
from rooda.loop.outcome import Outcome, Verdict
from rooda.loop.push_check import MOST_NAMED
from rooda.loop.services import Services
from rooda.loop.state import Limits, State
from rooda.loop.waits import Patience, UsageLimit, WaitKind, failure_pause, limited
from rooda.loop.work_events import UserFilesChanged
from rooda.process.events import Tick
from rooda.workspace.free_space import DiskShortage

_LOOK = 1.0  # seconds between two looks at the clock: the machine may have slept
_LONG = 86400.0  # seconds of a wait without a limit; then the next one begins
_TELL = 900.0  # seconds between two log lines about the wait


def note_limit(
    state: State, agent: Agent, outcome: Outcome, patience: Patience, services: Services
) -> State:
    """Return the state after an agent has reported a usage limit, or has worked."""
    if outcome.verdict is Verdict.LIMITED and outcome.kind is not None and outcome.kind.is_outage:
        return state  # `note_outage` chooses the pause
    command = agent.command.text
    others = tuple(one for one in state.limited if one.agent != command)
    if outcome.verdict is not Verdict.LIMITED or outcome.fault is None:
        return replace(state, limited=others)
    before = next((one for one in state.limited if one.agent == command), None)
    limit = limited(command, agent.name, outcome.fault, services.now(), patience, before)
    return replace(state, limited=(*others, limit))


def note_outage(
    state: State, agent: Agent, patience: Patience, now: datetime, chance: float
) -> State:
    """Return the state with the pause after an outage of an agent.

    The pause begins when the rest of the iteration is done: a short one would be over by then.
    """
    fault = state.last.fault if state.last else None
    if not state.outage_due or fault is None:
        return replace(state, outage_due=False)
    command, most = agent.command.text, patience.max_outage_wait
    others = tuple(one for one in state.limited if one.agent != command)
    before = next((one for one in state.limited if one.agent == command), None)
    pause = limited(command, agent.name, fault, now, patience, before, chance)
    if most is not None and state.outage_lasted >= most:
        # If another agent waits for the end of its usage limit, the run waits for that first.
        ends = [one.until for one in others if not one.outage and math.isfinite(one.until)]
        pause = replace(pause, until=max(pause.until, min(ends, default=0.0)))
    return replace(state, limited=(*others, pause), outage_due=False)


def next_wait(state: State, patience: Patience, services: Services) -> WaitStarted | None:
    """Return what the run has to wait for before the next iteration; None if nothing."""
    if state.backoff_due and (seconds := failure_pause(state.backoffs, patience)):
        return _for_the_next_try(state, seconds, services)
    if state.blocked is not None:
        return _for_the_agent(state, state.blocked, patience, services)
    if state.disk is not None:
        return _for_the_disk(state, state.disk, patience, services)
    return None


def _for_the_agent(
    state: State, first: UsageLimit, patience: Patience, services: Services
) -> WaitStarted:
    """Return the wait for the end of a usage limit or of an outage."""
    is_outage, now = bool(first.outage), services.now()
    most = patience.max_outage_wait if is_outage else patience.max_limit_wait
    spent = state.outage_lasted if is_outage else state.limit_waited
    seconds = max(0.0, first.until - now.timestamp())
    left = seconds if most is None else max(0.0, most - spent)
    return WaitStarted(
        iteration=state.iteration + 1,
        kind=WaitKind.OUTAGE if is_outage else WaitKind.LIMIT,
        what=first.name,
        reason=first.evidence,
        until=_moment(now, min(seconds, left)),
        seconds=min(seconds, left),
        tries=first.times,
        known=first.known,
        capped=left < seconds,
        outage=first.outage,
        lasted=spent if is_outage else None,
        account=services.accounts.get(first.agent, ""),
        ends=_moment(now, seconds) if math.isfinite(seconds) else None,
    )


def note_disk(state: State, shortage: DiskShortage | None) -> State:
    """Return the state with the lack of disk space, and since when there is one."""
    if shortage is None:
        return replace(state, disk=None, disk_since=None)
    since = state.elapsed if state.disk_since is None else state.disk_since
    return replace(state, disk=shortage, disk_since=since)


def _for_the_disk(
    state: State, shortage: DiskShortage, patience: Patience, services: Services
) -> WaitStarted:
    """Return the wait for free disk space, at most so long as for an outage."""
    most = patience.max_outage_wait
    seconds = _LONG if most is None else max(0.0, most - state.disk_lasted)
    return WaitStarted(
        iteration=state.iteration + 1,
        kind=WaitKind.DISK,
        what=shortage.what,
        reason=str(shortage),
        until=_moment(services.now(), seconds),
        seconds=seconds,
        tries=1,
        known=False,
    )


def _for_the_next_try(state: State, seconds: float, services: Services) -> WaitStarted:
    kind = state.last.kind if state.last else None
    return WaitStarted(
        iteration=state.iteration + 1,
        kind=WaitKind.BACKOFF,
        what=str(kind or ""),
        reason=state.last.reason if state.last else "",
        until=_moment(services.now(), seconds),
        seconds=seconds,
        tries=state.backoffs,
        known=True,
    )


def _moment(now: datetime, seconds: float) -> datetime:
    return datetime.fromtimestamp(now.timestamp() + seconds, UTC).astimezone(now.tzinfo)


def wait(plan: Plan, services: Services, state: State, what: WaitStarted, limits: Limits) -> State:
    """Wait, and return the state after the wait."""
    services.emit(what)
    began = services.monotonic()
    if services.user_files is not None:
        services.user_files.begin_wait()
    objection = hooks.run(Moment.ON_WAIT, plan, services, _story(what))
    if objection is not None and objection.verdict is Verdict.ABORT:
        return replace(state, last=objection)
    left = None if limits.max_duration is None else limits.max_duration - state.elapsed
    ends_early = None if what.kind is not WaitKind.DISK else lambda: plan.disk_shortage() is None
    is_over = _rest(services, what, began, left, ends_early)
    if services.tracker is not None:
        services.tracker.forget()
    note_user_changes(services, what.iteration)
    waited = services.monotonic() - began
    services.emit(WaitEnded(what.iteration, what.kind, waited, is_over))
    if what.kind is WaitKind.BACKOFF:
        return replace(state, backoff_due=False)
    if what.kind is WaitKind.DISK:
        return state  # the loop looks at the disk again
    if what.kind is WaitKind.LIMIT:
        # The time that the machine slept counts too.
        counted = what.seconds if is_over else waited
        state = replace(state, limit_waited=state.limit_waited + counted)
    if not is_over:
        return state
    return replace(state, limited=tuple(_after_the_wait(one, what) for one in state.limited))


def note_user_changes(services: Services, iteration: int) -> None:
    """Keep what changed during the wait, or during halts, out of commits, and name it once."""
    files = services.user_files
    if files is not None and (names := [*files.end_wait(), *files.end_halts(services.halts)]):
        services.emit(UserFilesChanged(iteration, tuple(names[:MOST_NAMED]), len(names)))


@contextlib.contextmanager
def without_agent(services: Services, iteration: int) -> Iterator[None]:
    """Take what changes within the context as the user's: no agent works then."""
    if services.user_files is not None:
        services.user_files.begin_wait()
    yield
    note_user_changes(services, iteration)


def _after_the_wait(limit: UsageLimit, what: WaitStarted) -> UsageLimit:
    """Return the limit after the wait; after the longest wait that is allowed it is over."""
    is_meant = bool(limit.outage) == (what.kind is WaitKind.OUTAGE)
    return _over(limit, math.inf if what.capped and is_meant else what.until.timestamp())


def _over(limit: UsageLimit, latest: float) -> UsageLimit:
    """Return the limit at this time; a limit that is over keeps its number of times."""
    is_over = limit.until <= latest and math.isfinite(limit.until)
    return replace(limit, until=0.0) if is_over else limit


def _rest(
    services: Services,
    what: WaitStarted,
    began: float,
    most: float | None,
    ends_early: Callable[[], bool] | None = None,
) -> bool:
    """Wait until the time has passed; return False if a signal or `max_duration` came first."""
    told = began
    while not services.interrupts.received and not services.interrupts.end_wanted:
        passed = services.monotonic() - began
        # The wall clock goes on while the machine sleeps; the monotonic clock is the bound if
        # the user sets the wall clock back.
        left = min((what.until - services.now()).total_seconds(), what.seconds - passed)
        if left <= 0 or (ends_early is not None and ends_early()):
            return True
        if most is not None and passed >= most:
            return False
        if services.monotonic() - told >= _TELL:
            told = services.monotonic()
            services.emit(StillWaiting(what.iteration, what.kind, left))
        services.rest(min(left, services.tick or _LOOK))
        if services.tick is not None:
            services.emit(Tick())
    return False


def _story(event: WaitStarted) -> HookPayload:
    return HookPayload(
        event.iteration,
        "waiting",
        {
            "kind": str(event.kind),
            "what": event.what,
            "outage": event.outage,
            "lasted": event.lasted,
            "reason": event.reason,
            "until": event.until.isoformat(),
            "seconds": event.seconds,
        },
    )
