"""Wait for the end of a limit, an outage or a pause, or until the user ends the run."""

import contextlib
import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from msgspec.structs import replace

from rooda.loop.events.agent import StillWaiting, WaitEnded, WaitStarted
from rooda.loop.events.work import UserFilesChanged
from rooda.loop.outcome import Outcome, Verdict
from rooda.loop.publish.refusals import MOST_NAMED
from rooda.loop.services import Services
from rooda.loop.stages import hooks
from rooda.loop.stages.hooks import HookPayload, Moment
from rooda.loop.state import Limits, State
from rooda.loop.wait_kinds import Due, Waited, WaitKind
from rooda.loop.waits import Patience, limited
from rooda.plan.command import Agent
from rooda.plan.plan import Plan
from rooda.world.files.file_systems import DiskShortage
from rooda.world.process.events import Tick

_LOOK = 1.0  # seconds between two looks at the clock: the machine may have slept
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
    now = services.now()
    for kind in WaitKind:
        if (due := kind.row.due(state, patience, now)) is not None:
            return _started(kind, due, state, now, services)
    return None


def _started(
    kind: WaitKind, due: Due, state: State, now: datetime, services: Services
) -> WaitStarted:
    return WaitStarted(
        iteration=state.iteration + 1,
        kind=kind,
        what=due.what,
        reason=due.reason,
        until=_moment(now, due.seconds),
        seconds=due.seconds,
        tries=due.tries,
        known=due.known,
        capped=due.capped,
        outage=due.outage,
        lasted=due.lasted,
        account=services.accounts.get(due.agent, ""),
        ends=_moment(now, due.full) if math.isfinite(due.full) else None,
    )


def note_disk(state: State, shortage: DiskShortage | None) -> State:
    """Return the state with the lack of disk space, and since when there is one."""
    if shortage is None:
        return replace(state, disk=None, disk_since=None)
    since = state.elapsed if state.disk_since is None else state.disk_since
    return replace(state, disk=shortage, disk_since=since)


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

    def is_no_longer_due() -> bool:
        now = note_disk(state, plan.disk_shortage())
        return what.kind.row.due(now, limits.patience, services.now()) is None

    ends_early = is_no_longer_due if what.kind.row.ends_early else None
    is_over = _rest(services, what, began, left, ends_early)
    if services.tracker is not None:
        services.tracker.forget()
    note_user_changes(services, what.iteration)
    waited = services.monotonic() - began
    services.emit(WaitEnded(what.iteration, what.kind, waited, is_over))
    ended = Waited(what.until.timestamp(), what.seconds, waited, what.capped, is_over)
    return what.kind.row.after(state, ended)


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
