"""Track the processes that a test starts, and end them with the test."""

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rooda.world.process.tree.processes import Process
from support.workspace import ROODA, Running, Workspace, wait_for

# A non-interactive shell starts a background command with SIGINT ignored.
IN_THE_BACKGROUND = ("sh", "-c", '"$@" & echo $! > rooda.pid; wait $!', "script")


@dataclass
class Nursery:
    """The processes of a test: those that it started, and those that wrote a `NAME.pid`."""

    folder: Path
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(
        self, workspace: Workspace, *args: str, before: tuple[str, ...] = ("env",)
    ) -> Running:
        """Start rooda behind another command, such as `nohup` or `sh -c`."""
        process = subprocess.Popen(
            [*before, str(ROODA), *args],
            cwd=workspace.path,
            env=workspace.environ(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="surrogateescape",
        )
        self.started.append(process)
        return Running(process, time.monotonic())

    def pid(self, name: str) -> int:
        """Wait for the file `NAME.pid` and return the pid in it."""
        return int(wait_for(self.folder / f"{name}.pid"))

    def clear(self) -> None:
        """Kill all remaining processes, rooda first so that it starts no more."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
            process.wait()
        for file in self.folder.rglob("*.pid"):
            with contextlib.suppress(ValueError, ProcessLookupError):
                os.kill(int(file.read_text()), signal.SIGKILL)


@contextlib.contextmanager
def frozen_cgroup() -> Iterator[Path]:
    """A cgroup whose members survive SIGKILL while it is frozen; needs root and cgroup v1."""
    group = Path("/sys/fs/cgroup/freezer") / f"rooda-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no freezer cgroup: {error}")
    try:
        yield group
    finally:
        (group / "freezer.state").write_text("THAWED")
        for pid in (group / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        until(lambda: not (group / "cgroup.procs").read_text(), "the frozen processes exit")
        group.rmdir()


def state_of_freezer(pid: int) -> str:
    """The freezer state of the cgroup of a process."""
    found = re.search(r":freezer:(.*)", Path(f"/proc/{pid}/cgroup").read_text())
    assert found is not None
    file = Path("/sys/fs/cgroup/freezer") / found[1].lstrip("/") / "freezer.state"
    return file.read_text() if file.exists() else ""


def started_at(process: Process, started: float) -> Process:
    """A copy of the process with another start time: another process with the same pid."""
    other = copy(process)
    other.started = started
    return other


def until(done: Callable[[], bool], what: str, timeout: float = 60) -> None:
    """Wait until `done` returns true."""
    end = time.monotonic() + timeout
    while not done():
        assert time.monotonic() < end, f"{what}: not within {timeout}s"
        time.sleep(0.005)


def catches(pid: int, number: signal.Signals) -> bool:
    """Whether a process has a handler for a signal (Linux)."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"^SigCgt:\s*([0-9a-f]+)$", status, re.MULTILINE)
    return found is not None and bool(int(found[1], 16) >> (number - 1) & 1)
