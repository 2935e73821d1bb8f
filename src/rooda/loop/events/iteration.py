"""What happens in an iteration: its start and end, its prompt, its agent, its signals."""

from collections.abc import Sequence
from typing import Any

from rooda.base.colors import Color
from rooda.base.controls import one_line
from rooda.base.event import Event, Field, LogLevel, Message, say
from rooda.base.formats import to_builtins
from rooda.base.times import format_duration
from rooda.loop.events.iteration_detail import LOGGED_COMMIT, SHORT_COMMIT, IterationDetail
from rooda.loop.failure import FailureContext
from rooda.loop.iteration_facts import IterationFacts
from rooda.loop.outcome import Verdict
from rooda.loop.result import IterationStatus
from rooda.loop.state import State
from rooda.world.agents.agent_report import SessionFacts, Usage
from rooda.world.agents.failure_kinds import FailureKind

_SEVERAL = 3  # so many equal failures in a row are worth a line
# The facts that logs call otherwise than the record does.
LOGGED_AS = {
    "number": "iteration",
    "signal": "promise_signal",
    "failures_after": "consecutive_failures",
}
EMPTY = {"headline": "", "commits": 0, "successes": 0}  # what logs have in the place of null
_SESSION = frozenset(SessionFacts.__struct_fields__)  # in logs one object, `usage`


def position(number: int, maximum: int | None) -> str:
    """Return `2/5`, or `2` where there is no limit."""
    return f"{number}/{maximum}" if maximum is not None else str(number)


def _joined(*lines: str) -> str:
    return "\n".join(filter(None, lines))


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
    unlogged = ("facts", "own_commit", "state")
    facts: IterationFacts  # what the record keeps of it
    max_iterations: int | None = None  # how many iterations may run; null means no limit
    confirm: int = 1  # how many iterations in a row have to signal SUCCESS (`signals.confirm`)
    task: str = ""  # the task that ralph has chosen
    tests_gained: int | None = None  # how many more tests passed than at the last count
    own_commit: str | None = None  # the last commit that the agent made
    state: State | None = None  # where the run stands now

    @property
    def verdict(self) -> Verdict:
        """What became of it."""
        return Verdict(self.facts.verdict or "")

    @property
    def kind(self) -> FailureKind | None:
        """The kind of failure."""
        return next((kind for kind in FailureKind if kind == self.facts.kind), None)

    @property
    def usage(self) -> Usage | None:
        """What the agent used, if it tells."""
        result = self.facts.result
        full = None if result is None else result.context_usage_percent
        usage = Usage(**self.facts.session, context_percent=full)
        return None if usage == Usage() else usage

    @property
    def commit(self) -> str | None:
        """Return rooda's commit of the work, else the last one that the agent made."""
        made = self.facts.commit
        return self.own_commit if made is None else made.commit

    @property
    def commit_holds(self) -> tuple[int, ...]:
        """Earlier failed iterations whose work is in that commit."""
        return () if self.facts.commit is None else self.facts.commit.holds

    @property
    def tests_lost(self) -> str:
        """What happened to the tests since the last verify, in a few words."""
        return "" if self.facts.tests_lost is None else self.facts.tests_lost.loss.brief

    def is_raised(self) -> bool:
        return self.verdict is Verdict.FAILURE or self.facts.failure is not None

    @property
    def tone(self) -> Color | None:
        if self.is_raised():
            return Color.BAD
        return Color.GOOD if self.verdict.is_good else Color.WARNING

    @property
    def highlights(self) -> tuple[str, ...]:
        return () if self.commit is None else (self.commit[:SHORT_COMMIT],)

    def to_json(self) -> dict[str, Any]:
        """Return the facts and the fields of the event, all in one object."""
        facts = {
            LOGGED_AS.get(name, name): to_builtins(getattr(self.facts, name))
            for name in self.facts.__struct_fields__
            if name not in _SESSION
        }
        result = self.facts.result
        return {
            **facts,
            **{name: facts[name] or empty for name, empty in EMPTY.items()},
            **super().to_json(),
            "result": result and result.to_json(output=False),
            "usage": self.usage and to_builtins(self.usage),
            "commit": self.commit,
            "commit_holds": self.commit_holds,
            "tests_lost": self.tests_lost,
        }

    def describe(self) -> Message | None:
        facts = self.facts
        truncated: Field = ("truncated", True if facts.truncated else None)
        elapsed: Field = ("elapsed", format_duration(self._seconds))
        number: Field = ("iteration", facts.number)
        match self.verdict:
            case Verdict.CONTINUE:
                where = position(facts.number, self.max_iterations)
                fields = (
                    elapsed,
                    ("status", "success"),
                    ("confirmed", self._confirmation() or None),
                    truncated,
                    *self._usage_fields(),
                    *self._work_fields(),
                )
                return Message(f"Completed iteration {where}", fields)
            case Verdict.COMPLETE if not facts.despite_exit:  # else `ExitOverridden` says it
                signal: Field = ("promise_signal", facts.signal)
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
            case Verdict.FAILURE | Verdict.ABORT if facts.failure is not None:
                return Message("AI CLI failed", self._failure_fields(facts.failure))
            case Verdict.LIMITED:
                why: tuple[Field, ...] = (("agent", facts.agent), ("reason", facts.reason))
                return Message(f"Stopped: {self._why_it_stopped()}", (*why, number, elapsed))
            case Verdict.FAILURE:
                return say(
                    "Iteration skipped",
                    reason=facts.reason or None,
                    consecutive_failures=facts.failures_after,
                    threshold=facts.threshold,
                    iteration=facts.number,
                )
            case _:
                return None  # the end of the run says it

    def _failure_fields(self, failure: FailureContext) -> tuple[Field, ...]:
        is_timeout = failure.kind is FailureKind.TIMEOUT
        return (
            *failure.fields(),
            ("consecutive_failures", self.facts.failures_after),
            ("threshold", self.facts.threshold),
            ("iteration", self.facts.number),
            ("elapsed", format_duration(self._seconds)),
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
        facts = self.facts
        tokens = facts.tokens.total if facts.tokens else None
        return ("tokens", tokens), ("cost", facts.cost), ("model", facts.model)

    def _work_fields(self) -> tuple[Field, ...]:
        """Return what the iteration did; a text log has its detail line for it."""
        facts = self.facts
        lines = facts.lines if facts.lines and facts.lines.files else None
        tests = None if facts.result is None else facts.result.test_results
        return (
            ("files", lines.files if lines else None),
            ("added", lines.added if lines else None),
            ("deleted", lines.deleted if lines else None),
            ("tests", f"{tests.passed}/{tests.total}" if tests else None),
            ("tests_lost", self.tests_lost or None),
            ("commit", self.commit and self.commit[:LOGGED_COMMIT]),
            ("headline", facts.headline),
        )

    def as_text(self) -> str | None:
        return self._text([] if self.facts.failure is None else self.facts.failure.lines())

    def as_text_alone(self) -> str | None:
        return self._text([] if self.facts.failure is None else self.facts.failure.lines_alone())

    def _text(self, context: Sequence[str]) -> str | None:
        """Return the line of the end, the detail line, and the context of a failure."""
        facts = self.facts
        where = f"Iteration {position(facts.number, self.max_iterations)}"
        duration = format_duration(self._seconds)
        match self.verdict:
            case Verdict.CONTINUE | Verdict.COMPLETE:
                success = ", ".join(filter(None, ("success", self._confirmation())))
                return _joined(f"{where} completed in {duration} ({success})", self.detail())
            case Verdict.FAILURE:
                count = f"{facts.failures_after}/{facts.threshold}"
                line = f"{where} completed in {duration} (failure, consecutive: {count})"
                same = self._same_failures()
                again = f"  The same failure {same} times in a row" if same else ""
                return _joined(line, self.detail(), *context, again)
            case Verdict.INTERRUPTED:
                return _joined(f"{where} interrupted after {duration}", self.detail())
            case Verdict.LIMITED:
                line = f"{where} stopped after {duration}: {self._why_it_stopped()}"
                return _joined(line, self.detail())
            case Verdict.ABORT if facts.failure is not None:
                line = f"ERROR: {where} failed after {duration} ({self.kind})"
                return _joined(line, self.detail(), *context)
            case Verdict.ABORT:
                return None  # `PromptFailed` or `StartFailed` says it

    def detail(self) -> str:
        """Return the line that tells what the iteration did; "" if there is nothing to tell."""
        # The words of an agent that rooda stopped are no result. Those of an agent that failed are
        # in its output, which stands below.
        is_cut_off = self.verdict in (Verdict.INTERRUPTED, Verdict.LIMITED)
        failure = self.facts.failure
        is_below = failure is not None and bool(failure.preview)
        headline = "" if is_cut_off or is_below else self.facts.headline
        result = self.facts.result
        return IterationDetail(
            result,
            self.facts.lines,
            self.tests_gained,
            self.commit,
            self.facts.cost,
            None if result is None else result.context_usage_percent,
            headline or "",
            self.tests_lost,
            self.commit_holds,
        ).line()

    @property
    def _seconds(self) -> float:
        return self.facts.duration or 0.0

    def _confirmation(self) -> str:
        """Return `1 of 2` for a SUCCESS of a run that asks for two; "" if it asks for one."""
        return f"{self.facts.successes} of {self.confirm}" if self.facts.successes else ""

    def _same_failures(self) -> int | None:
        same = self.facts.same_failures or 0
        return same if same >= _SEVERAL else None

    def _why_it_stopped(self) -> str:
        """Return why the agent can't work now, though that is no failure."""
        row = FailureKind.USAGE.row if self.kind is None else self.kind.row
        agent, reason = one_line(self.facts.agent or ""), one_line(self.facts.reason or "")
        return row.stopped.format(agent=agent, kind=self.kind, reason=reason)
