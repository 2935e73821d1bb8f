"""Ask programs for their versions: each in a process tree of its own, of which nothing is left."""

import os
import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rooda.process.clocks import Clock, Since
from rooda.process.events import Output, ProcessEvent
from rooda.process.exits import CalledOff, Exited, Lingered, NotStarted, Signalled, TimedOut
from rooda.process.interrupts import Interrupts
from rooda.process.request import Request, Result
from rooda.process.run import Runner
from rooda.text.controls import one_line
from rooda.text.times import format_seconds

PATIENCE = 10.0  # gemini takes some seconds on a slow machine
_GRACE = 0.5
_MOST = 64 * 1024  # printed: a version is a line
_AT_ONCE = 8
_LONGEST = 200
_VERSION = re.compile(r"(?<![\w.])v?(\d+(?:\.\d+)+(?:[-+][\w.+-]{1,40})?)")


@dataclass(frozen=True, slots=True)
class Question:
    """A program, and the environment that it will have."""

    path: str
    environ: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Version:
    """What a program said of its version, or why nothing came. `can_start`: the system lets it."""

    text: str | None
    trouble: str = ""
    can_start: bool = True


def ask_all(
    questions: Iterable[Question], folder: Path, limit: float = PATIENCE
) -> dict[str, Version]:
    """The versions by path, all asked for at the same time."""
    wanted = {question.path: question for question in questions}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = pool.map(lambda one: ask(one, folder, limit), wanted.values())
        return dict(zip(wanted, answers, strict=True))


def ask(question: Question, folder: Path, limit: float = PATIENCE) -> Version:
    """Run `PROGRAM --version`, and stop it if it takes long or does not stop talking."""
    printed = 0

    def hear(event: ProcessEvent) -> None:
        nonlocal printed
        if isinstance(event, Output):
            printed += len(event.data)

    def enough() -> CalledOff | None:
        return CalledOff("flood") if printed > _MOST else None

    with Path(os.devnull).open("rb") as nothing, Runner() as runner:
        request = Request(
            argv=(question.path, "--version"),
            cwd=folder,
            environ=question.environ,
            stdin=nothing,
            output_limit=_MOST,
            clocks=(Clock("version", limit, Since.START),),
            kill_grace=_GRACE,
            enough=enough,
        )
        return version_in(runner.run(request, Interrupts(), hear))


def version_in(result: Result) -> Version:
    """What an answer amounts to. Pure."""
    head = result.stdout.head or result.stderr.head
    said = _first_line(head)
    match result.exit:
        case Exited(0) | Lingered() if said:
            found = _VERSION.search(head.decode("utf-8", "replace"))
            return Version(found[1] if found else said)
        case Exited(0) | Lingered():
            return Version(None, "it printed nothing")
        case Exited(code):
            words = _first_line(result.stderr.head) or said
            return Version(None, f"exit code {code}{f': {words}' if words else ''}")
        case Signalled():
            return Version(None, f"killed by {result.exit.name}")
        case TimedOut(after=after):
            return Version(None, f"no answer within {format_seconds(after)}")
        case CalledOff():
            return Version(None, "it does not stop printing")
        case NotStarted(reason):
            return Version(None, reason, can_start=False)
        case _:
            return Version(None, "it was stopped")


def _first_line(data: bytes) -> str:
    """The first line that says anything."""
    lines = map(one_line, data.decode("utf-8", "replace").splitlines())
    return next((line[:_LONGEST] for line in lines if line), "")
