"""What happens to a run as a whole: its settings, its start and end, its record and its logs."""

from typing import Any

from rooda.base.colors import Color
from rooda.base.controls import one_line, shown_words
from rooda.base.event import Event, Field, LogLevel, Message, say
from rooda.base.formats import to_builtins
from rooda.base.numbers import approximate_size, count, usage_words
from rooda.base.problems import Severity
from rooda.base.times import format_duration
from rooda.loop.run_facts import RunFacts
from rooda.loop.state import Status
from rooda.loop.stops import StopRule, reason_of
from rooda.loop.waits import AgentHold
from rooda.world.process.events import NamedProcess, names
from rooda.world.tasks.standing import TaskCount, some

NO_USAGE = {"tokens": 0, "cost": 0.0}  # what logs have in the place of null


class ConfigResolved(Event, frozen=True):
    """The value of a setting; there is one such event for each setting."""

    level = LogLevel.DEBUG
    setting: str  # the key of the setting
    value: str  # the value, as `rooda config` shows it
    origin: str  # where the value comes from

    def describe(self) -> Message:
        return say("Setting", name=self.setting, value=self.value, origin=self.origin)


class ProblemFound(Event, frozen=True):
    """Something is wrong with the input; only an error keeps a run from starting."""

    level = LogLevel.WARN
    raised = (LogLevel.ERROR, "the run can't start")
    severity: Severity  # `warning` or `error`
    title: str  # what kind of problem it is
    message: str  # what is wrong
    suggestion: str  # what to do
    file: str  # the file that is wrong, or empty
    line: int | None  # the line of that file
    field: str  # the key or flag, or empty

    def is_raised(self) -> bool:
        return self.severity is Severity.ERROR

    def describe(self) -> Message:
        is_error = self.severity is Severity.ERROR
        return say(
            self.title if is_error else self.message,
            file=self.file or None,
            line=self.line,
            field=self.field or None,
            error=self.message if is_error else None,
            suggestion=self.suggestion or None,
        )


class RunStarted(Event, frozen=True):
    """The run begins, or an earlier one goes on."""

    procedure: str  # the procedure that runs
    max_iterations: int | None  # how many iterations may run; null means no limit
    command: str  # the command of the agent
    run: str = ""  # the name of the run in the record
    workspace: str = ""  # the folder with the record: the top of the work tree
    resumed_at: int | None = None  # the iteration that an earlier run goes on with
    once: bool = False  # the run has one iteration, see `iteration_mode`
    elapsed_before: float = 0.0  # for how many seconds a resumed run was at work before
    cost_before: float = 0.0  # what a resumed run has cost before, in US dollars
    tasks: TaskCount | None = None  # how many tasks of the task file are done (`tasks`)

    def as_text(self) -> str:
        maximum = self.max_iterations
        limit = "unlimited" if maximum is None else f"max {count(maximum, 'iteration')}"
        limit = "once" if self.once else limit
        if self.resumed_at is not None:
            where = f"run {one_line(self.run)}, at iteration {self.resumed_at}, {limit}"
            return f"Resuming procedure: {one_line(self.procedure)} ({where})"
        return f"Starting procedure: {one_line(self.procedure)} ({limit})"


class KeptAwake(Event, frozen=True):
    """The machine does not go to sleep while the run is at work (`keep_awake`)."""

    program: str  # the program that prevents it

    def describe(self) -> Message:
        return say("The machine stays awake during the run", program=self.program)

    def as_text(self) -> str:
        return f"The machine stays awake during the run ({self.program})"


class NotKeptAwake(Event, frozen=True):
    """rooda can't keep the machine from sleeping (`keep_awake`)."""

    level = LogLevel.DEBUG
    raised = (LogLevel.WARN, "`keep_awake` is true")
    reason: str  # why
    is_demanded: bool  # `keep_awake` is true, and not `auto`

    def is_raised(self) -> bool:
        return self.is_demanded

    def describe(self) -> Message:
        return say("rooda can't keep the machine awake", reason=self.reason)


class RunResumed(Event, frozen=True):
    """An earlier run goes on, with its flags. Values that look like secrets are left out."""

    raised = (LogLevel.WARN, "the flags were not recorded")
    run: str  # the name of the run in the record
    iteration: int  # the iteration that it goes on with
    recorded: bool  # false: the run is of a version that did not keep the flags
    flags: tuple[str, ...]  # the flags of the run
    given: tuple[str, ...]  # the flags on the command line of now
    replaced: tuple[str, ...]  # the flags of the run that those override
    folder: str = ""  # where the run was started, if that is not the current folder

    def is_raised(self) -> bool:
        return not self.recorded

    def describe(self) -> Message:
        return say(
            "Resuming a run" if self.recorded else "Resuming a run whose flags were not recorded",
            run=self.run,
            iteration=self.iteration,
            folder=self.folder or None,
            flags=shown_words(self.flags) or None,
            given=shown_words(self.given) or None,
            replaced=shown_words(self.replaced) or None,
        )

    def as_text(self) -> str:
        where = f" in {one_line(self.folder)}" if self.folder else ""
        line = f"Resuming run {one_line(self.run)} at iteration {self.iteration}{where}"
        now = shown_words(self.given)
        if not self.recorded:
            flags = f" with the flags given now: {now}" if now else ""
            return f"WARN: {line}{flags}; the flags of the run were not recorded"
        kept, gone = shown_words(self.flags), shown_words(self.replaced)
        if kept:
            line += f" with its flags: {kept}"
        elif not gone:
            line += "; it was started without flags"
        if now:
            line += f"; given now: {now}"
        return f"{line}, instead of: {gone}" if gone else line


class StateUnwritable(Event, frozen=True):
    """rooda can't write to the state folder; the prompt goes to a temporary file instead."""

    level = LogLevel.WARN
    iteration: int  # the number of the iteration
    error: str  # why

    def describe(self) -> Message:
        return say(
            "The state folder can't be written; a temporary file is used instead",
            error=self.error,
            iteration=self.iteration,
        )


class RecordTrouble(Event, frozen=True):
    """rooda can't write the record, or had to create it again; the run goes on."""

    level = LogLevel.WARN
    error: str  # what is wrong

    def describe(self) -> Message:
        return say("Trouble with the record; the run goes on", error=self.error)


class ReportFailed(Event, frozen=True):
    """rooda can't write the report of the run (`report`); the run goes on."""

    level = LogLevel.WARN
    path: str  # the file
    error: str  # why

    def describe(self) -> Message:
        return say(
            "The report can't be written; the run goes on",
            file=self.path,
            error=self.error,
            suggestion="Make the file writable, or make a report later with `rooda report`",
        )


class HistoryPruned(Event, frozen=True):
    """rooda removed old runs from the record (`history.max_age`, `history.max_size`)."""

    runs: tuple[str, ...]  # the names of the runs
    freed: int = 0  # bytes on disk

    def describe(self) -> Message:
        freed = approximate_size(self.freed)
        return say("Removed old runs from the record", runs=", ".join(self.runs), freed=freed)


class StopRequested(Event, frozen=True):
    """The user asked the run to end after this iteration (`rooda stop`)."""

    def describe(self) -> Message:
        return say("Asked to stop after this iteration")


class EarlierRunCleared(Event, frozen=True):
    """An earlier run was killed here and left processes behind: rooda stopped them now."""

    level = LogLevel.WARN
    run: str  # the name of the earlier run
    processes: tuple[NamedProcess, ...]  # the processes that rooda stopped
    survivors: tuple[NamedProcess, ...]  # the processes that are still there

    def describe(self) -> Message:
        return say(
            "An earlier run was killed here; what it left behind was stopped",
            run=self.run,
            processes=names(self.processes),
            survivors=names(self.survivors),
        )


class Unlocked(Event, frozen=True):
    """The file system has no locks, so nothing keeps a second run out of the work tree."""

    level = LogLevel.WARN
    folder: str  # the folder that rooda wanted to lock
    error: str  # the error of the system

    def describe(self) -> Message:
        return say(
            "The work tree can't be locked; make sure that no other run works in it",
            folder=self.folder,
            error=self.error,
        )


class ListenerFailed(Event, frozen=True):
    """rooda can't write a log or view, or it failed; the run goes on."""

    level = LogLevel.ERROR
    listener: str  # which log or view
    error: str  # why

    def describe(self) -> Message:
        return say("A log or view failed; the run goes on", view=self.listener, error=self.error)


class TasksLeft(Event, frozen=True):
    """The task file has blocked tasks at the end, or open ones after a signal of success.

    Or an agent removed open tasks from it.
    """

    level = LogLevel.WARN
    open: tuple[str, ...]  # the open tasks if the agent signaled success, else the removed ones
    blocked: tuple[str, ...]  # the blocked tasks
    file: str = ""  # the task file
    is_claimed: bool = True  # whether the agent signaled that the work is done

    def describe(self) -> Message:
        file = one_line(self.file) or "the plan"
        words = f"Some tasks of {file} need a person"
        if self.open and not self.is_claimed:
            words = f"An agent removed open tasks from {file}; they still count as open"
        elif self.open:
            words = f"The agent says that the work is done, but {file} has unfinished tasks"
        return say(words, **dict(self.lists()))

    def lists(self) -> tuple[tuple[str, str], ...]:
        """Return each kind of task that there is, and the names of some of its tasks."""
        kinds = (("open", self.open), ("blocked", self.blocked))
        return tuple((name, some(tasks)) for name, tasks in kinds if tasks)


class RunEnded(Event, frozen=True):
    """The run is over."""

    raised = (LogLevel.ERROR, "the run was aborted")
    unlogged = ("facts",)
    facts: RunFacts  # what the record keeps of it
    reason: str = ""  # why, in words; empty if the rule says it all
    promise_signal: str | None = None  # the signal of the agent, if that ended the run
    resume: str = ""  # the command that continues the run, if there is one
    next_commands: tuple[str, ...] = ()  # commands that show the run and continue it
    limit: AgentHold | None = None  # the usage limit or outage, if no agent could work at the end
    retry_in: float | None = None  # seconds that a paused run would have waited for its next try
    successes: int = 0  # how many iterations in a row signaled SUCCESS, with `signals.confirm`
    confirm: int = 1  # how many have to (`signals.confirm`)

    @property
    def status(self) -> Status:
        """How it ended."""
        return next(status for status in Status if status == self.facts.status)

    @property
    def rule(self) -> StopRule:
        """The rule that ended it."""
        return next(rule for rule in StopRule if rule == self.facts.rule)

    def is_raised(self) -> bool:
        return self.status is Status.ABORTED

    @property
    def tone(self) -> Color | None:
        tasks = self.facts.tasks
        is_doubtful = tasks is not None and tasks.open and self.rule.row.doubt
        return Color.WARNING if is_doubtful else self.status.row.color

    @property
    def highlights(self) -> tuple[str, ...]:
        return tuple(map(one_line, self.next_commands))

    def to_json(self) -> dict[str, Any]:
        """Return the facts and the fields of the event, all in one object."""
        names = self.facts.__struct_fields__
        facts = {name: to_builtins(getattr(self.facts, name)) for name in names}
        empty = {name: facts[name] or nothing for name, nothing in NO_USAGE.items()}
        return {**facts, **empty, **super().to_json()}

    def describe(self) -> Message:
        facts = self.facts
        total: tuple[Field, ...] = (
            ("iterations", facts.iterations),
            ("total_elapsed", format_duration(facts.total or 0.0)),
            ("confirmed", f"{self.successes} of {self.confirm}" if self.successes else None),
            ("tasks", facts.tasks.words if facts.tasks else None),
            *self._timing(),
            ("tokens", facts.tokens),
            ("cost", facts.cost),
        )
        status: Field = ("status", self.status)
        resume: Field = ("resume", self.resume or None)
        message = self.rule.row.logged or self.status.row.logged
        match self.status:
            case Status.ABORTED:
                counts: tuple[Field, ...] = (
                    ("consecutive_failures", facts.consecutive_failures),
                    ("threshold", facts.threshold),
                    status,
                    ("reason", self.reason or None),
                )
                return Message(message, (*counts, *total, resume))
            case Status.INTERRUPTED:
                return Message(message, (status, *total, ("signal", facts.signal), resume))
            case _:
                return Message(message, (status, ("reason", self.reason or None), *total))

    def as_text(self) -> str:
        lines = [self._first_line()]
        if self.unconfirmed:
            lines.append(f"  Not complete: {self.unconfirmed}")
        if numbers := ", ".join(f"{name}={value}" for name, value in self._timing()):
            lines.append(f"  Iteration timing: {numbers}")
        if used := usage_words(self.facts.tokens or 0, self.facts.cost or 0.0):
            lines.append(f"  Used: {used}")
        if self.next_commands:
            lines.append(f"  Next: {' · '.join(map(one_line, self.next_commands))}")
        return "\n".join(lines)

    @property
    def unconfirmed(self) -> str:
        """What is missing if the run ended between SUCCESS and its confirmation."""
        if self.rule.row.is_good or not self.successes:
            return ""
        return f"SUCCESS {self.successes} of {self.confirm} in a row (signals.confirm)"

    def why(self, last_failure: str) -> str:
        """Return why the run ended; after failures in a row with the last of them."""
        return reason_of(self.rule, self.reason, self.facts.consecutive_failures or 0, last_failure)

    def _first_line(self) -> str:
        facts = self.facts
        done = count(facts.iterations or 0, "iteration")
        total = f"total: {format_duration(facts.total or 0.0)}"
        total = f"{facts.tasks.words}, {total}" if facts.tasks else total
        return self.rule.row.line.format(
            reason=one_line(self.why("")),
            done=done,
            total=total,
            completed=f"{done} completed, {total}",
            signal=self.promise_signal,
            maximum=facts.max_iterations,
            failures=count(facts.consecutive_failures or 0, "consecutive failure"),
        )

    def _timing(self) -> tuple[tuple[str, str], ...]:
        """Return the statistics that there are."""
        stats = self.facts.stats or {}
        if not stats.get("count"):
            return ()
        names = (("min", "minimum"), ("max", "maximum"), ("mean", "mean"), ("stddev", "stddev"))
        known = ((name, stats.get(long)) for name, long in names)
        return tuple((name, format_duration(value)) for name, value in known if value is not None)
