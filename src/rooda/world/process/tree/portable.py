"""The process table of systems without /proc (macOS): psutil. The tests run it on Linux too."""

import os
import time

import psutil

from rooda.world.process.tree.processes import Process, ProcessTable

_GONE = (psutil.Error, OSError)
_COARSE = 0.02  # seconds


class PsutilProcessTable(ProcessTable):
    """Asks psutil. A process that ends while it is read counts as gone."""

    def now(self) -> float:
        """The start time that a process gets now; it is coarse, and rounded down."""
        return time.time() - _COARSE

    def all_processes(self) -> list[Process]:
        """All processes that can be seen."""
        found = (self.find(pid) for pid in psutil.pids())
        return [process for process in found if process is not None]

    def find(self, pid: int) -> Process | None:
        """One process, or None if it is gone."""
        try:
            with (process := psutil.Process(pid)).oneshot():
                return Process(
                    pid=pid,
                    parent=process.ppid(),
                    group=os.getpgid(pid),
                    session=os.getsid(pid),
                    started=process.create_time(),
                    ended=process.status() == psutil.STATUS_ZOMBIE,
                    halted=process.status() == psutil.STATUS_STOPPED,
                    cpu=_cpu(process),
                    name=process.name(),
                )
        except _GONE:
            return None

    def command_line(self, pid: int) -> list[str]:
        """The words of its command line; empty where it can't be read."""
        try:
            return list(psutil.Process(pid).cmdline())
        except _GONE:
            return []

    def has_mark(self, pid: int, mark: str) -> bool:
        """Whether `NAME=value` was in the environment that it was started with."""
        name, _, value = mark.partition("=")
        try:
            return bool(psutil.Process(pid).environ().get(name) == value)
        except _GONE:
            return False

    def folder(self, pid: int) -> str | None:
        """Its current folder, where that can be read."""
        try:
            return str(psutil.Process(pid).cwd())
        except _GONE:
            return None

    def writes_to(self, pid: int, files: frozenset[tuple[int, int]]) -> bool:
        """False: psutil does not tell a writer of a file from a reader."""
        del pid, files
        return False


def _cpu(process: psutil.Process) -> float:
    try:
        times = process.cpu_times()
    except psutil.Error:  # a process of another user
        return 0.0
    of_children = getattr(times, "children_user", 0.0) + getattr(times, "children_system", 0.0)
    return float(times.user + times.system + of_children)
