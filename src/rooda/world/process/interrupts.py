"""Signals to rooda itself.

Outside of a run there is nothing to clean up, so a signal ends rooda at once. During a run
(`deferred`) rooda notes the signal and wakes up, so that no iteration is left half stopped.

The entry point imports this module before anything else, so it imports only light modules.
"""

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable, Iterator
from typing import NoReturn, Protocol
from weakref import WeakSet

# A clock that stands still while the machine sleeps and while rooda is stopped (Ctrl+Z).


SHORTEST_SLEEP = 1.0  # seconds; a shorter gap is no sleep of the machine


class Stopwatch:
    """Counts the seconds that a program could have used.

    `monotonic` stands still while the machine is suspended, `boottime` goes on.
    """

    def __init__(
        self,
        monotonic: Callable[[], float] = time.monotonic,
        boottime: Callable[[], float] | None = None,
    ) -> None:
        self._monotonic = monotonic
        self._boottime = boottime or _boottime
        self._held = 0.0
        self._asleep = self._boottime() - monotonic()

    def now(self) -> float:
        """The time to compare clocks with."""
        return self._monotonic() - self._held

    def hold(self, act: Callable[[], None]) -> float:
        """Call a function without counting its time; returns how long it took."""
        before = self._monotonic()
        act()
        took = self._monotonic() - before
        self._held += took
        return took

    def uncounted(self) -> float:
        """The seconds that `now` has left out: sleep of the machine, and `hold`."""
        return self._held + self._boottime() - self._monotonic()

    def slept(self) -> float:
        """How long the machine was suspended since the last call; 0 if it was not."""
        asleep = self._boottime() - self._monotonic()
        took, self._asleep = asleep - self._asleep, asleep
        return took if took >= SHORTEST_SLEEP else 0.0


def _boottime() -> float:
    # On macOS CLOCK_MONOTONIC counts sleep, and `time.monotonic` reads a clock that does not.
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)


INTERRUPTED = 130  # exit code
# SIGQUIT too: after Ctrl+\ the agent must not live on.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
END = signal.SIGUSR1  # sent by `rooda stop`: end after the current iteration

_STANDARD_ERROR = 2


class RunningWarden(Protocol):
    """A process that stops its programs when rooda ends."""

    def end_at_once(self) -> None:
        """Wait until that is done; never raises."""


WARDENS: "WeakSet[RunningWarden]" = WeakSet()  # those that run


def end_at_once(*_: object) -> NoReturn:
    """End rooda now, and the programs that it runs; it can be used as a signal handler.

    It raises no exception: Python swallows one that is raised in a destructor or in a callback of
    a weak reference, and imports run many of those.
    """
    try:
        if select.select([], [_STANDARD_ERROR], [], 0)[1]:
            os.write(_STANDARD_ERROR, b"Interrupted\n")
    except OSError:
        pass
    for warden in list(WARDENS):
        WARDENS.discard(warden)  # a second signal does not wait for it
        warden.end_at_once()
    os._exit(INTERRUPTED)


def stays_ignored(number: signal.Signals) -> bool:
    """Whether rooda leaves a signal ignored: SIGHUP, if `nohup` started rooda."""
    return number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN


class Interrupts:
    """Owns the signal handlers, and a pipe that wakes a `select` when a signal comes."""

    def __init__(self) -> None:
        self.received: list[int] = []
        self.acknowledged = 0
        self.reported = False  # an event has reported that a signal came
        self.stopwatch = Stopwatch()  # stands still while rooda is stopped
        self.stop_wanted = False  # Ctrl+Z came while rooda watched a program
        self.end_wanted = False  # `rooda stop` asks for an end after the current iteration
        self._first_at: float | None = None  # when the first signal came
        self._deferred = False
        self._watching = False
        self._closable = True  # not yet closed, and no handler writes to the pipe
        self.wake_fd, self._write_fd = os.pipe()
        os.set_blocking(self.wake_fd, False)
        os.set_blocking(self._write_fd, False)

    def install(self) -> None:
        """Install the handlers.

        An ignored SIGHUP stays ignored (`nohup`). The other signals do not: a non-interactive
        shell starts `rooda ... &` with SIGINT ignored, which is no decision of the user.
        """
        for number in SIGNALS:
            if not stays_ignored(number):
                signal.signal(number, self._handle)
        if signal.getsignal(signal.SIGTSTP) is not signal.SIG_IGN:
            signal.signal(signal.SIGTSTP, self._handle_stop)
            signal.signal(signal.SIGCONT, self._handle_continue)
        signal.signal(END, self._handle_end)
        # A handler makes SIGCHLD wake the pipe; rooda's parent may have left the signal ignored.
        signal.signal(signal.SIGCHLD, _do_nothing)
        # The parent may have left signals blocked, and a program would inherit that from rooda.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {*SIGNALS, END, signal.SIGTSTP, signal.SIGCHLD})
        signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)
        self._closable = False

    def close(self) -> None:
        """Close the pipe; for the caller that has removed the handlers, if there were any."""
        self._closable = False
        os.close(self.wake_fd)
        os.close(self._write_fd)

    def __del__(self) -> None:
        # A program may call `rooda.iteration` thousands of times: each call has its own pipe.
        if self._closable:
            self.close()

    @contextlib.contextmanager
    def deferred(self) -> Iterator[None]:
        """Note signals in `received` instead of ending rooda; the loop reads them there."""
        before, self._deferred = self._deferred, True
        try:
            yield
        finally:
            self._deferred = before

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Note Ctrl+Z in `stop_wanted`: the caller stops the program first, and then rooda."""
        self._watching = True
        try:
            yield
        finally:
            self._watching = False
            if self.stop_wanted:
                self.stop_ourselves()

    def stop_ourselves(self) -> float:
        """Stop rooda as Ctrl+Z does, until SIGCONT; returns how long rooda was stopped.

        If SIGCONT came before this call, rooda does not stop: no second SIGCONT would wake it.
        """
        wanted, self.stop_wanted = self.stop_wanted, False
        return self.stopwatch.hold(self._be_stopped) if wanted else 0.0

    def _be_stopped(self) -> None:
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._handle_stop)

    def ignore_from_now_on(self) -> None:
        """Ignore all signals: the exit code is decided.

        Python restores the default handlers when it ends, and a signal would then kill it.
        """
        self._deferred = True
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)

    def acknowledge(self) -> None:
        """Mark the received signals as handled: they stop no program that starts from now on."""
        self.acknowledged = len(self.received)

    @property
    def is_urgent(self) -> bool:
        """Whether the user has asked again; a second SIGHUP is the same request."""
        return bool(set(self.received[1:]) - {signal.SIGHUP})

    def seconds_since_the_first(self) -> float:
        """Return how long ago the first signal came; 0 if none has come."""
        return 0.0 if self._first_at is None else self.stopwatch.now() - self._first_at

    def rest(self, seconds: float) -> None:
        """Sleep until the time is over or a signal comes."""
        select.select([self.wake_fd], [], [], seconds)
        self.drain()

    def drain(self) -> None:
        """Empty the wake-up pipe."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.wake_fd, 4096):
                pass

    def _handle(self, number: int, _: object) -> None:
        self.received.append(number)
        if self._first_at is None:
            self._first_at = self.stopwatch.now()
        if not self._deferred:
            end_at_once()

    def _handle_end(self, *_: object) -> None:
        self.end_wanted = True

    def _handle_stop(self, *_: object) -> None:
        self.stop_wanted = True
        if not self._watching:
            self.stop_ourselves()

    def _handle_continue(self, *_: object) -> None:
        self.stop_wanted = False


def _do_nothing(*_: object) -> None:
    """Handle SIGCHLD, so that a change of a child's state wakes the pipe."""
