"""What happens to a program while rooda watches it."""

from dataclasses import dataclass
from typing import Literal

Stream = Literal["stdout", "stderr"]


@dataclass(frozen=True, slots=True)
class NamedProcess:
    """A process: its pid, and its command line or name."""

    pid: int
    name: str


@dataclass(frozen=True, slots=True)
class ProcessStarted:
    """The program runs. Its pid and start time (in the system's unit) together identify it."""

    pid: int
    started: float = 0.0


@dataclass(frozen=True, slots=True)
class Output:
    """The program printed something."""

    stream: Stream
    data: bytes


@dataclass(frozen=True, slots=True)
class Tick:
    """Time passed; sent only if the caller asked for it."""


@dataclass(frozen=True, slots=True)
class ClockExpired:
    """A clock expired, and rooda asks the program to stop; `evidence` is what rooda saw."""

    clock: str
    after: float
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class ProcessCalledOff:
    """The caller canceled the program (for example over budget), and rooda asks it to stop."""

    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class InterruptSeen:
    """rooda received a signal; `again` if it was not the first."""

    signal: str
    again: bool = False


@dataclass(frozen=True, slots=True)
class ProcessStopping:
    """rooda received a signal and asks the program to stop."""

    pid: int


@dataclass(frozen=True, slots=True)
class ProcessKilled:
    """Some of the program's processes did not stop when asked, so the warden kills them."""

    pid: int


@dataclass(frozen=True, slots=True)
class ProcessSurvived:
    """SIGKILL did not end these processes; the run goes on without them."""

    pid: int
    processes: tuple[NamedProcess, ...] = ()


@dataclass(frozen=True, slots=True)
class ProcessStopped:
    """The program is gone, after a signal to rooda."""

    pid: int


@dataclass(frozen=True, slots=True)
class LeftoversStopped:
    """The program ended by itself and left these processes behind: the warden stopped them."""

    pid: int
    processes: tuple[NamedProcess, ...] = ()


@dataclass(frozen=True, slots=True)
class ProcessLost:
    """The warden died while the program ran; rooda stopped what it could find of the program."""

    pid: int
    reason: str
    processes: tuple[NamedProcess, ...] = ()


@dataclass(frozen=True, slots=True)
class ProcessPaused:
    """The user pressed Ctrl+Z: the program stands still, and rooda is about to stop too."""

    pid: int


@dataclass(frozen=True, slots=True)
class ProcessResumed:
    """rooda was continued, and the program with it."""

    pid: int
    after: float


@dataclass(frozen=True, slots=True)
class MachineSlept:
    """The machine was suspended; no clock counted that."""

    seconds: float


@dataclass(frozen=True, slots=True)
class TranscriptTrimmed:
    """The program printed more than is kept on disk; `reason` is set if it is not the limit."""

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
