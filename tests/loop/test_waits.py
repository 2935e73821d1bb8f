"""Decisions about waits: when a run waits, for how long, and which agent runs meanwhile."""

import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert, to_builtins
from msgspec.structs import replace

from rooda.base.times import local_zone
from rooda.loop.outcome import Outcome, Verdict
from rooda.loop.stages.agent import Budget
from rooda.loop.state import Limits, SavedState, State, Status
from rooda.loop.stops import Stop, StopRule, stop
from rooda.loop.waits import (
    Patience,
    UsageLimit,
    choose,
    failure_pause,
    first_free,
    limited,
    outage_pause,
)
from rooda.world.agents.agent_report import Fault, Tokens, Usage
from rooda.world.agents.failure_kinds import FailureKind
from support.tables import each_row

NOW = datetime(2026, 11, 15, 23, 0, tzinfo=UTC)
AT = NOW.timestamp()
PATIENCE = Patience(limit_wait=300.0, backoff=10.0, max_backoff=60.0)


def fault(evidence: str = "limit reached", **more: Any) -> Fault:
    return Fault(FailureKind.LIMIT, evidence, **more)


@each_row(
    "reported,repeats,seconds,known",
    [
        (fault("resets 3am (UTC)"), 0, 4 * 3600 + 5, True),
        (fault("try again in 2 seconds"), 0, 2, True),
        (fault(resets=AT + 7200), 0, 7205, True),
        (fault(retry_after=30.0), 0, 30, True),
        (fault("resets 3am (UTC)", resets=AT + 7200), 0, 7205, True),
        (fault(), 0, 300, False),
        (fault(), 1, 600, False),
        (fault(), 9, 3600, False),
        (fault(), 10_000, 3600, False),
        # The service said "retry now" and refused again: rooda backs off.
        (fault(retry_after=0.0), 0, 0, True),
        (fault(retry_after=0.0), 1, 20, True),
        (fault(retry_after=0.0), 2, 40, True),
        (fault(resets=AT - 999), 3, 80, True),
        # A reset time a year from now is not believed.
        (fault(resets=AT + 1e9), 0, 300, False),
        (fault(resets=1.9e12), 0, 300, False),
        # The shown evidence is shortened, but rooda reads the whole text.
        (fault("quota exceeded", words="x" * 400 + " Please retry in 34s"), 0, 34, True),
    ],
)
def test_end_of_a_limit(reported: Fault, repeats: int, seconds: float, *, known: bool) -> None:
    before = UsageLimit("a", "A", AT, known=True, times=repeats) if repeats else None
    found = limited("a", "A", reported, NOW, PATIENCE, before)
    assert (found.agent, round(found.until - AT, 3), found.known) == ("a", seconds, known)
    assert (found.evidence, found.times) == (reported.evidence, repeats + 1)


@each_row(
    "until,chosen,free",
    [
        ({}, 0, None),
        ({0: 10}, 1, None),
        ({1: 10}, 0, None),
        ({0: -10, 1: 10}, 0, None),
        ({0: 30, 1: 10}, None, 10),
        ({0: 10, 1: 10, 7: 5}, None, 10),
        ({0: 10, 1: math.inf}, None, 10),
        ({7: 10, 8: 10}, 0, None),
    ],
)
def test_first_agent_without_a_limit_is_chosen(
    until: dict[int, float], chosen: int | None, free: float | None
) -> None:
    limits = [UsageLimit(str(place), "", AT + left, known=True) for place, left in until.items()]
    assert choose(["0", "1"], limits, AT) == chosen
    first = first_free(["0", "1"], limits, AT)
    assert (first and first.until) == (None if free is None else AT + free)


def test_agent_without_login_is_never_chosen_again() -> None:
    refused = Fault(FailureKind.AUTH, "401")
    assert limited("a", "A", refused, NOW, PATIENCE, None).until == math.inf


@pytest.mark.parametrize("tries,full", [(1, 10), (2, 20), (3, 40), (4, 60), (5, 60), (10_000, 60)])
def test_outage_pause_doubles_up_to_its_cap_with_jitter_of_one_half(
    tries: int, full: float
) -> None:
    assert outage_pause(tries, PATIENCE, 1.0) == full
    assert full / 2 < outage_pause(tries, PATIENCE, 0.3) < full


@pytest.mark.parametrize(
    "patience,pauses",
    [
        (Patience(), [10, 30, 90, 300, 300]),
        (PATIENCE, [10, 30, 60, 60, 60]),
        (Patience(backoff=1.0), [1, 3, 9, 30, 30]),
        (Patience(backoff=0.0), [0, 0, 0, 0, 0]),
        (Patience(backoff=60.0, max_backoff=20.0), [20, 20, 20, 20, 20]),
    ],
)
def test_pause_after_a_failure_grows_up_to_its_cap(patience: Patience, pauses: list[float]) -> None:
    assert [failure_pause(tries, patience) for tries in range(1, 6)] == pauses
    assert failure_pause(10_000, patience) == pauses[-1]


def outage(evidence: str = "529", kind: FailureKind = FailureKind.OVERLOADED, **more: Any) -> Fault:
    return Fault(kind, evidence, **more)


@each_row(
    "reported,before,seconds,known,times",
    [
        (outage(), None, 10, False, 1),
        (outage(), UsageLimit("a", "A", AT, known=False, times=1, outage="offline"), 20, False, 2),
        (outage(), UsageLimit("a", "A", AT, known=False, times=9, outage="offline"), 60, False, 10),
        # A usage limit before the outage has its own count.
        (outage(), UsageLimit("a", "A", AT, known=False, times=9), 10, False, 1),
        # The wait is at least as long as the service asks for.
        (outage(retry_after=45.0), None, 45, True, 1),
        (outage(retry_after=2.0), None, 10, False, 1),
        (outage("Overloaded. Please retry after 20s"), None, 20, True, 1),
        (outage("Overloaded", words="x" * 400 + " try again in 2 minutes"), None, 120, True, 1),
        (outage("this is temporary, try again in a moment"), None, 10, False, 1),
        (outage(retry_after=1e9), None, 10, False, 1),
        (outage("ENOTFOUND", FailureKind.OFFLINE), None, 10, False, 1),
    ],
)
def test_end_of_a_wait_for_an_outage(
    reported: Fault, before: UsageLimit | None, seconds: float, times: int, *, known: bool
) -> None:
    found = limited("a", "A", reported, NOW, PATIENCE, before, chance=1.0)
    assert (round(found.until - AT, 3), found.known, found.times) == (seconds, known, times)
    assert (found.outage, found.evidence) == (str(reported.kind), reported.evidence)


def test_usage_limit_after_an_outage_has_its_own_count() -> None:
    before = UsageLimit("a", "A", AT, known=False, times=9, outage="offline")
    found = limited("a", "A", fault(), NOW, PATIENCE, before)
    assert (found.until - AT, found.times, found.outage) == (300, 1, "")


def test_pauses_of_an_outage_have_jitter() -> None:
    assert limited("a", "A", outage(), NOW, PATIENCE, None, chance=0.0).until - AT == 5


@each_row("tries,least", [(1, 0.0), (5, 0.01), (10, 1.0), (20, 10.0), (9999, 10.0)])
def test_long_outage_without_backoff_is_no_busy_loop(tries: int, least: float) -> None:
    pause = outage_pause(tries, Patience(backoff=0, max_backoff=0), 0.0)
    assert least <= pause <= 10.0


LIMIT = Outcome(Verdict.LIMITED, FailureKind.LIMIT, "limit reached")
OVERLOADED = Outcome(Verdict.LIMITED, FailureKind.OVERLOADED, "529")
OFFLINE = Outcome(Verdict.LIMITED, FailureKind.OFFLINE, "ENOTFOUND")
LEFT_OUT = Outcome(Verdict.LIMITED, FailureKind.AUTH, "a fallback that is not logged in")
STARTUP = Outcome(Verdict.FAILURE, FailureKind.STARTUP, "exit code 1 before its first event")
BAD = Outcome(Verdict.FAILURE, FailureKind.EXIT, "exit code 1")
GOOD = Outcome(Verdict.CONTINUE)


def after(*outcomes: Outcome) -> State:
    state = State()
    for outcome in outcomes:
        state = state.after(outcome, 1.0)
    return state


def test_limit_changes_only_the_attempt() -> None:
    state = after(BAD, LIMIT, LIMIT)
    assert (state.iteration, state.attempt, state.consecutive_failures) == (1, 3, 1)
    assert state.stats.count == 1
    state = replace(state, limit_waited=60.0).after(GOOD, 1.0)
    assert (state.iteration, state.attempt, state.limit_waited) == (2, 1, 0.0)


def test_transient_failures_also_count_as_failures() -> None:
    state = after(BAD, STARTUP, STARTUP)
    assert (state.consecutive_failures, state.backoffs, state.backoff_due) == (3, 2, True)
    state = state.after(BAD, 1.0)
    assert (state.consecutive_failures, state.backoffs, state.backoff_due) == (4, 2, False)
    state = state.after(GOOD, 1.0)
    assert (state.consecutive_failures, state.backoffs, state.backoff_due) == (0, 0, False)


CLI_FAILURES = {FailureKind.EXIT, FailureKind.CRASH, FailureKind.EMPTY}
NO_PAUSE = set(FailureKind) - CLI_FAILURES - {FailureKind.STARTUP}


@pytest.mark.parametrize(
    "kinds,seconds,pauses,is_due",
    [
        (CLI_FAILURES, 29.9, True, True),
        (CLI_FAILURES, 30.0, True, False),
        (CLI_FAILURES, 1.0, False, False),
        ({FailureKind.STARTUP}, 300.0, False, True),
        (NO_PAUSE, 1.0, True, False),
    ],
)
def test_run_waits_after_fast_failures_of_the_cli_itself(
    kinds: set[FailureKind], seconds: float, *, pauses: bool, is_due: bool
) -> None:
    for kind in kinds:
        state = State().after(Outcome(Verdict.FAILURE, kind), seconds, pauses=pauses)
        assert (state.backoff_due, state.backoffs) == (is_due, int(is_due)), kind


def test_other_failures_between_do_not_shorten_the_next_pause() -> None:
    failed_check = Outcome(Verdict.FAILURE, FailureKind.VERIFY, "exit code 1")
    state = State()
    for outcome in (BAD, failed_check, LIMIT, BAD):
        state = state.after(outcome, 1.0, pauses=True)
    assert (state.backoffs, state.backoff_due) == (2, True)


@pytest.mark.parametrize("kind", [OVERLOADED, OFFLINE])
def test_outage_changes_only_the_attempt(kind: Outcome) -> None:
    state = after(BAD, kind, kind, kind, kind)
    assert (state.iteration, state.attempt, state.consecutive_failures) == (1, 5, 1)
    assert (state.stats.count, state.backoff_due) == (1, False)


@each_row(
    "outcomes,since",
    [
        ([], None),
        ([OVERLOADED], 1.0),  # from the end of the first try: the agent was running before
        ([BAD, OVERLOADED, OFFLINE, OVERLOADED], 2.0),
        ([OVERLOADED, LEFT_OUT], 1.0),  # a missing login says nothing about the service
        ([OVERLOADED, GOOD], None),
        ([OVERLOADED, BAD], None),
        ([OVERLOADED, LIMIT], None),
        ([OVERLOADED, STARTUP], None),
        ([OVERLOADED, BAD, OVERLOADED], 3.0),  # a new outage
    ],
)
def test_start_of_an_outage(outcomes: list[Outcome], since: float | None) -> None:
    state = after(*outcomes)
    assert state.outage_since == since
    later = replace(state, elapsed=60.0)
    assert later.outage_lasted == (0.0 if since is None else 60.0 - since)


def test_equal_failures_in_a_row_are_counted() -> None:
    assert after(BAD, BAD, BAD).same == 3
    assert after(BAD, OVERLOADED, BAD).same == 1
    assert after(BAD, GOOD, BAD).same == 1


def test_usage_adds_up_whatever_the_outcome() -> None:
    usage = Usage(tokens=Tokens(total=100), cost=0.5)
    state = State()
    for outcome in (GOOD, BAD, LIMIT):
        state = state.spent(usage).after(outcome, 1.0)
    state = state.spent(Usage()).after(GOOD, 1.0)
    assert (state.tokens, state.cost) == (300, 1.5)
    assert State.restored(state.saved()).cost == 1.5


def test_saved_state_without_budget_keys_can_be_read() -> None:
    written = to_builtins(State(iteration=2).saved())
    for key in ("cost", "tokens", "limited", "limit_waited"):
        del written[key]
    assert State.restored(convert(written, SavedState)) == State(iteration=2)


def test_limits_are_saved_in_the_state() -> None:
    limit = UsageLimit("claude -p", "claude", AT, known=False, evidence="limit", times=3)
    out = UsageLimit("codex", "codex", math.inf, known=False)
    found = State.restored(State(limited=(limit, out), limit_waited=60.0).saved())
    assert (found.limited, found.limit_waited) == ((limit,), 60.0)


def test_outage_is_not_saved_in_the_state() -> None:
    away = UsageLimit("claude -p", "claude", AT, known=False, times=3, outage="offline")
    found = State.restored(State(limited=(away,), outage_since=1.0).saved())
    assert (found.limited, found.outage_since) == ((), None)


HELD = UsageLimit("claude -p", "claude", AT + 60, known=True, evidence="limit reached")
WAITING = State(last=LIMIT, blocked=HELD)
AWAY = replace(HELD, outage="offline")
IN_OUTAGE = State(last=OFFLINE, blocked=AWAY, elapsed=100.0, outage_since=40.0)
AN_HOUR, A_MINUTE, NO_TIME = (Patience(max_outage_wait=most) for most in (3600, 60, 0))


@each_row(
    "state,limits,rule",
    [
        (WAITING, Limits(5, 3), None),
        (WAITING, Limits(5, 3, patience=Patience(wait_for_limits=False)), StopRule.LIMIT),
        (State(last=LIMIT), Limits(5, 3, patience=Patience(wait_for_limits=False)), None),
        (
            State(blocked=HELD),
            Limits(5, 3, patience=Patience(wait_for_limits=False)),
            StopRule.LIMIT,
        ),
        (WAITING, Limits(5, 3, patience=Patience(max_limit_wait=60)), None),
        (
            State(last=LIMIT, blocked=HELD, limit_waited=60),
            Limits(5, 3, patience=Patience(max_limit_wait=60)),
            StopRule.LIMIT,
        ),
        (IN_OUTAGE, Limits(5, 3), None),
        (IN_OUTAGE, Limits(5, 3, patience=AN_HOUR), None),
        (IN_OUTAGE, Limits(5, 3, patience=A_MINUTE), StopRule.MAX_OUTAGE_WAIT),
        (IN_OUTAGE, Limits(5, 3, patience=NO_TIME), StopRule.MAX_OUTAGE_WAIT),
        (IN_OUTAGE, Limits(5, 3, patience=Patience(max_outage_wait=None)), None),
        # Each bound applies to its own kind: a limit of hours is no outage, and an outage is no
        # limit.
        (replace(IN_OUTAGE, blocked=HELD), Limits(5, 3, patience=NO_TIME), None),
        (IN_OUTAGE, Limits(5, 3, patience=Patience(wait_for_limits=False)), None),
        (
            replace(IN_OUTAGE, limit_waited=60),
            Limits(5, 3, patience=Patience(max_limit_wait=60)),
            None,
        ),
        # The wait is over, or another agent runs: one more try.
        (replace(IN_OUTAGE, blocked=None), Limits(5, 3, patience=A_MINUTE), None),
        # If the user stopped the run, or max_duration is over, that is the reason.
        (replace(IN_OUTAGE, stopping=True), Limits(5, 3, patience=A_MINUTE), StopRule.STOPPED),
        (IN_OUTAGE, Limits(5, 3, 90.0, patience=A_MINUTE), StopRule.MAX_DURATION),
        (State(cost=2.0), Limits(5, 3, max_cost=2.0), StopRule.MAX_COST),
        (State(cost=1.99), Limits(5, 3, max_cost=2.0), None),
        (State(tokens=10), Limits(5, 3, max_tokens=10), StopRule.MAX_TOKENS),
        (State(last=Outcome(Verdict.ABORT, FailureKind.AUTH, "no")), Limits(5, 3), StopRule.AUTH),
        (State(last=Outcome(Verdict.ABORT, FailureKind.USAGE, "no")), Limits(5, 3), StopRule.USAGE),
        # SUCCESS wins over a spent budget.
        (
            State(last=Outcome(Verdict.COMPLETE), cost=9.0),
            Limits(5, 3, max_cost=2.0),
            StopRule.SIGNAL,
        ),
    ],
)
def test_rule_that_ends_a_run(state: State, limits: Limits, rule: StopRule | None) -> None:
    found = stop(state, limits)
    assert (found and found.rule) == rule
    if isinstance(found, Stop) and rule not in (StopRule.SIGNAL, StopRule.STOPPED):
        assert found.status is Status.ABORTED
        assert found.reason


@each_row(
    "budget,usage,rule",
    [
        (Budget(), Usage(cost=99.0), None),
        (Budget(cost=1.0), Usage(cost=0.99), None),
        (Budget(cost=1.0), Usage(cost=1.0), "max_cost"),
        (Budget(cost=1.0), Usage(), None),
        (Budget(cost=-1.0), Usage(cost=0.0), "max_cost"),
        (Budget(tokens=10), Usage(tokens=Tokens(total=9)), None),
        (Budget(tokens=10), Usage(tokens=Tokens(total=10)), "max_tokens"),
    ],
)
def test_budget_that_is_exceeded(budget: Budget, usage: Usage, rule: str | None) -> None:
    found = budget.exceeded(usage)
    assert (found and found.rule) == rule


def test_local_zone_is_a_zone_with_daylight_saving_time(tmp_path: Path) -> None:
    link = tmp_path / "localtime"
    link.symlink_to("/usr/share/zoneinfo/Europe/Berlin")
    assert str(local_zone("", link)) == "Europe/Berlin"
    assert str(local_zone("America/New_York", link)) == "America/New_York"
    assert str(local_zone(":Asia/Tokyo", link)) == "Asia/Tokyo"
    assert local_zone("CET-1CEST,M3.5.0,M10.5.0/3", link) is None
    assert local_zone("", tmp_path / "nothing") is None
    assert local_zone("../../etc/passwd", link) is None
