"""What a run waits for: the kinds of wait, one row each. The first kind that is due decides. Pure.

A row has all that rooda says and does about a wait: when it begins and for how long, what changes
after it, and the words of the terminal, the live line, the messages, `rooda show` and the report.
"""

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Self

from msgspec import Struct
from msgspec.structs import replace

from rooda.base.controls import one_line
from rooda.loop.state import State
from rooda.loop.waits import Patience, UsageLimit, failure_pause

_LONG = 86400.0  # seconds of a wait without a limit; then the next one begins


class Due(Struct, frozen=True):
    """A wait that begins now, as `WaitStarted` reports it."""

    what: str
    reason: str
    seconds: float
    tries: int = 1
    known: bool = False
    capped: bool = False
    outage: str = ""
    lasted: float | None = None
    agent: str = ""  # the command of the agent
    full: float = math.inf  # seconds until the end of the limit itself


class Waited(Struct, frozen=True):
    """A wait that has ended: its end as unix time, the planned and the real seconds."""

    until: float
    planned: float
    seconds: float
    capped: bool
    is_over: bool  # the time has passed; else the user or a limit of the run ended it


# -- when a wait is due --------------------------------------------------------------------------


def _backoff(state: State, patience: Patience, _: datetime) -> Due | None:
    if not state.backoff_due or not (seconds := failure_pause(state.backoffs, patience)):
        return None
    what = str(state.last.kind or "") if state.last else ""
    reason = state.last.reason if state.last else ""
    return Due(what, reason, seconds, state.backoffs, known=True)


def _limit(state: State, patience: Patience, now: datetime) -> Due | None:
    limit = state.blocked
    if limit is None or limit.outage:
        return None
    return _of_agent(limit, now, patience.max_limit_wait, state.limit_waited)


def _outage(state: State, patience: Patience, now: datetime) -> Due | None:
    limit = state.blocked
    if limit is None or not limit.outage:
        return None
    due = _of_agent(limit, now, patience.max_outage_wait, state.outage_lasted)
    return replace(due, outage=limit.outage, lasted=state.outage_lasted)


def _of_agent(limit: UsageLimit, now: datetime, most: float | None, spent: float) -> Due:
    """Return the wait for an agent; the run waits so long in all at most."""
    full = max(0.0, limit.until - now.timestamp())
    seconds = full if most is None else min(full, max(0.0, most - spent))
    return Due(
        limit.name,
        limit.evidence,
        seconds,
        limit.times,
        limit.known,
        capped=seconds < full,
        agent=limit.agent,
        full=full,
    )


def _disk(state: State, patience: Patience, _: datetime) -> Due | None:
    """Return the wait for free disk space, at most as long as for an outage."""
    if state.disk is None:
        return None
    most = patience.max_outage_wait
    seconds = _LONG if most is None else max(0.0, most - state.disk_lasted)
    return Due(state.disk.what, str(state.disk), seconds)


# -- what changes after it -----------------------------------------------------------------------


def _unchanged(state: State, _: Waited) -> State:
    return state


def _without_backoff(state: State, _: Waited) -> State:
    return replace(state, backoff_due=False)


def _after_limit(state: State, wait: Waited) -> State:
    # The time that the machine slept counts too.
    counted = wait.planned if wait.is_over else wait.seconds
    state = replace(state, limit_waited=state.limit_waited + counted)
    return _after_agent(state, wait, is_outage=False)


def _after_outage(state: State, wait: Waited) -> State:
    return _after_agent(state, wait, is_outage=True)


def _after_agent(state: State, wait: Waited, *, is_outage: bool) -> State:
    """Return the state without the limits that are over; the longest wait ends those it was for."""
    if not wait.is_over:
        return state

    def after(limit: UsageLimit) -> UsageLimit:
        is_meant = bool(limit.outage) == is_outage
        return _over(limit, math.inf if wait.capped and is_meant else wait.until)

    return replace(state, limited=tuple(map(after, state.limited)))


def _over(limit: UsageLimit, latest: float) -> UsageLimit:
    """Return the limit at this time; a limit that is over keeps its number of times."""
    is_over = limit.until <= latest and math.isfinite(limit.until)
    return replace(limit, until=0.0) if is_over else limit


class WaitRow(Struct, frozen=True):
    """One kind of wait.

    `due` returns the wait if there is a reason for one, `after` the state after it. `line` is the
    line of the log, `target` what the run waits for, in a sentence after `waits`; both can name
    `{what}` and, in brackets, its `{detail}`. `label` is for tables and the timeline. `until` is
    the word before the end of the wait. `capped` is the note on a wait that is shorter than what
    it is for, `unknown` the one on a wait whose end nobody has named.

    `names_reason`: nothing above the line of the terminal tells why. `is_reported`: it is worth a
    message to the user. `is_grouped`: several in a row for the same thing are one in the views.
    `ends_early`: the run asks again and again whether the wait is still due.
    """

    name: str
    due: Callable[[State, Patience, datetime], Due | None]
    line: str
    target: str
    label: str
    after: Callable[[State, Waited], State] = _unchanged
    until: str = "until"
    capped: str = "max_outage_wait is reached then: one more try"
    unknown: str = ""
    names_reason: bool = True
    is_reported: bool = True
    is_grouped: bool = False
    ends_early: bool = False


class WaitKind(StrEnum):
    """What a run waits for. The order is the order in which the kinds are checked."""

    row: WaitRow

    def __new__(cls, row: WaitRow) -> Self:
        """Return the member of one row."""
        kind = str.__new__(cls, row.name)
        kind._value_ = row.name
        kind.row = row
        return kind

    BACKOFF = WaitRow(
        "backoff",
        _backoff,
        "Waiting before the next try ({what})",
        "before the next try ({what})",
        "after a failure",
        _without_backoff,
        names_reason=False,
        is_reported=False,
        is_grouped=True,
    )
    LIMIT = WaitRow(
        "limit",
        _limit,
        "Usage limit of {what}: waiting",
        "for the usage limit of {what}",
        "usage limit",
        _after_limit,
        capped="the limit lasts longer than max_limit_wait: one more try then",
        unknown="the agent does not say when it is over (limit_wait)",
    )
    OUTAGE = WaitRow(
        "outage",
        _outage,
        "Outage of {what}{detail}: waiting",
        "for the outage of {what}{detail}",
        "outage",
        _after_outage,
        names_reason=False,
    )
    DISK = WaitRow(
        "disk",
        _disk,
        "Too little disk space: waiting for more",
        "for disk space for {what}",
        "disk space",
        until="at most until",
        ends_early=True,
    )

    def line(self, what: str, outage: str) -> str:
        """Return the line of the log."""
        return _filled(self.row.line, what, outage)

    def target(self, what: str, outage: str) -> str:
        """Return what the run waits for, in a sentence after `waits`."""
        return _filled(self.row.target, one_line(what), one_line(outage))


def _filled(words: str, what: str, outage: str) -> str:
    return words.format(what=what, detail=f" ({outage})" if outage else "")


_BY_NAME: Mapping[str, WaitKind] = {kind.value: kind for kind in WaitKind}


def known_wait(name: str) -> WaitKind | None:
    """Return the kind with this name; None if this version does not know it."""
    return _BY_NAME.get(name)
