"""The outcome matrix as a table, and the outcomes of timeouts, interruptions and crashes."""

import signal

import pytest

from rooda.agents.failure_kinds import FailureKind
from rooda.loop.outcome import Outcome, Verdict, judge
from rooda.loop.promises import Promises
from rooda.process.exits import Exit, Exited, Interrupted, NotStarted, Signalled, TimedOut
from support.tables import each_row

NONE = Promises()
SUCCESS = Promises(success=True)
FAILURE = Promises(failure=True)
BOTH = Promises(success=True, failure=True)
ALL_PROMISES = each_row("promises", [NONE, SUCCESS, FAILURE, BOTH], ids=["none", "S", "F", "both"])


@each_row(
    "code,promises,verdict,kind",
    [
        (0, NONE, Verdict.CONTINUE, None),
        (0, SUCCESS, Verdict.COMPLETE, None),
        (0, FAILURE, Verdict.FAILURE, FailureKind.SIGNAL),
        (0, BOTH, Verdict.FAILURE, FailureKind.SIGNAL),
        (7, NONE, Verdict.FAILURE, FailureKind.EXIT),
        (7, SUCCESS, Verdict.COMPLETE, None),
        (7, FAILURE, Verdict.FAILURE, FailureKind.SIGNAL),
        (7, BOTH, Verdict.FAILURE, FailureKind.SIGNAL),
    ],
    ids=["0", "0+S", "0+F", "0+both", "7", "7+S", "7+F", "7+both"],
)
def test_eight_rows_of_the_matrix(
    code: int, promises: Promises, verdict: Verdict, kind: FailureKind | None
) -> None:
    outcome = judge(Exited(code), promises)
    assert (outcome.verdict, outcome.kind) == (verdict, kind)


@each_row(
    "promises,verdict,kind",
    [
        (NONE, Verdict.FAILURE, FailureKind.CRASH),
        (SUCCESS, Verdict.COMPLETE, None),
        (FAILURE, Verdict.FAILURE, FailureKind.SIGNAL),
        (BOTH, Verdict.FAILURE, FailureKind.SIGNAL),
    ],
    ids=["none", "S", "F", "both"],
)
def test_crash_is_judged_like_a_nonzero_exit_code(
    promises: Promises, verdict: Verdict, kind: FailureKind | None
) -> None:
    outcome = judge(Signalled(signal.SIGSEGV), promises)
    assert (outcome.verdict, outcome.kind) == (verdict, kind)


@ALL_PROMISES
def test_timeout_is_a_failure_whatever_was_signaled(promises: Promises) -> None:
    outcome = judge(TimedOut("iteration_timeout", 60.0), promises)
    assert (outcome.verdict, outcome.kind) == (Verdict.FAILURE, FailureKind.TIMEOUT)


@ALL_PROMISES
def test_interruption_overrides_each_signal(promises: Promises) -> None:
    assert judge(Interrupted(signal.SIGTERM), promises).verdict is Verdict.INTERRUPTED


@ALL_PROMISES
def test_agent_that_cannot_be_started_aborts_the_run(promises: Promises) -> None:
    outcome = judge(NotStarted("agent: Exec format error"), promises)
    assert outcome == Outcome(
        Verdict.ABORT, FailureKind.NOT_STARTED, reason="agent: Exec format error"
    )


@each_row(
    "end,reason",
    [
        (Exited(1), "exit code 1"),
        (Exited(255), "exit code 255"),
        (Signalled(signal.SIGSEGV), "killed by SIGSEGV"),
        (Signalled(signal.SIGKILL), "killed by SIGKILL"),
        (TimedOut("iteration_timeout", 5.0), "iteration_timeout"),
    ],
)
def test_failure_has_a_reason(end: Exit, reason: str) -> None:
    assert judge(end, NONE).reason == reason


@pytest.mark.parametrize(
    "end,despite",
    [(Exited(0), False), (Exited(1), True), (Signalled(signal.SIGKILL), True)],
    ids=["0", "1", "SIGKILL"],
)
def test_success_with_a_bad_exit_is_marked(end: Exit, despite: bool) -> None:  # noqa: FBT001
    assert judge(end, SUCCESS) == Outcome(Verdict.COMPLETE, despite_exit=despite)


@each_row("end", [Exited(0), Exited(7), Signalled(signal.SIGSEGV)], ids=str)
@each_row(
    "promises,verdict",
    [
        (NONE, Verdict.CONTINUE),
        (SUCCESS, Verdict.COMPLETE),
        (FAILURE, Verdict.FAILURE),
        (BOTH, Verdict.FAILURE),
    ],
    ids=["none", "S", "F", "both"],
)
def test_signals_still_count_with_ignore_exit_status(
    end: Exit, promises: Promises, verdict: Verdict
) -> None:
    outcome = judge(end, promises, ignore_exit_status=True)
    assert outcome.verdict is verdict
    assert not outcome.despite_exit, "an ignored exit code is not reported"


@pytest.mark.parametrize(
    "end,verdict",
    [
        (TimedOut("iteration_timeout", 1.0), Verdict.FAILURE),
        (Interrupted(signal.SIGINT), Verdict.INTERRUPTED),
        (NotStarted("gone"), Verdict.ABORT),
    ],
    ids=["timeout", "interrupted", "not started"],
)
def test_ignore_exit_status_ignores_no_timeout_interruption_or_start_error(
    end: Exit, verdict: Verdict
) -> None:
    assert judge(end, NONE, ignore_exit_status=True).verdict is verdict
