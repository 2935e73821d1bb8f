"""A worker: it starts its slot processes, starts them again when they end, and stops them."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence

from msgspec import json

from rooda.base.controls import one_line
from rooda.fleet.worker.slot_plan import REPLACE, SlotPlan, for_slot_process
from rooda.world.process.first_moment import own_module
from rooda.world.process.interrupts import Interrupts

_MODULE = "rooda.fleet.worker.slot_process"
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0  # seconds before a process is started again that failed
_HEALTHY = 60.0  # seconds after which the pauses begin with the first one again
_LOOK_EVERY = 0.2  # seconds
_PIECE = 65536  # bytes


class SlotHandle:
    """One slot process, started again and again."""

    def __init__(self, plan: SlotPlan) -> None:
        self.plan = plan
        self._process: subprocess.Popen[bytes] | None = None
        self._started = 0.0
        self._pause = 0.0
        self._not_before = 0.0
        self._unfinished = b""  # the beginning of a line that the process wrote

    @property
    def is_running(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """The process, if it is there."""
        return self._process.pid if self._process is not None and self.is_running else None

    def keep_running(self) -> str:
        """Start the process if it is not there; return words about one that failed."""
        now = time.monotonic()
        if self.is_running:
            return ""
        words = self._after_end(now) if self._process is not None else ""
        if now >= self._not_before:
            self._start(now)
        return words

    def _after_end(self, now: float) -> str:
        """Note how the last process ended, and when the next one may start."""
        self.close()
        process, self._process = self._process, None
        code = process.returncode if process is not None else 0
        if code == REPLACE:
            return ""
        if now - self._started > _HEALTHY:
            self._pause = 0.0
        self._pause = min(_LONGEST_PAUSE, self._pause * 2 or _FIRST_PAUSE)
        self._not_before = now + self._pause
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return f"slot {self.plan.slot} ended with {how}; it starts again in {self._pause:.0f} s"

    def _start(self, now: float) -> None:
        self._started = now
        # A session of its own: Ctrl+C reaches the worker alone, which decides what to do.
        self._process = subprocess.Popen(
            own_module(_MODULE),
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=for_slot_process(os.environ),
            start_new_session=True,
        )
        if self._process.stderr is not None:
            os.set_blocking(self._process.stderr.fileno(), False)
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                os.write(self._process.stdin.fileno(), json.encode(self.plan) + b"\n")

    def said(self) -> list[str]:
        """Return the lines that the process has written since the last call."""
        if self._process is None or self._process.stderr is None or self._process.stderr.closed:
            return []
        while piece := self._process.stderr.read(_PIECE):
            self._unfinished += piece
        *lines, self._unfinished = self._unfinished.split(b"\n")
        if len(self._unfinished) > _PIECE:
            lines, self._unfinished = [*lines, self._unfinished], b""
        return [one_line(line.decode("utf-8", "replace")) for line in lines if line.strip()]

    def stop(self) -> None:
        """Let the process end after its iteration; the second time, at once."""
        if self._process is not None and self.is_running:
            self._process.send_signal(signal.SIGTERM)
        else:
            self.close()

    def close(self) -> None:
        """Close the pipes of a process that is gone."""
        pipes = () if self._process is None else (self._process.stdin, self._process.stderr)
        for pipe in pipes:
            with contextlib.suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()


class Worker:
    """All slots of one machine."""

    def __init__(self, plans: Sequence[SlotPlan], say: Callable[[str], object]) -> None:
        self.slots = [SlotHandle(plan) for plan in plans]
        self._say = say
        self._is_ending = False

    @property
    def is_gone(self) -> bool:
        """Whether the worker was to end, and has no process left."""
        return self._is_ending and not any(slot.is_running for slot in self.slots)

    def look_after(self) -> None:
        """Start what is to run and does not; show what the processes say."""
        for slot in self.slots:
            for line in slot.said():
                self._say(line)
        if self._is_ending:
            return
        for slot in self.slots:
            if words := slot.keep_running():
                self._say(words)

    def close(self) -> None:
        """Close the pipes of processes that are gone."""
        for slot in self.slots:
            slot.close()

    def stop(self) -> None:
        """Let all slots end after their iterations; the second time, at once."""
        self._is_ending = True
        for slot in self.slots:
            slot.stop()


def run_worker(
    worker: Worker,
    interrupts: Interrupts,
    *,
    is_done: Callable[[], bool],
    show: Callable[[], object] = lambda: None,
) -> bool:
    """Work until all is done or the user wants an end; return whether all is done.

    The first signal lets the iterations at work end, the second one stops them. `show` is called
    again and again, to show what happens.
    """
    heard = 0
    done = False
    with interrupts.deferred():
        while not worker.is_gone:
            worker.look_after()
            show()
            if len(interrupts.received) > heard:
                heard = len(interrupts.received)
                worker.stop()
            elif not heard and not done and is_done():
                done = True
                worker.stop()
            time.sleep(_LOOK_EVERY)
    worker.look_after()  # the last words of the processes
    worker.close()
    show()
    return done
