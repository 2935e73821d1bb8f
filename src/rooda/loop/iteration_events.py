"""What happens in an iteration: its start and end, its prompt, its agent, its signals."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from rooda.agents.agent_report import Usage
from rooda.agents.failure_kinds import FailureKind
from rooda.iteration.types import IterationResult, IterationStatus
from rooda.loop.failure import FailureContext
from rooda.loop.iteration_detail import LOGGED_COMMIT, SHORT_COMMIT, IterationDetail
from rooda.loop.outcome import Verdict
from rooda.loop.state import State
from rooda.process.events import NamedProcess
from rooda.tasks.standing import TaskCount
from rooda.text.colors import Color
from rooda.text.controls import one_line
from rooda.text.event import Event, Field, LogLevel, Message, say
from rooda.text.times import format_duration
from rooda.workspace.tree_changes import LineCounts

_SEVERAL = 3  # so many equal failures in a row are worth a line


def position(number: int, maximum: int | None) -> str:
    """Return `2/5`, or `2` where there is no limit."""
    return f"{number}/{maximum}" if maximum is not None else str(number)


def _joined(*lines: str) -> str:
    return "\n".join(filter(None, lines))


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


class IterationStarted(Event, frozen=True):
    """An iteration begins."""

    procedure: str  # the procedure that runs
    iteration: int  # the number of the iteration, counted from 1
    max_iterations: int | None  # how many iterations may run; null means no limit
    attempt: int = 1  # which attempt at this iteration, counted from 1
    mode: str = ""  # ralph's mode: `plan`, `build` or `prompt`
    task: str = ""  # the task that ralph has chosen
    spec: str = ""  # the spec of that task
    agent: str = ""  # the agent that works
    is_read: bool = False  # standard output has events, and `agent_said` tells them
    adapter: str = ""  # the CLI that rooda takes it for; `text` for an unknown one

    def describe(self) -> Message:
        where = position(self.iteration, self.max_iterations)
        return say(f"Starting iteration {where}", procedure=self.procedure)

    def as_text(self) -> str:
        return f"Iteration {position(self.iteration, self.max_iterations)} starting..."


class StageEntered(Event, frozen=True):
    """An iteration is at a stage."""

    level = LogLevel.DEBUG
    iteration: int  # the number of the iteration
    status: IterationStatus  # `pre_hooks`, `executing` or `post_hooks`

    def describe(self) -> Message:
        return say("Stage", status=str(self.status), iteration=self.iteration)


class PromptAssembled(Event, frozen=True):
    """The prompt is ready."""

    level = LogLevel.DEBUG
    iteration: int  # the number of the iteration
    size: int  # the size of the prompt in bytes

    def describe(self) -> Message:
        return say("Prompt assembled", iteration=self.iteration, size=self.size)


class PromptFailed(Event, frozen=True):
    """rooda can't make the prompt any more; the run is aborted."""

    level = LogLevel.ERROR
    iteration: int  # the number of the iteration
    error: str  # why
    suggestion: str  # what to do

    def describe(self) -> Message:
        return say(
            "Prompt assembly failed",
            iteration=self.iteration,
            error=self.error,
            suggestion=self.suggestion,
        )


class StartFailed(Event, frozen=True):
    """rooda can't start the agent; the run is aborted."""

    level = LogLevel.ERROR
    iteration: int  # the number of the iteration
    command: str  # the command of the agent
    error: str  # the error of the system
    suggestion: str  # what to do

    def describe(self) -> Message:
        return say(
            "AI CLI could not be started",
            error=self.error,
            iteration=self.iteration,
            command=self.command,
            suggestion=self.suggestion,
        )


class OutputTruncated(Event, frozen=True):
    """The agent printed more than rooda keeps in memory; rooda dropped the beginning."""

    level = LogLevel.WARN
    iteration: int  # the number of the iteration
    stream: str  # `stdout` or `stderr`
    actual_size: int  # how many bytes the agent printed
    buffer_limit: int  # how many bytes rooda keeps

    def describe(self) -> Message:
        return say(
            "AI CLI output exceeded buffer size",
            actual_size=self.actual_size,
            buffer_limit=self.buffer_limit,
            action="truncating_from_beginning",
            stream=self.stream,
            iteration=self.iteration,
            suggestion="Raise max_output_buffer if this happens often",
        )


class SignalsScanned(Event, frozen=True):
    """rooda looked for the agent's signals."""

    level = LogLevel.DEBUG
    iteration: int  # the number of the iteration
    success: bool  # the agent signaled that the work is done
    failure: bool  # the agent signaled that it is blocked
    believed: bool  # false after a timeout: then signals do not count

    def describe(self) -> Message:
        return say(
            "Scanned for signals",
            success=self.success,
            failure=self.failure,
            believed=self.believed,
            iteration=self.iteration,
        )


class ExitOverridden(Event, frozen=True):
    """The agent failed but signaled that the work is done: the signal counts."""

    level = LogLevel.WARN
    iteration: int  # the number of the iteration
    promise_signal: str  # the signal of the agent
    exit_code: int  # the exit code of the agent
    exit_signal: str | None  # the signal that killed the agent

    def describe(self) -> Message:
        return say(
            "AI CLI exited with non-zero code but promise signal indicates success",
            exit_code=self.exit_code,
            promise_signal=self.promise_signal,
            signal=self.exit_signal,
            iteration=self.iteration,
        )


class IterationEnded(Event, frozen=True):
    """An iteration has ended, in whatever way: there is one for each that started."""

    raised = (LogLevel.ERROR, "the iteration failed")
    unlogged = ("state",)
    iteration: int  # the number of the iteration
    max_iterations: int | None  # how many iterations may run; null means no limit
    duration: float  # how many seconds it took
    verdict: Verdict  # `success`, `done`, `failure`, `abort`, `limited` or `interrupted`
    promise_signal: str | None  # the signal of the agent
    truncated: bool  # rooda dropped the beginning of the output
    despite_exit: bool  # the agent failed, but its signal counts
    consecutive_failures: int  # how many iterations in a row failed, this one included
    threshold: int  # how many failures in a row abort the run
    failure: FailureContext | None  # details of a failure
    cleaned_up: tuple[NamedProcess, ...] = ()  # the processes that the agent left behind
    status: IterationStatus = IterationStatus.COMPLETED  # the status in the record
    kind: FailureKind | None = None  # the kind of failure, see [agents.md](agents.md#failures)
    reason: str = ""  # why it failed, in words
    evidence: str = ""  # the line or the exit that decided
    failures_before: int = 0  # how many iterations in a row failed before this one
    returned_to: int | None = None  # an earlier iteration that left the same tree
    result: IterationResult | None = None  # what the iteration did
    state: State | None = None  # where the run stands now
    attempt: int = 1  # which attempt at this iteration
    task: str = ""  # the task that ralph has chosen
    agent: str = ""  # the agent that worked
    usage: Usage | None = None  # what the agent used, if it tells
    incomplete: bool = False  # the output ends without its result
    same_failures: int = 0  # how many equal failures in a row, this one included
    headline: str = ""  # what the agent says that it did, on one line
    segments: tuple[Segment, ...] = ()  # how the iteration spent its time
    commits: int = 0  # how many commits the agent made
    lines: LineCounts | None = None  # how many files and lines changed
    commit: str | None = None  # rooda's commit of the work, else the last one that the agent made
    commit_holds: tuple[int, ...] = ()  # earlier failed iterations whose work is in that commit
    tests_gained: int | None = None  # how many more tests passed than at the last count
    tests_lost: str = ""  # what happened to the tests since the last verify, in a few words
    successes: int = 0  # how many iterations in a row signaled SUCCESS, with `signals.confirm`
    confirm: int = 1  # how many have to (`signals.confirm`)
    tasks: TaskCount | None = None  # how many tasks of the task file are done (`tasks`)

    def is_raised(self) -> bool:
        return self.verdict is Verdict.FAILURE or self.failure is not None

    @property
    def tone(self) -> Color | None:
        if self.is_raised():
            return Color.BAD
        return Color.GOOD if self.verdict.is_good else Color.WARNING

    @property
    def highlights(self) -> tuple[str, ...]:
        return () if self.commit is None else (self.commit[:SHORT_COMMIT],)

    def to_json(self) -> dict[str, Any]:
        body = Event.to_json(replace(self, result=None, state=None))
        return body | {"result": self.result and self.result.to_json(output=False)}

    def describe(self) -> Message | None:
        truncated: Field = ("truncated", True if self.truncated else None)
        elapsed: Field = ("elapsed", format_duration(self.duration))
        number: Field = ("iteration", self.iteration)
        match self.verdict:
            case Verdict.CONTINUE:
                where = position(self.iteration, self.max_iterations)
                fields = (
                    elapsed,
                    ("status", "success"),
                    ("confirmed", self._confirmation() or None),
                    truncated,
                    *self._usage_fields(),
                    *self._work_fields(),
                )
                return Message(f"Completed iteration {where}", fields)
            case Verdict.COMPLETE if not self.despite_exit:  # else `ExitOverridden` says it
                signal: Field = ("promise_signal", self.promise_signal)
                fields = (
                    signal,
                    number,
                    elapsed,
                    ("confirmed", self._confirmation() or None),
                    truncated,
                    *self._usage_fields(),
                    *self._work_fields(),
                )
                return Message("AI CLI succeeded", fields)
            case Verdict.FAILURE | Verdict.ABORT if self.failure is not None:
                return Message("AI CLI failed", self._failure_fields(self.failure))
            case Verdict.LIMITED:
                why: tuple[Field, ...] = (("agent", self.agent), ("reason", self.reason))
                return Message(f"Stopped: {self._why_it_stopped()}", (*why, number, elapsed))
            case Verdict.FAILURE:
                return say(
                    "Iteration skipped",
                    reason=self.reason or None,
                    consecutive_failures=self.consecutive_failures,
                    threshold=self.threshold,
                    iteration=self.iteration,
                )
            case _:
                return None  # the end of the run says it

    def _failure_fields(self, failure: FailureContext) -> tuple[Field, ...]:
        is_timeout = failure.kind is FailureKind.TIMEOUT
        return (
            *failure.fields(),
            ("consecutive_failures", self.consecutive_failures),
            ("threshold", self.threshold),
            ("iteration", self.iteration),
            ("elapsed", format_duration(self.duration)),
            ("clock", failure.reason if is_timeout else None),
            ("evidence", failure.evidence or None),
            ("ignored_signal", failure.promise_signal if is_timeout else None),
            ("command", failure.command),
            ("output_first", failure.preview or None),
            ("output_last", failure.suffix or None),
            ("truncated", True if failure.truncated else None),
            ("suggestion", failure.suggestion),
            ("kind", str(failure.kind) if failure.kind.row.by_cli else None),
            ("same_failures", self._same_failures()),
            *self._usage_fields(),
        )

    def _usage_fields(self) -> tuple[Field, ...]:
        usage = self.usage or Usage()
        tokens = usage.tokens.total if usage.tokens else None
        return ("tokens", tokens), ("cost", usage.cost), ("model", usage.model)

    def _work_fields(self) -> tuple[Field, ...]:
        """Return what the iteration did; a text log has its detail line for it."""
        lines = self.lines if self.lines and self.lines.files else None
        tests = None if self.result is None else self.result.test_results
        return (
            ("files", lines.files if lines else None),
            ("added", lines.added if lines else None),
            ("deleted", lines.deleted if lines else None),
            ("tests", f"{tests.passed}/{tests.total}" if tests else None),
            ("tests_lost", self.tests_lost or None),
            ("commit", self.commit and self.commit[:LOGGED_COMMIT]),
            ("headline", self.headline or None),
        )

    def as_text(self) -> str | None:
        return self._text([] if self.failure is None else self.failure.lines())

    def as_text_alone(self) -> str | None:
        return self._text([] if self.failure is None else self.failure.lines_alone())

    def _text(self, context: Sequence[str]) -> str | None:
        """Return the line of the end, the detail line, and the context of a failure."""
        where = f"Iteration {position(self.iteration, self.max_iterations)}"
        duration = format_duration(self.duration)
        match self.verdict:
            case Verdict.CONTINUE | Verdict.COMPLETE:
                success = ", ".join(filter(None, ("success", self._confirmation())))
                return _joined(f"{where} completed in {duration} ({success})", self.detail())
            case Verdict.FAILURE:
                count = f"{self.consecutive_failures}/{self.threshold}"
                line = f"{where} completed in {duration} (failure, consecutive: {count})"
                same = self._same_failures()
                again = f"  The same failure {same} times in a row" if same else ""
                return _joined(line, self.detail(), *context, again)
            case Verdict.INTERRUPTED:
                return _joined(f"{where} interrupted after {duration}", self.detail())
            case Verdict.LIMITED:
                line = f"{where} stopped after {duration}: {self._why_it_stopped()}"
                return _joined(line, self.detail())
            case Verdict.ABORT if self.failure is not None:
                line = f"ERROR: {where} failed after {duration} ({self.kind})"
                return _joined(line, self.detail(), *context)
            case Verdict.ABORT:
                return None  # `PromptFailed` or `StartFailed` says it

    def detail(self) -> str:
        """Return the line that tells what the iteration did; "" if there is nothing to tell."""
        # The words of an agent that rooda stopped are no result. Those of an agent that failed are
        # in its output, which stands below.
        is_cut_off = self.verdict in (Verdict.INTERRUPTED, Verdict.LIMITED)
        is_below = self.failure is not None and bool(self.failure.preview)
        usage = self.usage or Usage()
        return IterationDetail(
            self.result,
            self.lines,
            self.tests_gained,
            self.commit,
            usage.cost,
            usage.context_percent,
            "" if is_cut_off or is_below else self.headline,
            self.tests_lost,
            self.commit_holds,
        ).line()

    def _confirmation(self) -> str:
        """Return `1 of 2` for a SUCCESS of a run that asks for two; "" if it asks for one."""
        return f"{self.successes} of {self.confirm}" if self.successes else ""

    def _same_failures(self) -> int | None:
        return self.same_failures if self.same_failures >= _SEVERAL else None

    def _why_it_stopped(self) -> str:
        """Return why the agent can't work now, though that is no failure."""
        row = FailureKind.USAGE.row if self.kind is None else self.kind.row
        agent, reason = one_line(self.agent), one_line(self.reason)
        return row.stopped.format(agent=agent, kind=self.kind, reason=reason)
