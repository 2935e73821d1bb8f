"""What a process does while it is watched."""

from dataclasses import dataclass
from typing import Literal

Stream = Literal["stdout", "stderr"]


@dataclass(frozen=True, slots=True)
class ProcessStarted:
    """The program runs."""

    pid: int


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
    """The program ran out of time and is asked to stop."""

    clock: str
    after: float


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
    """The program did not stop when asked, so it is killed."""

    pid: int


@dataclass(frozen=True, slots=True)
class ProcessSurvived:
    """Not even SIGKILL ended the program; the run goes on without it."""

    pid: int


@dataclass(frozen=True, slots=True)
class ProcessStopped:
    """The program is gone, after a signal to us."""

    pid: int


@dataclass(frozen=True, slots=True)
class LeftoversStopped:
    """The program ended by itself, but its group had not: the rest was stopped."""

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
