"""Finds the program of an agent, and asks it for its version.

Each program runs in its own process tree, which is killed completely afterwards.
"""

import os
import re
import shutil
import stat
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec import Struct

from rooda.base.controls import one_line
from rooda.base.event import Event
from rooda.base.paths import file_mode
from rooda.base.times import format_seconds
from rooda.front.doctor.findings import Finding, Mark
from rooda.world.process.clocks import Clock, Since
from rooda.world.process.events import Output
from rooda.world.process.exits import (
    Canceled,
    Exited,
    HungAfterResult,
    NotStarted,
    Signalled,
    TimedOut,
)
from rooda.world.process.interrupts import Interrupts
from rooda.world.process.request import ProcessRequest, ProcessResult
from rooda.world.process.runner import Runner
from rooda.world.tools import interpreter_of

# -- where a program is ----------------------------------------------------------------------

_ADVICE = {"node": "Install Node.js, 20 or newer (22 for qwen and copilot), and put it on the PATH"}


class ProgramPath(Struct, frozen=True):
    """The path of an executable program, or what is wrong with the file of that name."""

    path: str | None
    trouble: str = ""
    advice: str = ""


def find_program(name: str, folder: Path, environ: Mapping[str, str]) -> ProgramPath:
    """Find a program as the OS does: by its path, or in the folders of the PATH."""
    path = environ.get("PATH", os.defpath)
    found = shutil.which(str(folder / name) if "/" in name else name, path=path)
    if found is not None:
        return ProgramPath(str(folder / found))
    places = (
        [folder / name] if "/" in name else [Path(one) / name for one in path.split(os.pathsep)]
    )
    return next((_not_executable(one) for one in places if os.path.lexists(one)), ProgramPath(None))


def _not_executable(path: Path) -> ProgramPath:
    mode = file_mode(path)
    if not mode:
        return ProgramPath(None, f"{path} is a link to a missing file", "Install it again")
    if stat.S_ISDIR(mode):
        return ProgramPath(None, f"{path} is a folder", "Correct the path")
    return ProgramPath(None, f"{path} is not executable", f"chmod +x {path}")


def interpreter_trouble(path: str, environ: Mapping[str, str]) -> Finding | None:
    """Return a finding for a script with a missing interpreter, else None.

    The OS would report that the script itself is missing.
    """
    name = interpreter_of(Path(path))
    if name is None or shutil.which(name, path=environ.get("PATH", os.defpath)) is not None:
        return None
    known = Path(name).name
    advice = _ADVICE.get(known, f"Install {known}, or correct the first line of {path}")
    return Finding(
        "interpreter", Mark.PROBLEM, f"it is a {known} script, and {name} is missing", advice
    )


# -- which version it is ---------------------------------------------------------------------

VERSION_TIMEOUT = 10.0  # seconds; gemini is slow on a slow machine
_KILL_GRACE = 0.5
_MOST_OUTPUT = 64 * 1024  # bytes; a version is one line
_AT_ONCE = 8
_LONGEST = 200
_VERSION = re.compile(r"(?<![\w.])v?(\d+(?:\.\d+)+(?:[-+][\w.+-]{1,40})?)")


class VersionQuestion(Struct, frozen=True):
    """A program and its environment."""

    path: str
    environ: Mapping[str, str]


class Version(Struct, frozen=True):
    """The version of a program, or why it is unknown. `can_start`: the OS could start it."""

    text: str | None
    trouble: str = ""
    can_start: bool = True


def ask_versions(
    questions: Iterable[VersionQuestion], folder: Path, limit: float = VERSION_TIMEOUT
) -> dict[str, Version]:
    """Ask all programs in parallel; return their versions by path."""
    wanted = {question.path: question for question in questions}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = pool.map(lambda one: ask_version(one, folder, limit), wanted.values())
        return dict(zip(wanted, answers, strict=True))


def ask_version(question: VersionQuestion, folder: Path, limit: float = VERSION_TIMEOUT) -> Version:
    """Run `PROGRAM --version`; stop it after `limit` seconds or too much output."""
    printed = 0

    def on_event(event: Event) -> None:
        nonlocal printed
        if isinstance(event, Output):
            printed += len(event.data)

    def output_limit_exceeded() -> Canceled | None:
        return Canceled("flood") if printed > _MOST_OUTPUT else None

    with Path(os.devnull).open("rb") as nothing, Runner() as runner:
        request = ProcessRequest(
            argv=(question.path, "--version"),
            cwd=folder,
            environ=question.environ,
            stdin=nothing,
            output_limit=_MOST_OUTPUT,
            clocks=(Clock("version", limit, Since.START),),
            kill_grace=_KILL_GRACE,
            canceled=output_limit_exceeded,
        )
        return _version_in(runner.run(request, Interrupts(), on_event))


def _version_in(result: ProcessResult) -> Version:
    head = result.stdout.head or result.stderr.head
    first = _first_line(head)
    match result.exit:
        case Exited(0) | HungAfterResult() if first:
            found = _VERSION.search(head.decode("utf-8", "replace"))
            return Version(found[1] if found else first)
        case Exited(0) | HungAfterResult():
            return Version(None, "it printed nothing")
        case Exited(code):
            words = _first_line(result.stderr.head) or first
            return Version(None, f"exit code {code}{f': {words}' if words else ''}")
        case Signalled():
            return Version(None, f"killed by {result.exit.name}")
        case TimedOut(after=after):
            return Version(None, f"no answer within {format_seconds(after)}")
        case Canceled():
            return Version(None, "it does not stop printing")
        case NotStarted(reason):
            return Version(None, reason, can_start=False)
        case _:
            return Version(None, "it was stopped")


def _first_line(data: bytes) -> str:
    """Return the first line that is not blank."""
    lines = map(one_line, data.decode("utf-8", "replace").splitlines())
    return next((line[:_LONGEST] for line in lines if line), "")
