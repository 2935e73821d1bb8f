"""What an iteration does to the counters, and which condition ends a run."""

import functools
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooda.agents.failure_kinds import FailureKind, known_kind
from rooda.config.settings import SETTINGS
from rooda.loop.outcome import Outcome, Verdict
from rooda.loop.state import Limits, State, Status
from rooda.loop.stops import Stop, StopRule, known_rule, stop

GOOD = Outcome(Verdict.CONTINUE)
BAD = Outcome(Verdict.FAILURE, FailureKind.EXIT, "exit code 1")
DONE = Outcome(Verdict.COMPLETE)
ABORT = Outcome(Verdict.ABORT, FailureKind.NOT_STARTED, "agent: No such file or directory")
STOPPED = Outcome(Verdict.INTERRUPTED, reason="SIGINT")


def played(outcomes: Iterable[Outcome], state: State | None = None) -> State:
    """The state after iterations of a second each."""
    return functools.reduce(lambda s, o: s.after(o, 1.0), outcomes, state or State())


def status(state: State, maximum: int | None = 5, threshold: int = 3) -> Status | None:
    found = stop(state, Limits(maximum, threshold))
    return found.status if found else None


def ran(outcomes: Iterable[Outcome], maximum: int | None, threshold: int = 3) -> tuple[int, str]:
    """Play outcomes until a condition holds: how many iterations, and the status."""
    state = State()
    for number, outcome in enumerate(outcomes):
        found = stop(state, Limits(maximum, threshold))
        if found:
            return number, found.status.value
        state = state.after(outcome, 1.0)
    return state.iteration, (status(state, maximum, threshold) or Status.RUNNING).value


def test_a_run_starts_with_nothing_counted() -> None:
    state = State()
    assert (state.iteration, state.consecutive_failures, state.stats.count) == (0, 0, 0)
    assert status(state) is None


def test_each_failure_counts_and_a_success_resets() -> None:
    counts, state = [], State()
    for outcome in (BAD, BAD, GOOD, BAD, GOOD, GOOD, BAD):
        state = state.after(outcome, 1.0)
        counts.append(state.consecutive_failures)
    assert counts == [1, 2, 0, 1, 0, 0, 1]
    assert state.iteration == 7


@pytest.mark.parametrize("kind", FailureKind)
def test_every_kind_of_failure_counts_alike(kind: FailureKind) -> None:
    assert played([Outcome(Verdict.FAILURE, kind, "why")] * 2).consecutive_failures == 2


def test_the_iteration_that_said_success_counts() -> None:
    state = played([BAD, DONE])
    assert (state.iteration, state.consecutive_failures, state.stats.count) == (2, 0, 2)


def test_an_interrupted_iteration_has_a_time_but_is_not_completed() -> None:
    state = played([GOOD, STOPPED])
    assert (state.iteration, state.stats.count) == (1, 2)


def test_an_iteration_that_never_ran_has_neither() -> None:
    state = played([GOOD, ABORT])
    assert (state.iteration, state.stats.count) == (1, 1)


def test_an_interruption_is_no_failure() -> None:
    assert played([BAD, BAD, STOPPED]).consecutive_failures == 2


@pytest.mark.parametrize("threshold", [1, 2, 3, 7])
def test_the_threshold_is_reached_exactly(threshold: int) -> None:
    assert ran([BAD] * 20, 10, threshold) == (threshold, "aborted")
    assert status(played([BAD] * (threshold - 1)), 10, threshold) is None


def test_two_failures_and_a_success_go_on() -> None:
    assert ran([BAD, BAD, GOOD, BAD, BAD, GOOD], 100) == (6, "running")


@pytest.mark.parametrize("maximum", [1, 5])
def test_as_many_iterations_run_as_were_asked_for(maximum: int) -> None:
    assert ran([GOOD] * 20, maximum) == (maximum, "max-iters")


def test_one_iteration_that_fails_is_max_iters_or_aborted_by_the_threshold() -> None:
    assert ran([BAD], 1, threshold=3) == (1, "max-iters")
    assert ran([BAD], 1, threshold=1) == (1, "aborted")


def test_the_threshold_is_looked_at_before_the_maximum() -> None:
    assert ran([GOOD, GOOD, BAD, BAD, BAD], 5) == (5, "aborted")


def test_without_a_maximum_only_failures_and_success_end_a_run() -> None:
    assert ran([GOOD] * 1000, None) == (1000, "running")
    assert ran([*[GOOD] * 50, DONE, GOOD], None) == (51, "success")
    assert ran([*[GOOD] * 50, BAD, BAD, BAD, GOOD], None) == (53, "aborted")


@pytest.mark.parametrize(
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
def test_the_strongest_condition_decides(state: State, expected: Status | None) -> None:
    assert status(state) is expected


@pytest.mark.parametrize(
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
def test_a_stop_names_its_rule(state: State, expected: Stop) -> None:
    assert stop(state, Limits(5, 3)) == expected


@given(
    st.lists(st.sampled_from([GOOD, BAD]), max_size=30),
    st.integers(1, 12) | st.none(),
    st.integers(1, 6),
)
def test_a_run_never_passes_its_limits(
    outcomes: list[Outcome], maximum: int | None, threshold: int
) -> None:
    count, end = ran(outcomes, maximum, threshold)
    assert maximum is None or count <= maximum
    state = played(outcomes[:count])
    assert state.consecutive_failures <= threshold
    assert (end == "aborted") == (state.consecutive_failures == threshold)
    assert (end == "max-iters") == (count == maximum and end != "aborted")


KEYS = {setting.key for setting in SETTINGS}


@pytest.mark.parametrize("row", [*FailureKind, *StopRule], ids=repr)
def test_each_row_has_a_sentence_and_names_settings_that_exist(row: FailureKind | StopRule) -> None:
    assert row.row.sentence
    assert set(row.row.settings) <= KEYS


def test_a_name_of_another_version_is_no_error() -> None:
    assert known_kind("auth") is FailureKind.AUTH
    assert known_rule("auth") is StopRule.AUTH
    assert known_kind("of-another-version") is None
    assert known_rule("of-another-version") is None
