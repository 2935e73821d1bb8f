"""Watch one program: its output, its end, its clocks, signals to rooda, the warden's messages."""

import selectors
import signal
from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec.structs import replace

from rooda.world.process import events as happened
from rooda.world.process.capture.buffers import OutputBuffer
from rooda.world.process.clocks import (
    Clock,
    ClockFacts,
    CpuActivity,
    Since,
    evidence,
    expired,
    expires_at,
)
from rooda.world.process.events import NamedProcess
from rooda.world.process.exits import (
    Canceled,
    Exit,
    HungAfterResult,
    Interrupted,
    Signalled,
    TimedOut,
    from_returncode,
    signal_name,
)
from rooda.world.process.interrupts import Interrupts
from rooda.world.process.request import Listener, ProcessRequest
from rooda.world.process.tree.stopping import KILL_WAIT
from rooda.world.process.warden.channel import ChannelClosed, Message
from rooda.world.process.warden.client import PATIENCE, WardenClient

DRAIN_WAIT = 0.5  # seconds in which leftovers of the program may finish their output
_DRAIN_STEP = 0.02  # seconds between two checks in that time
_LONGEST_WAIT = 3600.0  # seconds; the system accepts no wait of years
_SIGNALS, _WARDEN = "signals", "warden"  # what a descriptor stands for, beside the capture


class Capture(Protocol):
    """Where the output comes from: files or pipes."""

    def start(self, selector: selectors.BaseSelector) -> None:
        """Begin: the program runs."""

    def read(self, fd: int | None) -> None:
        """Read what is there; `fd` is the readable descriptor, or None for a scheduled read."""

    def next_read(self) -> float | None:
        """When to read although no descriptor is readable."""

    def may_grow(self, *, held: bool) -> bool:
        """Whether a process may still write; `held`: the warden saw the output open."""


class Source(Protocol):
    """What a program prints, on its way to rooda."""

    @property
    def capture(self) -> Capture:
        """Where the output comes from."""

    @property
    def selector(self) -> selectors.BaseSelector:
        """What to wait for."""

    @property
    def buffer(self) -> OutputBuffer:
        """What has come so far."""


class ProcessWatch:
    """One program under watch."""

    def __init__(
        self,
        pid: int,
        request: ProcessRequest,
        interrupts: Interrupts,
        listener: Listener,
        warden: WardenClient,
        output: Source,
    ) -> None:
        self.cleaned_up: tuple[NamedProcess, ...] = ()
        self.survivors: tuple[NamedProcess, ...] = ()
        self.unready = ""  # why the program did not run in its sandbox
        self._pid = pid
        self._request = request
        self._interrupts = interrupts
        self._listener = listener
        self._warden = warden
        self._capture = output.capture
        self._buffer = output.buffer
        self._selector = output.selector
        self._stopwatch = interrupts.stopwatch
        self._verdict: TimedOut | HungAfterResult | Canceled | Interrupted | None = None
        self._returncode: int | None = None
        self._gone = False  # the whole tree is gone, or the warden gave up on the rest
        self._held = False  # a process had the output open when the program ended
        self._overdue: float | None = None  # when to give up on a warden that does not answer
        self._seen_interrupts = max(interrupts.acknowledged, request.earlier_signals)
        now = self._stopwatch.now()
        self._began = self._last_activity = now
        self._uncounted = self._stopwatch.uncounted()
        self._result_at: float | None = None
        self._next_tick = None if request.tick is None else now + request.tick
        idle = [clock.limit for clock in request.clocks if clock.since is Since.ACTIVITY]
        self._activity = CpuActivity(min(idle), now) if idle else None

    def until_the_end(self) -> Exit:
        """Watch until the whole tree is gone; returns how the program ended."""
        self._selector.register(self._interrupts.wake_fd, selectors.EVENT_READ, _SIGNALS)
        self._selector.register(self._warden, selectors.EVENT_READ, _WARDEN)
        self._capture.start(self._selector)
        self._step_until(lambda: self._returncode is not None or self._gone)
        if self._verdict is None:
            self._stop_leftovers()
        self._step_until(lambda: self._gone)
        return self._end()

    def _step_until(self, done: Callable[[], bool], latest: float | None = None) -> None:
        while not done() and (latest is None or self._stopwatch.now() < latest):
            self._step(latest)

    @property
    def end_so_far(self) -> Exit | None:
        """How the program ended, as far as that is known."""
        if self._verdict is None and self._returncode is not None:
            return from_returncode(self._returncode)
        return self._verdict

    def _end(self) -> Exit:
        if self._verdict is None:
            end = from_returncode(self._returncode or 0)
            new = self._interrupts.received[self._interrupts.acknowledged :]
            if isinstance(end, Signalled) and end.number in new:
                # rooda received the same signal: the sender wanted both to end.
                self._interrupts.reported = True
                self._listener(happened.InterruptSeen(end.name))
                return Interrupted(end.number)
            return end
        if isinstance(self._verdict, Interrupted) and not self.survivors:
            self._listener(happened.ProcessStopped(self._pid))
        if isinstance(self._verdict, TimedOut) and self._returncode is not None:
            return replace(self._verdict, code=from_returncode(self._returncode).code)
        return self._verdict

    def _stop_leftovers(self) -> None:
        """Stop the processes that an exited program left behind."""
        # `exec > >(tee log)`: a process that has the output open may still have to write the end.
        end = self._stopwatch.now() + DRAIN_WAIT
        while not self._gone and self._may_print() and self._stopwatch.now() < end:
            self._step(self._stopwatch.now() + _DRAIN_STEP)
            self._held = self._warden.is_held()
        if not self._gone:
            # A filter that has just closed the output is about to exit, and is no leftover.
            self._step(self._stopwatch.now() + _DRAIN_STEP)
        if self._gone:
            return
        self._stop(self._request.kill_grace)
        self._step_until(lambda: self._gone)
        if self.cleaned_up:
            self._listener(happened.LeftoversStopped(self._pid, self.cleaned_up))

    def _may_print(self) -> bool:
        return self._capture.may_grow(held=self._held)

    # -- waiting ---------------------------------------------------------------------------

    def _step(self, until: float | None = None) -> None:
        """Wait until something happens, and react to it."""
        for key, _ in self._selector.select(self._wait(until)):
            if key.data == _WARDEN:
                self._hear(self._warden.messages())
            elif key.data == _SIGNALS:
                self._interrupts.drain()
                self._warden.keep_going()
            else:
                self._capture.read(key.fd)
        if self._warden.has_news:
            self._hear(self._warden.messages())
        now = self._stopwatch.now()
        due = self._capture.next_read()
        if due is not None and now >= due:
            self._capture.read(None)
        if self._interrupts.stop_wanted:
            self._pause()
        if slept := self._stopwatch.slept():
            self._listener(happened.MachineSlept(slept))
        self._note_interrupts()
        self._check_clocks(self._stopwatch.now())
        if self._overdue is not None and self._stopwatch.now() >= self._overdue and not self._gone:
            raise ChannelClosed("no answer")

    def _wait(self, until: float | None) -> float | None:
        if self._warden.has_news:
            return 0.0
        moments = [until, self._next_tick, self._capture.next_read(), self._overdue]
        if self._is_running:
            facts = self._facts()
            moments += [expires_at(clock, facts) for clock in self._clocks()]
            moments.append(self._activity.next_check if self._activity else None)
        waits = [moment for moment in moments if moment is not None]
        if not waits:
            return None
        return max(0.0, min(min(waits) - self._stopwatch.now(), _LONGEST_WAIT))

    @property
    def _is_running(self) -> bool:
        """Whether the program runs, and rooda has not asked it to stop."""
        return self._verdict is None and self._returncode is None

    def _clocks(self) -> Sequence[Clock]:
        """The clocks that may expire now: not the idle one while the CPU time is awaited."""
        if self._activity is None or not self._activity.is_asked:
            return self._request.clocks
        return [clock for clock in self._request.clocks if clock.since is not Since.ACTIVITY]

    def _hear(self, messages: Sequence[Message]) -> None:
        for message in messages:
            match message:
                case ("exited", int(code), bool(alone), bool(held)):
                    self._returncode, self._held = code, held
                    self._gone = self._gone or alone
                case ("unready", str(why)):
                    self.unready = why
                case ("alone",):
                    self._gone = True
                case ("killing",):
                    self._listener(happened.ProcessKilled(self._pid))
                case ("gone", list(stopped), list(left)):
                    self._gone = True
                    self.survivors = _named(left)
                    self.cleaned_up = tuple(
                        one for one in _named(stopped) if one not in self.survivors
                    )
                    if left:
                        self._listener(happened.ProcessSurvived(self._pid, self.survivors))
                case ("cpu", float(seconds)):
                    self._take_cpu_time(seconds)
                case _:
                    raise ChannelClosed("nonsense")

    def _pause(self) -> None:
        """Ctrl+Z: halt the program first, then rooda; no clock counts that time."""
        self._listener(happened.ProcessPaused(self._pid))
        self._warden.pause()
        took = self._interrupts.stop_ourselves()
        self._warden.resume()
        self._listener(happened.ProcessResumed(self._pid, took))

    # -- signals to rooda ------------------------------------------------------------------

    def _note_interrupts(self) -> None:
        received = self._interrupts.received
        if len(received) == self._seen_interrupts:
            return
        new = received[self._seen_interrupts :]
        number = new[0]
        # When a terminal closes, both the shell and the kernel send SIGHUP: that is one request.
        again = (self._seen_interrupts > 0 or len(new) > 1) and set(new) != {signal.SIGHUP}
        self._seen_interrupts = len(received)
        grace = 0.0 if again else self._request.kill_grace
        ended = self._returncode is not None
        if self._verdict is None and (ended or not self._stop(grace)):
            # The program has exited; a second signal only hurries the cleanup.
            if again and not self._gone:
                self._stop(0.0)
            return
        self._interrupts.reported = True
        self._listener(happened.InterruptSeen(signal_name(number), again=again))
        if self._verdict is None:
            self._listener(happened.ProcessStopping(self._pid))
        elif not self._gone:
            self._stop(grace)
        # The user's signal is the stronger reason, even if a clock had expired before.
        self._verdict = Interrupted(number)

    def _stop(self, grace: float) -> bool:
        """Make the warden stop the tree; False if the program itself had ended before.

        From now on there is a moment by which the warden must have reported that it is gone.
        """
        self._overdue = self._stopwatch.now() + grace + KILL_WAIT + PATIENCE
        return self._warden.stop(grace)

    # -- clocks ----------------------------------------------------------------------------

    def _facts(self) -> ClockFacts:
        last = self._buffer.last_at
        if last is not None:
            self._note_activity(last)
        return ClockFacts(
            began=self._began,
            last_output=last,
            printed=self._buffer.total,
            last_activity=self._last_activity,
            cpu=self._activity.used if self._activity else 0.0,
            result_at=self._result_at,
        )

    def _check_clocks(self, now: float) -> None:
        if self._next_tick is not None and now >= self._next_tick:
            self._next_tick = now + (self._request.tick or 1.0)
            self._listener(happened.Tick())
        if not self._is_running:
            return
        self._note_result(now)
        if self._was_canceled():
            return
        if self._activity is not None and now >= self._activity.next_check:
            self._activity.ask()
            self._warden.ask_for_cpu()
        late = expired(self._clocks(), self._facts(), now)
        if late is None or (late.since is Since.ACTIVITY and not self._is_idle(late, now)):
            return
        # A program that has ended in the meantime did not run out of time.
        if self._stop(self._request.kill_grace):
            self._time_out(late, now)

    def _note_result(self, now: float) -> None:
        """Note when the result came; a program that goes on working has no result yet."""
        if not self._request.result_is_in():
            self._result_at = None
        elif self._result_at is None:
            self._result_at = now

    def _was_canceled(self) -> bool:
        """Stop the program if the caller cancels it; whether that happened."""
        canceled = self._request.canceled()
        if canceled is None or not self._stop(self._request.kill_grace):
            return False
        self._verdict = canceled
        self._listener(happened.ProcessCalledOff(canceled.rule, canceled.reason))
        return True

    def _time_out(self, late: Clock, now: float) -> None:
        seen = evidence(late, self._facts(), now)
        if self._result_at is not None:  # whichever clock expired: the result counts
            self._verdict = HungAfterResult(late.name, late.shown)
        else:
            self._verdict = TimedOut(late.name, late.shown, seen)
        self._listener(happened.ClockExpired(late.name, late.shown, seen))

    def _take_cpu_time(self, cpu: float) -> None:
        now = self._stopwatch.now()
        if self._activity is not None and self._activity.take(cpu, now):
            self._note_activity(now)

    def _note_activity(self, at: float) -> None:
        if at > self._last_activity:
            self._last_activity, self._uncounted = at, self._stopwatch.uncounted()

    def _is_idle(self, clock: Clock, now: float) -> bool:
        """Whether the limit passed without output, CPU time or a changed file."""
        if self._activity is not None and not self._activity.is_fresh(now):
            self._activity.next_check = now
            return False
        # Files carry the wall clock's time, which goes on while the stopwatch stands still.
        more = self._stopwatch.uncounted() - self._uncounted
        ago = self._request.changed_within(clock.limit + more)
        if ago is None:
            return True
        self._note_activity(now - max(0.0, ago - more))
        return False


def _named(found: list[object]) -> tuple[NamedProcess, ...]:
    pairs = [one for one in found if isinstance(one, tuple) and len(one) == 2]  # noqa: PLR2004 - pairs
    return tuple(NamedProcess(int(pid), str(name)) for pid, name in pairs)
