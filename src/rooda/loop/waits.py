"""Compute when the run waits for an agent, and for how long. Pure."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec import Struct

from rooda.world.agents.agent_report import Fault
from rooda.world.agents.failure_kinds import FailureKind

_MARGIN = 5.0  # seconds after a reset: clocks differ
_LONGEST_GUESS = 3600.0  # if the agent does not say when a limit ends
_FARTHEST = 366 * 86400.0  # a time that is farther away is a misread number
_LARGEST_POWER = 40
# With a small `backoff` a long outage must not become a busy loop: the pause grows to 10 s.
_LEAST_PAUSE, _MOST_OF_IT = 0.001, 10.0
# The pauses after failures in a row, as multiples of `backoff`: 10 s, 30 s, 90 s, then 5 min.
_STEPS = (1, 3, 9, 30)
FAST = 30.0  # seconds; a failure that takes longer needs no pause


class Patience(Struct, frozen=True):
    """How patient a run is with its agents."""

    wait_for_limits: bool = True
    max_limit_wait: float | None = None
    limit_wait: float = 300.0
    backoff: float = 10.0
    max_backoff: float = 300.0
    max_outage_wait: float | None = 7200.0
    with_every_command: bool = False  # fast failures of unknown commands have a pause, too


class UsageLimit(Struct, frozen=True):
    """A usage limit or an outage of an agent: its command, its name, and the unix time of its end.

    `known`: the agent itself named the time, and `evidence` is its message. `times`: how often in a
    row. `outage` is the kind of outage; it is empty for a usage limit.
    """

    agent: str
    name: str
    until: float
    known: bool
    evidence: str = ""
    times: int = 1
    outage: str = ""


class AgentHold(Struct, frozen=True):
    """A usage limit or an outage, for a program whose runs share an account."""

    account: str  # that `--account` names, else the agent that rooda knows
    agent: str  # the name of the agent
    kind: str  # `limit`, `overloaded` or `offline`
    until: datetime | None  # when an agent can work again; null if the agent did not tell
    known: bool  # the agent itself said until when
    evidence: str  # what the agent said


def hold_of(limit: UsageLimit, account: str) -> AgentHold:
    """Return the limit or outage of an agent, with the account that it is about."""
    end = datetime.fromtimestamp(limit.until, UTC) if math.isfinite(limit.until) else None
    kind = limit.outage or str(FailureKind.LIMIT)
    return AgentHold(account, limit.name, kind, end, limit.known, limit.evidence)


def limited(
    agent: str,
    name: str,
    fault: Fault,
    now: datetime,
    patience: Patience,
    before: UsageLimit | None,
    chance: float = 1.0,
) -> UsageLimit:
    """Return the limit or outage that an agent reported; `before` is the one before that."""
    if fault.kind is not FailureKind.LIMIT and not fault.kind.is_outage:
        # Waiting does not help: only the user can mend it.
        return UsageLimit(agent, name, math.inf, known=False, evidence=fault.evidence)
    outage = str(fault.kind) if fault.kind.is_outage else ""
    is_repeated = before is not None and bool(before.outage) == bool(outage)
    repeats = before.times if before is not None and is_repeated else 0
    if outage:
        until, known = _end_of_pause(fault, now, patience, repeats, chance)
    else:
        until, known = _end_of_limit(fault, now, patience, repeats)
    return UsageLimit(agent, name, until, known, fault.evidence, repeats + 1, outage)


def _end_of_pause(
    fault: Fault, now: datetime, patience: Patience, repeats: int, chance: float
) -> tuple[float, bool]:
    """Return when to try again in an outage, and whether the service itself named that time."""
    until = now.timestamp() + outage_pause(repeats + 1, patience, chance)
    told = _believable(fault, now)
    return (told, True) if told is not None and told >= until else (until, False)


def _end_of_limit(
    fault: Fault, now: datetime, patience: Patience, repeats: int
) -> tuple[float, bool]:
    """Return when a usage limit ends, and whether the agent itself named that time."""
    at, until = now.timestamp(), _believable(fault, now)
    guess = min(patience.limit_wait * 2.0 ** min(repeats, _LARGEST_POWER), _LONGEST_GUESS)
    if until is None:
        return at + guess, False
    # If the limit recurs at the announced reset time, back off: do not trust the next time alone.
    least = at if repeats == 0 else at + min(guess, patience.backoff * 2.0 ** min(repeats, 8))
    return max(until + _margin(until - at), least), True


def _margin(left: float) -> float:
    """Return a margin of a few seconds; none for a wait of seconds."""
    return _MARGIN if left > 60 else 0.0  # noqa: PLR2004 - a minute


def _believable(fault: Fault, now: datetime) -> float | None:
    """Return the time that the agent names; None if it is more than a year away."""
    told = _told(fault, now)
    return told if told is not None and told - now.timestamp() <= _FARTHEST else None


def _told(fault: Fault, now: datetime) -> float | None:
    if fault.resets is not None:
        return fault.resets
    if fault.retry_after is not None:
        return now.timestamp() + fault.retry_after
    from rooda.world.agents.resets import reset_time  # noqa: PLC0415 - most runs never meet a limit

    moment = reset_time(fault.words or fault.evidence, now)
    return None if moment is None else moment.timestamp()


def choose(agents: Sequence[str], limits: Sequence[UsageLimit], now: float) -> int | None:
    """Return the index of the first agent without a limit; None if all agents have to wait."""
    held = {limit.agent for limit in limits if limit.until > now}
    return next((place for place, agent in enumerate(agents) if agent not in held), None)


def first_free(
    agents: Sequence[str], limits: Sequence[UsageLimit], now: float
) -> UsageLimit | None:
    """Return the limit that ends first; None if one of the agents can work now."""
    if choose(agents, limits, now) is not None:
        return None
    return min((limit for limit in limits if limit.agent in agents), key=lambda one: one.until)


def outage_pause(tries: int, patience: Patience, chance: float) -> float:
    """Return how many seconds to wait for the end of an outage after this many failed tries.

    Half of the pause is random, so that many runs do not retry together; `chance` is from 0 to 1.
    """
    least = min(_LEAST_PAUSE * 2.0 ** min(tries, _LARGEST_POWER), _MOST_OF_IT)
    full = min(patience.backoff * 2.0 ** min(tries - 1, _LARGEST_POWER), patience.max_backoff)
    return max(full * (0.5 + 0.5 * chance), least)


def failure_pause(tries: int, patience: Patience) -> float:
    """Return how many seconds to wait after this many failures that have a pause."""
    step = _STEPS[min(max(tries, 1), len(_STEPS)) - 1]
    return min(patience.backoff * step, patience.max_backoff)
