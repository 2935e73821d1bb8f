"""How an iteration changes the counters, and which condition ends a run."""

import functools
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from rooda.loop.outcome import Outcome, Verdict
from rooda.loop.state import Limits, State, Status
from rooda.loop.stops import (
    ExitCodes,
    Stop,
    StopRule,
    exit_code,
    known_rule,
    reason_of,
    stop,
)
from rooda.plan.settings.settings import SETTINGS
from rooda.world.agents.failure_kinds import FailureKind, known_kind
from rooda.world.tasks.standing import TaskLedger
from rooda.world.tasks.task_file import tasks_in
from support.tables import each_row

GOOD = Outcome(Verdict.CONTINUE)
BAD = Outcome(Verdict.FAILURE, FailureKind.EXIT, "exit code 1")
DONE = Outcome(Verdict.COMPLETE)
ABORT = Outcome(Verdict.ABORT, FailureKind.NOT_STARTED, "agent: No such file or directory")
STOPPED = Outcome(Verdict.INTERRUPTED, reason="SIGINT")


def state_after(outcomes: Iterable[Outcome], state: State | None = None) -> State:
    """Return the state after iterations of one second each."""
    return functools.reduce(lambda s, o: s.after(o, 1.0), outcomes, state or State())


def status(state: State, maximum: int | None = 5, threshold: int = 3) -> Status | None:
    found = stop(state, Limits(maximum, threshold))
    return found.status if found else None


def run_until_stop(
    outcomes: Iterable[Outcome], maximum: int | None, threshold: int = 3
) -> tuple[int, str]:
    """Play outcomes until a condition ends the run.

    Return the number of iterations and the status.
    """
    state = State()
    for number, outcome in enumerate(outcomes):
        found = stop(state, Limits(maximum, threshold))
        if found:
            return number, found.status.value
        state = state.after(outcome, 1.0)
    return state.iteration, (status(state, maximum, threshold) or Status.RUNNING).value


def test_new_run_has_counted_nothing() -> None:
    state = State()
    assert (state.iteration, state.consecutive_failures, state.stats.count) == (0, 0, 0)
    assert status(state) is None


def test_each_failure_counts_and_a_success_resets_the_count() -> None:
    counts, state = [], State()
    for outcome in (BAD, BAD, GOOD, BAD, GOOD, GOOD, BAD):
        state = state.after(outcome, 1.0)
        counts.append(state.consecutive_failures)
    assert counts == [1, 2, 0, 1, 0, 0, 1]
    assert state.iteration == 7


@each_row("kind", FailureKind)
def test_each_kind_of_failure_counts(kind: FailureKind) -> None:
    assert state_after([Outcome(Verdict.FAILURE, kind, "why")] * 2).consecutive_failures == 2


def test_iteration_with_success_signal_counts() -> None:
    state = state_after([BAD, DONE])
    assert (state.iteration, state.consecutive_failures, state.stats.count) == (2, 0, 2)


def test_interrupted_iteration_has_a_time_but_is_not_completed() -> None:
    state = state_after([GOOD, STOPPED])
    assert (state.iteration, state.stats.count) == (1, 2)


def test_iteration_that_never_ran_has_no_time_and_is_not_completed() -> None:
    state = state_after([GOOD, ABORT])
    assert (state.iteration, state.stats.count) == (1, 1)


def test_interruption_is_no_failure() -> None:
    assert state_after([BAD, BAD, STOPPED]).consecutive_failures == 2


@each_row("threshold", [1, 2, 3, 7])
def test_run_aborts_exactly_at_the_failure_threshold(threshold: int) -> None:
    assert run_until_stop([BAD] * 20, 10, threshold) == (threshold, "aborted")
    assert status(state_after([BAD] * (threshold - 1)), 10, threshold) is None


def test_two_failures_and_a_success_do_not_end_a_run() -> None:
    assert run_until_stop([BAD, BAD, GOOD, BAD, BAD, GOOD], 100) == (6, "running")


@pytest.mark.parametrize("maximum", [1, 5])
def test_run_ends_exactly_at_the_maximum(maximum: int) -> None:
    assert run_until_stop([GOOD] * 20, maximum) == (maximum, "max-iters")


def test_single_failed_iteration_ends_as_max_iters_or_aborted_by_the_threshold() -> None:
    assert run_until_stop([BAD], 1, threshold=3) == (1, "max-iters")
    assert run_until_stop([BAD], 1, threshold=1) == (1, "aborted")


def test_run_with_one_iteration_ends_as_that_iteration() -> None:
    limits = Limits(1, 1, once=True)
    assert stop(State(), limits) is None
    assert stop(state_after([GOOD]), limits) == Stop(Status.SUCCESS, StopRule.ONCE)
    found = stop(state_after([BAD]), limits)
    assert found is not None
    assert found.status is Status.ABORTED


def test_failure_threshold_is_checked_before_the_maximum() -> None:
    assert run_until_stop([GOOD, GOOD, BAD, BAD, BAD], 5) == (5, "aborted")


def test_unlimited_run_ends_only_by_failures_or_success() -> None:
    assert run_until_stop([GOOD] * 1000, None) == (1000, "running")
    assert run_until_stop([*[GOOD] * 50, DONE, GOOD], None) == (51, "success")
    assert run_until_stop([*[GOOD] * 50, BAD, BAD, BAD, GOOD], None) == (53, "aborted")


@each_row(
    "state,expected",
    [
        (State(iteration=5, consecutive_failures=3, interrupted=True), Status.INTERRUPTED),
        (State(iteration=5, last=DONE, interrupted=True), Status.INTERRUPTED),
        (State(iteration=5, last=ABORT, interrupted=True), Status.INTERRUPTED),
        (State(iteration=5, consecutive_failures=3, last=STOPPED), Status.INTERRUPTED),
        (State(iteration=5, last=DONE), Status.SUCCESS),
        (State(iteration=5, last=ABORT), Status.ABORTED),
        (State(iteration=5, consecutive_failures=3), Status.ABORTED),
        (State(iteration=5), Status.MAX_ITERS),
        (State(iteration=4, consecutive_failures=2, last=BAD), None),
    ],
)
def test_strongest_condition_decides(state: State, expected: Status | None) -> None:
    assert status(state) is expected


@each_row(
    "state,expected",
    [
        (State(last=STOPPED), Stop(Status.INTERRUPTED, StopRule.INTERRUPTED)),
        (State(last=DONE), Stop(Status.SUCCESS, StopRule.SIGNAL)),
        (State(last=ABORT), Stop(Status.ABORTED, StopRule.NOT_STARTED, ABORT.reason)),
        (State(consecutive_failures=3), Stop(Status.ABORTED, StopRule.FAILURE_THRESHOLD)),
        (State(iteration=5), Stop(Status.MAX_ITERS, StopRule.MAX_ITERATIONS)),
    ],
    ids=["interrupted", "signal", "not started", "threshold", "maximum"],
)
def test_stop_names_its_rule(state: State, expected: Stop) -> None:
    assert stop(state, Limits(5, 3)) == expected


@given(
    st.lists(st.sampled_from([GOOD, BAD]), max_size=30),
    st.integers(1, 12) | st.none(),
    st.integers(1, 6),
)
def test_run_never_exceeds_its_limits(
    outcomes: list[Outcome], maximum: int | None, threshold: int
) -> None:
    count, end = run_until_stop(outcomes, maximum, threshold)
    assert maximum is None or count <= maximum
    state = state_after(outcomes[:count])
    assert state.consecutive_failures <= threshold
    assert (end == "aborted") == (state.consecutive_failures == threshold)
    assert (end == "max-iters") == (count == maximum and end != "aborted")


KEYS = {setting.key for setting in SETTINGS}


@each_row("row", [*FailureKind, *StopRule], ids=repr)
def test_each_kind_and_rule_has_a_sentence_and_names_existing_settings(
    row: FailureKind | StopRule,
) -> None:
    assert row.row.sentence
    assert set(row.row.settings) <= KEYS


def test_name_of_another_version_is_no_error() -> None:
    assert known_kind("auth") is FailureKind.AUTH
    assert known_rule("auth") is StopRule.AUTH
    assert known_kind("of-another-version") is None
    assert known_rule("of-another-version") is None


def test_a_run_pauses_only_where_no_other_rule_ends_it() -> None:
    limits = Limits(5, 3, pause_at=2)
    assert stop(state_after([GOOD]), limits) is None
    for outcomes in ([GOOD, GOOD], [GOOD, BAD], [BAD, BAD]):
        assert stop(state_after(outcomes), limits) == Stop(Status.INTERRUPTED, StopRule.PAUSED)
    for outcomes, rule in (
        ([GOOD, DONE], StopRule.SIGNAL),
        ([BAD, BAD, BAD], StopRule.FAILURE_THRESHOLD),
        ([GOOD] * 5, StopRule.MAX_ITERATIONS),
    ):
        found = stop(state_after(outcomes), limits)
        assert found is not None
        assert found.rule is rule


# -- done_when ------------------------------------------------------------------------------

REFUSED = Outcome(Verdict.FAILURE, FailureKind.NOT_DONE, "PLAN.md has 1 open task")
SAYS_BLOCKED = Outcome(Verdict.FAILURE, FailureKind.SIGNAL, "the agent says that it is blocked")
BY_TASKS = Limits(9, 9, by_tasks=True)


@pytest.mark.parametrize(
    "outcomes, rule",
    [
        ([REFUSED, REFUSED], None),
        ([REFUSED, REFUSED, REFUSED], StopRule.NOT_DONE),
        ([REFUSED, REFUSED, GOOD, REFUSED], None),
        ([REFUSED, REFUSED, BAD, REFUSED], None),
        ([REFUSED, REFUSED, STOPPED, REFUSED], StopRule.NOT_DONE),
        ([REFUSED, GOOD, REFUSED, REFUSED, REFUSED], StopRule.NOT_DONE),
        ([Outcome(Verdict.COMPLETE, done="all tasks in PLAN.md are done")], StopRule.DONE),
        ([DONE], StopRule.SIGNAL),
    ],
)
def test_three_refusals_in_a_row_end_a_run_whatever_the_threshold(
    outcomes: list[Outcome], rule: StopRule | None
) -> None:
    found = stop(state_after(outcomes), BY_TASKS)
    assert (found and found.rule) == rule


def test_refusals_at_the_maximum_or_the_threshold() -> None:
    refused = state_after([REFUSED, REFUSED])
    assert status(refused, maximum=2) is Status.MAX_ITERS
    found = stop(state_after([REFUSED], refused), Limits(3, 3))
    assert found is not None
    assert found.rule is StopRule.NOT_DONE
    assert found.reason.endswith("SUCCESS 3 times in a row, but PLAN.md has 1 open task")
    ralph = stop(state_after([REFUSED], refused), Limits(3, 3, success="COMPLETE"))
    assert ralph is not None
    assert ralph.reason.startswith("the agent signaled COMPLETE 3 times")


@pytest.mark.parametrize(
    "text, last, is_end",
    [
        ("- [x] A\n- [!] B\n", None, True),
        ("- [x] A\n- [!] B\n", GOOD, True),
        ("- [x] A\n- [!] B\n", REFUSED, True),
        ("- [x] A\n- [!] B\n", SAYS_BLOCKED, True),
        ("- [x] A\n- [!] B\n", BAD, False),  # an agent may still repair it
        ("- [ ] A\n- [!] B\n", GOOD, False),
        ("- [x] A\n", GOOD, False),
    ],
)
def test_run_ends_if_only_blocked_tasks_are_left(
    text: str, last: Outcome | None, *, is_end: bool
) -> None:
    tasks = TaskLedger().standing(tasks_in(text))
    state = structs.replace(state_after([last] if last else []), tasks=tasks)
    found = stop(state, BY_TASKS)
    assert found == (
        Stop(Status.ABORTED, StopRule.BLOCKED_TASKS, "only blocked tasks are left: B")
        if is_end
        else None
    )
    assert stop(state, Limits(9, 9)) is None


def test_reason_names_the_last_of_several_failures() -> None:
    threshold, by_signal = StopRule.FAILURE_THRESHOLD, StopRule.SIGNAL
    words = "3 failures in a row, the last one: exit code 3"
    assert reason_of(threshold, "", 3, "exit code 3") == words
    assert reason_of(threshold, "", 3, "") == "3 failures in a row"
    assert reason_of(by_signal, "", 0, "exit code 3") == by_signal.row.reason
    assert reason_of(threshold, "another reason", 3, "exit code 3") == "another reason"


CODES = ExitCodes(at_maximum=20, agent=21, verify=22, git=23, required_file=24)


@each_row(
    "rule,kind,code",
    [
        (StopRule.SIGNAL, None, 0),
        (StopRule.DONE, None, 0),
        (StopRule.ONCE, None, 0),
        (StopRule.PAUSED, None, 0),
        (StopRule.INTERRUPTED, FailureKind.EXIT, 130),
        (StopRule.STOPPED, None, 130),
        (StopRule.MAX_ITERATIONS, FailureKind.VERIFY, 20),
        (StopRule.REQUIRED_FILE, FailureKind.EXIT, 24),
        (StopRule.FAILURE_THRESHOLD, FailureKind.EXIT, 21),
        (StopRule.FAILURE_THRESHOLD, FailureKind.VERIFY, 22),
        (StopRule.FAILURE_THRESHOLD, FailureKind.COMMIT, 23),
        (StopRule.AUTH, FailureKind.AUTH, 21),
        (StopRule.NOT_STARTED, FailureKind.PROMPT, 1),
        (StopRule.MAX_COST, FailureKind.VERIFY, 1),
        (StopRule.STALL, FailureKind.EXIT, 1),
        (StopRule.MIN_FREE_DISK, None, 1),
    ],
)
def test_exit_code_follows_from_the_rule_and_from_what_failed(
    rule: StopRule, kind: FailureKind | None, code: int
) -> None:
    last = Outcome(Verdict.FAILURE, kind) if kind else None
    assert exit_code(Stop(rule.row.status, rule), last, CODES) == code
    usual = {20: 2, 21: 1, 22: 1, 23: 1, 24: 1}.get(code, code)
    assert exit_code(Stop(rule.row.status, rule), last, ExitCodes()) == usual
