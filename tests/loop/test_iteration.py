"""Decisions of the stages of an iteration, without a process: hooks, verify, progress."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from rooda.loop.outcome import Outcome, Verdict
from rooda.loop.stages import hooks, verify
from rooda.loop.stages.hooks import Moment
from rooda.loop.state import Limits, Progress, State, Status
from rooda.loop.stops import Stop, StopRule, stop
from rooda.plan.settings.feature_kinds import Hook, OnError
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.process.exits import (
    Exit,
    Exited,
    Interrupted,
    Lost,
    NotStarted,
    Signalled,
    TimedOut,
)
from rooda.world.tools import Finished
from support.tables import each_row

GOOD, DONE = Outcome(Verdict.CONTINUE), Outcome(Verdict.COMPLETE)
BAD = Outcome(Verdict.FAILURE, FailureKind.EXIT, "exit code 1")
SKIPPED = Outcome(Verdict.FAILURE, FailureKind.HOOK, "a hook failed", skipped=True)
STOPPED = Outcome(Verdict.INTERRUPTED, reason="SIGINT")
ENDS: tuple[tuple[Exit, str], ...] = (
    (Exited(3), "exit code 3"),
    (Signalled(11), "killed by SIGSEGV"),
    (TimedOut("timeout", 30.0), "timed out after 30s"),
    (Lost("the warden was killed"), "the warden was killed"),
    (NotStarted("no room"), "no room"),
)


def finished(end: Exit, output: bytes = b"") -> Finished:
    return Finished(end, output, 1.0)


def state_after_trees(*trees: str | None, made: bool = True, start: str = "start") -> State:
    """Return the state after good iterations that left these trees."""
    state = State(trees=((start, 0),))
    for tree in trees:
        state = state.after(GOOD, 1.0, Progress(made, tree))
    return state


# -- hooks ----------------------------------------------------------------------------------


@each_row("moment", Moment)
@each_row("on_error", get_args(OnError))
def test_passing_hook_changes_no_outcome(moment: Moment, on_error: OnError) -> None:
    assert hooks.judge(Hook("true", on_error=on_error), moment, finished(Exited(0))) is None


@each_row("moment", Moment)
@each_row("end,words", ENDS, ids=[words for _, words in ENDS])
def test_failing_hook_with_on_error_ignore_changes_no_outcome(
    moment: Moment, end: Exit, words: str
) -> None:
    assert finished(end).error == words
    assert hooks.judge(Hook("false"), moment, finished(end)) is None


@each_row(
    "moment,on_error,verdict,skipped",
    [
        (Moment.LOOP_START, "fail", Verdict.ABORT, False),
        (Moment.LOOP_START, "abort", Verdict.ABORT, False),
        (Moment.PRE_ITERATION, "fail", Verdict.FAILURE, True),
        (Moment.PRE_ITERATION, "abort", Verdict.ABORT, True),
        (Moment.POST_ITERATION, "fail", Verdict.FAILURE, False),
        (Moment.POST_ITERATION, "abort", Verdict.ABORT, False),
        (Moment.ON_FAILURE, "fail", None, False),
        (Moment.ON_FAILURE, "abort", Verdict.ABORT, False),
        (Moment.ON_WAIT, "fail", None, False),
        (Moment.ON_WAIT, "abort", Verdict.ABORT, False),
        (Moment.LOOP_END, "fail", None, False),
        (Moment.LOOP_END, "abort", None, False),
    ],
)
@each_row("end,words", ENDS, ids=[words for _, words in ENDS])
def test_failing_hook_decides_the_outcome_by_its_event_and_on_error(
    moment: Moment,
    on_error: OnError,
    verdict: Verdict | None,
    skipped: bool,  # noqa: FBT001 - a column
    end: Exit,
    words: str,
) -> None:
    found = hooks.judge(Hook("false", on_error=on_error), moment, finished(end))
    if verdict is None:
        assert found is None
        return
    reason = f"the {moment} hook failed: {words}"
    seen = f"{words} from false"
    assert found == Outcome(verdict, FailureKind.HOOK, reason, skipped=skipped, evidence=seen)


@each_row("moment", Moment)
@each_row("on_error", get_args(OnError))
def test_interrupted_hook_is_no_failure(moment: Moment, on_error: OnError) -> None:
    found = hooks.judge(Hook("sleep 9", on_error=on_error), moment, finished(Interrupted(2)))
    assert found == Outcome(Verdict.INTERRUPTED, reason="interrupted")


# -- verify ---------------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", [GOOD, DONE])
def test_passing_check_keeps_the_outcome(outcome: Outcome) -> None:
    assert verify.judge(outcome, finished(Exited(0))) is outcome


@each_row("outcome", [GOOD, DONE, Outcome(Verdict.COMPLETE, despite_exit=True)])
@each_row("end,words", ENDS, ids=[words for _, words in ENDS])
def test_failing_check_overrides_each_outcome(outcome: Outcome, end: Exit, words: str) -> None:
    found = verify.judge(outcome, finished(end))
    assert found.evidence.startswith(f"{words} after ")
    assert replace(found, evidence="") == Outcome(
        Verdict.FAILURE, FailureKind.VERIFY, f"verify failed: {words}"
    )


def test_interrupted_check_is_no_failure() -> None:
    assert verify.judge(DONE, finished(Interrupted(15))).verdict is Verdict.INTERRUPTED


@given(st.text())
def test_output_of_a_check_can_never_be_a_heading_of_the_prompt(text: str) -> None:
    assert all(line.startswith("    ") for line in verify.indented(text).splitlines())


@given(st.binary(max_size=300), st.integers(1, 50))
def test_last_words_are_short_and_without_control_codes(output: bytes, most: int) -> None:
    words = finished(Exited(1), output).last_words(most)
    assert len(words) <= most
    assert "\x1b" not in words


def test_last_words_are_the_end_of_the_output() -> None:
    assert finished(Exited(1), b"first\nand \x1b[31mlast\x1b[0m\n\n").last_words(8) == "and last"


# -- progress -------------------------------------------------------------------------------


def test_new_tree_is_progress_and_a_known_tree_needs_other_progress() -> None:
    assert state_after_trees("a", "b", "c").idle == 0
    assert state_after_trees("a", "a").idle == 0, "better test results without a changed file"
    assert state_after_trees("a", "a", made=False).idle == 2


def test_return_to_an_earlier_tree_is_no_progress() -> None:
    assert [state_after_trees(*"abab"[:n]).idle for n in range(1, 5)] == [0, 0, 1, 2]
    assert state_after_trees("a", "start", "a", "start").idle == 3
    assert state_after_trees("a", "b", "c", "a", "b", "c").idle == 3, "a circle of three trees"
    assert state_after_trees("a", "b", "a", "new").idle == 0


@each_row(
    "tree,number",
    [("start", 0), ("a", 1), ("b", 2), ("c", None), ("never", None), (None, None)],
)
def test_returned_to_names_the_iteration_that_left_the_tree(
    tree: str | None, number: int | None
) -> None:
    assert state_after_trees("a", "b", "c").returned_to(tree) == number


def test_unknown_tree_was_never_seen_before() -> None:
    assert State().returned_to("a") is None
    state = state_after_trees("a", None, "b", None, "a")
    assert state.trees == (("start", 0), ("a", 1), ("b", 3), ("a", 5))
    assert state.idle == 1


def test_interruption_is_no_iteration_without_progress() -> None:
    state = state_after_trees("a", made=False).after(
        STOPPED, 1.0, Progress(made=False, tree="b"), "words"
    )
    assert (state.iteration, state.idle, state.trees[-1]) == (1, 1, ("a", 1))
    assert (state.feedback, state.attempt) == ("", 2)


def test_skipped_iteration_has_a_number_and_no_time() -> None:
    state = State().after(GOOD, 1.0).after(SKIPPED, 1.0)
    assert (state.iteration, state.consecutive_failures, state.stats.count) == (2, 1, 1)


def test_feedback_is_only_in_the_next_prompt() -> None:
    state = State().after(BAD, 1.0, feedback="the roof is missing")
    assert state.feedback == "the roof is missing"
    assert state.after(GOOD, 1.0).feedback == ""


@given(st.lists(st.sampled_from([None, "start", *"abcdef"]), max_size=40), st.booleans())
def test_idle_counts_the_iterations_since_the_last_progress(
    trees: list[str | None],
    made: bool,  # noqa: FBT001 - given
) -> None:
    state = state_after_trees(*trees, made=made)
    assert 0 <= state.idle <= len(trees)
    if not made:
        assert state.idle == len(trees)
    new = state.after(GOOD, 1.0, Progress(made=True, tree="a new tree"))
    assert new.idle == 0
    assert State.restored(new.saved()) == State(
        iteration=new.iteration, stats=new.stats, elapsed=new.elapsed, trees=new.trees
    )


def test_at_most_100_trees_are_remembered() -> None:
    state = state_after_trees(*(f"tree {number}" for number in range(1500)))
    assert len(state.trees) == 100
    assert state.returned_to("tree 1400") == 1401


# -- stall ----------------------------------------------------------------------------------


@each_row("idle,threshold,ends", [(2, 3, False), (3, 3, True), (4, 3, True), (99, None, False)])
def test_stall_ends_the_run_if_stall_threshold_is_set(
    idle: int,
    threshold: int | None,
    ends: bool,  # noqa: FBT001 - a column
) -> None:
    found = stop(State(idle=idle), Limits(None, 3, stall_threshold=threshold))
    words = f"{idle} iterations without progress (stall_threshold)"
    assert found == (Stop(Status.ABORTED, StopRule.STALL, words) if ends else None)


def test_reason_for_one_iteration_without_progress_is_singular() -> None:
    found = stop(State(idle=1), Limits(None, 3, stall_threshold=1))
    assert found is not None
    assert found.reason == "1 iteration without progress (stall_threshold)"


@each_row(
    "state,rule",
    [
        (State(idle=3, last=DONE), StopRule.SIGNAL),
        (State(idle=3, interrupted=True), StopRule.INTERRUPTED),
        (State(idle=3, consecutive_failures=3), StopRule.FAILURE_THRESHOLD),
        (State(idle=3, iteration=5), StopRule.STALL),
        (State(idle=3, stopping=True), StopRule.STALL),
    ],
)
def test_rule_that_ends_a_stalled_run_if_another_applies_too(state: State, rule: StopRule) -> None:
    found = stop(state, Limits(5, 3, stall_threshold=3))
    assert found is not None
    assert found.rule is rule
