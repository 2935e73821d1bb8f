"""Finds processes that an agent of the self-test, or of the kill matrix, has left behind."""

import contextlib
import fcntl
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

_MARK = "ROODA_RUN"
_PROC = Path("/proc")


def survivors(folder: Path) -> list[str]:
    """The running processes of an agent of this folder, found by pid, mark, cwd and lock."""
    found = [f"{why}: pid {pid}" for pid, why in (*_recorded(folder), *_found(folder))]
    return found if _is_free(folder / "tree.lock") else [*found, "a process holds tree.lock"]


def end_all(folder: Path, patience: float = 10) -> None:
    """Kill all processes of the agent, to clean up after a test or a trial."""
    (folder / "stop").write_text("now")
    end = time.monotonic() + patience
    while survivors(folder) and time.monotonic() < end:
        for pid, _ in (*_recorded(folder), *_found(folder)):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def record(folder: Path, name: str) -> tuple[int, int]:
    """Return pid and start time of a process that the agent has recorded."""
    pid, started = (folder / f"{name}.pid").read_text().split()
    return int(pid), int(started)


def is_alive(pid: int, started: int) -> bool:
    """Whether this process is running: not a zombie, and no later process with the same pid."""
    if not _PROC.joinpath("self").exists():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 0)
            return True
        return False
    fields = _stat(pid)
    return bool(fields) and fields[0] not in "ZX" and int(fields[19]) == started


def _recorded(folder: Path) -> Iterator[tuple[int, str]]:
    for file in folder.glob("*.pid"):
        pid, started = record(folder, file.stem)
        if is_alive(pid, started):
            yield pid, file.stem


def _is_free(lock: Path) -> bool:
    """Whether all processes that inherited the lock are gone: no fork can outrun this check."""
    try:
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return True
    except BlockingIOError:
        return False
    return True


def _found(folder: Path) -> Iterator[tuple[int, str]]:
    """All processes with the mark of the run, or with their cwd in the folder (Linux)."""
    mark = folder / "mark"
    wanted = os.fsencode(f"{_MARK}={mark.read_text()}") if mark.exists() else None
    pids = [int(file.name) for file in _PROC.glob("[0-9]*")]
    for pid in pids:
        if pid == os.getpid() or (_stat(pid) or "Z")[0] in "ZX":
            continue
        with contextlib.suppress(OSError):
            if wanted in (_PROC / str(pid) / "environ").read_bytes().split(b"\0"):
                yield pid, "has the mark of the run"
                continue
            if (_PROC / str(pid) / "cwd").readlink().is_relative_to(folder.resolve()):
                yield pid, "is in the folder"


def _stat(pid: int) -> list[str]:
    try:
        return (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
