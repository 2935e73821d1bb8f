"""What to run, and how it went."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

from msgspec import Struct

from rooda.base.event import Event
from rooda.world.process.capture.buffers import Captured, StreamOrder
from rooda.world.process.capture.disk import KeptBytes
from rooda.world.process.clocks import Clock
from rooda.world.process.events import NamedProcess, Stream
from rooda.world.process.exits import Canceled, Exit

MAX_TRANSCRIPT = 256 * 1024 * 1024

Listener = Callable[[Event], None]


class Transcript(Struct, frozen=True):
    """Two open files for what the program prints.

    With `direct` the program writes to them itself; otherwise it writes to pipes, and rooda
    writes the files.
    """

    stdout: IO[bytes]
    stderr: IO[bytes]
    direct: bool = False
    limit: int = MAX_TRANSCRIPT


def _never() -> bool:
    return False


def _go_on() -> Canceled | None:
    return None


def _no_change(_: float) -> float | None:
    return None


class ProcessRequest(Struct, frozen=True):
    """What to run, and within which limits.

    `result_is_in` is called after each piece of output; while it is true, clocks that count from
    the result run. `canceled` is called then too, and may cancel the program. `changed_within`
    returns how many seconds ago a file changed, if that was within the given time: a change
    counts as activity. `jail` are the words of bubblewrap that start a sandbox, up to `--`: the
    program runs in it. The first `earlier_signals` that rooda has received do not stop the program.
    """

    argv: tuple[str, ...]
    cwd: Path
    environ: Mapping[str, str]
    stdin: IO[bytes]
    output_limit: int
    transcript: Transcript | None = None
    clocks: tuple[Clock, ...] = ()
    kill_grace: float = 5.0
    keep: tuple[str, ...] = ()  # patterns of processes that may outlive the program
    tick: float | None = None
    result_is_in: Callable[[], bool] = _never
    canceled: Callable[[], Canceled | None] = _go_on
    changed_within: Callable[[float], float | None] = _no_change
    umask: int = -1  # -1: rooda's own
    earlier_signals: int = 0
    jail: tuple[str, ...] = ()


class Wrapped(Struct, frozen=True):
    """A program as it is started in a sandbox: the words before it, its own words, its variables.

    With a `jail` the warden knows that these words start bubblewrap.
    """

    jail: tuple[str, ...]
    program: tuple[str, ...]
    environ: Mapping[str, str]

    @property
    def argv(self) -> tuple[str, ...]:
        """The whole command line."""
        return (*self.jail, *self.program)


class ProcessResult(Struct, frozen=True):
    """How one run of a program went, also if it did not start.

    `cleaned_up` are processes other than the program itself that the warden stopped, `survivors`
    those that it could not stop. `kept` is what is on disk, `order` which stream came when.
    """

    exit: Exit
    stdout: Captured
    stderr: Captured
    duration: float
    cleaned_up: tuple[NamedProcess, ...] = ()
    survivors: tuple[NamedProcess, ...] = ()
    kept: Mapping[Stream, KeptBytes] | None = None
    order: StreamOrder | None = None
