"""What happens to a program while rooda watches it: each event with its level and its words."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from rooda.base.event import Event, LogLevel, Message, say
from rooda.base.times import format_duration, format_seconds

Stream = Literal["stdout", "stderr"]
_SHOWN = 5  # processes by name


class NamedProcess(Struct, frozen=True):
    """A process."""

    pid: int  # its process id
    name: str  # its command line or name


def names(processes: Sequence[NamedProcess]) -> str | None:
    """Return `sleep 600 (pid 4711), node (pid 4712), 3 more`; None if there are no processes."""
    shown = [f"{one.name} (pid {one.pid})" for one in processes[:_SHOWN]]
    more = [f"{len(processes) - _SHOWN} more"] if len(processes) > _SHOWN else []
    return ", ".join(shown + more) or None


class ProcessStarted(Event, frozen=True):
    """The program runs. Its pid and start time together identify it."""

    level = LogLevel.DEBUG
    pid: int  # the pid of the program
    started: float = 0.0  # the start time, in the system's unit

    def describe(self) -> Message:
        return say("AI CLI started", pid=self.pid)


class Output(Event, frozen=True):
    """The program printed something."""

    level = LogLevel.DEBUG
    is_logged = False
    stream: Stream  # `stdout` or `stderr`
    data: bytes  # what it printed


class Tick(Event, frozen=True):
    """Time passed; sent only if the caller asked for it."""

    level = LogLevel.DEBUG
    is_logged = False


class ClockExpired(Event, frozen=True):
    """A clock expired, and rooda asks the program to stop."""

    level = LogLevel.WARN
    clock: str  # the setting of the clock
    after: float  # how many seconds it allowed
    evidence: str = ""  # what rooda saw

    def describe(self) -> Message:
        return say(
            "AI CLI exceeded timeout",
            timeout=format_seconds(self.after),
            action="sending_sigterm",
            clock=self.clock,
            evidence=self.evidence or None,
        )


class ProcessCalledOff(Event, frozen=True):
    """The caller canceled the program (for example over budget), and rooda asks it to stop."""

    level = LogLevel.WARN
    rule: str  # the setting that decided
    reason: str  # why, in words

    def describe(self) -> Message:
        return say(
            "Stopping AI CLI: a limit of the run is reached",
            rule=self.rule,
            reason=self.reason,
            action="sending_sigterm",
        )


class InterruptSeen(Event, frozen=True):
    """rooda received a signal."""

    signal: str  # the name of the signal
    again: bool = False  # it was not the first: rooda kills the program at once

    def describe(self) -> Message:
        action = "killing" if self.again else "shutting_down"
        return say("Received signal", signal=self.signal, action=action)

    def as_text(self) -> str:
        end = " again, killing at once" if self.again else ", shutting down..."
        return f"Received {self.signal}{end}"


class ProcessStopping(Event, frozen=True):
    """rooda received a signal and asks the program to stop."""

    pid: int  # the pid of the program

    def describe(self) -> Message:
        return say("Killing AI CLI process", pid=self.pid)

    def as_text(self) -> str:
        return f"Killing AI CLI process (pid {self.pid}); a second Ctrl+C kills it at once"


class ProcessKilled(Event, frozen=True):
    """Some of the program's processes did not stop when asked, so the warden kills them."""

    level = LogLevel.WARN
    pid: int  # the pid of the program

    def describe(self) -> Message:
        return say("AI CLI did not terminate gracefully", action="sending_sigkill")


class ProcessSurvived(Event, frozen=True):
    """SIGKILL did not end these processes; the run continues without them."""

    level = LogLevel.WARN
    pid: int  # the pid of the program
    processes: tuple[NamedProcess, ...] = ()  # the processes that are still there

    def describe(self) -> Message:
        return say(
            "AI CLI is still running after SIGKILL",
            pid=self.pid,
            action="continuing_without_it",
            processes=names(self.processes),
            suggestion="Find the owner of these processes with ps, and kill them by hand",
        )


class ProcessStopped(Event, frozen=True):
    """The program is gone, after a signal to rooda."""

    pid: int  # the pid of the program

    def describe(self) -> Message:
        return say("AI CLI terminated")


class LeftoversStopped(Event, frozen=True):
    """The program exited and left these processes behind: the warden stopped them."""

    level = LogLevel.WARN
    pid: int  # the pid of the program
    processes: tuple[NamedProcess, ...] = ()  # the processes that it left behind

    def describe(self) -> Message:
        return say(
            "AI CLI left processes behind; they were stopped", processes=names(self.processes)
        )


class ProcessLost(Event, frozen=True):
    """The warden died while the program ran; rooda stopped the processes that it found."""

    level = LogLevel.WARN
    pid: int  # the pid of the program
    reason: str  # how rooda noticed it
    processes: tuple[NamedProcess, ...] = ()  # the processes that rooda stopped

    def describe(self) -> Message:
        return say(
            "AI CLI was lost: rooda's warden is gone; the processes that rooda found were stopped",
            pid=self.pid,
            error=self.reason,
            processes=names(self.processes),
        )


class ProcessPaused(Event, frozen=True):
    """The user pressed Ctrl+Z: the program is stopped, and rooda is about to stop too."""

    pid: int  # the pid of the program

    def describe(self) -> Message:
        return say("Paused", pid=self.pid)


class ProcessResumed(Event, frozen=True):
    """rooda was continued, and the program with it."""

    pid: int  # the pid of the program
    after: float  # how many seconds it was stopped

    def describe(self) -> Message:
        return say("Resumed", pid=self.pid, paused=format_duration(self.after))


class MachineSlept(Event, frozen=True):
    """The machine was suspended; no clock counted that time."""

    seconds: float  # how many seconds it was suspended

    def describe(self) -> Message:
        return say(
            "The machine was suspended; no timeout counted that time",
            asleep=format_duration(self.seconds),
        )


class TranscriptTrimmed(Event, frozen=True):
    """The program printed more than is kept on disk."""

    level = LogLevel.WARN
    stream: Stream  # `stdout` or `stderr`
    size: int  # how many bytes it printed
    kept: int  # how many of them are kept
    reason: str = ""  # why, if it is not the limit `max_transcript`

    def describe(self) -> Message:
        return say(
            "Not all of the output is kept on disk",
            stream=self.stream,
            size=self.size,
            kept=self.kept,
            reason=self.reason or "max_transcript",
        )
