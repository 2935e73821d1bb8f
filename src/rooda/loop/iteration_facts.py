"""The facts about one iteration: its stages fill them, its end and the record carry them."""

from enum import StrEnum

from msgspec import Struct

from rooda.loop.events.verify import TestsLost
from rooda.loop.events.work import Committed
from rooda.loop.failure import FailureContext
from rooda.loop.result import IterationResult
from rooda.world.agents.agent_report import SessionFacts
from rooda.world.git.snapshots.tree_changes import LineCounts
from rooda.world.process.events import NamedProcess
from rooda.world.tasks.standing import TaskCount


class SegmentKind(StrEnum):
    """What rooda did in a part of an iteration."""

    AGENT = "agent"
    VERIFY = "verify"
    COMMIT = "commit"
    PUSH = "push"
    HOOKS = "hooks"


class Segment(Struct, frozen=True):
    """A part of an iteration; times are in seconds, without the time that the machine slept."""

    kind: SegmentKind
    start: float  # since the start of the iteration
    seconds: float


class IterationFacts(SessionFacts, frozen=True, kw_only=True, omit_defaults=True):
    """One attempt at one iteration. What is unknown, or not yet known, is None.

    A fact is declared here and nowhere else: the record keeps it, and `log_format: json` and
    `--json` print it under its name. Facts may be added, but never renamed. Words are texts,
    because the record may have those of another version.
    """

    number: int  # the number of the iteration, counted from 1
    attempt: int  # which attempt at this iteration, counted from 1
    status: str  # the status in the record
    duration: float | None = None  # how many seconds it took
    verdict: str | None = None  # `success`, `done`, `failure`, `abort`, `limited` or `interrupted`
    agent: str | None = None  # the agent that worked
    signal: str | None = None  # the signal of the agent, in the words of the settings
    truncated: bool | None = None  # rooda dropped the beginning of the output
    incomplete: bool | None = None  # the output ends without its result
    despite_exit: bool | None = None  # the agent failed, but its signal counts
    kind: str | None = None  # the kind of failure, see [agents.md](agents.md#failures)
    reason: str | None = None  # why it failed, in words
    evidence: str | None = None  # the line or the exit that decided
    failure: FailureContext | None = None  # details of a failure
    failures_before: int | None = None  # how many iterations in a row failed before this one
    failures_after: int | None = None  # how many iterations in a row failed, this one included
    threshold: int | None = None  # how many failures in a row abort the run
    same_failures: int | None = None  # how many equal failures in a row, this one included
    cleaned_up: tuple[NamedProcess, ...] | None = None  # the processes that rooda stopped
    returned_to: int | None = None  # an earlier iteration that left the same tree
    result: IterationResult | None = None  # what the iteration did
    headline: str | None = None  # what the agent says that it did, on one line
    segments: tuple[Segment, ...] = ()  # how the iteration spent its time
    commits: int | None = None  # how many commits the agent made
    lines: LineCounts | None = None  # how many files and lines changed
    commit: Committed | None = None  # rooda's commit of the work
    tests_lost: TestsLost | None = None  # what happened to the tests since the last verify
    successes: int | None = None  # how many iterations in a row signaled SUCCESS (`confirm`)
    confirm: int | None = None  # how many have to, where several have to (`signals.confirm`)
    tasks: TaskCount | None = None  # how many tasks of the task file are done (`tasks`)
