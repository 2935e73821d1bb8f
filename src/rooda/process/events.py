"""What a process does while it is watched."""

from dataclasses import dataclass
from typing import Literal

Stream = Literal["stdout", "stderr"]


@dataclass(frozen=True, slots=True)
class ProcessStarted:
    """It runs."""

    pid: int


@dataclass(frozen=True, slots=True)
class Output:
    """It printed something."""

    stream: Stream
    data: bytes


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passed; sent only when the watcher asked for it."""


@dataclass(frozen=True, slots=True)
class ClockExpired:
    """It ran out of time and is being asked to stop."""

    clock: str
    after: float


@dataclass(frozen=True, slots=True)
class InterruptSeen:
    """We were sent a signal; `again` when it was not the first."""

    signal: str
    again: bool = False


@dataclass(frozen=True, slots=True)
class ProcessStopping:
    """It is being stopped because of a signal to us."""

    pid: int


@dataclass(frozen=True, slots=True)
class ProcessKilled:
    """It did not stop when asked, so it is killed."""

    pid: int


@dataclass(frozen=True, slots=True)
class ProcessSurvived:
    """Not even that ended it; we go on without it."""

    pid: int


@dataclass(frozen=True, slots=True)
class ProcessStopped:
    """It is gone, after we stopped it."""

    pid: int


@dataclass(frozen=True, slots=True)
class LeftoversStopped:
    """It ended by itself, but its group had not: the rest was stopped."""

    pid: int


ProcessEvent = (
    ProcessStarted
    | Output
    | Tick
    | ClockExpired
    | InterruptSeen
    | ProcessStopping
    | ProcessKilled
    | ProcessSurvived
    | ProcessStopped
    | LeftoversStopped
)
