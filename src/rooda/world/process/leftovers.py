"""Processes that an earlier run left behind, because both rooda and its warden were killed.

rooda finds them by what a process can hardly shed all at once: the mark in its environment, the
session of the program, the files that the run wrote to. A pid alone is never enough.
"""

import contextlib
import os
import stat
import time
from collections.abc import Collection
from pathlib import Path

from msgspec import Struct

from rooda.world.process.events import NamedProcess
from rooda.world.process.tree import process_table
from rooda.world.process.tree.processes import (
    Process,
    ProcessTable,
    descendants,
    is_named,
    named,
    without_kept,
)
from rooda.world.process.tree.stopping import TreeStop


class RunTrace(Struct, frozen=True):
    """What identifies the processes of a run. `leaders` are pids with their start times.

    If rooda inherits orphans, `not_inherited` are the children that rooda has had before the run:
    every other process below rooda belongs to the run. None: rooda inherits no orphan.
    """

    mark: str
    folder: str
    leaders: tuple[tuple[int, float], ...] = ()
    files: frozenset[tuple[int, int]] = frozenset()
    keep: tuple[str, ...] = ()
    not_inherited: frozenset[int] | None = None


def file_identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of a regular file of this user; None for a link (it may be /dev/null)."""
    try:
        found = path.lstat()
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        return None
    return (found.st_dev, found.st_ino)


def find_leftovers(trace: RunTrace, table: ProcessTable) -> list[Process]:
    """All processes of that run, without rooda itself and its ancestors."""
    processes = table.all_processes()
    spared = _own_line(processes)
    members = [one for one in processes if one.pid not in spared and _belongs(one, trace, table)]
    members += _inherited(processes, trace, {one.pid for one in members} | spared)
    pids = {one.pid for one in members}
    members += [one for one in descendants(processes, pids) if one.pid not in pids | spared]
    if trace.keep:
        members = without_kept(
            members, lambda one: is_named(one, table.command_line(one.pid), trace.keep), -1
        )
    return [one for one in members if not one.ended]


def stop_leftovers(trace: RunTrace, grace: float) -> tuple[list[NamedProcess], list[NamedProcess]]:
    """Stop them all; returns the stopped ones, and the ones that did not stop."""
    table = process_table()
    stop = TreeStop(table, lambda: find_leftovers(trace, table))
    stop.within(grace)
    while not stop.step():
        time.sleep(max(0.0, stop.due - time.monotonic()))
    for pid, _ in stop.stopped:
        with contextlib.suppress(OSError):  # only a child of rooda leaves a zombie to rooda
            os.waitpid(pid, os.WNOHANG)
    left = [NamedProcess(*named(table, process)) for process in find_leftovers(trace, table)]
    pids = {one.pid for one in left}
    return [NamedProcess(*one) for one in stop.stopped.values() if one[0] not in pids], left


def start_time(pid: int) -> float | None:
    """When a process was started, in the system's unit; None if it is gone."""
    found = process_table().find(pid)
    return None if found is None or found.ended else found.started


def _belongs(process: Process, trace: RunTrace, table: ProcessTable) -> bool:
    if process.key in trace.leaders:
        return True
    if trace.mark and table.has_mark(process.pid, trace.mark):
        return True
    if trace.files and table.writes_to(process.pid, trace.files):
        return True
    return any(_is_in_session(process, leader, trace, table) for leader in trace.leaders)


def _inherited(
    processes: Collection[Process], trace: RunTrace, without: Collection[int]
) -> list[Process]:
    """The processes that rooda has inherited from a killed warden."""
    if trace.not_inherited is None:
        return []
    strangers = {one.pid for one in descendants(processes, trace.not_inherited)}
    strangers |= trace.not_inherited
    below = descendants(processes, {os.getpid()})
    return [one for one in below if one.pid not in strangers and one.pid not in without]


def _is_in_session(
    process: Process, leader: tuple[int, float], trace: RunTrace, table: ProcessTable
) -> bool:
    """Whether the process is in the leader's session.

    The system may have reused the session's number: then there is a new leader, or the process
    works in another folder.
    """
    pid, started = leader
    if process.session != pid or process.started < started:
        return False
    folder = table.folder(process.pid)
    if folder is None or not Path(folder).is_relative_to(trace.folder):
        return False
    now = table.find(pid)
    return now is None or now.key == leader


def _own_line(processes: Collection[Process]) -> set[int]:
    """Rooda and its ancestors: if that run started this rooda, its shell must not be stopped."""
    parents = {process.pid: process.parent for process in processes}
    pid, found = os.getpid(), {os.getpid()}
    while (pid := parents.get(pid, 0)) not in (0, *found):
        found.add(pid)
    return found
