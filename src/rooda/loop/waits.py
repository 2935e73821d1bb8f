"""When to wait, and for how long. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from rooda.agents.report import Fault, FaultKind

_MARGIN = 5.0  # seconds after a reset: clocks differ
_LONGEST_GUESS = 3600.0  # where nobody knows when a limit is over
_FARTHEST = 366 * 86400.0  # that anybody can mean
_LARGEST_POWER = 40


class WaitKind(StrEnum):
    """What a run waits for."""

    LIMIT = "limit"
    BACKOFF = "backoff"


@dataclass(frozen=True, slots=True)
class Patience:
    """How patient a run is with its agents."""

    wait_for_limits: bool = True
    max_limit_wait: float | None = None
    limit_wait: float = 300.0
    backoff: float = 10.0
    max_backoff: float = 300.0


@dataclass(frozen=True, slots=True)
class Limited:
    """An agent that can't work: its command, what it is called, and until which unix time.

    `known`: the agent said so itself, and `evidence` are its words. `times`: how often in a row.
    """

    agent: str
    name: str
    until: float
    known: bool
    evidence: str = ""
    times: int = 1


def limited(
    agent: str, name: str, fault: Fault, now: datetime, patience: Patience, before: Limited | None
) -> Limited:
    """The limit that an agent has run into; `before` is the one that it met just before."""
    at, repeats = now.timestamp(), before.times if before else 0
    if fault.kind is not FaultKind.LIMIT:  # only a person can mend it
        return Limited(agent, name, math.inf, known=False, evidence=fault.evidence)
    until = _told(fault, now)
    guess = min(patience.limit_wait * 2.0 ** min(repeats, _LARGEST_POWER), _LONGEST_GUESS)
    known = until is not None and until - at <= _FARTHEST
    if until is None or not known:
        return Limited(agent, name, at + guess, known, fault.evidence, repeats + 1)
    # Who is sent away again at the very time that he was told is not believed twice.
    least = at if repeats == 0 else at + min(guess, patience.backoff * 2.0 ** min(repeats, 8))
    until = max(until + _margin(until - at), least)
    return Limited(agent, name, until, known, fault.evidence, repeats + 1)


def _margin(left: float) -> float:
    """A few seconds more, but not after a wait of seconds."""
    return _MARGIN if left > 60 else 0.0  # noqa: PLR2004 - a minute


def _told(fault: Fault, now: datetime) -> float | None:
    if fault.resets is not None:
        return fault.resets
    if fault.retry_after is not None:
        return now.timestamp() + fault.retry_after
    from rooda.agents.resets import reset_time  # noqa: PLC0415 - most runs never meet a limit

    moment = reset_time(fault.words or fault.evidence, now)
    return None if moment is None else moment.timestamp()


def choose(agents: Sequence[str], limits: Sequence[Limited], now: float) -> int | None:
    """The first of the agents that no limit holds; None when all of them have to wait."""
    held = {limit.agent for limit in limits if limit.until > now}
    return next((place for place, agent in enumerate(agents) if agent not in held), None)


def first_free(agents: Sequence[str], limits: Sequence[Limited], now: float) -> Limited | None:
    """The limit that is over first; None when one of the agents can work now."""
    if choose(agents, limits, now) is not None:
        return None
    return min((limit for limit in limits if limit.agent in agents), key=lambda one: one.until)


def backoff(tries: int, patience: Patience, chance: float) -> float:
    """How long to wait after so many failures in a row; `chance` is from 0 to 1.

    Half of it is left to chance, so that many who failed together don't come back together.
    """
    full = min(patience.backoff * 2.0 ** min(tries - 1, _LARGEST_POWER), patience.max_backoff)
    return full * (0.5 + 0.5 * chance)
