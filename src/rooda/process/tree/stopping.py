"""Stop a whole tree: SIGTERM to everyone, a grace for all of them together, SIGKILL, a second."""

import signal
import time
from collections.abc import Callable, Iterable

from rooda.process.tree.process import Census, Process, title
from rooda.process.tree.signalling import send

KILL_WAIT = 1.0  # how long a SIGKILL may take
MOST_NAMES = 100  # of processes that were stopped; a fork bomb has thousands

_FIRST_LOOK, _LAST_LOOK = 0.005, 0.1  # between two looks at a tree that was told to stop
_ROUNDS = 20  # of SIGSTOP for those that are new

Members = Callable[[], list[Process]]


class Stopping:
    """One tree on its way out. Call `look` when it is due, until it says that it is over."""

    def __init__(self, census: Census, members: Members, leader: int | None = None) -> None:
        self.killing = False  # the grace is over
        self.stopped: dict[tuple[int, float], tuple[int, str]] = {}
        self.due = 0.0
        self._census = census
        self._members = members
        self._leader = leader
        self._asked: set[tuple[int, float]] = set()
        self._told_at = census.now()
        self._kill_at = float("inf")
        self._give_up_at = float("inf")
        self._held_at = 0.0
        self._pace = _FIRST_LOOK

    def within(self, grace: float) -> None:
        """SIGKILL after so many seconds; said again, it can only hurry."""
        self._kill_at = min(self._kill_at, time.monotonic() + grace)
        self.due = 0.0

    def look(self) -> bool:
        """See who is left, and do what is due; whether nobody is left, or nothing helps."""
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
        self._pace = min(_LAST_LOOK, self._pace * 1.5)
        alarms = (now + self._pace, self._kill_at, self._give_up_at)
        self.due = min(alarm for alarm in alarms if alarm > now)
        return not members or self.is_hopeless

    @property
    def is_hopeless(self) -> bool:
        """Whether even SIGKILL had its time."""
        return time.monotonic() >= self._give_up_at

    def hold(self) -> None:
        """Everyone stands still, and the grace with them."""
        self._held_at = time.monotonic()

    def go_on(self) -> None:
        """The grace goes on where it stood."""
        held, self.due = time.monotonic() - self._held_at, 0.0
        self._kill_at += held
        self._give_up_at += held

    def _ask(self, members: Iterable[Process]) -> None:
        """SIGTERM, once each, to those who were there when it was decided.

        Who is started later is somebody's cleaning up, and has the grace like all others.
        """
        was_there = self._told_at if self._asked else float("inf")  # all, at the first look
        old = (member for member in members if member.started < was_there)
        new = [member for member in old if member.key not in self._asked]
        self._asked.update(member.key for member in new)
        self._note(new)
        for member in new:
            send(self._census, member, signal.SIGTERM)
            # A stopped process gets its SIGTERM only when it is continued.
            send(self._census, member, signal.SIGCONT)

    def _kill(self, members: list[Process]) -> None:
        """Stop everyone first, so that nobody forks away while others are killed."""
        frozen = freeze(self._census, self._members)
        everyone = {member.key: member for member in (*members, *frozen)}.values()
        self._note(everyone)
        for member in everyone:
            send(self._census, member, signal.SIGKILL)

    def _note(self, members: Iterable[Process]) -> None:
        """Remember by name who had to be stopped; the leader is no surprise."""
        for member in members:
            if member.pid != self._leader and len(self.stopped) < MOST_NAMES:
                self.stopped.setdefault(member.key, named(self._census, member))


def freeze(census: Census, members: Members) -> list[Process]:
    """SIGSTOP until no new one appears; those that we stopped."""
    frozen: dict[tuple[int, float], Process] = {}
    for _ in range(_ROUNDS):
        new = [one for one in members() if one.key not in frozen and not one.halted]
        if not new:
            break
        for member in new:
            send(census, member, signal.SIGSTOP)
            frozen[member.key] = member
    return list(frozen.values())


def named(census: Census, process: Process) -> tuple[int, str]:
    """Its pid, and what people know it by."""
    return process.pid, title(process, census.words(process.pid))
