"""CPU time of rooda and its warden over a minute in which the agent is silent."""

import os
import subprocess
import sysconfig
import time
from pathlib import Path

SECONDS = 60
LIMIT = 0.05

_TICKS = os.sysconf("SC_CLK_TCK")


def measure(folder: Path) -> bool:
    agent = folder / "agent"
    agent.write_text("#!/bin/sh\necho $PPID > warden\nexec sleep 1000\n")
    agent.chmod(0o755)
    rooda = str(Path(sysconfig.get_path("scripts")) / "rooda")
    results = []
    for capture in ("file", "pipe"):
        command = [rooda, "build", "--ai-cmd", "./agent", "--quiet", "--capture", capture]
        run = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL)
        try:
            used = _used(run.pid, folder / "warden")
        finally:
            run.terminate()
            run.wait()
        word = "ok" if used < LIMIT else "TOO MUCH"
        print(f"silent minute by {capture}: {used:.3f} s of CPU (under {LIMIT}) {word}")
        results.append(used < LIMIT)
    return all(results)


def _used(rooda: int, marker: Path) -> float:
    latest = time.monotonic() + 30
    while not marker.exists() or not marker.read_text().strip():
        assert time.monotonic() < latest, "the agent was not started"
        time.sleep(0.05)
    time.sleep(1)
    pids = (rooda, int(marker.read_text()))
    marker.unlink()
    before = sum(map(_cpu, pids))
    time.sleep(SECONDS)
    return sum(map(_cpu, pids)) - before


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
