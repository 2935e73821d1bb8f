"""The programs that rooda runs for itself: git, and the shell for hooks and `verify`.

An agent can write every file in the work tree, and PATH may name folders there (`.venv/bin`,
`node_modules/.bin`). So rooda looks up its programs before the first agent starts, only outside of
the work tree, and keeps their absolute paths. Each one runs in a process tree of its own, within a
time limit: a signal to rooda stops it, and it does not outlive rooda.
"""

import contextlib
import os
import re
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Protocol

from msgspec import Struct
from msgspec.structs import replace

from rooda.base.controls import clean
from rooda.base.event import Event
from rooda.world.files.plain_files import read_plain_file
from rooda.world.git.work_tree import work_tree
from rooda.world.process.capture.buffers import Captured, StreamOrder, combined
from rooda.world.process.clocks import Clock, Since
from rooda.world.process.events import NamedProcess, Output
from rooda.world.process.exits import (
    Exit,
    Exited,
    Interrupted,
    NotStarted,
    TimedOut,
    describe,
    exit_code,
    succeeded,
)
from rooda.world.process.interrupts import Interrupts
from rooda.world.process.request import Listener, ProcessRequest, ProcessResult, Wrapped
from rooda.world.process.runner import Runner

# The interpreter of a script, from its first line.


_FIRST_LINE = 512  # bytes of a script
_SHEBANG = re.compile(rb"#![ \t]*(\S+)[ \t]*([^\r\n]*)")


def interpreter_of(path: Path) -> str | None:
    """Return the program that runs a script: `node` for `#!/usr/bin/env -S node --flag`.

    None for other programs, and if the file can't be read: it may be executable all the same.
    """
    try:
        found = _SHEBANG.match(read_plain_file(path, _FIRST_LINE, follow=True))
    except (OSError, RuntimeError):
        return None
    if found is None:
        return None
    program = os.fsdecode(found[1])
    if Path(program).name != "env":
        return program
    arguments = os.fsdecode(found[2]).split()
    return next((one for one in arguments if not one.startswith("-") and "=" not in one), program)


OUTPUT_LIMIT = 4 * 1024 * 1024
# For each closing command after the end of the run (`max_duration`).
LAST_SECONDS = 5.0
# After a signal the user waits for rooda. All commands that close the run together get:
_LAST_MOMENT = 0.4  # seconds for the last snapshot, the commit of finished work and its push
_LAST_NOTE = 2.0  # seconds to note whose the uncommitted files are, also after a second signal
_LAST_HOOKS = 5.0  # seconds from the signal on for the hooks that send a message
_LAST_HOOK = 0.4  # seconds for them at least, if the agent took long to end
_LAST_GRACE = 0.3  # seconds between SIGTERM and SIGKILL, if one of them takes longer
# Looked up before the first agent starts; git runs the later ones.
_PROGRAMS = ("git", "sh", "true", "cat", "ssh", "gpg", "gpgsm", "ssh-keygen")

Execute = Callable[[ProcessRequest, Interrupts, Listener], ProcessResult]


class Command(Struct, frozen=True):
    """A command to run.

    `what` is its name in messages, and `shown` the command line of the user, if it is one. A
    `closing` command may run for a moment beyond the end of the run (`max_duration`, or a signal
    that came before it started); an `ending` one, which is the last of the run, for a few seconds.
    With `streams`, listeners hear its output while it runs. It runs in the sandbox of the run, if
    there is one, with the work tree or with a `copy` of it, unless the caller says `outside`. Few
    callers do: docs/reference/security.md names them. `jail` starts a sandbox of its own. A large
    `stdin` can be a file, which no agent can write.
    """

    what: str
    argv: tuple[str, ...]
    cwd: Path
    environ: Mapping[str, str]
    timeout: float | None = None
    stdin: bytes | Path = b""
    kill_grace: float = 5.0
    closing: bool = False
    umask: int = -1
    ending: bool = False
    shown: str = ""
    streams: bool = False
    outside: bool = False
    copy: Path | None = None
    jail: tuple[str, ...] = ()


class Container(Protocol):
    """A sandbox, as far as the tools know it."""

    def wrap(
        self,
        argv: Sequence[str],
        cwd: Path,
        environ: Mapping[str, str],
        /,
        *,
        copy: Path | None = None,
    ) -> Wrapped:
        """Return what starts a program inside; a `copy` replaces the work tree. Raises OSError."""

    def settle(self, environ: Mapping[str, str], /) -> None:
        """Take over what a program inside, with these variables, has done with git."""


class Finished(Struct, frozen=True):
    """How a command ended, and the end of what it printed on both streams, in order of arrival."""

    exit: Exit
    output: bytes
    duration: float
    cleaned_up: tuple[NamedProcess, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether it exited with code 0."""
        return self.exit == Exited(0)

    @property
    def was_interrupted(self) -> bool:
        """Whether the user stopped it."""
        return isinstance(self.exit, Interrupted)

    @property
    def exit_code(self) -> int | None:
        """Its exit code, as a shell would report it; None after a timeout."""
        return None if isinstance(self.exit, TimedOut) else exit_code(self.exit)

    @property
    def error(self) -> str:
        """Why it failed; empty if it did not."""
        return "" if succeeded(self.exit) else describe(self.exit)

    def last_words(self, most: int) -> str:
        """The end of the output, fit for reading."""
        text = clean(self.output[-4 * most :].decode("utf-8", "replace")).strip()
        return text[-most:]


class Deadline(Struct, frozen=True):
    """How many seconds a run has left, and its `max_duration` as the user wrote it."""

    left: Callable[[], float]
    max_duration: float


def _ignore(command: Command, event: Event) -> None:
    """Tell no listener."""


class Tools:
    """Finds rooda's own programs and runs them.

    `listener` hears the events of every command that has a name. The run sets `deadline`, `tick`,
    `keep` and `sandbox`; outside of a run there is none of them.
    """

    def __init__(
        self,
        environ: Mapping[str, str] | None = None,
        folders: Sequence[Path] = (),
        execute: Execute | None = None,
        interrupts: Interrupts | None = None,
    ) -> None:
        """`folders`: rooda runs no program of the work trees that these folders belong to."""
        self.environ: Mapping[str, str] = os.environ if environ is None else environ
        self.runner = Runner()
        weakref.finalize(self, self.runner.close)
        self.interrupts = interrupts
        self.listener: Callable[[Command, Event], None] = _ignore
        self.deadline: Deadline | None = None
        self.tick: float | None = None
        # Patterns of processes that no command stops: the agent has left them behind on purpose.
        self.keep: tuple[str, ...] = ()
        self.sandbox: Container | None = None
        self.hung: set[str] = set()  # commands of git that ran into their time limit
        self._closing_since: float | None = None  # when the first closing act after a signal began
        self._is_noting = False
        self._execute = execute or self.runner.run
        avoid = tuple(str(top) for folder in folders for top in _tops(folder))
        folders_of_path = safe_folders(self.environ.get("PATH", os.defpath), avoid)
        # PATH without the folders of the work trees
        self.path = os.pathsep.join(folders_of_path) or os.defpath
        self._avoid = avoid
        self._programs = {name: find_program(name, folders_of_path, avoid) for name in _PROGRAMS}

    @property
    def git(self) -> str | None:
        """The path of git; None where there is none outside of the work tree."""
        return self._programs["git"]

    def is_in_work_tree(self, path: str) -> bool:
        """Whether a program belongs to the work tree, where an agent could have put it."""
        return is_below(path, self._avoid)

    def find(self, name: str) -> str | None:
        """Look up a program outside of the work tree; call this before the first agent starts."""
        return find_program(name, self.path.split(os.pathsep), self._avoid)

    def program(self, name: str) -> str:
        """The path of a program, also of one that is missing: git would look for a bare name."""
        return self._programs[name] or f"/bin/{name}"

    def shell(self, command: str) -> tuple[str, ...]:
        """The words that make a shell run a command."""
        return self.program("sh"), "-c", command

    def run(self, command: Command) -> Finished:
        """Run a command to its end, and return the end of what it printed."""

        def listen(event: Event) -> None:
            self.listener(command, event)

        result = self._run(command, OUTPUT_LIMIT, listen)
        if isinstance(result, NotStarted):
            return Finished(result, b"", 0.0)
        output = combined(result.order or StreamOrder(), result.stdout.tail, result.stderr.tail)
        return Finished(result.exit, output, result.duration, result.cleaned_up)

    def stream(self, command: Command, take: Callable[[bytes], object]) -> tuple[Exit, bytes]:
        """Run a command, and give its standard output to `take` as it arrives.

        Returns how the command ended, and the end of its standard error.
        """

        def listen(event: Event) -> None:
            if not isinstance(event, Output):
                self.listener(command, event)
            elif event.stream == "stdout":
                take(event.data)

        result = self._run(command, _ERRORS, listen)
        if isinstance(result, NotStarted):
            return result, b""
        return result.exit, result.stderr.tail

    def _run(self, command: Command, limit: int, listen: Listener) -> ProcessResult | NotStarted:
        interrupts = self._signals
        # Counted before the start: a signal that comes from now on stops the command.
        earlier = len(interrupts.received) if command.closing else 0
        left = self._left_after_a_signal(command) if earlier else None
        if left is not None and left <= 0:
            return _never_started(interrupts.received[0])
        try:
            started = self._as_started(command)
            with _standard_input(command.stdin) as stdin:
                request = ProcessRequest(
                    argv=started.program,
                    cwd=command.cwd,
                    environ=started.environ,
                    stdin=stdin,
                    output_limit=limit,
                    clocks=tuple(self._clocks(command, left)),
                    kill_grace=command.kill_grace if left is None else _LAST_GRACE,
                    keep=self.keep,
                    tick=self.tick,
                    umask=command.umask,
                    earlier_signals=earlier,
                    jail=started.jail,
                )
                result = self._execute(request, interrupts, listen)
        except OSError as error:  # no room for a temporary file, or no sandbox
            return NotStarted(error.strerror or str(error), error.errno or 0)
        if self.sandbox is not None and self._is_contained(command):
            self.sandbox.settle(command.environ)
        is_over = isinstance(result.exit, TimedOut) and result.exit.clock == _SIGNAL_CLOCK
        if is_over and not command.ending:
            return replace(result, exit=Interrupted(interrupts.received[0]))
        return result

    def _as_started(self, command: Command) -> Wrapped:
        """Return the words and variables with which a command is started."""
        if self.sandbox is not None and self._is_contained(command):
            words = command.argv, command.cwd, command.environ
            return self.sandbox.wrap(*words, copy=command.copy)
        return Wrapped(command.jail, command.argv, command.environ)

    def _is_contained(self, command: Command) -> bool:
        return self.sandbox is not None and not (command.outside or command.jail)

    def _left_after_a_signal(self, command: Command) -> float:
        """Return how many seconds a closing command gets after a signal; 0: do not start it."""
        if not command.ending:
            return self._last_moment()
        signals = self._signals
        seconds = 0.0 if signals.is_urgent else _LAST_HOOKS - signals.seconds_since_the_first()
        return max(seconds, _LAST_HOOK)

    def _last_moment(self) -> float:
        """Return how many seconds are left for all closing acts after a signal."""
        signals = self._signals
        now = signals.stopwatch.now()
        if self._closing_since is None:
            self._closing_since = now
        if self._is_noting:
            return _LAST_NOTE - (now - self._closing_since)
        return 0.0 if signals.is_urgent else _LAST_MOMENT - (now - self._closing_since)

    @contextlib.contextmanager
    def noting(self) -> Iterator[None]:
        """Give git a moment to list files, after any number of signals: a resumed run needs it."""
        since, self._closing_since, self._is_noting = self._closing_since, None, True
        try:
            yield
        finally:
            self._closing_since, self._is_noting = since, False

    @property
    def is_over(self) -> bool:
        """Whether a signal has come, and rooda has no time left for closing acts."""
        return bool(self._signals.received) and self._last_moment() <= 0

    def _clocks(self, command: Command, left: float | None) -> Iterator[Clock]:
        if command.timeout is not None:
            yield Clock("timeout", command.timeout, Since.START)
        if left is not None:
            yield Clock(_SIGNAL_CLOCK, left, Since.START)
        if self.deadline is not None:
            least = LAST_SECONDS if command.closing else 0.0
            left = max(self.deadline.left(), least)
            yield Clock("max_duration", left, Since.START, self.deadline.max_duration)

    @property
    def _signals(self) -> Interrupts:
        """Without handlers of its own, a signal ends rooda at once; then the warden stops git."""
        if self.interrupts is None:
            self.interrupts = Interrupts()
        return self.interrupts


_ERRORS = 64 * 1024  # bytes of standard error that are kept
_SIGNAL_CLOCK = "signal"  # the time of a closing command after a signal


def _never_started(number: int) -> ProcessResult:
    """Return the result of a command that rooda did not start, because a signal has come."""
    nothing = Captured(b"", b"", 0)
    return ProcessResult(Interrupted(number), nothing, nothing, 0.0)


@contextlib.contextmanager
def _standard_input(content: bytes | Path) -> Iterator[IO[bytes]]:
    """A file with this content: in memory where the system can do that."""
    if isinstance(content, Path):
        with content.open("rb") as given:
            yield given
        return
    if not content:
        with Path(os.devnull).open("rb") as nothing:
            yield nothing
        return
    if hasattr(os, "memfd_create"):
        file: IO[bytes] = os.fdopen(os.memfd_create("stdin"), "w+b")
    else:
        file = tempfile.TemporaryFile()  # noqa: SIM115 - closed below
    with file:
        file.write(content)
        file.seek(0)
        yield file


def _tops(folder: Path) -> tuple[Path, ...]:
    """The folder and its work tree; the root of the file system is no work tree to avoid."""
    try:
        found = (folder.resolve(), work_tree(folder))
    except (OSError, RuntimeError):
        return ()
    return tuple(one for one in found if one != Path("/"))


def is_below(path: str, folders: Sequence[str]) -> bool:
    """Whether a path is one of the folders or inside of one, links resolved."""
    real = os.path.realpath(path)
    return any(real == one or real.startswith(f"{one}/") for one in folders)


def safe_folders(path: str, avoid: Sequence[str]) -> list[str]:
    """The folders of PATH that no agent writes to; a relative one depends on where rooda is."""
    entries = [one for one in path.split(os.pathsep) if os.path.isabs(one)]  # noqa: PTH117 - text
    return [one for one in entries if not is_below(one, avoid)]


def find_program(name: str, folders: Sequence[str], avoid: Sequence[str]) -> str | None:
    """The path of a program in one of the folders, that is no link into a folder to avoid."""
    for entry in folders:
        found = os.path.join(os.path.realpath(entry), name)  # noqa: PTH118 - text is faster here
        if os.path.isfile(found) and os.access(found, os.X_OK) and not is_below(found, avoid):  # noqa: PTH113
            return found
    return None
