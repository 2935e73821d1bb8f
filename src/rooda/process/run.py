"""Run one program to its end, whatever it does.

The program is started by a warden (`warden/`), which adopts and stops all that it starts. We follow
what it prints (`capture/`), keep its clocks (`clocks.py`), and listen to signals and to the warden
(`watch.py`).
"""

import contextlib
import errno
import os
import selectors
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Final, Self

from rooda.process import events as happened
from rooda.process.capture.bounds import Kept
from rooda.process.capture.disk import Disk
from rooda.process.capture.files import Files
from rooda.process.capture.pipes import Pipes
from rooda.process.capture.spoken import STREAMS, Spoken
from rooda.process.clocks import Stopwatch
from rooda.process.events import Named, Stream
from rooda.process.exits import Exit, Lost, NotStarted
from rooda.process.interrupts import Interrupts
from rooda.process.leftovers import Trace, stop
from rooda.process.request import Listener, Request, Result
from rooda.process.warden.channel import Closed
from rooda.process.warden.client import Refused, Warden
from rooda.process.watch import Watch

MARK: Final = "ROODA_RUN"  # in the environment of everything that a run starts

_FULL = "no space left on the disk: what it printed last may be missing"


class Runner:
    """Runs programs one after the other, with one warden for all of them."""

    def __init__(self, run: str = "", contain: str = "adopt") -> None:
        self.stopwatch = Stopwatch()
        self._run = run
        self._contain = contain
        self._warden: Warden | None = None

    def __enter__(self) -> Self:
        """Start the warden now: it takes a moment, in which others have work to do."""
        with contextlib.suppress(OSError):  # said when it is needed
            self._warden = Warden(self._contain)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Let it end."""
        self._dismiss()

    @property
    def warden(self) -> int | None:
        """The pid of the warden, if there is one."""
        return None if self._warden is None else self._warden.pid

    def run(self, request: Request, interrupts: Interrupts, listener: Listener) -> Result:
        """Start the program and see it through."""
        stopwatch = self.stopwatch
        began = stopwatch.now()
        spoken = Spoken(request.output_limit, listener, stopwatch.now)
        watch: Watch | None = None
        pid, kept = 0, None
        try:
            with _capturing(request, spoken, stopwatch) as output, interrupts.watching():
                warden, pid, started = self._start(request, output)
                watch = Watch(
                    pid,
                    request,
                    interrupts,
                    listener,
                    warden,
                    output.capture,
                    output.selector,
                    spoken,
                    stopwatch,
                )
                try:
                    listener(happened.ProcessStarted(pid, started))
                    end = watch.until_the_end()
                except Closed as lost:
                    trace = self._trace(request, (pid, started), output)
                    end, watch.cleaned_up = self._lost(pid, trace, request, str(lost), listener)
                kept = output.finish(listener)
        except Refused as refused:
            end = NotStarted(_reason(refused, request), refused.number)
        except OSError as error:
            if pid:
                self._dismiss()
                raise
            end = NotStarted(f"the system refused: {error.strerror}", error.errno or errno.EIO)
        except BaseException:
            # An error of ours must not leave the program running: the warden sees to it.
            self._dismiss()
            raise
        return Result(
            exit=end,
            stdout=spoken.captured("stdout"),
            stderr=spoken.captured("stderr"),
            duration=stopwatch.now() - began if pid else 0.0,
            cleaned_up=watch.cleaned_up if watch else (),
            survivors=watch.survivors if watch else (),
            kept=kept,
            order=spoken.order,
        )

    def _start(self, request: Request, output: "_Output") -> tuple[Warden, int, float]:
        """Have the program started, by a new warden if the old one is dead."""
        environ = dict(request.environ) | ({MARK: self._run} if self._run else {})
        files = (request.stdin.fileno(), *output.capture.files)
        for last in (False, True):
            try:
                warden = self._warden = self._warden or Warden(self._contain)
                pid, started = warden.start(
                    request.argv, request.cwd, environ, files, request.keep, self._mark
                )
            except Closed as closed:
                self._dismiss()
                if last:
                    raise OSError(errno.ECHILD, f"rooda's warden is gone ({closed})") from None
            else:
                return warden, pid, started
        raise AssertionError("unreachable")  # pragma: no cover - for the type checker

    def _trace(self, request: Request, leader: tuple[int, float], output: "_Output") -> Trace:
        files = (os.fstat(fd) for fd in output.capture.readers)
        return Trace(
            self._mark,
            str(request.cwd),
            (leader,),
            frozenset((file.st_dev, file.st_ino) for file in files),
            request.keep,
        )

    def _lost(
        self, pid: int, trace: Trace, request: Request, reason: str, listener: Listener
    ) -> tuple[Exit, tuple[Named, ...]]:
        """Somebody killed the warden. What it held is found as after a crash, and stopped."""
        self._dismiss()
        stopped, left = stop(trace, request.kill_grace)
        listener(happened.ProcessLost(pid, reason, tuple(stopped)))
        if left:
            listener(happened.ProcessSurvived(pid, tuple(left)))
        return Lost(f"rooda's warden was killed ({reason})"), tuple(stopped)

    @property
    def _mark(self) -> str:
        return f"{MARK}={self._run}" if self._run else ""

    def _dismiss(self) -> None:
        warden, self._warden = self._warden, None
        if warden is not None:
            warden.close()


class _Output:
    """The capture of one program, and its transcript."""

    def __init__(self, request: Request, spoken: Spoken, stopwatch: Stopwatch) -> None:
        transcript = request.transcript
        self._spoken = spoken
        self._files: Mapping[Stream, int] = {}
        self._disk: Disk | None = None
        if transcript is not None:
            fds = (transcript.stdout.fileno(), transcript.stderr.fileno())
            self._files = dict(zip(STREAMS, fds, strict=True))
            self._disk = Disk(self._files, transcript.limit)
        self.selector = selectors.DefaultSelector()
        self.capture: Files | Pipes
        if transcript is not None and self._disk is not None and transcript.direct:
            self.capture = Files(self._files, spoken, self._disk, stopwatch.now)
        else:
            self.capture = Pipes(spoken, self._disk)

    def finish(self, listener: Listener) -> Mapping[Stream, Kept] | None:
        """Read the rest, bring the transcript within its bounds, and say what was not kept."""
        self.capture.finish()
        disk = self._disk
        if disk is None:
            return None
        direct = isinstance(self.capture, Files)
        printed = self.capture.sizes if isinstance(self.capture, Files) else self._spoken.sizes()
        kept = disk.finish(printed, direct=direct)
        for stream, left in kept.items():
            if not left.is_whole:
                trimmed = happened.TranscriptTrimmed(stream, left.size, left.bytes, disk.trouble)
                listener(trimmed)
            elif direct and _is_full(self._files[stream]):
                trimmed = happened.TranscriptTrimmed(stream, left.size, left.bytes, _FULL)
                listener(trimmed)
        return kept


@contextlib.contextmanager
def _capturing(request: Request, spoken: Spoken, stopwatch: Stopwatch) -> Iterator[_Output]:
    """Everything that needs a descriptor of ours, before the program is started."""
    output = _Output(request, spoken, stopwatch)
    try:
        yield output
    finally:
        output.selector.close()
        output.capture.close()


def _is_full(fd: int) -> bool:
    try:
        return os.fstatvfs(fd).f_bavail == 0
    except OSError:
        return False


def _reason(refused: Refused, request: Request) -> str:
    # For a folder that is gone the system names the folder, for all else the program.
    name = refused.file if refused.file == str(request.cwd) else request.argv[0]
    return f"{name}: {refused.text}"
