"""The outcome of a run for programs (`--result FILE`): one JSON object, whole or not at all."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from rooda.base.controls import storable
from rooda.loop.events.emitter import Stamped
from rooda.loop.events.iteration import IterationEnded
from rooda.loop.events.run import RunEnded
from rooda.loop.iteration_facts import IterationFacts
from rooda.loop.result import IterationStatus
from rooda.loop.run_facts import RunFacts
from rooda.loop.waits import AgentHold
from rooda.run.resume import Resumed
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.files.plain_files import replace_file

FORMAT = 1
NOT_STARTED = "not-started"  # the status of a run that could not start
_FAILED = (str(IterationStatus.FAILED), str(IterationStatus.TIMED_OUT))


class LastAttempt(Struct, frozen=True):
    """The last attempt at an iteration; `kind` is that of its failure."""

    number: int
    attempt: int
    status: str
    kind: str | None = None
    headline: str = ""
    commit: str | None = None
    reason: str = ""


class RunOutcome(RunFacts, frozen=True, kw_only=True, omit_defaults=False):
    """What came of a run: the facts, and what follows from all attempts at its iterations.

    `iteration` is the last one that has ended, `attempts` counts those at all iterations. `good`
    and `failed` are iterations. `cost` is null if no agent told any, `costs_unknown` counts the
    attempts whose agent told no cost.
    """

    run: str | None
    reason: str = ""
    exit_code: int = 1
    procedure: str = ""
    iteration: int = 0
    attempts: int = 0
    good: int = 0
    failed: int = 0
    costs_unknown: int = 0
    consecutive_failures: int = 0
    last: LastAttempt | None = None
    limit: AgentHold | None = None
    retry_in: float | None = None  # seconds that a paused run would have waited for its next try
    problems: tuple[str, ...] = ()  # why the run could not start
    format: int = FORMAT


class OutcomeKeeper:
    """A listener that counts the attempts of a run; an earlier start has some already."""

    def __init__(self, run: str, procedure: str, resumed: Resumed | None = None) -> None:
        self._run, self._procedure = run, procedure
        self._iteration = 0 if resumed is None else resumed.state.iteration
        self._attempts: dict[tuple[int, int], LastAttempt] = {}
        self._costs: dict[tuple[int, int], float | None] = {}
        for row in () if resumed is None else resumed.rows:
            commit = None if row.commit is None else row.commit.commit
            self._add(_attempt(row, commit), row.cost)

    def __call__(self, stamped: Stamped) -> None:
        """Count an iteration that has ended."""
        event = stamped.event
        if not isinstance(event, IterationEnded):
            return
        if event.state is not None:
            self._iteration = event.state.iteration
        self._add(_attempt(event.facts, event.commit), event.facts.cost)

    def _add(self, one: LastAttempt, cost: float | None) -> None:
        key = (one.number, one.attempt)
        self._attempts[key] = one
        self._costs[key] = cost

    def outcome(self, ended: RunEnded) -> RunOutcome:
        """Return the outcome of the run that has ended."""
        every = [self._attempts[key] for key in sorted(self._attempts)]
        statuses = {one.number: one.status for one in every}  # of the last attempt at each
        last = every[-1] if every else None
        is_told = any(cost is not None for cost in self._costs.values())
        reason = last.reason if last else ""
        cost = (ended.facts.cost or 0.0) if is_told else None
        return RunOutcome(
            **asdict(ended.facts) | {"cost": cost},
            run=self._run,
            reason=ended.why(reason),
            procedure=self._procedure,
            iteration=self._iteration,
            attempts=len(every),
            good=sum(one == str(IterationStatus.COMPLETED) for one in statuses.values()),
            failed=sum(one in _FAILED for one in statuses.values()),
            costs_unknown=sum(
                self._costs[(one.number, one.attempt)] is None and _has_run(one) for one in every
            ),
            last=last,
            limit=ended.limit,
            retry_in=ended.retry_in,
        )


def _has_run(one: LastAttempt) -> bool:
    """Return whether the agent was started, so that it may have cost something."""
    return one.status != IterationStatus.SKIPPED and one.kind != FailureKind.NOT_STARTED


def _attempt(facts: IterationFacts, commit: str | None) -> LastAttempt:
    words = (facts.headline or "", commit, facts.reason or "")
    return LastAttempt(facts.number, facts.attempt, facts.status, facts.kind, *words)


def write_outcome(path: Path, outcome: RunOutcome) -> str:
    """Write the outcome; return what is wrong, or nothing."""
    content = msgspec.json.encode(_plain(msgspec.to_builtins(outcome))) + b"\n"
    try:
        replace_file(path, content)
    except OSError as error:
        return f"the result can't be written to {path}: {error.strerror}"
    return ""


def write_not_started(path: Path, problems: Sequence[str], run: str | None = None) -> None:
    """Write that the run could not start; the user has read the problems already."""
    reason = problems[0] if problems else ""
    outcome = RunOutcome(
        run=run or None, status=NOT_STARTED, reason=reason, problems=tuple(problems)
    )
    write_outcome(path, outcome)


def _plain(value: object) -> object:
    """Return the value without what JSON can't say: an agent may print lone surrogates."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return value
