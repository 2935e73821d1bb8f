"""What an iteration amounts to: seed 000's matrix, and what a known CLI tells of itself. Pure."""

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from rooda.agents.failure_kinds import FailureKind, Reaction
from rooda.agents.report import AgentReport, Fault
from rooda.loop.promises import Promises
from rooda.process.exits import (
    Canceled,
    Exit,
    Exited,
    Interrupted,
    Lost,
    NotStarted,
    Signalled,
    TimedOut,
    describe,
    succeeded,
)


class Verdict(StrEnum):
    """What the loop does next."""

    CONTINUE = "success"  # a good iteration: the run goes on
    COMPLETE = "done"  # the agent says that the work is done: the run ends as success
    FAILURE = "failure"  # count it, and go on until the threshold
    ABORT = "abort"  # going on makes no sense
    LIMITED = "limited"  # the agent can't work now: no failure, the same iteration is tried again
    INTERRUPTED = "interrupted"  # the user stopped it


class Outcome(Struct, frozen=True):
    """The verdict, why, and whether the exit status speaks against it.

    `skipped`: the agent was not even asked. `fault` is what a known CLI said of it.
    """

    verdict: Verdict
    kind: FailureKind | None = None
    reason: str = ""
    despite_exit: bool = False
    skipped: bool = False
    fault: Fault | None = None

    @property
    def is_good(self) -> bool:
        """Whether nothing speaks against the iteration so far."""
        return self.verdict in (Verdict.CONTINUE, Verdict.COMPLETE)


# What was said before one of these is not believed: the agent was cut off, or never spoke.
CUT_OFF = (TimedOut, Canceled, Interrupted, Lost, NotStarted)


def judge(
    end: Exit,
    promises: Promises,
    report: AgentReport | None = None,
    *,
    changed: bool = True,
    ignore_exit_status: bool = False,
) -> Outcome:
    """The outcome of an iteration. FAILURE beats SUCCESS, and SUCCESS beats the exit code.

    Only a timeout and an interruption beat the signals: what was said then is not believed. Where
    the agent gave none, a known CLI's own report comes before its exit code. `changed`: the agent
    has changed something, as far as anybody can tell.
    """
    match end:
        case NotStarted(reason=reason):
            return Outcome(Verdict.ABORT, FailureKind.NOT_STARTED, reason)
        case Interrupted():
            return Outcome(Verdict.INTERRUPTED, reason=end.name)
        case TimedOut(clock):
            return Outcome(Verdict.FAILURE, FailureKind.TIMEOUT, clock)
        case Canceled(_, reason):
            return Outcome(Verdict.FAILURE, FailureKind.BUDGET, reason)
        case Lost(reason):
            return Outcome(Verdict.FAILURE, FailureKind.CRASH, reason)
    if promises.failure:
        return Outcome(Verdict.FAILURE, FailureKind.SIGNAL, "the agent says that it is blocked")
    ended_well = succeeded(end) or ignore_exit_status
    if promises.success:
        return Outcome(Verdict.COMPLETE, despite_exit=not ended_well)
    if report is not None:
        told = _told(end, report, changed=changed, ignore_exit_status=ignore_exit_status)
        if told is not None:
            return told
    return Outcome(Verdict.CONTINUE) if ended_well else _exit_says(end)


def without_stand_in(outcome: Outcome) -> Outcome:
    """What the outcome of an agent means that only stands in for another.

    One that is not logged in, or can't be called like that, is out; the night is not lost for it.
    """
    if outcome.verdict is not Verdict.ABORT:
        return outcome
    if outcome.kind is FailureKind.NOT_STARTED:
        fault = Fault(FailureKind.USAGE, outcome.reason)
        return replace(outcome, verdict=Verdict.LIMITED, fault=fault)
    if outcome.kind is not None and outcome.kind.row.reaction is Reaction.ABORT:
        return replace(outcome, verdict=Verdict.LIMITED)
    return outcome


def _exit_says(end: Exit, more: str = "") -> Outcome:
    """What an exit that is not good amounts to."""
    kind = FailureKind.CRASH if isinstance(end, Signalled) else FailureKind.EXIT
    return Outcome(Verdict.FAILURE, kind, f"{describe(end)}{more}")


def _told(
    end: Exit, report: AgentReport, *, changed: bool, ignore_exit_status: bool
) -> Outcome | None:
    """What a known CLI's own report amounts to, where it speaks against the iteration."""
    if report.fault is not None:
        return _faulted(report.fault)
    if ignore_exit_status:
        return None
    if report.ended_well is False:
        return Outcome(Verdict.FAILURE, FailureKind.EXIT, f"it reports: {report.complaint}")
    if not succeeded(end):
        if report.is_mute and isinstance(end, Exited):
            reason = f"{describe(end)} before its first event"
            return Outcome(Verdict.FAILURE, FailureKind.STARTUP, reason)
        return None if report.is_complete else _exit_says(end, _without_result(report))
    says_nothing = not report.answered
    if not report.is_complete or (says_nothing and report.is_mute and changed):
        return Outcome(Verdict.FAILURE, FailureKind.CRASH, f"exit code 0{_without_result(report)}")
    if says_nothing and not changed:
        reason = "it reports success, said nothing and changed nothing"
        return Outcome(Verdict.FAILURE, FailureKind.EMPTY, reason)
    return None


def _without_result(report: AgentReport) -> str:
    trying = f"; it was retrying: {report.retrying}" if report.retrying else ""
    return f", without the result that ends its output{trying}"


# After every other reaction the iteration counts as failed.
_VERDICTS = {
    Reaction.LIMIT: Verdict.LIMITED,
    Reaction.OUTAGE: Verdict.LIMITED,
    Reaction.ABORT: Verdict.ABORT,
}


def _faulted(fault: Fault) -> Outcome:
    """Return what a failure that the CLI reports amounts to."""
    verdict = _VERDICTS.get(fault.kind.row.reaction, Verdict.FAILURE)
    return Outcome(verdict, fault.kind, fault.evidence, fault=fault)
