"""Where a run stands, and how an iteration moves it on. Pure."""

from dataclasses import dataclass, field, replace
from enum import StrEnum

from rooda.loop.outcome import FailureKind, Outcome, Verdict
from rooda.loop.stats import Stats

NEVER_RAN = (FailureKind.NOT_STARTED, FailureKind.PROMPT)


class Status(StrEnum):
    """How a run stands or ended."""

    RUNNING = "running"
    SUCCESS = "success"
    MAX_ITERS = "max-iters"
    ABORTED = "aborted"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Limits:
    """What ends a run; no maximum means unlimited."""

    max_iterations: int | None
    failure_threshold: int
    max_duration: float | None = None


@dataclass(frozen=True, slots=True)
class State:
    """The loop's memory between two iterations. `iteration` counts from 0.

    `elapsed` is for how long the run has been at work.
    """

    iteration: int = 0
    consecutive_failures: int = 0
    stats: Stats = field(default_factory=Stats)
    last: Outcome | None = None
    interrupted: bool = False
    elapsed: float = 0.0

    def after(self, outcome: Outcome, seconds: float) -> "State":
        """The state once an iteration has ended. A good one resets the count of failures."""
        if outcome.verdict is Verdict.ABORT and outcome.kind in NEVER_RAN:
            return replace(self, last=outcome)
        if outcome.verdict is Verdict.INTERRUPTED:
            return replace(self, stats=self.stats.add(seconds), last=outcome)
        failed = outcome.verdict is Verdict.FAILURE
        return replace(
            self,
            iteration=self.iteration + 1,
            consecutive_failures=self.consecutive_failures + 1 if failed else 0,
            stats=self.stats.add(seconds),
            last=outcome,
        )
