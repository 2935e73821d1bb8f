"""What a process does while it is watched."""

from dataclasses import dataclass
from typing import Literal

Stream = Literal["stdout", "stderr"]


@dataclass(frozen=True, slots=True)
class Named:
    """A process, as people know it."""

    pid: int
    name: str


@dataclass(frozen=True, slots=True)
class ProcessStarted:
    """The program runs. With its start time (in the system's unit) the pid is unmistakable."""

    pid: int
    started: float = 0.0


@dataclass(frozen=True, slots=True)
class Output:
    """The program printed something."""

    stream: Stream
    data: bytes


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passed; sent only when the watcher asked for it."""


@dataclass(frozen=True, slots=True)
class ClockExpired:
    """The program ran out of time and is asked to stop; `evidence` is what was seen."""

    clock: str
    after: float
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class ProcessCalledOff:
    """The program is asked to stop, because whoever started it has had enough of it."""

    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class InterruptSeen:
    """We were sent a signal; `again` when it was not the first."""

    signal: str
    again: bool = False


@dataclass(frozen=True, slots=True)
class ProcessStopping:
    """The program is asked to stop because of a signal to us."""

    pid: int


@dataclass(frozen=True, slots=True)
class ProcessKilled:
    """Not all of the program's processes stopped when asked, so they are killed."""

    pid: int


@dataclass(frozen=True, slots=True)
class ProcessSurvived:
    """Not even SIGKILL ended these; the run goes on without them."""

    pid: int
    processes: tuple[Named, ...] = ()


@dataclass(frozen=True, slots=True)
class ProcessStopped:
    """The program is gone, after a signal to us."""

    pid: int


@dataclass(frozen=True, slots=True)
class LeftoversStopped:
    """The program ended by itself and left these behind: they were stopped."""

    pid: int
    processes: tuple[Named, ...] = ()


@dataclass(frozen=True, slots=True)
class ProcessLost:
    """Our hold on the program is lost; what could be found of it was stopped."""

    pid: int
    reason: str
    processes: tuple[Named, ...] = ()


@dataclass(frozen=True, slots=True)
class ProcessPaused:
    """We are about to be stopped (Ctrl+Z), and the program stands still with us."""

    pid: int


@dataclass(frozen=True, slots=True)
class ProcessResumed:
    """We were continued, and the program with us."""

    pid: int
    after: float


@dataclass(frozen=True, slots=True)
class MachineSlept:
    """The machine was suspended; no clock counted that."""

    seconds: float


@dataclass(frozen=True, slots=True)
class TranscriptTrimmed:
    """More was printed than is kept on disk; `reason` says why, where it is not the limit."""

    stream: Stream
    size: int
    kept: int
    reason: str = ""


ProcessEvent = (
    ProcessStarted
    | Output
    | Tick
    | ClockExpired
    | ProcessCalledOff
    | InterruptSeen
    | ProcessStopping
    | ProcessKilled
    | ProcessSurvived
    | ProcessStopped
    | LeftoversStopped
    | ProcessLost
    | ProcessPaused
    | ProcessResumed
    | MachineSlept
    | TranscriptTrimmed
)
