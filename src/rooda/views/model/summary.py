"""The model of a run that every view shows. It has no words of transcripts and no diffs.

Times are ISO 8601 with an offset; a span counts in seconds from the start of the run. What is
unknown is None. Texts that come from the agent are as the agent wrote them: a view must treat
them as data.
"""

from enum import StrEnum
from pathlib import PurePath

from msgspec import Struct
from msgspec.structs import replace

from rooda.base.controls import one_line
from rooda.loop.events.run import TasksLeft
from rooda.loop.events.verify import CleanCheckEnded
from rooda.loop.events.work import VerifyEnded
from rooda.loop.next_steps import NextCommand
from rooda.loop.result import IterationStatus
from rooda.loop.wait_kinds import WaitKind
from rooda.record.rows import IterationRow, RunRow
from rooda.views.model import open_tasks
from rooda.world.agents.agent_report import Tokens
from rooda.world.agents.failure_kinds import known_kind
from rooda.world.process.events import NamedProcess
from rooda.world.tasks.standing import TaskCount

SCHEMA_VERSION = 1
_GOOD, _FAILED = ("completed",), ("failed", "timed_out", "skipped")
# The record can be changed by an agent: no text of it may be as long as it likes.
_LONGEST_NAME, _LONGEST_TEXT, _LONGEST_WORD = 300, 2000, 100  # characters
_SHORT_WORD = 30
_MOST_TOLD = 20  # notes of the user


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

    @classmethod
    def of(cls, check: VerifyEnded | CleanCheckEnded, *, was_interrupted: bool) -> "VerifySummary":
        """Return the summary of a check that has ended."""
        error = check.error[:_LONGEST_NAME]
        return cls(
            check.command, error, check.exit_code, check.duration, check.output, was_interrupted
        )


class IterationSummary(Struct, frozen=True, kw_only=True):
    """One iteration: the row of its last attempt, and what follows from all rows of the run.

    `--format json` prints the fields but `row`, and the properties down to `tree`.
    """

    row: IterationRow  # within bounds (`bounded.py`), without the names of files and tests
    started_at: str  # of the first attempt
    start: float = 0.0  # seconds since the start of the run
    seconds: float = 0.0  # at work in all attempts, without waiting
    waited: float = 0.0
    files: int | None = None  # None: unknown
    changed: tuple[FileSummary, ...] = ()  # the files with the most changed lines
    tests: TestCounts | None = None
    tests_gained: int = 0  # passed tests more than at the last count
    failed_tests: tuple[str, ...] = ()  # the first names
    adapter: str = ""
    tokens: Tokens | None = None  # of all attempts
    cost: float | None = None  # of all attempts
    is_unchecked: bool = False  # the run has a verify command, which did not run after it
    stopped: tuple[NamedProcess, ...] = ()  # processes that rooda had to stop
    notes: tuple[Note, ...] = ()
    spans: tuple[Span, ...] = ()
    tree_before: str | None = None
    is_kept: bool = False  # rooda has a snapshot of that tree
    held_by: int | None = None  # a later iteration, whose commit contains the work of this one
    held_in: str | None = None  # that commit

    @property
    def is_blocked(self) -> bool:
        """Whether the agent asked for help: the reason has its own words."""
        kind = known_kind(self.kind)
        return kind is not None and kind.row.is_blocked

    @property
    def number(self) -> int:
        """The number of the iteration."""
        return self.row.number

    @property
    def attempt(self) -> int:
        """The number of its last attempt."""
        return self.row.attempt

    @property
    def status(self) -> str:
        """The status in the record."""
        return self.row.status

    @property
    def is_good(self) -> bool:
        """Whether it has completed."""
        return self.row.status in _GOOD

    @property
    def is_failed(self) -> bool:
        """Whether it has failed."""
        return self.row.status in _FAILED

    @property
    def kind(self) -> str | None:
        """The kind of failure; another version may know others."""
        return one_line(self.row.kind)[:_SHORT_WORD] if self.row.kind else None

    @property
    def reason(self) -> str:
        """Why it failed."""
        return self.row.reason or ""

    @property
    def evidence(self) -> str:
        """The line or the exit that decided."""
        return self.row.evidence or ""

    @property
    def headline(self) -> str:
        """What the agent says that it did."""
        return self.row.known_headline[:_LONGEST_NAME]

    @property
    def ended_at(self) -> str | None:
        """When its last attempt ended."""
        return self.row.ended_at

    @property
    def added(self) -> int | None:
        """How many lines it added."""
        return max(0, self.row.lines.added) if self.row.lines else None

    @property
    def deleted(self) -> int | None:
        """How many lines it deleted."""
        return max(0, self.row.lines.deleted) if self.row.lines else None

    @property
    def commit(self) -> str | None:
        """The commit that rooda made."""
        return self.row.commit.commit if self.row.commit else None

    @property
    def commit_holds(self) -> tuple[int, ...]:
        """The failed iterations whose work is in that commit."""
        return self.row.commit.holds if self.row.commit else ()

    @property
    def commits(self) -> int:
        """How many commits rooda and the agent made."""
        return max(0, self.row.commits or 0) + (self.row.commit is not None)

    @property
    def pushed(self) -> bool:
        """Whether rooda pushed."""
        return self.row.push is not None

    @property
    def agent(self) -> str:
        """The name of the agent."""
        return (self.row.agent or "")[:_LONGEST_WORD]

    @property
    def model(self) -> str | None:
        """The model that the agent used."""
        return self.row.model[:_LONGEST_WORD] if self.row.model else None

    @property
    def turns(self) -> int | None:
        """How many requests the agent made to the model."""
        return self.row.turns

    @property
    def exit_code(self) -> int | None:
        """The exit code of the agent."""
        return self.row.result.exit_code if self.row.result else None

    @property
    def signal(self) -> str | None:
        """The signal of the agent."""
        return self.row.signal[:_LONGEST_WORD] if self.row.signal else None

    @property
    def verify(self) -> VerifySummary | None:
        """The check after it."""
        check = self.row.verify
        if check is None:
            return None
        # A check that fails is the reason of a failure, and not of an interruption.
        was_interrupted = self._was_interrupted(check.error) and self.row.reason == check.error
        found = VerifySummary.of(check, was_interrupted=was_interrupted)
        return replace(found, tries=check.tries, is_flaky=check.is_flaky)

    @property
    def clean_check(self) -> VerifySummary | None:
        """The check in a clean copy (`verify.clean`)."""
        check = self.row.clean_check
        if check is None:
            return None
        return VerifySummary.of(check, was_interrupted=self._was_interrupted(check.error))

    def _was_interrupted(self, error: str) -> bool:
        return bool(error) and self.row.status == IterationStatus.INTERRUPTED

    @property
    def tests_lost(self) -> str:
        """What happened to the tests since the last verify, with names."""
        return self.row.tests_lost.loss.words[:_LONGEST_TEXT] if self.row.tests_lost else ""

    @property
    def successes(self) -> int:
        """Iterations in a row with SUCCESS, if the run asks for several."""
        return max(0, self.row.successes or 0)

    @property
    def confirm(self) -> int:
        """How many iterations in a row have to signal SUCCESS (`signals.confirm`)."""
        return max(1, self.row.confirm or 1)

    @property
    def tasks(self) -> TaskCount | None:
        """How many tasks of the task file were done after the agent."""
        return open_tasks.known_count(self.row.tasks)

    @property
    def hooks_failed(self) -> tuple[str, ...]:
        """The hooks that failed."""
        return tuple(one.hook for one in self.row.hooks if one.error)

    @property
    def told(self) -> tuple[str, ...]:
        """Notes of the user in the prompt, or their beginnings."""
        return self.row.told[:_MOST_TOLD]

    @property
    def head(self) -> str | None:
        """HEAD after the agent, before a commit of rooda."""
        return self.row.snapshot.head if self.row.snapshot else None

    @property
    def tree(self) -> str | None:
        """The snapshot of the work tree after it."""
        return self.row.snapshot.tree if self.row.snapshot else None

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
    """One run: its row, and what follows from the rows of its iterations.

    `--format json` prints the fields but `row`, and the properties down to `tasks_left`.
    """

    schema_version: int = SCHEMA_VERSION
    row: RunRow  # within bounds, without its settings, its waits and its state
    rule_text: str = ""  # why the run ended, in one sentence or two
    made_at: str = ""  # when this summary was made
    seconds: float = 0.0  # from start to end
    waited: float = 0.0
    good: int = 0
    failed: int = 0
    other: int = 0  # interrupted or at work
    tests_first: TestCounts | None = None
    tests_last: TestCounts | None = None
    commits: int = 0
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
    closing: str = ""  # the agent's last words after FAILURE
    closing_iteration: int | None = None
    notes: tuple[Note, ...] = ()
    next_commands: tuple[NextCommand, ...] = ()
    next_hint: str = ""
    iterations: tuple[IterationSummary, ...] = ()

    @property
    def run(self) -> str:
        """The name."""
        return self.row.run

    @property
    def procedure(self) -> str:
        """The procedure."""
        return self.row.procedure[:_LONGEST_NAME]

    @property
    def project(self) -> str:
        """The name of the folder."""
        return PurePath(self.row.workspace).name[:_LONGEST_NAME]

    @property
    def status(self) -> str:
        """The status in the record."""
        return self.row.status

    @property
    def rule(self) -> str | None:
        """The stop rule that ended it."""
        return self.row.rule

    @property
    def reason(self) -> str:
        """Why it ended, as recorded."""
        return self.row.ended_because or ""

    @property
    def exit_code(self) -> int | None:
        """The exit code of rooda."""
        return self.row.exit_code

    @property
    def started_at(self) -> str:
        """When it started."""
        return self.row.started_at

    @property
    def ended_at(self) -> str | None:
        """When it ended."""
        return self.row.ended_at

    @property
    def max_iterations(self) -> int | None:
        """How many iterations may run."""
        return self.row.max_iterations

    @property
    def first_commit(self) -> str | None:
        """HEAD before the run."""
        return self.row.snapshot.head if self.row.snapshot else None

    @property
    def tasks(self) -> TaskCount | None:
        """How many tasks of the task file were done after the last iteration."""
        return open_tasks.known_count(self.row.tasks)

    @property
    def tasks_left(self) -> TasksLeft | None:
        """The first names of tasks that are left at the end."""
        return open_tasks.known_names(self.row.tasks_left)

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
