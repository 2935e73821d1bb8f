"""Run one program to its end, whatever it does.

A warden (`warden/`) starts the program, and adopts and stops all processes that it starts. rooda
follows the output (`capture/`), keeps the clocks (`clocks.py`), and waits for signals and for the
warden's messages (`watch.py`).
"""

import contextlib
import errno
import os
import selectors
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Final, Self

from msgspec import Struct

from rooda.world.process import events as happened
from rooda.world.process.capture.buffers import STREAMS, OutputBuffer
from rooda.world.process.capture.disk import BoundedTranscript, KeptBytes
from rooda.world.process.capture.files import FileCapture
from rooda.world.process.capture.pipes import PipeCapture
from rooda.world.process.events import NamedProcess, Stream
from rooda.world.process.exits import Exit, Exited, Lost, NotStarted
from rooda.world.process.interrupts import Interrupts
from rooda.world.process.leftovers import RunTrace, stop_leftovers
from rooda.world.process.libc import become_subreaper
from rooda.world.process.request import Listener, ProcessRequest, ProcessResult
from rooda.world.process.tree.linux import OwnChildren
from rooda.world.process.warden.channel import ChannelClosed
from rooda.world.process.warden.client import StartRefused, WardenClient, WardenDead
from rooda.world.process.watch import ProcessWatch

MARK: Final = "ROODA_RUN"  # in the environment of every process that a run starts
TOKEN: Final = "ROODA_TOKEN"  # noqa: S105 - there too, if other runs may have the same name

_FULL = "no space left on the disk: what it printed last may be missing"


def unmarked(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the marks of an outer run."""
    return {name: value for name, value in environ.items() if name not in (MARK, TOKEN)}


def mark_of(run: str, token: str = "") -> str:
    """Return the variable that all processes of a run, and no others, have; empty without a run."""
    name, value = (TOKEN, token) if token else (MARK, run)
    return f"{name}={value}" if value else ""


class Runner:
    """Runs programs one after the other, with one warden for all of them."""

    def __init__(self, run: str = "", contain: str = "adopt") -> None:
        self.name = run  # every process gets it as a mark in its environment
        self.token = ""  # and this one, if other runs may have the same name
        self._contain = contain
        self._warden: WardenClient | None = None
        self._not_inherited: frozenset[int] | None = None

    def inherit(self) -> None:
        """Make this process inherit the orphans of a killed warden, so that rooda can stop them.

        Call this in a process that starts no other children afterwards.
        """
        children = OwnChildren()
        if children.is_readable and become_subreaper():
            own = set() if self._warden is None else {self._warden.pid}
            self._not_inherited = frozenset(children.pids()) - own
        children.close()

    def __enter__(self) -> Self:
        """Start the warden now: rooda has other work to do while the warden gets ready."""
        if self._warden is None:
            with contextlib.suppress(OSError):  # `run` tries again, and reports the error
                self._warden = self._new_warden()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Let the warden end."""
        self.close()

    def _new_warden(self) -> WardenClient:
        # Without the mark of an outer run that started this rooda: the warden is not part of it.
        return WardenClient(self._contain, unmarked(os.environ))

    def run(
        self, request: ProcessRequest, interrupts: Interrupts, listener: Listener
    ) -> ProcessResult:
        """Start the program and wait for its end."""
        now = interrupts.stopwatch.now
        began = now()
        buffer = OutputBuffer(request.output_limit, listener, now)
        try:
            with _capturing(request, buffer, now) as output, interrupts.watching():
                ending = self._run(request, interrupts, listener, output)
                kept = output.finish(listener)
        except StartRefused as refused:
            ending = _Ending(NotStarted(_reason(refused, request), refused.number))
            kept = None
        except _NoRoom as error:
            ending = _Ending(NotStarted(f"the system refused: {error}", error.number))
            kept = None
        except BaseException:
            # An error in rooda must not leave the program running: the warden stops it.
            self.close()
            raise
        end = ending.exit
        if ending.unready and isinstance(end, Exited):
            end = _not_in_sandbox(ending.unready, request, buffer)
        started = not isinstance(end, NotStarted)
        return ProcessResult(
            exit=end,
            stdout=buffer.captured("stdout"),
            stderr=buffer.captured("stderr"),
            duration=now() - began if started else 0.0,
            cleaned_up=ending.cleaned_up,
            survivors=ending.survivors,
            kept=kept,
            order=buffer.order,
        )

    def _run(
        self,
        request: ProcessRequest,
        interrupts: Interrupts,
        listener: Listener,
        output: "_Output",
    ) -> "_Ending":
        leaders: tuple[tuple[int, float], ...] = ()
        watch: ProcessWatch | None = None
        try:
            warden, pid, started = self._start(request, output)
            leaders = ((pid, started),)
            watch = ProcessWatch(pid, request, interrupts, listener, warden, output)
            listener(happened.ProcessStarted(pid, started))
            end = watch.until_the_end()
            return _Ending(end, watch.cleaned_up, watch.survivors, watch.unready)
        except ChannelClosed as lost:
            # The warden was killed. rooda finds and stops its processes as after a crash.
            self.close()
            trace = RunTrace(
                self._mark,
                str(request.cwd),
                leaders,
                output.identities(),
                request.keep,
                self._not_inherited,
            )
            stopped, left = (tuple(found) for found in stop_leftovers(trace, request.kill_grace))
            pid = leaders[0][0] if leaders else 0
            listener(happened.ProcessLost(pid, str(lost), stopped))
            if left:
                listener(happened.ProcessSurvived(pid, left))
            # If the program had ended before, that exit stays true.
            known = watch.end_so_far if watch is not None else None
            return _Ending(known or Lost(f"rooda's warden is gone ({lost})"), stopped, left)

    def _start(self, request: ProcessRequest, output: "_Output") -> tuple[WardenClient, int, float]:
        """Make the warden start the program; a new warden, if the old one is dead."""
        # First, so that a bounded read finds them.
        marks = {name: value for name, value in ((MARK, self.name), (TOKEN, self.token)) if value}
        environ = {**marks, **unmarked(request.environ)}
        files = (request.stdin.fileno(), *output.capture.files)
        arguments = (
            *(request.argv, request.cwd, environ, files),
            *(request.keep, self._mark, request.umask, request.jail),
        )
        try:
            if self._warden is not None:
                with contextlib.suppress(WardenDead):
                    return self._warden, *self._warden.start(*arguments)
                self.close()
            self._warden = self._new_warden()
            return self._warden, *self._warden.start(*arguments)
        except OSError as error:
            raise _NoRoom(error) from None

    @property
    def _mark(self) -> str:
        return mark_of(self.name, self.token)

    def close(self) -> None:
        """Let the warden end, and stop what it holds."""
        warden, self._warden = self._warden, None
        if warden is not None:
            warden.close()


class _Ending(Struct, frozen=True):
    exit: Exit
    cleaned_up: tuple[NamedProcess, ...] = ()
    survivors: tuple[NamedProcess, ...] = ()
    unready: str = ""  # why the program did not run in its sandbox


class _NoRoom(Exception):  # noqa: N818 - the state of the machine
    """The system had no descriptor, memory or process left."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error.strerror or str(error))
        self.number = error.errno or errno.EIO


class _Output:
    """The capture of one program, and its transcript."""

    def __init__(
        self, request: ProcessRequest, buffer: OutputBuffer, now: Callable[[], float]
    ) -> None:
        wanted = request.transcript
        self._files: Mapping[Stream, int] = {}
        self._transcript: BoundedTranscript | None = None
        if wanted is not None:
            fds = (wanted.stdout.fileno(), wanted.stderr.fileno())
            self._files = dict(zip(STREAMS, fds, strict=True))
            self._transcript = BoundedTranscript(self._files, wanted.limit)
        self.buffer = buffer
        self.selector = selectors.DefaultSelector()
        self.capture = self._open(now, direct=wanted is not None and wanted.direct)

    def _open(self, now: Callable[[], float], *, direct: bool) -> FileCapture | PipeCapture:
        if direct and self._transcript is not None:
            try:
                return FileCapture(self._files, self.buffer, self._transcript, now)
            except OSError as error:
                # The disk is full: by pipes, rooda still gets the output.
                self._transcript.give_up(error.strerror or str(error))
        return PipeCapture(self.buffer, self._transcript)

    def identities(self) -> frozenset[tuple[int, int]]:
        """Device and inode of what the program writes to."""
        return frozenset((s.st_dev, s.st_ino) for s in map(os.fstat, self.capture.readers))

    def finish(self, listener: Listener) -> Mapping[Stream, KeptBytes] | None:
        """Read the rest, bring the transcript within its limit, and report what was not kept."""
        try:
            return self._finish(listener)
        except OSError as error:  # the disk broke, and the outcome must not be lost for that
            reason = error.strerror or str(error)
            listener(happened.TranscriptTrimmed("stdout", self.buffer.total, 0, reason))
            return None

    def _finish(self, listener: Listener) -> Mapping[Stream, KeptBytes] | None:
        self.capture.finish()
        transcript = self._transcript
        if transcript is None:
            return None
        direct = self.capture.direct
        full = direct and any(map(_is_full, self._files.values()))
        kept = transcript.finish(self.capture.sizes, direct=direct)
        for stream, left in kept.items():
            if not left.is_whole or (full and left.size):
                reason = _FULL if left.is_whole else transcript.trouble
                listener(happened.TranscriptTrimmed(stream, left.size, left.bytes, reason))
        return kept


@contextlib.contextmanager
def _capturing(
    request: ProcessRequest, buffer: OutputBuffer, now: Callable[[], float]
) -> Iterator[_Output]:
    """Open every descriptor that rooda needs before the program is started."""
    try:
        output = _Output(request, buffer, now)
    except OSError as error:
        raise _NoRoom(error) from None
    try:
        yield output
    finally:
        output.selector.close()
        output.capture.close()


def _is_full(fd: int) -> bool:
    try:
        disk = os.fstatvfs(fd)
    except OSError:
        return False
    return disk.f_bavail == 0 and disk.f_blocks > 0  # some file systems report no size at all


def _not_in_sandbox(why: str, request: ProcessRequest, buffer: OutputBuffer) -> NotStarted:
    """Return why a program did not start in its sandbox; bubblewrap says it on standard error."""
    if why == "missing":
        return NotStarted(f"{request.argv[0]} is not in the sandbox, or not executable there")
    said = buffer.captured("stderr").tail.decode("utf-8", "replace").strip().splitlines()
    last = said[-1].removeprefix("bwrap: ") if said else "bubblewrap gave no reason"
    return NotStarted(f"the sandbox could not be set up: {last}", errno.ENOSYS)


def _reason(refused: StartRefused, request: ProcessRequest) -> str:
    # If the folder is gone, the system names the folder; otherwise the program is to blame.
    name = refused.file if refused.file == str(request.cwd) else request.argv[0]
    return f"{name}: {refused.text}"
