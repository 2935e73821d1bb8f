"""Stop a whole tree: SIGTERM to all, one grace period for all of them together, then SIGKILL."""

import os
import signal
import time
from collections.abc import Callable, Iterable

from rooda.world.process.tree.processes import Process, ProcessTable, named

KILL_WAIT = 1.0  # seconds that a SIGKILL may take
MOST_NAMES = 100  # of stopped processes; a fork bomb has thousands

_FIRST_PAUSE, _LAST_PAUSE = 0.005, 0.1  # seconds between two checks of a stopping tree
_ROUNDS = 20  # of SIGSTOP for processes that are new

Members = Callable[[], list[Process]]
Some = Callable[[list[Process]], set[tuple[int, float]]]  # the keys of some of the members


def _none(_: list[Process]) -> set[tuple[int, float]]:
    return set()


class TreeStop:
    """Stops one tree. Call `step` whenever it is `due`, until it returns True.

    `stopped` are the processes that had to be stopped, except for the `unnamed` ones. The processes
    that make up a sandbox (`own`) get no SIGTERM.
    """

    def __init__(
        self, table: ProcessTable, members: Members, unnamed: Some = _none, own: Some = _none
    ) -> None:
        self.killing = False  # the grace period is over
        self.stopped: dict[tuple[int, float], tuple[int, str]] = {}
        self.due = 0.0
        self._table = table
        self._members = members
        self._unnamed = unnamed
        self._own = own
        self._asked: set[tuple[int, float]] = set()
        self._told_at = table.now()
        self._kill_at = float("inf")
        self._give_up_at = float("inf")
        self._held_at = 0.0
        self._pause = _FIRST_PAUSE

    def within(self, grace: float) -> None:
        """Set the time until SIGKILL; a second call can only shorten it."""
        self._kill_at = min(self._kill_at, time.monotonic() + grace)
        self.due = 0.0

    def step(self) -> bool:
        """Send the signals that are due; whether no process is left, or SIGKILL does not help."""
        members = self._members()
        now = time.monotonic()
        if now >= self._kill_at and not self.killing:
            self.killing, self._give_up_at = True, now + KILL_WAIT
        if members and self.killing:
            self._kill(members)
            members = self._members()
        elif members:
            self._ask(members)
        now = time.monotonic()
        self._pause = min(_LAST_PAUSE, self._pause * 1.5)
        moments = (now + self._pause, self._kill_at, self._give_up_at)
        self.due = min(moment for moment in moments if moment > now)
        return not members or self.is_hopeless

    @property
    def is_hopeless(self) -> bool:
        """Whether the time for SIGKILL is over too."""
        return time.monotonic() >= self._give_up_at

    def hold(self) -> None:
        """Stop the clock of the grace period: the whole tree stands still (Ctrl+Z)."""
        self._held_at = time.monotonic()

    def go_on(self) -> None:
        """Let the grace period continue where it was held."""
        held, self.due = time.monotonic() - self._held_at, 0.0
        self._kill_at += held
        self._give_up_at += held

    def _ask(self, members: list[Process]) -> None:
        """Send SIGTERM, once each, to the processes that existed when the stop was decided.

        Processes started later are treated as cleanup: they get no SIGTERM, only the grace period.
        """
        was_there = self._told_at if self._asked else float("inf")  # all, in the first step
        own = self._own(members)
        old = (one for one in members if one.started < was_there and one.key not in own)
        new = [member for member in old if member.key not in self._asked]
        self._asked.update(member.key for member in new)
        self._note(new, self._unnamed(members))
        for member in new:
            send_signal(self._table, member, signal.SIGTERM)
            # A stopped process receives its SIGTERM only after SIGCONT.
            send_signal(self._table, member, signal.SIGCONT)

    def _kill(self, members: list[Process]) -> None:
        """Halt all processes first, so that none can fork while others are killed."""
        frozen = freeze(self._table, self._members)
        processes = {member.key: member for member in (*members, *frozen)}.values()
        self._note(processes, self._unnamed(members))
        for member in processes:
            send_signal(self._table, member, signal.SIGKILL)

    def _note(self, members: Iterable[Process], unnamed: set[tuple[int, float]]) -> None:
        for member in members:
            if member.key not in unnamed and len(self.stopped) < MOST_NAMES:
                self.stopped.setdefault(member.key, named(self._table, member))


def freeze(table: ProcessTable, members: Members) -> list[Process]:
    """Send SIGSTOP until no new process appears; returns the processes that it halted."""
    frozen: dict[tuple[int, float], Process] = {}
    for _ in range(_ROUNDS):
        new = [one for one in members() if one.key not in frozen and not one.halted]
        if not new:
            break
        for member in new:
            send_signal(table, member, signal.SIGSTOP)
            frozen[member.key] = member
    return list(frozen.values())


def send_signal(table: ProcessTable, process: Process, number: int) -> bool:
    """Send a signal to exactly this process, and to no later one with the same pid.

    False if the process is gone, or belongs to another user (sudo).
    """
    try:
        fd = os.pidfd_open(process.pid)
    except AttributeError:  # macOS: a short race between the check and the signal
        return _is_there(table, process) and _kill(process.pid, number)
    except ProcessLookupError:
        return False
    except OSError:  # no descriptor left, or an old kernel
        return _is_there(table, process) and _kill(process.pid, number)
    try:
        # The descriptor stands for one process from now on, so one check is enough.
        if not _is_there(table, process):
            return False
        signal.pidfd_send_signal(fd, number)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def _is_there(table: ProcessTable, process: Process) -> bool:
    now = table.find(process.pid)
    return now is not None and now.key == process.key


def _kill(pid: int, number: int) -> bool:
    try:
        os.kill(pid, number)
    except OSError:
        return False
    return True
