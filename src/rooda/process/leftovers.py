"""What an earlier run left behind, where nobody was left to see to it.

Found by what a process can hardly shed all at once: the mark in its environment, the session of
the program, the files that the run wrote to. Never by a bare pid.
"""

import os
import stat
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from rooda.process.events import Named
from rooda.process.tree.census import census
from rooda.process.tree.family import descendants, is_named, without_kept
from rooda.process.tree.process import Census, Process
from rooda.process.tree.stopping import Stopping, named


@dataclass(frozen=True, slots=True)
class Trace:
    """What the processes of a run are known by. `leaders` are pids with their start times."""

    mark: str
    folder: str
    leaders: tuple[tuple[int, float], ...] = ()
    files: frozenset[tuple[int, int]] = frozenset()
    keep: tuple[str, ...] = ()


def identity(path: Path) -> tuple[int, int] | None:
    """Device and inode of a file of our own; none behind a link (it may lead to /dev/null)."""
    try:
        found = path.lstat()
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        return None
    return (found.st_dev, found.st_ino)


def find(trace: Trace, who: Census) -> list[Process]:
    """Everyone who belongs to that run, but for ourselves and those who started us."""
    everyone = who.everyone()
    spared = _ourselves(everyone)
    ours = [one for one in everyone if one.pid not in spared and _belongs(one, trace, who)]
    pids = {one.pid for one in ours}
    ours += [one for one in descendants(everyone, pids) if one.pid not in pids | spared]
    if trace.keep:
        ours = without_kept(ours, lambda one: is_named(one, who.words(one.pid), trace.keep), -1)
    return [one for one in ours if not one.ended]


def stop(trace: Trace, grace: float) -> tuple[list[Named], list[Named]]:
    """Stop them all; who was stopped, and who could not be."""
    who = census()
    stopping = Stopping(who, lambda: find(trace, who))
    stopping.within(grace)
    while not stopping.look():
        time.sleep(max(0.0, stopping.due - time.monotonic()))
    left = [Named(*named(who, process)) for process in find(trace, who)]
    pids = {one.pid for one in left}
    return [Named(*one) for one in stopping.stopped.values() if one[0] not in pids], left


def start_time(pid: int) -> float | None:
    """When a process was started, in the system's unit; None when it is gone."""
    found = census().look_at(pid)
    return None if found is None or found.ended else found.started


def _belongs(process: Process, trace: Trace, who: Census) -> bool:
    if process.key in trace.leaders:
        return True
    if trace.mark and who.has_mark(process.pid, trace.mark):
        return True
    if trace.files and who.writes_to(process.pid, trace.files):
        return True
    return any(_is_in_session(process, leader, trace, who) for leader in trace.leaders)


def _is_in_session(process: Process, leader: tuple[int, float], trace: Trace, who: Census) -> bool:
    """By the session's number, which may be used again: a new leader or another folder tells."""
    pid, started = leader
    if process.session != pid or process.started < started or not _is_in(process, trace, who):
        return False
    now = who.look_at(pid)
    return now is None or now.key == leader


def _is_in(process: Process, trace: Trace, who: Census) -> bool:
    folder = who.folder(process.pid)
    return folder is not None and Path(folder).is_relative_to(trace.folder)


def _ourselves(everyone: Collection[Process]) -> set[int]:
    """We may have been started from within that run; its shell is not to be stopped then."""
    parents = {process.pid: process.parent for process in everyone}
    pid, found = os.getpid(), {os.getpid()}
    while (pid := parents.get(pid, 0)) not in (0, *found):
        found.add(pid)
    return found
