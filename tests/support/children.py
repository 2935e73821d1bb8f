"""Keep hold of everything that a test starts, so that nothing of it outlives the test."""

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

from rooda.process.tree.processes import Process
from support.workspace import ROODA, Running, Workspace, wait_for

# A script that is not interactive, and so starts its command with SIGINT ignored.
IN_THE_BACKGROUND = ("sh", "-c", '"$@" & echo $! > rooda.pid; wait $!', "script")


@dataclass
class Nursery:
    """The processes of a test: those it started, and those that left a `NAME.pid`."""

    folder: Path
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(
        self, workspace: Workspace, *args: str, before: tuple[str, ...] = ("env",)
    ) -> Running:
        """Start rooda as the last part of another command: `nohup`, `sh -c`."""
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
        """The pid that a process has written to `NAME.pid`, once it has."""
        return int(wait_for(self.folder / f"{name}.pid"))

    def clear(self) -> None:
        """End whatever is still there, rooda first so that it starts nothing more."""
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
    """A group whose frozen members not even SIGKILL ends; needs root and cgroup v1."""
    group = Path("/sys/fs/cgroup/freezer") / f"rooda-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"nothing is immortal here: {error}")
    try:
        yield group
    finally:
        (group / "freezer.state").write_text("THAWED")
        for pid in (group / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        until(lambda: not (group / "cgroup.procs").read_text(), "the end of the immortals")
        group.rmdir()


def state_of_freezer(pid: int) -> str:
    """Of the group that the process is in."""
    found = re.search(r":freezer:(.*)", Path(f"/proc/{pid}/cgroup").read_text())
    assert found is not None
    file = Path("/sys/fs/cgroup/freezer") / found[1].lstrip("/") / "freezer.state"
    return file.read_text() if file.exists() else ""


def started_at(process: Process, started: float) -> Process:
    """Another process with the same pid."""
    other = copy(process)
    other.started = started
    return other


def until(done: Callable[[], bool], what: str, timeout: float = 20) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + timeout
    while not done():
        assert time.monotonic() < end, f"{what}: not within {timeout}s"
        time.sleep(0.005)


def catches(pid: int, number: signal.Signals) -> bool:
    """Whether a process has a handler for a signal (Linux)."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"^SigCgt:\s*([0-9a-f]+)$", status, re.MULTILINE)
    return found is not None and bool(int(found[1], 16) >> (number - 1) & 1)
