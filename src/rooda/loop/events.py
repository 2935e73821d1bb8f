"""What happens in a run, as typed records. Every rendering is a listener; none calls back.

Names and fields are the schema of `log_format: json` (docs/events.md), so they only ever grow.
"""

from msgspec import Struct

from rooda.agents.failure_kinds import FailureKind
from rooda.agents.report import Usage
from rooda.config.problems import Severity
from rooda.iteration.types import IterationResult, IterationStatus
from rooda.loop.agent_events import AgentEvent
from rooda.loop.failure import FailureContext
from rooda.loop.outcome import Verdict
from rooda.loop.state import State, Status
from rooda.loop.stats import Stats
from rooda.loop.stops import StopRule
from rooda.process import events as process
from rooda.process.events import ProcessEvent


class ConfigResolved(Struct, frozen=True):
    """A setting's value and where it came from (one event a setting)."""

    setting: str
    value: str
    origin: str


class ProblemFound(Struct, frozen=True):
    """Something is wrong with the input; only errors keep a run from starting."""

    severity: Severity
    title: str
    message: str
    suggestion: str
    file: str
    line: int | None
    field: str


class RunStarted(Struct, frozen=True):
    """The run begins, or an earlier one goes on with the iteration `resumed_at`."""

    procedure: str
    max_iterations: int | None
    command: str
    run: str = ""
    workspace: str = ""
    resumed_at: int | None = None


class RunResumed(Struct, frozen=True):
    """An earlier run goes on: with which flags of its own, with which given now.

    `replaced` are its flags that no longer hold. Secret values are left out of all of them.
    `recorded` is false for a run of a version that did not keep the flags. `folder` is where the
    run was started, if that is not the current folder.
    """

    run: str
    iteration: int
    recorded: bool
    flags: tuple[str, ...]
    given: tuple[str, ...]
    replaced: tuple[str, ...]
    folder: str = ""


class IterationStarted(Struct, frozen=True):
    """An iteration begins; iterations are counted from 1, and so are the attempts at one."""

    procedure: str
    iteration: int
    max_iterations: int | None
    attempt: int = 1
    mode: str = ""
    task: str = ""
    spec: str = ""
    agent: str = ""
    is_read: bool = False  # standard output is made of events, told as `agent_said`


class StageEntered(Struct, frozen=True):
    """An iteration is at work: `pre_hooks`, `executing` or `post_hooks`."""

    iteration: int
    status: IterationStatus


class SnapshotTaken(Struct, frozen=True):
    """The work tree was looked at, and with git kept as a commit. 0: before the run."""

    iteration: int
    tree: str
    commit: str | None
    head: str | None
    left_out: tuple[str, ...] = ()


class FilesLeftOut(Struct, frozen=True):
    """These are in no snapshot: too large, or not ours to keep."""

    iteration: int
    files: tuple[str, ...]


class ChangesUnknown(Struct, frozen=True):
    """Nobody can tell what changed."""

    iteration: int
    error: str


class SnapshotTrouble(Struct, frozen=True):
    """Something is wrong with the snapshots; what changed is known all the same."""

    iteration: int
    error: str


class CommandStarted(Struct, frozen=True):
    """A command of the loop's own runs: a hook, `verify`, git."""

    what: str
    pid: int
    started: float


class HookEnded(Struct, frozen=True):
    """A hook has ended. `error` says what is wrong with it, if anything is."""

    hook: str
    command: str
    exit_code: int | None
    error: str
    on_error: str
    duration: float
    output: str
    cleaned_up: tuple[process.NamedProcess, ...] = ()


class VerifyEnded(Struct, frozen=True):
    """The loop's own check has ended; `error` says why it failed, if it did."""

    iteration: int
    command: str
    exit_code: int | None
    error: str
    duration: float
    output: str
    cleaned_up: tuple[process.NamedProcess, ...] = ()


class Committed(Struct, frozen=True):
    """The iteration's work was committed."""

    iteration: int
    commit: str
    message: str


class CommitFailed(Struct, frozen=True):
    """It could not be committed; the work is still there."""

    iteration: int
    error: str
    suggestion: str


class Pushed(Struct, frozen=True):
    """What there is was pushed."""

    iteration: int
    remote: str
    branch: str
    commit: str


class PushFailed(Struct, frozen=True):
    """It could not be pushed; the next iteration tries again."""

    iteration: int
    error: str
    suggestion: str


class PromptAssembled(Struct, frozen=True):
    """The prompt is ready."""

    iteration: int
    size: int


class PromptFailed(Struct, frozen=True):
    """The prompt can't be made any more; the run is aborted."""

    iteration: int
    error: str
    suggestion: str


class StartFailed(Struct, frozen=True):
    """The agent can't be started; the run is aborted."""

    iteration: int
    command: str
    error: str
    suggestion: str


class OutputTruncated(Struct, frozen=True):
    """More was printed than is kept; the beginning was dropped."""

    iteration: int
    stream: str
    actual_size: int
    buffer_limit: int


class SignalsScanned(Struct, frozen=True):
    """Which signals the agent gave; after a timeout they are not believed."""

    iteration: int
    success: bool
    failure: bool
    believed: bool


class ExitOverridden(Struct, frozen=True):
    """The agent ended badly but signaled that the job is done: the signal is believed."""

    iteration: int
    promise_signal: str
    exit_code: int
    exit_signal: str | None


class IterationEnded(Struct, frozen=True):
    """An iteration has ended, whatever way: told once for each that started.

    `failure` says how, where the verdict is a failure. `cleaned_up` are processes that the agent
    did not end itself. `evidence` is the line or the exit that decided, `returned_to` an earlier
    iteration whose tree this one has brought back.
    """

    iteration: int
    max_iterations: int | None
    duration: float
    verdict: Verdict
    promise_signal: str | None
    truncated: bool
    despite_exit: bool
    consecutive_failures: int
    threshold: int
    failure: FailureContext | None
    cleaned_up: tuple[process.NamedProcess, ...] = ()
    status: IterationStatus = IterationStatus.COMPLETED
    kind: FailureKind | None = None
    reason: str = ""
    evidence: str = ""
    failures_before: int = 0
    returned_to: int | None = None
    result: IterationResult | None = None
    state: State | None = None  # where the run stands now, for the record
    attempt: int = 1
    task: str = ""
    agent: str = ""
    usage: Usage | None = None
    incomplete: bool = False
    same_failures: int = 0  # in a row, this one included


class RunEnded(Struct, frozen=True):
    """The run is over: status, why, and the statistics of every iteration that ran.

    `resume` is the command that continues it, if it was interrupted or aborted.
    """

    status: Status
    rule: StopRule
    reason: str
    exit_code: int
    iterations: int
    consecutive_failures: int
    threshold: int
    max_iterations: int | None
    promise_signal: str | None
    signal: str | None
    total: float
    stats: Stats
    tokens: int = 0
    cost: float = 0.0
    resume: str = ""


class StateUnwritable(Struct, frozen=True):
    """`.rooda` can't be written any more; the prompt goes to a temporary file instead."""

    iteration: int
    error: str


class RecordTrouble(Struct, frozen=True):
    """The record can't be written, or had to be made anew; the run goes on."""

    error: str


class HistoryPruned(Struct, frozen=True):
    """Old runs were taken out of the record."""

    runs: tuple[str, ...]


class StopRequested(Struct, frozen=True):
    """Somebody asked for the run to end after this iteration (`rooda stop`)."""


class EarlierRunCleared(Struct, frozen=True):
    """An earlier run here was killed and left processes behind: they were stopped now."""

    run: str
    processes: tuple[process.NamedProcess, ...]
    survivors: tuple[process.NamedProcess, ...]


class Unlocked(Struct, frozen=True):
    """The work tree can't be locked on this file system; nothing keeps a second run away."""

    folder: str
    error: str


class ListenerFailed(Struct, frozen=True):
    """A log or view can't be written, or broke; the run goes on."""

    listener: str
    error: str


LoopEvent = (
    ConfigResolved
    | ProblemFound
    | RunStarted
    | RunResumed
    | IterationStarted
    | StageEntered
    | PromptAssembled
    | PromptFailed
    | StartFailed
    | OutputTruncated
    | SignalsScanned
    | ExitOverridden
    | SnapshotTaken
    | FilesLeftOut
    | ChangesUnknown
    | SnapshotTrouble
    | CommandStarted
    | HookEnded
    | VerifyEnded
    | Committed
    | CommitFailed
    | Pushed
    | PushFailed
    | IterationEnded
    | StateUnwritable
    | RecordTrouble
    | HistoryPruned
    | StopRequested
    | EarlierRunCleared
    | Unlocked
    | ListenerFailed
    | RunEnded
)
Event = LoopEvent | AgentEvent | ProcessEvent
