"""What happens in a run, as typed records. Every rendering is a listener; none calls back.

Names and fields are the schema of `log_format: json` (docs/events.md), so they only ever grow.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum

from rooda.config.problems import Severity
from rooda.loop.failure import FailureContext
from rooda.loop.outcome import Verdict
from rooda.loop.state import Status
from rooda.loop.stats import Stats
from rooda.loop.stops import Rule
from rooda.process import events as process
from rooda.process.events import ProcessEvent


class Level(IntEnum):
    """How important an event is."""

    DEBUG = 10
    INFO = 20
    WARN = 30
    ERROR = 40


@dataclass(frozen=True, slots=True)
class ConfigResolved:
    """A setting's value and where it came from (one event a setting)."""

    setting: str
    value: str
    origin: str


@dataclass(frozen=True, slots=True)
class ProblemFound:
    """Something is wrong with the input; only errors keep a run from starting."""

    severity: Severity
    title: str
    message: str
    suggestion: str
    file: str
    line: int | None
    field: str


@dataclass(frozen=True, slots=True)
class RunStarted:
    """The run begins."""

    procedure: str
    max_iterations: int | None
    command: str


@dataclass(frozen=True, slots=True)
class IterationStarted:
    """An iteration begins; iterations are counted from 1."""

    procedure: str
    iteration: int
    max_iterations: int | None


@dataclass(frozen=True, slots=True)
class PromptAssembled:
    """The prompt is ready."""

    iteration: int
    size: int


@dataclass(frozen=True, slots=True)
class PromptFailed:
    """The prompt can't be made any more; the run is aborted."""

    iteration: int
    error: str
    suggestion: str


@dataclass(frozen=True, slots=True)
class StartFailed:
    """The agent can't be started; the run is aborted."""

    iteration: int
    command: str
    error: str
    suggestion: str


@dataclass(frozen=True, slots=True)
class OutputTruncated:
    """More was printed than is kept; the beginning was dropped."""

    iteration: int
    stream: str
    actual_size: int
    buffer_limit: int


@dataclass(frozen=True, slots=True)
class SignalsScanned:
    """Which signals the agent gave; after a timeout they are not believed."""

    iteration: int
    success: bool
    failure: bool
    believed: bool


@dataclass(frozen=True, slots=True)
class ExitOverridden:
    """The agent ended badly but signaled that the job is done: the signal is believed."""

    iteration: int
    promise_signal: str
    exit_code: int
    exit_signal: str | None


@dataclass(frozen=True, slots=True)
class IterationEnded:
    """An iteration has ended, whatever way: told once for each that started.

    `failure` says how, where the verdict is a failure. `cleaned_up` are processes that the agent
    did not end itself.
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
    cleaned_up: tuple[process.Named, ...] = ()


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The run is over: status, why, and the statistics of every iteration that ran."""

    status: Status
    rule: Rule
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


@dataclass(frozen=True, slots=True)
class StateUnwritable:
    """`.rooda` can't be written any more; the prompt goes to a temporary file instead."""

    iteration: int
    error: str


@dataclass(frozen=True, slots=True)
class EarlierRunCleared:
    """An earlier run here was killed and left processes behind: they were stopped now."""

    run: str
    processes: tuple[process.Named, ...]
    survivors: tuple[process.Named, ...]


@dataclass(frozen=True, slots=True)
class Unlocked:
    """The work tree can't be locked on this file system; nothing keeps a second run away."""

    folder: str
    error: str


@dataclass(frozen=True, slots=True)
class ListenerFailed:
    """A log or view can't be written, or broke; the run goes on."""

    listener: str
    error: str


LoopEvent = (
    ConfigResolved
    | ProblemFound
    | RunStarted
    | IterationStarted
    | PromptAssembled
    | PromptFailed
    | StartFailed
    | OutputTruncated
    | SignalsScanned
    | ExitOverridden
    | IterationEnded
    | StateUnwritable
    | EarlierRunCleared
    | Unlocked
    | ListenerFailed
    | RunEnded
)
Event = LoopEvent | ProcessEvent

LEVELS: dict[type[Event], Level] = {
    ConfigResolved: Level.DEBUG,
    PromptAssembled: Level.DEBUG,
    SignalsScanned: Level.DEBUG,
    process.ProcessStarted: Level.DEBUG,
    process.Tick: Level.DEBUG,
    process.Output: Level.DEBUG,
    OutputTruncated: Level.WARN,
    ExitOverridden: Level.WARN,
    process.ClockExpired: Level.WARN,
    process.ProcessKilled: Level.WARN,
    process.ProcessSurvived: Level.WARN,
    process.LeftoversStopped: Level.WARN,
    PromptFailed: Level.ERROR,
    StartFailed: Level.ERROR,
    ListenerFailed: Level.ERROR,
    StateUnwritable: Level.WARN,
    EarlierRunCleared: Level.WARN,
    Unlocked: Level.WARN,
    process.ProcessLost: Level.WARN,
    process.TranscriptTrimmed: Level.WARN,
}


def level(event: Event) -> Level:
    """The level of an event; most are news (INFO)."""
    if isinstance(event, RunEnded) and event.status is Status.ABORTED:
        return Level.ERROR
    if isinstance(event, IterationEnded) and event.verdict is Verdict.FAILURE:
        return Level.ERROR
    if isinstance(event, ProblemFound):
        return Level.ERROR if event.severity is Severity.ERROR else Level.WARN
    return LEVELS.get(type(event), Level.INFO)


@dataclass(frozen=True, slots=True)
class Stamped:
    """An event, and when it happened: wall clock, seconds since the run began, iteration if any."""

    event: Event
    at: datetime
    elapsed: float
    iteration: int | None = None


Listener = Callable[[Stamped], None]


class Emitter:
    """Stamps events and hands them to the listeners, in order.

    One that can't write (a full disk) is told of once and tried again. Any other exception is an
    error of ours, and no reason to end a night's work: the listener is left out from then on, the
    others are told, and `failures` keeps the error for the report.
    """

    def __init__(
        self,
        listeners: Iterable[Listener] = (),
        *,
        now: Callable[[], datetime] = lambda: datetime.now().astimezone(),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.failures: list[Exception] = []
        self._listeners = list(listeners)
        self._now = now
        self._monotonic = monotonic
        self._began = monotonic()
        self._iteration: int | None = None
        self._in_trouble: set[int] = set()

    def add(self, listener: Listener) -> None:
        """Let one more listener hear what comes."""
        self._listeners.append(listener)

    def __call__(self, event: Event) -> None:
        """Tell everybody."""
        if isinstance(event, IterationStarted):
            self._iteration = event.iteration
        elapsed = self._monotonic() - self._began
        stamped = Stamped(event, self._now(), elapsed, self._iteration)
        for listener in list(self._listeners):
            try:
                listener(stamped)
            except OSError as error:
                if id(listener) not in self._in_trouble:
                    self._in_trouble.add(id(listener))
                    self(ListenerFailed(type(listener).__name__, str(error)))
            except Exception as error:  # noqa: BLE001 - whatever it is, the run goes on
                self._listeners.remove(listener)
                self.failures.append(error)
                self(ListenerFailed(type(listener).__name__, f"{type(error).__name__}: {error}"))
        if isinstance(event, IterationEnded):
            self._iteration = None
