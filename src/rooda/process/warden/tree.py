"""One program and all that it started, as the warden sees it."""

import contextlib
import os
import resource
import signal
from collections.abc import Sequence

from rooda.process.tree.family import descendants, is_named, without_kept
from rooda.process.tree.process import Census, Process
from rooda.process.tree.signalling import send
from rooda.process.tree.stopping import Stopping, freeze


class Tree:
    """Knows who belongs to it. With `adopts` that is everyone below us, else whom can be found."""

    def __init__(
        self,
        census: Census,
        leader: int,
        keep: Sequence[str],
        mark: str,
        outputs: frozenset[tuple[int, int]],
        *,
        adopts: bool,
        given_up: set[tuple[int, float]],
    ) -> None:
        found = census.look_at(leader)
        self.leader = leader
        self.started = found.started if found else 0
        self.status: int | None = None  # of the leader, when it was waited for
        self.ended = False  # and that was told
        self.stopping: Stopping | None = None
        self.is_paused = False
        self._census = census
        self._keep = tuple(keep)
        self._mark = mark
        self._outputs = outputs
        self._adopts = adopts
        self._given_up = given_up
        self._known: set[tuple[int, float]] = set()  # seen below the leader before
        self._paused: list[Process] = []

    @property
    def may_leave_some(self) -> bool:
        """Whether some processes of ours may stay, so that only a census can tell who is left."""
        return not self._adopts or bool(self._keep) or bool(self._given_up)

    def members(self) -> list[Process]:
        """Everyone who still runs and is not to be kept."""
        everyone = self._census.everyone()
        found = descendants(everyone, {os.getpid()}) if self._adopts else self._relatives(everyone)
        if self._keep:
            found = without_kept(found, self._is_kept, self.leader)
        return [one for one in found if not one.ended and one.key not in self._given_up]

    def _relatives(self, everyone: list[Process]) -> list[Process]:
        """Without adoption: session, group, mark, and what was seen below them before."""
        ours = {one.pid: one for one in everyone if self._is_relative(one)}
        for process in descendants(everyone, ours.keys()):
            ours[process.pid] = process
        self._known = {process.key for process in ours.values()}
        return list(ours.values())

    def _is_relative(self, process: Process) -> bool:
        if process.started < self.started or process.pid == os.getpid():
            return False
        if process.pid == self.leader:
            return not self.ended  # later the pid may be another's
        return (
            self.leader in (process.session, process.group)
            or process.key in self._known
            or (bool(self._mark) and self._census.has_mark(process.pid, self._mark))
        )

    def _is_kept(self, process: Process) -> bool:
        return is_named(process, self._census.words(process.pid), self._keep)

    def is_spared(self, pid: int) -> bool:
        """Whether a child of ours is to be kept."""
        if not self._keep or pid == self.leader:
            return False
        process = self._census.look_at(pid)
        return process is not None and self._is_kept(process)

    def is_held(self) -> bool:
        """Whether somebody has the program's output open for writing."""
        return any(self._census.writes_to(one.pid, self._outputs) for one in self.members())

    def cpu(self) -> float:
        """Seconds of all of them, with those who have ended."""
        gone = resource.getrusage(resource.RUSAGE_CHILDREN)
        return sum(one.cpu for one in self.members()) + gone.ru_utime + gone.ru_stime

    def pause(self) -> None:
        """Let everyone stand still."""
        self._paused += freeze(self._census, self.members)
        self.is_paused = True
        if self.stopping is not None:
            self.stopping.hold()

    def resume(self) -> None:
        """Let those go on who stand still because of us."""
        for process in self._paused:
            send(self._census, process, signal.SIGCONT)
        self._paused, self.is_paused = [], False
        if self.stopping is not None:
            self.stopping.go_on()

    def signal_group(self, number: int) -> None:
        """Where nobody can be seen, the leader's group must do, while it is surely its own."""
        if not self.ended:
            with contextlib.suppress(OSError):
                os.killpg(self.leader, number)
