"""One program and all processes that it started, as the warden sees them."""

import contextlib
import os
import resource
import signal
from collections.abc import Sequence

from rooda.world.process.tree.processes import (
    Process,
    ProcessTable,
    descendants,
    is_named,
    without_kept,
)
from rooda.world.process.tree.stopping import TreeStop, freeze, send_signal
from rooda.world.process.warden.jail import Jail


class ProcessTree:
    """Knows which processes belong to the program.

    With `adopts` they are all descendants of the warden. Otherwise the tree finds what it can by
    session, group, parent and the mark in the environment.
    """

    def __init__(
        self,
        table: ProcessTable,
        leader: int,
        keep: Sequence[str],
        mark: str,
        outputs: frozenset[tuple[int, int]],
        *,
        adopts: bool,
        given_up: set[tuple[int, float]],
        jail: Jail | None = None,
    ) -> None:
        found = table.find(leader)
        self.leader = leader
        self.started = found.started if found else 0
        self.status: int | None = None  # of the program, after its end
        self.leader_status: int | None = None  # after the warden has waited for the leader
        self.ended = False  # the warden has reported the leader's end
        self.stop: TreeStop | None = None
        self.is_paused = False
        self.jail = jail
        self._table = table
        self._keep = tuple(keep)
        self._mark = mark
        self._outputs = outputs
        self._adopts = adopts
        self._given_up = given_up
        self._known: set[tuple[int, float]] = set()  # seen below the leader before
        self._paused: list[Process] = []

    @property
    def may_leave_some(self) -> bool:
        """Whether children of the warden may stay, so that only the process table tells the end."""
        return not self._adopts or bool(self._keep) or bool(self._given_up)

    def members(self) -> list[Process]:
        """All running processes of the tree, except for those to keep."""
        processes = self._table.all_processes()
        found = (
            descendants(processes, {os.getpid()}) if self._adopts else self._relatives(processes)
        )
        if self._keep:
            found = without_kept(found, self._is_kept, self.leader)
        return [one for one in found if not one.ended and one.key not in self._given_up]

    def _relatives(self, processes: list[Process]) -> list[Process]:
        """Without adoption: session, group, mark, and what was seen below them before."""
        members = {one.pid: one for one in processes if self._is_relative(one)}
        for process in descendants(processes, members.keys()):
            members[process.pid] = process
        self._known = {process.key for process in members.values()}
        return list(members.values())

    def _is_relative(self, process: Process) -> bool:
        if process.started < self.started or process.pid == os.getpid():
            return False
        if process.pid == self.leader:
            return self.leader_status is None  # later, another process may have the pid
        return (
            self.leader in (process.session, process.group)
            or process.key in self._known
            or (bool(self._mark) and self._table.has_mark(process.pid, self._mark))
        )

    def _is_kept(self, process: Process) -> bool:
        return is_named(process, self._table.command_line(process.pid), self._keep)

    def is_spared(self, pid: int) -> bool:
        """Whether to keep this child of the warden."""
        if not self._keep or pid == self.leader:
            return False
        process = self._table.find(pid)
        return process is not None and self._is_kept(process)

    def is_held(self) -> bool:
        """Whether a process of the tree has the program's output open for writing."""
        members = self.members()
        own = self.own_processes(members)
        others = (one for one in members if one.key not in own)
        return any(self._table.writes_to(one.pid, self._outputs) for one in others)

    def own_processes(self, members: Sequence[Process]) -> set[tuple[int, float]]:
        """The keys of the processes that only make up the sandbox."""
        return set() if self.jail is None else self.jail.own(members, self.leader)

    def keep_keeper_going(self) -> None:
        """Continue a keeper that the program has halted: it would not tell the program's end."""
        if self.jail is None or self.is_paused:
            return
        if not self.jail.keeper:
            self.own_processes(self.members())
        keeper = self._table.find(self.jail.keeper) if self.jail.keeper else None
        if keeper is not None and keeper.halted:
            send_signal(self._table, keeper, signal.SIGCONT)

    def unnamed(self, members: Sequence[Process]) -> set[tuple[int, float]]:
        """The keys of the processes that are no leftovers: the program itself, and its sandbox."""
        if self.jail is None:
            return {one.key for one in members if one.pid == self.leader}
        own, program = self.own_processes(members), self.jail.program(members, self.leader)
        return own | program

    def cpu(self) -> float:
        """The CPU seconds of all processes, those that have ended included."""
        gone = resource.getrusage(resource.RUSAGE_CHILDREN)
        return sum(one.cpu for one in self.members()) + gone.ru_utime + gone.ru_stime

    def pause(self) -> None:
        """Halt all processes."""
        self._paused += freeze(self._table, self.members)
        self.is_paused = True
        if self.stop is not None:
            self.stop.hold()

    def resume(self) -> None:
        """Continue the processes that `pause` has halted."""
        for process in self._paused:
            send_signal(self._table, process, signal.SIGCONT)
        self._paused, self.is_paused = [], False
        if self.stop is not None:
            self.stop.go_on()

    def signal_group(self, number: int) -> None:
        """Signal the leader's process group: the fallback where no process can be seen."""
        if self.leader_status is None:  # later, the group's number may be reused
            with contextlib.suppress(OSError):
                os.killpg(self.leader, number)
