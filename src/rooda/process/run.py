"""Run one program to its end, whatever it does.

The program is started by a warden (`warden/`), which adopts and stops all that it starts. We follow
what it prints (`capture/`), keep its clocks (`clocks.py`), and listen to signals and to the warden
(`watch.py`).
"""

import contextlib
import errno
import os
import selectors
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from rooda.process import events as happened
from rooda.process.capture.bounds import Kept
from rooda.process.capture.disk import Disk
from rooda.process.capture.files import Files
from rooda.process.capture.pipes import Pipes
from rooda.process.capture.spoken import STREAMS, Spoken
from rooda.process.events import Named, Stream
from rooda.process.exits import Exit, Lost, NotStarted
from rooda.process.interrupts import Interrupts
from rooda.process.leftovers import Trace, stop
from rooda.process.request import Listener, Request, Result
from rooda.process.warden.channel import Closed
from rooda.process.warden.client import Dead, Refused, Warden
from rooda.process.watch import Watch

MARK: Final = "ROODA_RUN"  # in the environment of everything that a run starts

_FULL = "no space left on the disk: what it printed last may be missing"


class Runner:
    """Runs programs one after the other, with one warden for all of them."""

    def __init__(self, run: str = "", contain: str = "adopt") -> None:
        self.name = run  # every process gets it as a mark in its environment
        self._contain = contain
        self._warden: Warden | None = None

    def __enter__(self) -> Self:
        """Start the warden now: it takes a moment, in which others have work to do."""
        if self._warden is None:
            with contextlib.suppress(OSError):  # said when it is needed
                self._warden = self._new_warden()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Let it end."""
        self.close()

    def _new_warden(self) -> Warden:
        # Without the mark of a run that we were started in: it is none of its processes.
        environ = {name: value for name, value in os.environ.items() if name != MARK}
        return Warden(self._contain, environ)

    def run(self, request: Request, interrupts: Interrupts, listener: Listener) -> Result:
        """Start the program and see it through."""
        now = interrupts.stopwatch.now
        began = now()
        spoken = Spoken(request.output_limit, listener, now)
        try:
            with _capturing(request, spoken, now) as output, interrupts.watching():
                ending = self._see_through(request, interrupts, listener, output)
                kept = output.finish(listener)
        except Refused as refused:
            ending = _Ending(NotStarted(_reason(refused, request), refused.number))
            kept = None
        except _NoRoom as error:
            ending = _Ending(NotStarted(f"the system refused: {error}", error.number))
            kept = None
        except BaseException:
            # An error of ours must not leave the program running: the warden sees to it.
            self.close()
            raise
        started = not isinstance(ending.exit, NotStarted)
        return Result(
            exit=ending.exit,
            stdout=spoken.captured("stdout"),
            stderr=spoken.captured("stderr"),
            duration=now() - began if started else 0.0,
            cleaned_up=ending.cleaned_up,
            survivors=ending.survivors,
            kept=kept,
            order=spoken.order,
        )

    def _see_through(
        self, request: Request, interrupts: Interrupts, listener: Listener, output: "_Output"
    ) -> "_Ending":
        leaders: tuple[tuple[int, float], ...] = ()
        watch: Watch | None = None
        try:
            warden, pid, started = self._start(request, output)
            leaders = ((pid, started),)
            watch = Watch(pid, request, interrupts, listener, warden, output)
            listener(happened.ProcessStarted(pid, started))
            return _Ending(watch.until_the_end(), watch.cleaned_up, watch.survivors)
        except Closed as lost:
            # Somebody killed the warden. What it held is found as after a crash, and stopped.
            self.close()
            trace = Trace(self._mark, str(request.cwd), leaders, output.identities(), request.keep)
            stopped, left = (tuple(found) for found in stop(trace, request.kill_grace))
            pid = leaders[0][0] if leaders else 0
            listener(happened.ProcessLost(pid, str(lost), stopped))
            if left:
                listener(happened.ProcessSurvived(pid, left))
            # What was known before stays true: the agent may have been done.
            known = watch.end_so_far if watch is not None else None
            return _Ending(known or Lost(f"rooda's warden is gone ({lost})"), stopped, left)

    def _start(self, request: Request, output: "_Output") -> tuple[Warden, int, float]:
        """Have the program started, by a new warden if the old one is dead."""
        environ = {name: value for name, value in request.environ.items() if name != MARK}
        if self.name:
            environ = {MARK: self.name, **environ}  # first, so that it is found in a long one too
        files = (request.stdin.fileno(), *output.capture.files)
        arguments = (
            *(request.argv, request.cwd, environ, files),
            *(request.keep, self._mark, request.umask),
        )
        try:
            if self._warden is not None:
                with contextlib.suppress(Dead):
                    return self._warden, *self._warden.start(*arguments)
                self.close()
            self._warden = self._new_warden()
            return self._warden, *self._warden.start(*arguments)
        except OSError as error:
            raise _NoRoom(error) from None

    @property
    def _mark(self) -> str:
        return f"{MARK}={self.name}" if self.name else ""

    def close(self) -> None:
        """Let the warden end, and with it what it holds."""
        warden, self._warden = self._warden, None
        if warden is not None:
            warden.close()


@dataclass(frozen=True, slots=True)
class _Ending:
    exit: Exit
    cleaned_up: tuple[Named, ...] = ()
    survivors: tuple[Named, ...] = ()


class _NoRoom(Exception):  # noqa: N818 - what is the matter
    """No descriptor, no memory or no process was to be had."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error.strerror or str(error))
        self.number = error.errno or errno.EIO


class _Output:
    """The capture of one program, and its transcript."""

    def __init__(self, request: Request, spoken: Spoken, now: Callable[[], float]) -> None:
        transcript = request.transcript
        self._files: Mapping[Stream, int] = {}
        self._disk: Disk | None = None
        if transcript is not None:
            fds = (transcript.stdout.fileno(), transcript.stderr.fileno())
            self._files = dict(zip(STREAMS, fds, strict=True))
            self._disk = Disk(self._files, transcript.limit)
        self.spoken = spoken
        self.selector = selectors.DefaultSelector()
        self.capture = self._open(transcript is not None and transcript.direct, now)

    def _open(self, direct: bool, now: Callable[[], float]) -> Files | Pipes:  # noqa: FBT001 - private
        if direct and self._disk is not None:
            try:
                return Files(self._files, self.spoken, self._disk, now)
            except OSError as error:
                # A full disk: what the program says must not get lost there.
                self._disk.give_up(error.strerror or str(error))
        return Pipes(self.spoken, self._disk)

    def identities(self) -> frozenset[tuple[int, int]]:
        """Device and inode of what the program writes to."""
        return frozenset((s.st_dev, s.st_ino) for s in map(os.fstat, self.capture.readers))

    def finish(self, listener: Listener) -> Mapping[Stream, Kept] | None:
        """Read the rest, bring the transcript within its bounds, and say what was not kept."""
        try:
            return self._finish(listener)
        except OSError as error:  # a disk that broke is no reason to lose the outcome
            reason = error.strerror or str(error)
            listener(happened.TranscriptTrimmed("stdout", self.spoken.total, 0, reason))
            return None

    def _finish(self, listener: Listener) -> Mapping[Stream, Kept] | None:
        self.capture.finish()
        disk = self._disk
        if disk is None:
            return None
        direct = self.capture.direct
        full = direct and any(map(_is_full, self._files.values()))
        kept = disk.finish(self.capture.sizes, direct=direct)
        for stream, left in kept.items():
            if not left.is_whole or (full and left.size):
                reason = _FULL if left.is_whole else disk.trouble
                listener(happened.TranscriptTrimmed(stream, left.size, left.bytes, reason))
        return kept


@contextlib.contextmanager
def _capturing(request: Request, spoken: Spoken, now: Callable[[], float]) -> Iterator[_Output]:
    """Everything that needs a descriptor of ours, before the program is started."""
    try:
        output = _Output(request, spoken, now)
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
    return disk.f_bavail == 0 and disk.f_blocks > 0  # some don't tell


def _reason(refused: Refused, request: Request) -> str:
    # For a folder that is gone the system names the folder, for all else the program.
    name = refused.file if refused.file == str(request.cwd) else request.argv[0]
    return f"{name}: {refused.text}"
