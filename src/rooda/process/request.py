"""What to run, and the truth about how it went."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from rooda.process.capture.bounds import Kept
from rooda.process.capture.order import Order
from rooda.process.capture.tail import Captured
from rooda.process.clocks import Clock
from rooda.process.events import Named, ProcessEvent, Stream
from rooda.process.exits import CalledOff, Exit

MAX_TRANSCRIPT = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Transcript:
    """Two open files for what the program prints.

    With `direct` the program writes to them itself, else it gets pipes and we do.
    """

    stdout: IO[bytes]
    stderr: IO[bytes]
    direct: bool = False
    limit: int = MAX_TRANSCRIPT


def _never() -> bool:
    return False


def _go_on() -> CalledOff | None:
    return None


def _nobody_knows(seconds: float) -> float | None:  # noqa: ARG001 - the form of it
    return None


@dataclass(frozen=True, slots=True)
class Request:
    """What to run, and within which bounds.

    `result_is_in` is asked after each piece of output; while it is true, clocks that count from the
    result run. `enough` is asked then too, and may call the program off. `changed_within` tells how
    many seconds ago a file was changed that shows life, if that was within the given time.
    The first `earlier_signals` that rooda has received do not stop the program.
    """

    argv: tuple[str, ...]
    cwd: Path
    environ: Mapping[str, str]
    stdin: IO[bytes]
    output_limit: int
    transcript: Transcript | None = None
    clocks: tuple[Clock, ...] = ()
    kill_grace: float = 5.0
    keep: tuple[str, ...] = ()
    tick: float | None = None
    result_is_in: Callable[[], bool] = _never
    enough: Callable[[], CalledOff | None] = _go_on
    changed_within: Callable[[float], float | None] = _nobody_knows
    umask: int = -1  # -1: the one that rooda has itself
    earlier_signals: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """The truth about one run of a program, a failed start included.

    `cleaned_up` are processes other than the program itself that had to be stopped, `survivors`
    those that could not be. `kept` says what is on disk, `order` which stream spoke when.
    """

    exit: Exit
    stdout: Captured
    stderr: Captured
    duration: float
    cleaned_up: tuple[Named, ...] = ()
    survivors: tuple[Named, ...] = ()
    kept: Mapping[Stream, Kept] | None = None
    order: Order | None = None


Listener = Callable[[ProcessEvent], None]
