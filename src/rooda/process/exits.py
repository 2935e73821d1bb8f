"""How a process ended. A union, so that nonsense can't be built."""

import errno
import signal
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Exited:
    """It ended by itself with an exit code."""

    code: int


@dataclass(frozen=True, slots=True)
class Signalled:
    """A signal ended it, and it was not us who sent that."""

    number: int

    @property
    def name(self) -> str:
        """The signal's name: `SIGSEGV`."""
        return signal_name(self.number)

    @property
    def code(self) -> int:
        """The exit code that a shell would report."""
        return 128 + self.number


@dataclass(frozen=True, slots=True)
class TimedOut:
    """A clock ran out and we stopped it: the name of the clock, its limit, and what was seen."""

    clock: str
    after: float
    evidence: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Lingered:
    """Its result was in but it did not exit in time, so we stopped it. The result counts."""

    clock: str
    after: float


@dataclass(frozen=True, slots=True)
class CalledOff:
    """Whoever started it has had enough of it, so we stopped it: by which rule, and why."""

    rule: str
    reason: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Lost:
    """Our hold on it was lost (somebody killed the warden), so what could be found was stopped."""

    reason: str


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The user asked us to stop, and we stopped it."""

    number: int

    @property
    def name(self) -> str:
        """The signal that we were sent."""
        return signal_name(self.number)


@dataclass(frozen=True, slots=True)
class NotStarted:
    """The system refused to start it; `error` is its number for that."""

    reason: str
    error: int = errno.ENOENT

    @property
    def is_about_files(self) -> bool:
        """Whether the program or its folder is the reason, and not the machine."""
        files = (
            errno.ENOENT,
            errno.EACCES,
            errno.ENOEXEC,
            errno.ENOTDIR,
            errno.EISDIR,
            errno.EPERM,
        )
        return self.error in files


Exit = Exited | Signalled | TimedOut | Lingered | CalledOff | Interrupted | Lost | NotStarted


def from_returncode(returncode: int) -> Exited | Signalled:
    """What `waitpid` told, in our words."""
    return Signalled(-returncode) if returncode < 0 else Exited(returncode)


def signal_name(number: int) -> str:
    """`SIGTERM` for 15; a number without a name is shown as it is."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
