"""Watch one program: its output, its end, its clocks, signals to us, and what the warden says."""

import selectors
import signal
from collections.abc import Callable, Sequence
from typing import Protocol

from rooda.process import events as happened
from rooda.process.capture.spoken import Spoken
from rooda.process.clocks import Clock, Facts, Pulse, Since, alarm, evidence, expired
from rooda.process.events import Named
from rooda.process.exits import (
    CalledOff,
    Exit,
    Interrupted,
    Lingered,
    Signalled,
    TimedOut,
    from_returncode,
    signal_name,
)
from rooda.process.interrupts import Interrupts
from rooda.process.request import Listener, Request
from rooda.process.tree.stopping import KILL_WAIT
from rooda.process.warden.channel import Closed, Message
from rooda.process.warden.client import PATIENCE, Warden

DRAIN_WAIT = 0.5  # how long the rest of a tree may finish what it has in hand
_LOOK_AGAIN = 0.02  # meanwhile, whether they still can
_LONGEST_WAIT = 3600.0  # the system takes no wait of years
_SIGNALS, _WARDEN = "signals", "warden"  # what a descriptor stands for, beside the capture


class Capture(Protocol):
    """Where the output comes from: pipes or files."""

    def start(self, selector: selectors.BaseSelector) -> None:
        """The program runs."""

    def look(self, fd: int | None) -> None:
        """Read what is there; `fd` is what woke us, if that did."""

    def next_look(self) -> float | None:
        """When to look although nothing wakes us."""

    def may_grow(self, *, held: bool) -> bool:
        """Whether somebody may still write; `held` is whether the warden saw it open."""


class Source(Protocol):
    """What a program prints, on its way to us."""

    @property
    def capture(self) -> Capture:
        """Where it comes from."""

    @property
    def selector(self) -> selectors.BaseSelector:
        """What wakes us."""

    @property
    def spoken(self) -> Spoken:
        """What has come so far."""


class Watch:
    """One program under watch."""

    def __init__(
        self,
        pid: int,
        request: Request,
        interrupts: Interrupts,
        listener: Listener,
        warden: Warden,
        output: Source,
    ) -> None:
        self.cleaned_up: tuple[Named, ...] = ()
        self.survivors: tuple[Named, ...] = ()
        self._pid = pid
        self._request = request
        self._interrupts = interrupts
        self._listener = listener
        self._warden = warden
        self._capture = output.capture
        self._spoken = output.spoken
        self._selector = output.selector
        self._stopwatch = interrupts.stopwatch
        self._verdict: TimedOut | Lingered | CalledOff | Interrupted | None = None
        self._returncode: int | None = None
        self._gone = False  # the whole tree, or we gave up on the rest
        self._held = False  # somebody had our files open when the program ended
        self._overdue: float | None = None  # when a warden that says nothing more is given up
        self._seen_interrupts = max(interrupts.acknowledged, request.earlier_signals)
        now = self._stopwatch.now()
        self._began = self._last_activity = now
        self._uncounted = self._stopwatch.uncounted()
        self._result_at: float | None = None
        self._next_tick = None if request.tick is None else now + request.tick
        idle = [clock.limit for clock in request.clocks if clock.since is Since.ACTIVITY]
        self._pulse = Pulse(min(idle), now) if idle else None

    def until_the_end(self) -> Exit:
        """Watch until nothing is left to wait for, and say how it ended."""
        self._selector.register(self._interrupts.wake_fd, selectors.EVENT_READ, _SIGNALS)
        self._selector.register(self._warden, selectors.EVENT_READ, _WARDEN)
        self._capture.start(self._selector)
        self._step_until(lambda: self._returncode is not None or self._gone)
        if self._verdict is None:
            self._clear_the_rest()
        self._step_until(lambda: self._gone)
        return self._end()

    def _step_until(self, done: Callable[[], bool], latest: float | None = None) -> None:
        while not done() and (latest is None or self._stopwatch.now() < latest):
            self._step(latest)

    @property
    def end_so_far(self) -> Exit | None:
        """How it ended, as far as that is known by now."""
        if self._verdict is None and self._returncode is not None:
            return from_returncode(self._returncode)
        return self._verdict

    def _end(self) -> Exit:
        if self._verdict is None:
            end = from_returncode(self._returncode or 0)
            new = self._interrupts.received[self._interrupts.acknowledged :]
            if isinstance(end, Signalled) and end.number in new:
                # Whoever wants us to end has sent it to both of us.
                self._interrupts.told = True
                self._listener(happened.InterruptSeen(end.name))
                return Interrupted(end.number)
            return end
        if isinstance(self._verdict, Interrupted) and not self.survivors:
            self._listener(happened.ProcessStopped(self._pid))
        return self._verdict

    def _clear_the_rest(self) -> None:
        """It ended by itself; see that what it left behind goes too."""
        # `exec > >(tee log)`: who holds our pipes may still have the last words in hand.
        end = self._stopwatch.now() + DRAIN_WAIT
        while not self._gone and self._may_speak() and self._stopwatch.now() < end:
            self._step(self._stopwatch.now() + _LOOK_AGAIN)
            self._held = self._warden.is_held()
        if self._gone:
            return
        self._stop(self._request.kill_grace)
        self._step_until(lambda: self._gone)
        if self.cleaned_up:
            self._listener(happened.LeftoversStopped(self._pid, self.cleaned_up))

    def _may_speak(self) -> bool:
        return self._capture.may_grow(held=self._held)

    # -- waiting ---------------------------------------------------------------------------

    def _step(self, until: float | None = None) -> None:
        """Wait for the next thing to happen, and see to it."""
        for key, _ in self._selector.select(self._wait(until)):
            if key.data == _WARDEN:
                self._hear(self._warden.messages())
            elif key.data == _SIGNALS:
                self._interrupts.drain()
                self._warden.keep_going()
            else:
                self._capture.look(key.fd)
        if self._warden.has_news:
            self._hear(self._warden.messages())
        now = self._stopwatch.now()
        due = self._capture.next_look()
        if due is not None and now >= due:
            self._capture.look(None)
        if self._interrupts.stop_wanted:
            self._pause()
        if slept := self._stopwatch.slept():
            self._listener(happened.MachineSlept(slept))
        self._note_interrupts()
        self._check_clocks(self._stopwatch.now())
        if self._overdue is not None and self._stopwatch.now() >= self._overdue and not self._gone:
            raise Closed("no answer")

    def _wait(self, until: float | None) -> float | None:
        if self._warden.has_news:
            return 0.0
        alarms = [until, self._next_tick, self._capture.next_look(), self._overdue]
        if self._is_running:
            facts = self._facts()
            alarms += [alarm(clock, facts) for clock in self._clocks()]
            alarms.append(self._pulse.next_look if self._pulse else None)
        waits = [moment for moment in alarms if moment is not None]
        if not waits:
            return None
        return max(0.0, min(min(waits) - self._stopwatch.now(), _LONGEST_WAIT))

    @property
    def _is_running(self) -> bool:
        """Whether it still works, and nobody has told it to stop."""
        return self._verdict is None and self._returncode is None

    def _clocks(self) -> Sequence[Clock]:
        """Those that may run out now: not the idle one while we wait for the tree's CPU time."""
        if self._pulse is None or not self._pulse.is_asked:
            return self._request.clocks
        return [clock for clock in self._request.clocks if clock.since is not Since.ACTIVITY]

    def _hear(self, messages: Sequence[Message]) -> None:
        for message in messages:
            match message:
                case ("exited", int(code), bool(alone), bool(held)):
                    self._returncode, self._held = code, held
                    self._gone = self._gone or alone
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
                    self._feel_the_pulse(seconds)
                case _:
                    raise Closed("nonsense")

    def _pause(self) -> None:
        """Ctrl+Z: the program stands still first, then we do; no clock counts it."""
        self._listener(happened.ProcessPaused(self._pid))
        self._warden.pause()
        took = self._interrupts.stop_ourselves()
        self._warden.resume()
        self._listener(happened.ProcessResumed(self._pid, took))

    # -- signals to us ---------------------------------------------------------------------

    def _note_interrupts(self) -> None:
        received = self._interrupts.received
        if len(received) == self._seen_interrupts:
            return
        new = received[self._seen_interrupts :]
        number = new[0]
        # When a terminal is closed both the shell and the kernel send SIGHUP: no second wish.
        again = (self._seen_interrupts > 0 or len(new) > 1) and set(new) != {signal.SIGHUP}
        self._seen_interrupts = len(received)
        grace = 0.0 if again else self._request.kill_grace
        ended = self._returncode is not None
        if self._verdict is None and (ended or not self._stop(grace)):
            # It is too late to stop it; here a signal only hurries the cleaning up.
            if again and not self._gone:
                self._stop(0.0)
            return
        self._interrupts.told = True
        self._listener(happened.InterruptSeen(signal_name(number), again=again))
        if self._verdict is None:
            self._listener(happened.ProcessStopping(self._pid))
        elif not self._gone:
            self._stop(grace)
        # The user's wish is the stronger reason, even when a clock had run out before.
        self._verdict = Interrupted(number)

    def _stop(self, grace: float) -> bool:
        """Have the tree stopped; False when the program itself had ended before.

        From now on there is a moment by which the warden must have said that it is gone.
        """
        self._overdue = self._stopwatch.now() + grace + KILL_WAIT + PATIENCE
        return self._warden.stop(grace)

    # -- clocks ----------------------------------------------------------------------------

    def _facts(self) -> Facts:
        last = self._spoken.last_at
        if last is not None:
            self._note_activity(last)
        return Facts(
            began=self._began,
            last_output=last,
            printed=self._spoken.total,
            last_activity=self._last_activity,
            cpu=self._pulse.used if self._pulse else 0.0,
            result_at=self._result_at,
        )

    def _check_clocks(self, now: float) -> None:
        if self._next_tick is not None and now >= self._next_tick:
            self._next_tick = now + (self._request.tick or 1.0)
            self._listener(happened.Tick())
        if not self._is_running:
            return
        self._note_result(now)
        if self._is_enough():
            return
        if self._pulse is not None and now >= self._pulse.next_look:
            self._pulse.ask()
            self._warden.ask_for_cpu()
        late = expired(self._clocks(), self._facts(), now)
        if late is None or (late.since is Since.ACTIVITY and not self._is_idle(late, now)):
            return
        # Who has ended in the meantime did not run out of time.
        if self._stop(self._request.kill_grace):
            self._give_verdict(late, now)

    def _note_result(self, now: float) -> None:
        """Whoever goes on working after his result had none yet."""
        if not self._request.result_is_in():
            self._result_at = None
        elif self._result_at is None:
            self._result_at = now

    def _is_enough(self) -> bool:
        """Whether the program is called off."""
        called_off = self._request.enough()
        if called_off is None or not self._stop(self._request.kill_grace):
            return False
        self._verdict = called_off
        self._listener(happened.ProcessCalledOff(called_off.rule, called_off.reason))
        return True

    def _give_verdict(self, late: Clock, now: float) -> None:
        seen = evidence(late, self._facts(), now)
        if self._result_at is not None:  # whichever clock it is: the result counts
            self._verdict = Lingered(late.name, late.shown)
        else:
            self._verdict = TimedOut(late.name, late.shown, seen)
        self._listener(happened.ClockExpired(late.name, late.shown, seen))

    def _feel_the_pulse(self, cpu: float) -> None:
        now = self._stopwatch.now()
        if self._pulse is not None and self._pulse.take(cpu, now):
            self._note_activity(now)

    def _note_activity(self, at: float) -> None:
        if at > self._last_activity:
            self._last_activity, self._uncounted = at, self._stopwatch.uncounted()

    def _is_idle(self, clock: Clock, now: float) -> bool:
        """Neither output nor CPU time for so long; the last look is at the files."""
        if self._pulse is not None and not self._pulse.is_fresh(now):
            self._pulse.next_look = now
            return False
        # Files are dated by the wall clock, which goes on while ours stands still.
        more = self._stopwatch.uncounted() - self._uncounted
        ago = self._request.changed_within(clock.limit + more)
        if ago is None:
            return True
        self._note_activity(now - max(0.0, ago - more))
        return False


def _named(found: list[object]) -> tuple[Named, ...]:
    pairs = [one for one in found if isinstance(one, tuple) and len(one) == 2]  # noqa: PLR2004 - pairs
    return tuple(Named(int(pid), str(name)) for pid, name in pairs)
