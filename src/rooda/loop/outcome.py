"""Decide the outcome of an iteration from the exit, the signals and the CLI's own report. Pure."""

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from rooda.loop.stages.promises import Promises
from rooda.world.agents.agent_report import AgentReport, Fault
from rooda.world.agents.failure_kinds import FailureKind, Reaction
from rooda.world.process.exits import (
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
    ABORT = "abort"  # the run ends: the next iteration would fail in the same way
    LIMITED = "limited"  # the agent can't work now: no failure, the same iteration is tried again
    INTERRUPTED = "interrupted"  # the user stopped it

    @property
    def is_good(self) -> bool:
        """Whether the iteration counts as good."""
        return self in (Verdict.CONTINUE, Verdict.COMPLETE)


class Outcome(Struct, frozen=True):
    """The verdict and its reason.

    `despite_exit`: the agent signaled success, but its exit status says failure. `skipped`: the
    agent was not started. `fault` is the failure that the agent's CLI reported. `evidence` is what
    decided, if something other than the agent decided: the verify command, git, a hook. `detail`
    are the agent's own words about the failure. `successes`: the iterations in a row that signaled
    SUCCESS, if the run asks for several. `done` says why the work is done, if not the signal but
    `done_when` decides.
    """

    verdict: Verdict
    kind: FailureKind | None = None
    reason: str = ""
    despite_exit: bool = False
    skipped: bool = False
    fault: Fault | None = None
    evidence: str = ""
    detail: str = ""
    successes: int = 0
    done: str = ""

    @property
    def explained(self) -> str:
        """The reason with the agent's own words, if there are any."""
        return f"{self.reason}: {self.detail}" if self.detail else self.reason

    @property
    def is_good(self) -> bool:
        """Whether the iteration has not failed so far."""
        return self.verdict.is_good


# After these exits no signal counts: the agent was stopped before its end, or never ran.
CUT_OFF = (TimedOut, Canceled, Interrupted, Lost, NotStarted)


def judge(
    end: Exit,
    promises: Promises,
    report: AgentReport | None = None,
    *,
    changed: bool = True,
    ignore_exit_status: bool = False,
) -> Outcome:
    """Return the outcome of an iteration. FAILURE beats SUCCESS, and SUCCESS beats the exit code.

    Only the exits in `CUT_OFF` beat the signals. Without a signal, a known CLI's own report beats
    its exit code. `changed`: the agent has changed something, or rooda can't tell.
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
    """Return the outcome of a fallback agent: a failure that would end the run only skips it.

    A fallback that is not logged in, or that refuses its flags, must not end a night's work.
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
    """Return the outcome of an exit that is a failure."""
    kind = FailureKind.CRASH if isinstance(end, Signalled) else FailureKind.EXIT
    return Outcome(Verdict.FAILURE, kind, f"{describe(end)}{more}")


def _told(
    end: Exit, report: AgentReport, *, changed: bool, ignore_exit_status: bool
) -> Outcome | None:
    """Return the failure that a known CLI's own report shows; None if it shows none."""
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
    if not report.is_complete:
        return Outcome(Verdict.FAILURE, FailureKind.CRASH, f"exit code 0{_without_result(report)}")
    if report.is_mute:
        return Outcome(Verdict.FAILURE, FailureKind.STARTUP, "exit code 0 without any event")
    if not report.answered and not changed:
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
    """Return the outcome of a failure that the CLI reports."""
    verdict = _VERDICTS.get(fault.kind.row.reaction, Verdict.FAILURE)
    return Outcome(verdict, fault.kind, fault.evidence, fault=fault)
