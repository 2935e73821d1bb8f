"""Run one program to its end, whatever it does.

The program gets a session of its own and a file as standard input. Both output streams are
always drained. Stopping is SIGTERM to the group, `kill_grace` seconds, SIGKILL, one second, and
then we go on without it. After a clean end the group is stopped as well.
"""

import contextlib
import errno
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from rooda.process import events as happened
from rooda.process.events import ProcessEvent, Stream
from rooda.process.exits import (
    Exit,
    Interrupted,
    NotStarted,
    TimedOut,
    from_returncode,
    signal_name,
)
from rooda.process.group import group_alive, signal_group
from rooda.process.interrupts import Interrupts
from rooda.process.tail import Captured, TailBuffer

KILL_WAIT = 1.0  # how long a SIGKILL may take
DRAIN_WAIT = 0.5  # how long the rest of the group may finish what it has in hand
_LOOK_AGAIN = 0.02  # between two looks at a group that was told to stop
_READ = 256 * 1024
_LONGEST_WAIT = 3600.0
_LOOK_FOR_EXIT = 1.0  # where the system can't wake us at an exit, and SIGCHLD was not heard
_SIGNALS, _EXIT = "signals", "exit"  # what a descriptor stands for, beside the two streams


@dataclass(frozen=True, slots=True)
class Request:
    """What to run, and within which bounds."""

    argv: tuple[str, ...]
    cwd: Path
    environ: Mapping[str, str]
    stdin: IO[bytes]
    output_limit: int
    timeout: float | None = None
    kill_grace: float = 5.0
    tick: float | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """The truth about one run of a program, a failed start included."""

    exit: Exit
    stdout: Captured
    stderr: Captured
    duration: float
    still_alive: bool = False


Listener = Callable[[ProcessEvent], None]


def run(request: Request, interrupts: Interrupts, listener: Listener) -> Result:
    """Start the program and see it through."""
    began = time.monotonic()
    buffers = {
        "stdout": TailBuffer(request.output_limit),
        "stderr": TailBuffer(request.output_limit),
    }
    try:
        child = subprocess.Popen(
            request.argv,
            bufsize=0,
            stdin=request.stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=request.cwd,
            env=dict(request.environ),
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        nothing = buffers["stdout"].captured()
        number = error.errno if isinstance(error, OSError) and error.errno else errno.EINVAL
        return Result(NotStarted(_reason(error, request), number), nothing, nothing, 0.0)
    with _closing_pipes(child):
        try:
            listener(happened.ProcessStarted(child.pid))
            watch = _Watch(child, request, interrupts, listener, buffers, began)
            end = watch.until_the_end()
        except BaseException:
            # An error of ours must not leave the program running.
            signal_group(child.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(KILL_WAIT)
            raise
    return Result(
        end,
        buffers["stdout"].captured(),
        buffers["stderr"].captured(),
        time.monotonic() - began,
        watch.still_alive,
    )


@contextlib.contextmanager
def _closing_pipes(child: subprocess.Popen[bytes]) -> Iterator[None]:
    try:
        yield
    finally:
        for pipe in (child.stdout, child.stderr):
            if pipe is not None:
                pipe.close()


def _reason(error: OSError | ValueError, request: Request) -> str:
    if not isinstance(error, OSError):
        return f"{request.argv[0]}: {error}"
    # For a folder that is gone Popen names the folder, for all else the program.
    name = error.filename if str(error.filename) == str(request.cwd) else request.argv[0]
    return f"{name}: {error.strerror or error}"


@contextlib.contextmanager
def _exit_descriptor(pid: int) -> Iterator[int | None]:
    """A descriptor that becomes readable when the process ends, where the system has such."""
    try:
        fd = os.pidfd_open(pid)
    except (AttributeError, OSError):
        yield None
        return
    try:
        yield fd
    finally:
        os.close(fd)


class _Watch:
    """One child under watch: waits for output, its end, a clock or a signal, and acts."""

    def __init__(
        self,
        child: subprocess.Popen[bytes],
        request: Request,
        interrupts: Interrupts,
        listener: Listener,
        buffers: Mapping[str, TailBuffer],
        began: float,
    ) -> None:
        self.still_alive = False
        self._ended_by_itself = False
        self._wakes_at_exit = False
        self._child = child
        self._request = request
        self._interrupts = interrupts
        self._listener = listener
        self._buffers = buffers
        self._verdict: TimedOut | Interrupted | None = None
        self._seen_interrupts = interrupts.acknowledged
        self._deadline = None if request.timeout is None else began + request.timeout
        self._kill_at: float | None = None
        self._give_up_at: float | None = None
        self._next_tick = None if request.tick is None else began + request.tick
        self._selector = selectors.DefaultSelector()

    def until_the_end(self) -> Exit:
        """Watch until nothing is left to wait for, and say how it ended."""
        with self._selector, _exit_descriptor(self._child.pid) as exit_fd:
            self._wakes_at_exit = exit_fd is not None
            self._selector.register(self._interrupts.wake_fd, selectors.EVENT_READ, _SIGNALS)
            if exit_fd is not None:
                self._selector.register(exit_fd, selectors.EVENT_READ, _EXIT)
            for name, pipe in (("stdout", self._child.stdout), ("stderr", self._child.stderr)):
                assert pipe is not None  # noqa: S101 - for the type checker
                os.set_blocking(pipe.fileno(), False)
                self._selector.register(pipe.fileno(), selectors.EVENT_READ, name)
            while self._child.poll() is None and not self.still_alive:
                self._step()
            # A signal that comes during the cleaning up doesn't undo a clean end.
            self._ended_by_itself = self._verdict is None
            self._clear_group()
            self._drain()
        if self._verdict is None:
            return from_returncode(self._child.returncode)
        if isinstance(self._verdict, Interrupted) and not self.still_alive:
            self._listener(happened.ProcessStopped(self._child.pid))
        return self._verdict

    # -- waiting ---------------------------------------------------------------------------

    def _step(self, longest: float | None = None) -> None:
        """Wait for the next thing to happen, and see to it."""
        alarms = (self._deadline, self._kill_at, self._give_up_at, self._next_tick)
        now = time.monotonic()
        waits = [alarm - now for alarm in alarms if alarm is not None]
        if longest is not None:
            waits.append(longest)
        if not self._wakes_at_exit:
            waits.append(_LOOK_FOR_EXIT)
        # The system takes no wait of years, so a clock of that size is looked at again hourly.
        wait = max(0.0, min([*waits, _LONGEST_WAIT])) if waits else None
        for key, _ in self._selector.select(wait):
            if key.data in self._buffers:
                self._read(key.fd, key.data)
            elif key.data == _SIGNALS:
                self._interrupts.drain()
        self._note_interrupts()
        self._check_clocks(time.monotonic())

    def _read(self, fd: int, stream: Stream) -> bool:
        """Read once; whether there may be more at once."""
        try:
            data = os.read(fd, _READ)
        except BlockingIOError:
            return False
        if not data:
            self._selector.unregister(fd)
            return False
        self._buffers[stream].append(data)
        self._listener(happened.Output(stream, data))
        return True

    def _note_interrupts(self) -> None:
        received = self._interrupts.received
        if len(received) == self._seen_interrupts:
            return
        new = received[self._seen_interrupts :]
        number = new[0]
        # When a terminal is closed both the shell and the kernel send SIGHUP: no second wish.
        again = (self._seen_interrupts > 0 or len(new) > 1) and set(new) != {signal.SIGHUP}
        self._seen_interrupts = len(received)
        if self._ended_by_itself or (self._verdict is None and self._child.poll() is not None):
            # It is too late to stop it; here a signal only hurries the cleaning up.
            if self._kill_at is not None and again:
                self._kill_at = time.monotonic()
            return
        self._listener(happened.InterruptSeen(signal_name(number), again=again))
        if self._verdict is None:
            self._listener(happened.ProcessStopping(self._child.pid))
        # The user's wish is the stronger reason, even when a clock had run out before.
        self._verdict = Interrupted(number)
        self._ask_to_stop()
        if again:
            self._kill_at = time.monotonic()

    def _check_clocks(self, now: float) -> None:
        late = self._deadline is not None and now >= self._deadline
        if late and self._child.poll() is None:
            after = self._request.timeout or 0.0
            self._verdict = TimedOut("iteration_timeout", after)
            self._listener(happened.ClockExpired("iteration_timeout", after))
            self._ask_to_stop()
        if self._kill_at is not None and now >= self._kill_at:
            self._kill()
        if self._give_up_at is not None and now >= self._give_up_at:
            self._give_up_at = None
            self.still_alive = True
            self._listener(happened.ProcessSurvived(self._child.pid))
        if self._next_tick is not None and now >= self._next_tick:
            self._next_tick = now + (self._request.tick or 1.0)
            self._listener(happened.Tick())

    # -- stopping --------------------------------------------------------------------------

    def _ask_to_stop(self) -> None:
        self._deadline = None
        signal_group(self._child.pid, signal.SIGTERM)
        # A stopped process gets its SIGTERM only when it is continued.
        signal_group(self._child.pid, signal.SIGCONT)
        if self._kill_at is None and self._give_up_at is None:
            self._kill_at = time.monotonic() + self._request.kill_grace

    def _kill(self) -> None:
        self._kill_at = None
        signal_group(self._child.pid, signal.SIGKILL)
        if self._give_up_at is None:  # pressing Ctrl+C on and on must not put the end off
            self._listener(happened.ProcessKilled(self._child.pid))
            self._give_up_at = time.monotonic() + KILL_WAIT

    def _clear_group(self) -> None:
        """The leader is gone; see that its group goes too."""
        pgid = self._child.pid
        self._deadline = None
        if self._ended_by_itself:
            self._let_filters_finish(pgid)
        if not group_alive(pgid):
            return
        if self._ended_by_itself:
            self._ask_to_stop()
        else:
            # One that was between fork and exec has missed the first.
            signal_group(pgid, signal.SIGTERM)
        while group_alive(pgid) and not self.still_alive:
            self._step(_LOOK_AGAIN)
        if self._ended_by_itself and not self.still_alive:
            self._listener(happened.LeftoversStopped(pgid))

    def _let_filters_finish(self, pgid: int) -> None:
        """`exec > >(tee log)`: who holds our pipes may still have the last words in hand."""
        end = time.monotonic() + DRAIN_WAIT
        while self._is_open() and group_alive(pgid):
            if time.monotonic() >= end:
                return
            self._step(_LOOK_AGAIN)

    def _is_open(self) -> bool:
        """Whether somebody still holds one of our pipes."""
        return any(key.data in self._buffers for key in self._selector.get_map().values())

    def _drain(self) -> None:
        """Read what is still in the pipes; who holds them open from outside is not waited for."""
        for key in list(self._selector.get_map().values()):
            while key.data in self._buffers and self._read(key.fd, key.data):
                pass
