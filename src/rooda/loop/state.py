"""Where a run stands, and how an iteration moves it on. Pure."""

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from rooda.agents.failure_kinds import FailureKind, Reaction
from rooda.agents.report import Usage
from rooda.config.plan import CurrentTask, Plan
from rooda.config.settings import (
    BACKOFF,
    FAILURE_THRESHOLD,
    LIMIT_WAIT,
    MAX_ATTEMPTS,
    MAX_BACKOFF,
    MAX_COST,
    MAX_DURATION,
    MAX_LIMIT_WAIT,
    MAX_OUTAGE_WAIT,
    MAX_TOKENS,
    STALL_THRESHOLD,
    WAIT_FOR_LIMITS,
)
from rooda.loop.outcome import Outcome, Verdict
from rooda.loop.stats import Stats
from rooda.loop.waits import Patience, UsageLimit
from rooda.testresults.results import TestResults

_MOST_TREES = 100  # that a run remembers to have seen; they are written with every iteration


class Status(StrEnum):
    """How a run stands or ended."""

    RUNNING = "running"
    SUCCESS = "success"
    MAX_ITERS = "max-iters"
    ABORTED = "aborted"
    INTERRUPTED = "interrupted"


class Limits(Struct, frozen=True):
    """What ends a run; no maximum means unlimited."""

    max_iterations: int | None
    failure_threshold: int
    max_duration: float | None = None
    stall_threshold: int | None = None
    retry: bool = False  # a failed iteration is tried again under its own number
    max_cost: float | None = None
    max_tokens: int | None = None
    patience: Patience = Patience()


def limits_of(plan: Plan) -> Limits:
    """What ends a run of this plan."""
    values = plan.values
    attempts = values[MAX_ATTEMPTS]
    return Limits(
        values.iterations.maximum,
        values[FAILURE_THRESHOLD] if attempts is None else attempts,
        values[MAX_DURATION],
        values[STALL_THRESHOLD],
        retry=attempts is not None,
        max_cost=values[MAX_COST],
        max_tokens=values[MAX_TOKENS],
        patience=Patience(
            values[WAIT_FOR_LIMITS],
            values[MAX_LIMIT_WAIT],
            values[LIMIT_WAIT],
            values[BACKOFF],
            values[MAX_BACKOFF],
            values[MAX_OUTAGE_WAIT],
        ),
    )


class Progress(Struct, frozen=True):
    """Whether an iteration got anywhere, and the tree that it left behind, if that is known."""

    made: bool = True
    tree: str | None = None
    touched: bool = False  # files, or where HEAD stands


class State(Struct, frozen=True):
    """The loop's memory between two iterations. `iteration` counts from 0.

    `elapsed` is for how long the run has been at work, `idle` how many iterations in a row made no
    progress, `trees` which trees were there, the last one last, and `feedback` what the next
    prompt has to say of the last iteration. `attempt` is the number of the next attempt at the
    next iteration, `missing` what has to be there for it and is not, `touched` whether an earlier
    attempt at it has changed anything. `stopping`: somebody asked for an end.

    `cost` and `tokens` are what the run has used. `same` says how many iterations in a row failed
    in the very same way. `backoffs` counts failures in a row that may be over in a moment, and
    `backoff_due` is whether the last one is still to be waited for. `limited` are the usage limits
    and outages of agents, `limit_waited` is for how long limits were waited for since an iteration
    could run, and `blocked` what is over first, where no agent can work. `outage_since` is the
    value of `elapsed` when the outage began, None where there is none; `outage_due` is whether
    the pause after its last try is still to be chosen.
    """

    iteration: int = 0
    attempt: int = 1
    consecutive_failures: int = 0
    stats: Stats = field(default_factory=Stats)
    last: Outcome | None = None
    interrupted: bool = False
    elapsed: float = 0.0
    idle: int = 0
    trees: tuple[tuple[str, int], ...] = ()
    feedback: str = ""
    stopping: bool = False
    missing: str = ""
    touched: bool = False
    cost: float = 0.0
    tokens: int = 0
    same: int = 0
    backoffs: int = 0
    backoff_due: bool = False
    limited: tuple[UsageLimit, ...] = ()
    limit_waited: float = 0.0
    blocked: UsageLimit | None = None
    outage_since: float | None = None
    outage_due: bool = False
    agent: int = 0  # which of the plan's agents works
    task: CurrentTask = CurrentTask()
    tests: TestResults | None = None  # the last ones that were read

    @property
    def outage_lasted(self) -> float:
        """For how long the outage has lasted, in seconds that the machine was awake."""
        return 0.0 if self.outage_since is None else self.elapsed - self.outage_since

    def after(
        self,
        outcome: Outcome,
        seconds: float,
        progress: Progress | None = None,
        feedback: str = "",
        *,
        retry: bool = False,
    ) -> "State":
        """The state once an iteration has ended. A good one resets the count of failures."""
        reaction = outcome.kind.row.reaction if outcome.kind else None
        if outcome.verdict is Verdict.ABORT and reaction is Reaction.NEVER_RAN:
            return replace(self, last=outcome)
        if outcome.verdict is Verdict.LIMITED:
            return replace(
                self,
                attempt=self.attempt + 1,
                touched=self.touched or (progress is not None and progress.touched),
                last=outcome,
                elapsed=self.elapsed + seconds,
                outage_since=self._outage_since(outcome, self.elapsed + seconds),
                outage_due=reaction is Reaction.OUTAGE,
            )
        if outcome.verdict is Verdict.INTERRUPTED:
            elapsed = self.elapsed + seconds
            return replace(
                self,
                attempt=self.attempt + 1,
                stats=self.stats.add(seconds),
                last=outcome,
                elapsed=elapsed,
            )
        failed = outcome.verdict is Verdict.FAILURE
        progress = progress or Progress(made=False)
        again = failed and retry
        return replace(
            self._moved_on(progress),
            iteration=self.iteration if again else self.iteration + 1,
            attempt=self.attempt + 1 if again else 1,
            touched=again and (self.touched or progress.touched),
            consecutive_failures=self.consecutive_failures + 1 if failed else 0,
            stats=self.stats if outcome.skipped else self.stats.add(seconds),
            last=outcome,
            elapsed=self.elapsed + seconds,
            feedback=feedback,
            same=self._same_again(outcome) if failed else 0,
            backoffs=self.backoffs + 1 if reaction is Reaction.BACKOFF else 0,
            backoff_due=reaction is Reaction.BACKOFF,
            limit_waited=0.0,
            outage_since=None,
        )

    def spent(self, usage: Usage) -> "State":
        """The state once an agent has used this."""
        cost = self.cost + (usage.cost or 0.0)
        tokens = self.tokens + (usage.tokens.total if usage.tokens else 0)
        return replace(self, cost=cost, tokens=tokens)

    def _outage_since(self, outcome: Outcome, now: float) -> float | None:
        """When the outage began, after an agent could not work; `now` is the run's own clock.

        A service that tells of a usage limit is there. A fallback that is left out tells nothing.
        """
        if outcome.kind is FailureKind.LIMIT:
            return None
        if self.outage_since is None and outcome.kind is not None and outcome.kind.is_outage:
            return now
        return self.outage_since

    def _same_again(self, outcome: Outcome) -> int:
        """How many iterations in a row have failed like this one."""
        last = self.last
        is_same = last is not None and (last.kind, last.reason) == (outcome.kind, outcome.reason)
        return self.same + 1 if is_same else 1

    def _moved_on(self, progress: Progress) -> "State":
        """The state with what the iteration made of the tree; going back is no progress."""
        is_stuck = not progress.made or self.returned_to(progress.tree) is not None
        tree = progress.tree
        trees = self.trees if tree is None else (*self.trees, (tree, self.iteration + 1))
        return replace(self, idle=self.idle + 1 if is_stuck else 0, trees=trees[-_MOST_TREES:])

    def returned_to(self, tree: str | None) -> int | None:
        """The earlier iteration that left this tree, if the last one left another; 0: the start."""
        if tree is None or not self.trees or self.trees[-1][0] == tree:
            return None
        return next((number for seen, number in self.trees if seen == tree), None)

    def to_json(self) -> dict[str, Any]:
        """What a later run needs to go on from here."""
        return {
            "iteration": self.iteration,
            "consecutive_failures": self.consecutive_failures,
            "stats": asdict(self.stats),
            "elapsed": self.elapsed,
            "idle": self.idle,
            "trees": [list(seen) for seen in self.trees],
            "feedback": self.feedback,
            "touched": self.touched,
            "cost": self.cost,
            "tokens": self.tokens,
            # What only a person can mend may be mended by the time that the run goes on, and an
            # outage may be over: a run that goes on tries at once.
            "limited": [
                asdict(one) for one in self.limited if math.isfinite(one.until) and not one.outage
            ],
            "limit_waited": self.limit_waited,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "State":
        """The state that was written; raises KeyError, TypeError or ValueError where it is none."""
        return cls(
            iteration=int(data["iteration"]),
            consecutive_failures=int(data["consecutive_failures"]),
            stats=Stats(**data["stats"]),
            elapsed=float(data["elapsed"]),
            idle=int(data["idle"]),
            trees=tuple((str(tree), int(number)) for tree, number in data["trees"]),
            feedback=str(data["feedback"]),
            touched=bool(data["touched"]),
            cost=float(data.get("cost", 0.0)),
            tokens=int(data.get("tokens", 0)),
            limited=tuple(UsageLimit(**one) for one in data.get("limited", ())),
            limit_waited=float(data.get("limit_waited", 0.0)),
        )
