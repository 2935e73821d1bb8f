"""The outcome matrix as a table, and the outcomes of timeouts, interruptions and crashes."""

import signal

import pytest

from rooda.loop.outcome import Outcome, Verdict, judge, without_stand_in
from rooda.loop.stages.promises import Promises
from rooda.world.agents.agent_report import AgentReport, Fault
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.process.exits import (
    Canceled,
    Exit,
    Exited,
    Interrupted,
    Lost,
    NotStarted,
    Signalled,
    TimedOut,
)
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


# -- what a known CLI reports --------------------------------------------------------------

SILENT = AgentReport(answered=False, is_mute=True)
CUT = "without the result that ends its output"


@each_row(
    "end,report,changed,kind,reason",
    [
        (Exited(0), AgentReport(), True, None, ""),
        (Exited(0), AgentReport(), False, None, ""),
        (Exited(0), AgentReport(ended_well=True), True, None, ""),
        (Exited(0), AgentReport(ended_well=False, complaint="boom"), True, "EXIT", "boom"),
        (Exited(3), AgentReport(ended_well=True), True, "EXIT", "exit code 3"),
        (Exited(3), AgentReport(is_complete=False), True, "EXIT", CUT),
        (Exited(3), AgentReport(is_complete=False, retrying="x"), True, "EXIT", "retrying: x"),
        (Exited(3), AgentReport(is_mute=True), True, "STARTUP", "before its first event"),
        (Signalled(signal.SIGSEGV), AgentReport(is_mute=True), True, "CRASH", "SIGSEGV"),
        (Exited(0), AgentReport(is_complete=False), True, "CRASH", CUT),
        (Exited(0), AgentReport(is_mute=True), True, "STARTUP", "without any event"),
        (Exited(0), SILENT, True, "STARTUP", "without any event"),
        (Exited(0), SILENT, False, "STARTUP", "without any event"),
        (Exited(0), AgentReport(answered=False), False, "EMPTY", "changed nothing"),
        (Exited(0), AgentReport(answered=False), True, None, ""),
    ],
)
def test_report_of_a_known_cli_can_show_a_failure(
    end: Exit,
    report: AgentReport,
    changed: bool,  # noqa: FBT001 - a column
    kind: str | None,
    reason: str,
) -> None:
    found = judge(end, NONE, report, changed=changed)
    assert found.kind is (FailureKind[kind] if kind else None)
    assert found.verdict is (Verdict.FAILURE if kind else Verdict.CONTINUE)
    assert reason in found.reason
    assert judge(end, SUCCESS, report, changed=changed).verdict is Verdict.COMPLETE
    if kind != "EXIT" or not report.complaint:
        ignored = judge(end, NONE, report, changed=changed, ignore_exit_status=True)
        assert ignored.verdict is Verdict.CONTINUE


@each_row(
    "kind,verdict",
    [
        (FailureKind.LIMIT, Verdict.LIMITED),
        (FailureKind.OVERLOADED, Verdict.LIMITED),
        (FailureKind.OFFLINE, Verdict.LIMITED),
        (FailureKind.AUTH, Verdict.ABORT),
        (FailureKind.USAGE, Verdict.ABORT),
        (FailureKind.CONTEXT, Verdict.FAILURE),
    ],
)
def test_reported_fault_beats_the_exit_code(kind: FailureKind, verdict: Verdict) -> None:
    fault = Fault(kind, "its words")
    for end in (Exited(0), Exited(3)):
        found = judge(end, NONE, AgentReport(fault=fault))
        assert found == Outcome(verdict, kind, "its words", fault=fault)


@each_row(
    "outcome,verdict",
    [
        (Outcome(Verdict.ABORT, FailureKind.AUTH, "no key"), Verdict.LIMITED),
        (Outcome(Verdict.ABORT, FailureKind.USAGE, "bad flag"), Verdict.LIMITED),
        (Outcome(Verdict.ABORT, FailureKind.NOT_STARTED, "no such file"), Verdict.LIMITED),
        (Outcome(Verdict.ABORT, FailureKind.HOOK, "stop"), Verdict.ABORT),
        (Outcome(Verdict.ABORT), Verdict.ABORT),
        (Outcome(Verdict.FAILURE, FailureKind.AUTH), Verdict.FAILURE),
    ],
)
def test_fallback_agent_that_would_end_the_run_is_skipped(
    outcome: Outcome, verdict: Verdict
) -> None:
    found = without_stand_in(outcome)
    assert (found.verdict, found.kind, found.reason) == (verdict, outcome.kind, outcome.reason)
    if outcome.kind is FailureKind.NOT_STARTED:
        assert found.fault == Fault(FailureKind.USAGE, "no such file")


@each_row(
    "end,kind,reason",
    [
        (Canceled("budget", "the budget is spent"), FailureKind.BUDGET, "the budget is spent"),
        (Lost("the warden is gone"), FailureKind.CRASH, "the warden is gone"),
    ],
)
def test_agent_that_was_cut_off_has_failed_whatever_was_signaled(
    end: Exit, kind: FailureKind, reason: str
) -> None:
    for promises in (NONE, SUCCESS, FAILURE):
        assert judge(end, promises) == Outcome(Verdict.FAILURE, kind, reason)
