"""The state of a run between two iterations, and how an iteration changes it. Pure."""

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Self

from msgspec import Meta, Struct, field
from msgspec.structs import asdict, replace

from rooda.base.colors import Color
from rooda.base.problems import BUILTIN
from rooda.loop.history import Stats
from rooda.loop.outcome import Outcome, Verdict
from rooda.loop.waits import FAST, Patience, UsageLimit
from rooda.plan.plan import CurrentTask, Plan
from rooda.plan.settings.settings import (
    BACKOFF,
    DONE_WHEN,
    FAILURE_THRESHOLD,
    LIMIT_WAIT,
    MAX_ATTEMPTS,
    MAX_BACKOFF,
    MAX_COST,
    MAX_DURATION,
    MAX_LIMIT_WAIT,
    MAX_OUTAGE_WAIT,
    MAX_TOKENS,
    SIGNALS_SUCCESS,
    STALL_THRESHOLD,
    WAIT_FOR_LIMITS,
)
from rooda.plan.settings.text_kinds import BY_TASKS
from rooda.world.agents.agent_report import Usage
from rooda.world.agents.failure_kinds import FailureKind, Reaction
from rooda.world.files.file_systems import DiskShortage
from rooda.world.tasks.standing import TaskLedger, TaskStanding
from rooda.world.testresults.census import TestCensus
from rooda.world.testresults.results import TestResults

_MOST_TREES = 100  # the record gets them with every iteration, so there must be a limit


class StatusRow(Struct, frozen=True):
    """One status of a run: its color, its sign for terminals without color, its log message."""

    name: str
    color: Color
    mark: str
    logged: str = ""


class Status(StrEnum):
    """Whether a run is at work, or how it ended."""

    row: StatusRow

    def __new__(cls, row: StatusRow) -> Self:
        """Return the member of one row."""
        status = str.__new__(cls, row.name)
        status._value_ = row.name
        status.row = row
        return status

    RUNNING = StatusRow("running", Color.NAME, "\u25b6")
    SUCCESS = StatusRow("success", Color.GOOD, "\u2713", "Loop completed")
    MAX_ITERS = StatusRow("max-iters", Color.WARNING, "\u25a0", "Loop completed")
    ABORTED = StatusRow("aborted", Color.BAD, "\u2717", "Loop aborted")
    INTERRUPTED = StatusRow("interrupted", Color.WARNING, "\u25a0", "Loop interrupted")


_BY_NAME: Mapping[str, Status] = {str(status): status for status in Status}


def known_status(name: str) -> Status | None:
    """Return the status with this name; None if this version does not know it."""
    return _BY_NAME.get(name)


class Limits(Struct, frozen=True):
    """The limits of a run; None means unlimited."""

    max_iterations: int | None
    failure_threshold: int
    max_duration: float | None = None
    stall_threshold: int | None = None
    retry: bool = False  # a failed iteration is tried again under its own number
    max_cost: float | None = None
    max_tokens: int | None = None
    patience: Patience = Patience()
    once: bool = False  # one good iteration is a success
    pause_at: int | None = None  # after this iteration the run pauses
    by_tasks: bool = False  # the work is done when all tasks are (`done_when: tasks`)
    success: str | None = "SUCCESS"  # the word of an agent whose work is done


def limits_of(plan: Plan) -> Limits:
    """Return the limits in the settings of this plan."""
    values = plan.values
    attempts, once = values[MAX_ATTEMPTS], values.iterations.once
    threshold = 1 if once else values[FAILURE_THRESHOLD]
    return Limits(
        values.iterations.maximum,
        threshold if attempts is None else attempts,
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
            with_every_command=values.origin(BACKOFF) != BUILTIN,
        ),
        once=once,
        by_tasks=values[DONE_WHEN] == BY_TASKS,
        success=values[SIGNALS_SUCCESS],
    )


class Progress(Struct, frozen=True):
    """Whether an iteration made progress, and the tree that it left behind, if that is known."""

    made: bool = True
    tree: str | None = None
    touched: bool = False  # the agent changed a file or moved HEAD


_Count = Annotated[int, Meta(ge=0)]


class SavedState(Struct, frozen=True):
    """The part of `State` that the record keeps. Version 0.1 wrote the same fields."""

    iteration: _Count
    consecutive_failures: _Count
    stats: Stats
    elapsed: float
    idle: _Count
    trees: tuple[tuple[str, int], ...]
    feedback: str
    touched: bool
    cost: float = 0.0
    tokens: int = 0
    limited: tuple[UsageLimit, ...] = ()
    limit_waited: float = 0.0
    skipped: _Count = 0
    backoffs: _Count = 0
    census: TestCensus | None = None
    successes: _Count = 0
    uncommitted: tuple[int, ...] = ()
    ledger: TaskLedger = TaskLedger()
    refusals: _Count = 0


class State(Struct, frozen=True):
    """The loop's memory between two iterations."""

    iteration: int = 0  # how many have ended, without those that are tried again
    attempt: int = 1  # the number of the next attempt at the next iteration
    consecutive_failures: int = 0
    stats: Stats = field(default_factory=Stats)
    last: Outcome | None = None
    interrupted: bool = False
    elapsed: float = 0.0  # seconds that the run has been at work
    idle: int = 0  # iterations in a row without progress
    trees: tuple[tuple[str, int], ...] = ()  # each tree and the iteration that left it, last last
    feedback: str = ""  # what the next prompt says about the last iteration
    stopping: bool = False  # the user asked for an end after the iteration (`rooda stop`)
    missing: str = ""  # why the next iteration can't start: a required file is missing
    touched: bool = False  # an earlier attempt at the next iteration has changed something
    cost: float = 0.0  # US dollars that the run has spent
    tokens: int = 0  # that the run has used
    same: int = 0  # iterations in a row that failed in the same way
    backoffs: int = 0  # failures with a pause since the last good iteration
    backoff_due: bool = False  # the run still has to wait after the last failure
    limited: tuple[UsageLimit, ...] = ()  # usage limits and outages of the agents
    limit_waited: float = 0.0  # seconds that the run waited for limits since an agent last worked
    blocked: UsageLimit | None = None  # the limit that ends first, if no agent can work
    outage_since: float | None = None  # the value of `elapsed` when the outage began
    disk: DiskShortage | None = None  # there is too little disk space for the next iteration
    disk_since: float | None = None  # the value of `elapsed` when rooda noticed that
    outage_due: bool = False  # the pause after the last try in the outage is not chosen yet
    agent: int = 0  # which of the plan's agents works
    task: CurrentTask = CurrentTask()
    tests: TestResults | None = None  # the last test results that rooda read
    skipped: int = 0  # how many iterations ended before an agent ran
    census: TestCensus | None = None  # the tests that the next verify is compared with
    successes: int = 0  # iterations in a row that signaled SUCCESS, if the run asks for several
    uncommitted: tuple[int, ...] = ()  # failed iterations whose work no commit has yet
    ledger: TaskLedger = TaskLedger()  # what became of tasks that the file no longer has
    refusals: int = 0  # iterations in a row that signaled SUCCESS before the work was done
    tasks: TaskStanding | None = None  # the tasks of the task file, if the run has one
    failed_before: str = ""  # the digest of how the check failed before the first iteration

    @property
    def disk_lasted(self) -> float:
        """Seconds that the run has had too little disk space."""
        return 0.0 if self.disk_since is None else self.elapsed - self.disk_since

    @property
    def outage_lasted(self) -> float:
        """Seconds that the outage has lasted, without the time that the machine slept."""
        return 0.0 if self.outage_since is None else self.elapsed - self.outage_since

    def after(
        self,
        outcome: Outcome,
        seconds: float,
        progress: Progress | None = None,
        feedback: str = "",
        *,
        retry: bool = False,
        pauses: bool = False,
    ) -> "State":
        """Return the state after an iteration. A good iteration resets the count of failures.

        `pauses`: the run waits after fast failures of this agent.
        """
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
        is_fast = pauses and reaction is Reaction.FAST_BACKOFF and seconds < FAST
        has_pause = failed and (is_fast or reaction is Reaction.BACKOFF)
        moved = self._moved_on(progress)
        if outcome.successes:  # an iteration that only confirms the work is not stuck
            moved = replace(moved, idle=self.idle)
        return replace(
            moved,
            iteration=self.iteration if again else self.iteration + 1,
            skipped=self.skipped + (outcome.skipped and not again),
            attempt=self.attempt + 1 if again else 1,
            touched=again and (self.touched or progress.touched),
            consecutive_failures=self.consecutive_failures + 1 if failed else 0,
            stats=self.stats if outcome.skipped else self.stats.add(seconds),
            last=outcome,
            successes=outcome.successes if outcome.is_good else 0,
            refusals=self.refusals + 1 if outcome.kind is FailureKind.NOT_DONE else 0,
            elapsed=self.elapsed + seconds,
            feedback=feedback,
            same=self._same_again(outcome) if failed else 0,
            backoffs=self.backoffs + has_pause if failed else 0,
            backoff_due=has_pause,
            limit_waited=0.0,
            outage_since=None,
        )

    def spent(self, usage: Usage) -> "State":
        """Return the state after an agent has used this."""
        cost = self.cost + (usage.cost or 0.0)
        tokens = self.tokens + (usage.tokens.total if usage.tokens else 0)
        return replace(self, cost=cost, tokens=tokens)

    def _outage_since(self, outcome: Outcome, now: float) -> float | None:
        """Return when the outage began, after an agent could not work; `now` is like `elapsed`.

        A usage limit ends an outage: the service answered. A skipped fallback changes nothing.
        """
        if outcome.kind is FailureKind.LIMIT:
            return None
        if self.outage_since is None and outcome.kind is not None and outcome.kind.is_outage:
            return now
        return self.outage_since

    def _same_again(self, outcome: Outcome) -> int:
        """Return how many iterations in a row have failed like this one."""
        last = self.last
        is_same = last is not None and (last.kind, last.reason) == (outcome.kind, outcome.reason)
        return self.same + 1 if is_same else 1

    def _moved_on(self, progress: Progress) -> "State":
        """Return the state with the new tree; a tree that was there before is no progress."""
        is_stuck = not progress.made or self.returned_to(progress.tree) is not None
        tree = progress.tree
        trees = self.trees if tree is None else (*self.trees, (tree, self.iteration + 1))
        return replace(self, idle=self.idle + 1 if is_stuck else 0, trees=trees[-_MOST_TREES:])

    def returned_to(self, tree: str | None) -> int | None:
        """Return the earlier iteration (0: the start) that left this tree, unless the last did."""
        if tree is None or not self.trees or self.trees[-1][0] == tree:
            return None
        return next((number for seen, number in self.trees if seen == tree), None)

    def saved(self) -> SavedState:
        """What the record keeps, so that a resumed run continues here."""
        # A resumed run tries at once: the user may have removed the cause, or the outage is over.
        limited = (one for one in self.limited if math.isfinite(one.until) and not one.outage)
        kept = {name: getattr(self, name) for name in SavedState.__struct_fields__}
        census = None if self.census is None else self.census.saved()
        return SavedState(**kept | {"limited": tuple(limited), "census": census})

    @classmethod
    def restored(cls, saved: SavedState) -> "State":
        """The state of a run that was saved."""
        return cls(**asdict(saved))
