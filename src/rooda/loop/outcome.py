"""What an iteration amounts to: seed 000's matrix, and nothing else. Pure."""

from dataclasses import dataclass
from enum import StrEnum

from rooda.loop.promises import Promises
from rooda.process.exits import (
    Exit,
    Exited,
    Interrupted,
    Lingered,
    Lost,
    NotStarted,
    Signalled,
    TimedOut,
)


class Verdict(StrEnum):
    """What the loop does next."""

    SUCCESS = "success"  # a good iteration: go on
    DONE = "done"  # the agent says that the job is done: end as success
    FAILURE = "failure"  # count it, and go on until the threshold
    ABORT = "abort"  # going on makes no sense
    INTERRUPTED = "interrupted"  # the user stopped it


class FailureKind(StrEnum):
    """Why an iteration failed."""

    EXIT = "exit"
    CRASH = "crash"
    SIGNAL = "signal"
    TIMEOUT = "timeout"
    NOT_STARTED = "not-started"
    PROMPT = "prompt"
    VERIFY = "verify"
    NO_CHANGES = "no-changes"
    COMMIT = "commit"
    HOOK = "hook"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The verdict, why, and whether the exit status speaks against it.

    `skipped`: the agent was not even asked.
    """

    verdict: Verdict
    kind: FailureKind | None = None
    reason: str = ""
    despite_exit: bool = False
    skipped: bool = False

    @property
    def is_good(self) -> bool:
        """Whether nothing speaks against the iteration so far."""
        return self.verdict in (Verdict.SUCCESS, Verdict.DONE)


# What was said before one of these is not believed: the agent was cut off, or never spoke.
CUT_OFF = (TimedOut, Interrupted, Lost, NotStarted)


def judge(end: Exit, promises: Promises, *, ignore_exit_status: bool = False) -> Outcome:
    """The outcome of an iteration. FAILURE beats SUCCESS, and SUCCESS beats the exit code.

    Only a timeout and an interruption beat the signals: what was said then is not believed.
    """
    match end:
        case NotStarted(reason=reason):
            return Outcome(Verdict.ABORT, FailureKind.NOT_STARTED, reason)
        case Interrupted():
            return Outcome(Verdict.INTERRUPTED, reason=end.name)
        case TimedOut(clock):
            return Outcome(Verdict.FAILURE, FailureKind.TIMEOUT, clock)
        case Lost(reason):
            return Outcome(Verdict.FAILURE, FailureKind.CRASH, reason)
    if promises.failure:
        return Outcome(Verdict.FAILURE, FailureKind.SIGNAL, "the agent says that it is blocked")
    ended_well = isinstance(end, Lingered) or end == Exited(0) or ignore_exit_status
    if promises.success:
        return Outcome(Verdict.DONE, despite_exit=not ended_well)
    if ended_well:
        return Outcome(Verdict.SUCCESS)
    if isinstance(end, Signalled):
        return Outcome(Verdict.FAILURE, FailureKind.CRASH, f"killed by {end.name}")
    code = end.code if isinstance(end, Exited) else 0
    return Outcome(Verdict.FAILURE, FailureKind.EXIT, f"exit code {code}")
