"""How a process ended, as a union of types; and the words for it."""

import errno
import signal

from msgspec import Struct

from rooda.base.times import format_seconds

_FILE_ERRORS = (
    errno.ENOENT,
    errno.EACCES,
    errno.ENOEXEC,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EPERM,
)


class Exited(Struct, frozen=True):
    """The process exited with a code."""

    code: int


class Signalled(Struct, frozen=True):
    """A signal that rooda did not send ended the process."""

    number: int

    @property
    def name(self) -> str:
        """The signal's name: `SIGSEGV`."""
        return signal_name(self.number)

    @property
    def code(self) -> int:
        """The exit code that a shell would report."""
        return 128 + self.number


class TimedOut(Struct, frozen=True):
    """A clock expired and rooda stopped the process: the clock, its limit, and what was seen.

    `code` is the exit code of the stopped process as a shell would report it; None if unknown.
    """

    clock: str
    after: float
    evidence: str = ""
    code: int | None = None


class HungAfterResult(Struct, frozen=True):
    """The process reported its result, did not exit in time, and rooda stopped it.

    The result counts.
    """

    clock: str
    after: float


class Canceled(Struct, frozen=True):
    """The caller canceled the process while it ran: by which rule, and why."""

    rule: str
    reason: str = ""


class Lost(Struct, frozen=True):
    """The warden died, so rooda lost the process and stopped what it could find of its tree."""

    reason: str


class Interrupted(Struct, frozen=True):
    """The user sent rooda a signal, and rooda stopped the process."""

    number: int

    @property
    def name(self) -> str:
        """The name of the signal that rooda received."""
        return signal_name(self.number)


class NotStarted(Struct, frozen=True):
    """The system refused to start the process; `error` is the system's error number."""

    reason: str
    error: int = errno.ENOENT

    @property
    def is_about_files(self) -> bool:
        """Whether the program or its folder is the reason, and not the machine."""
        return self.error in _FILE_ERRORS


Exit = Exited | Signalled | TimedOut | HungAfterResult | Canceled | Interrupted | Lost | NotStarted


def succeeded(end: Exit) -> bool:
    """Whether the process exited with code 0, or was stopped only after its result."""
    return isinstance(end, HungAfterResult) or end == Exited(0)


def exit_code(end: Exit) -> int | None:
    """Return the exit code as a shell would report it; None if it is unknown."""
    return end.code if isinstance(end, Exited | Signalled | TimedOut) else None


def describe(end: Exit) -> str:
    """How the process ended, in words for a message."""
    match end:
        case Exited(code):
            return f"exit code {code}"
        case Signalled():
            return f"killed by {end.name}"
        case TimedOut("max_duration", after):
            return f"stopped, because the run reached max_duration ({format_seconds(after)})"
        case TimedOut(_, after):
            return f"timed out after {format_seconds(after)}"
        case HungAfterResult(_, after):
            return f"stopped, because it did not exit within {format_seconds(after)} of its result"
        case Interrupted():
            return "interrupted"
        case Lost(reason) | NotStarted(reason) | Canceled(_, reason):
            return reason


def from_returncode(returncode: int) -> Exited | Signalled:
    """The exit for a return code in the form of `subprocess`: negative for a signal."""
    return Signalled(-returncode) if returncode < 0 else Exited(returncode)


def signal_name(number: int) -> str:
    """`SIGTERM` for 15; `signal 99` for a number without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
