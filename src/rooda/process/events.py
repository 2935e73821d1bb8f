"""What happens to a program while rooda watches it."""

from typing import Literal

from msgspec import Struct

Stream = Literal["stdout", "stderr"]


class NamedProcess(Struct, frozen=True):
    """A process: its pid, and its command line or name."""

    pid: int
    name: str


class ProcessStarted(Struct, frozen=True):
    """The program runs. Its pid and start time (in the system's unit) together identify it."""

    pid: int
    started: float = 0.0


class Output(Struct, frozen=True):
    """The program printed something."""

    stream: Stream
    data: bytes


class Tick(Struct, frozen=True):
    """Time passed; sent only if the caller asked for it."""


class ClockExpired(Struct, frozen=True):
    """A clock expired, and rooda asks the program to stop; `evidence` is what rooda saw."""

    clock: str
    after: float
    evidence: str = ""


class ProcessCalledOff(Struct, frozen=True):
    """The caller canceled the program (for example over budget), and rooda asks it to stop."""

    rule: str
    reason: str


class InterruptSeen(Struct, frozen=True):
    """rooda received a signal; `again` if it was not the first."""

    signal: str
    again: bool = False


class ProcessStopping(Struct, frozen=True):
    """rooda received a signal and asks the program to stop."""

    pid: int


class ProcessKilled(Struct, frozen=True):
    """Some of the program's processes did not stop when asked, so the warden kills them."""

    pid: int


class ProcessSurvived(Struct, frozen=True):
    """SIGKILL did not end these processes; the run goes on without them."""

    pid: int
    processes: tuple[NamedProcess, ...] = ()


class ProcessStopped(Struct, frozen=True):
    """The program is gone, after a signal to rooda."""

    pid: int


class LeftoversStopped(Struct, frozen=True):
    """The program ended by itself and left these processes behind: the warden stopped them."""

    pid: int
    processes: tuple[NamedProcess, ...] = ()


class ProcessLost(Struct, frozen=True):
    """The warden died while the program ran; rooda stopped what it could find of the program."""

    pid: int
    reason: str
    processes: tuple[NamedProcess, ...] = ()


class ProcessPaused(Struct, frozen=True):
    """The user pressed Ctrl+Z: the program stands still, and rooda is about to stop too."""

    pid: int


class ProcessResumed(Struct, frozen=True):
    """rooda was continued, and the program with it."""

    pid: int
    after: float


class MachineSlept(Struct, frozen=True):
    """The machine was suspended; no clock counted that."""

    seconds: float


class TranscriptTrimmed(Struct, frozen=True):
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
