"""The model of a run that every view shows. It has no words of transcripts and no diffs.

Times are ISO 8601 with an offset; a span counts in seconds from the start of the run. What is
unknown is None. Texts that come from the agent are as the agent wrote them: a view must treat
them as data.
"""

from enum import StrEnum

from msgspec import Struct

from rooda.agents.agent_report import Tokens
from rooda.agents.failure_kinds import known_kind
from rooda.loop.next_steps import NextCommand
from rooda.loop.run_events import TasksLeft
from rooda.loop.wait_kinds import WaitKind
from rooda.process.events import NamedProcess
from rooda.summary import open_tasks
from rooda.tasks.standing import TaskCount

SCHEMA_VERSION = 1


class SpanKind(StrEnum):
    """What a run did in a part of its time; `WaitKind` has what it waited for."""

    AGENT = "agent"
    VERIFY = "verify"
    COMMIT = "commit"
    PUSH = "push"
    HOOKS = "hooks"
    ASLEEP = "asleep"  # the machine was suspended
    STOPPED = "stopped"  # rooda did not run: the run was resumed later


# All that a run can spend its time with.
TIME_KINDS: tuple[SpanKind | WaitKind, ...] = (*SpanKind, *WaitKind)


class Span(Struct, frozen=True):
    """A part of the time of a run."""

    kind: SpanKind | WaitKind
    start: float
    seconds: float
    iteration: int | None = None  # the iteration that it belongs to, or that waited

    @property
    def end(self) -> float:
        """Where the span ends."""
        return self.start + self.seconds


class TestCounts(Struct, frozen=True):
    """Counts of tests."""

    __test__ = False  # pytest would collect the class because of its name

    passed: int
    failed: int
    skipped: int
    total: int
    iteration: int = 0  # the iteration that ran them


class FileSummary(Struct, frozen=True):
    """A file that the run changed, with the sum of its changed lines."""

    name: str
    added: int | None  # None: the file is not text, or the record has no lines
    deleted: int | None
    iterations: tuple[int, ...] = ()  # that changed it


class Note(Struct, frozen=True):
    """Something that is worth a look."""

    iteration: int
    title: str  # rooda's own words
    text: str  # may contain names of files and processes
    is_failure: bool = False
    is_in_diff: bool = False  # the diff of the iteration shows what it is about


class VerifySummary(Struct, frozen=True):
    """The user's check (`verify`) after an iteration."""

    command: str
    error: str  # empty if it passed
    exit_code: int | None
    seconds: float
    output: str  # the end of what it printed
    was_interrupted: bool = False  # a signal to rooda ended it: it did not fail
    tries: int = 1  # how often it ran (`verify.retries`)
    is_flaky: bool = False  # it passed, but not on its first try


class IterationSummary(Struct, frozen=True, kw_only=True):
    """One iteration: its last attempt, with the time and the cost of all attempts."""

    number: int
    attempt: int = 1
    status: str
    is_good: bool = False
    is_failed: bool = False
    kind: str | None = None  # of failure
    reason: str = ""
    evidence: str = ""
    headline: str = ""
    started_at: str
    ended_at: str | None = None
    start: float = 0.0  # seconds since the start of the run
    seconds: float = 0.0  # at work, without waiting
    waited: float = 0.0
    files: int | None = None  # None: unknown
    added: int | None = None
    deleted: int | None = None
    changed: tuple[FileSummary, ...] = ()  # the files with the most changed lines
    tests: TestCounts | None = None
    tests_gained: int = 0  # passed tests more than at the last count
    failed_tests: tuple[str, ...] = ()  # the first names
    commit: str | None = None  # made by rooda
    commits: int = 0  # made by rooda and the agent
    pushed: bool = False
    agent: str = ""
    adapter: str = ""
    model: str | None = None
    turns: int | None = None
    tokens: Tokens | None = None
    cost: float | None = None
    exit_code: int | None = None
    signal: str | None = None
    verify: VerifySummary | None = None
    clean_check: VerifySummary | None = None  # the check in a clean copy (`verify.clean`)
    tests_lost: str = ""  # what happened to the tests since the last verify, with names
    successes: int = 0  # iterations in a row with SUCCESS, if the run asks for several
    confirm: int = 1  # how many it asks for (`signals.confirm`)
    tasks: TaskCount | None = None  # of the task file, after the agent
    is_unchecked: bool = False  # the run has a verify command, which did not run after it
    hooks_failed: tuple[str, ...] = ()
    stopped: tuple[NamedProcess, ...] = ()  # processes that rooda had to stop
    notes: tuple[Note, ...] = ()
    told: tuple[str, ...] = ()  # notes of the user in the prompt, or their beginnings
    spans: tuple[Span, ...] = ()
    head: str | None = None  # HEAD after the agent, before a commit of rooda
    tree: str | None = None  # the snapshot of the work tree after it
    tree_before: str | None = None
    is_kept: bool = False  # rooda has a snapshot of that tree
    commit_holds: tuple[int, ...] = ()  # failed iterations whose work is in the commit
    held_by: int | None = None  # a later iteration, whose commit contains the work of this one
    held_in: str | None = None  # that commit

    @property
    def is_blocked(self) -> bool:
        """Whether the agent asked for help: the reason has its own words."""
        kind = known_kind(self.kind)
        return kind is not None and kind.row.is_blocked

    @property
    def confirmation(self) -> str:
        """`1 of 2` for a SUCCESS of a run that asks for two; "" if it asks for one."""
        return f"{self.successes} of {self.confirm}" if self.successes else ""

    @property
    def commits_of_agent(self) -> int:
        """How many commits the agent made."""
        return self.commits - (self.commit is not None)

    @property
    def wall(self) -> float:
        """How many seconds it took, with its waits and while the machine slept."""
        slept = sum(span.seconds for span in self.spans if span.kind is SpanKind.ASLEEP)
        return self.seconds + self.waited + slept


class ProofState(StrEnum):
    """Whether the last state of the work tree is proven."""

    PASSED = "passed"  # verify passed on it
    NOT_PROVEN = "not-proven"  # verify failed, or did not run on the last changes
    NOT_CHECKED = "not-checked"  # the run has no verify, or none that ran after an iteration


class Proof(Struct, frozen=True):
    """What is proven at the end of a run."""

    state: ProofState
    command: str = ""
    iteration: int | None = None  # the last one after which verify passed
    tests: TestCounts | None = None  # of that iteration
    commit: str | None = None  # of rooda, with all of it
    head: str | None = None  # the agent's last commit, where rooda made none
    after: str = ""  # what came after it; rooda's own words


class RunSummary(Struct, frozen=True, kw_only=True):
    """One run."""

    schema_version: int = SCHEMA_VERSION
    run: str
    procedure: str
    project: str  # the name of the folder
    status: str
    rule: str | None = None
    rule_text: str = ""  # why the run ended, in one sentence or two
    reason: str = ""  # as recorded
    exit_code: int | None = None
    started_at: str
    ended_at: str | None = None
    made_at: str = ""  # when this summary was made
    seconds: float = 0.0  # from start to end
    waited: float = 0.0
    max_iterations: int | None = None
    good: int = 0
    failed: int = 0
    other: int = 0  # interrupted or at work
    tests_first: TestCounts | None = None
    tests_last: TestCounts | None = None
    commits: int = 0
    first_commit: str | None = None  # HEAD before the run
    last_commit: str | None = None  # of the run
    files: int = 0  # distinct
    added: int | None = None
    deleted: int | None = None
    changed: tuple[FileSummary, ...] = ()  # the files with the most changed lines
    agent: str = ""
    models: tuple[str, ...] = ()
    cost: float | None = None
    tokens: Tokens | None = None
    times: dict[SpanKind | WaitKind, float] = {}
    spans: tuple[Span, ...] = ()  # waits and pauses, which belong to the run
    proof: Proof = Proof(ProofState.NOT_CHECKED)
    tasks: TaskCount | None = None  # of the task file, after the last iteration
    tasks_left: TasksLeft | None = None  # the first names of tasks that are left at the end
    closing: str = ""  # the agent's last words after FAILURE
    closing_iteration: int | None = None
    notes: tuple[Note, ...] = ()
    next_commands: tuple[NextCommand, ...] = ()
    next_hint: str = ""
    iterations: tuple[IterationSummary, ...] = ()

    @property
    def is_running(self) -> bool:
        """Whether the run is at work."""
        return self.status == "running"

    @property
    def is_doubtful(self) -> bool:
        """Whether the run is a success by the word of the agent, while tasks are open."""
        return open_tasks.is_doubtful(self)

    @property
    def headline(self) -> str:
        """What the last good iteration did."""
        return next((one.headline for one in reversed(self.iterations) if one.is_good), "")

    @property
    def unpriced(self) -> tuple[int, ...]:
        """The iterations whose agent worked and told no cost, if others told theirs."""
        if self.cost is None:
            return ()
        ended = (one for one in self.iterations if one.ended_at and one.cost is None)
        return tuple(one.number for one in ended if one.model or one.turns or one.tokens)
