"""`rooda --version`, and the CPU time of a run of one iteration, against the bare interpreter."""

import sys
import sysconfig
from pathlib import Path

from benchmarks.measure import alternate, cpu_seconds, report, seconds

LIMIT = 5.0
RUN_LIMIT = 25.0  # it loads everything, and starts the warden, the agent, and git seven times


def measure(folder: Path) -> bool:
    rooda = str(Path(sysconfig.get_path("scripts")) / "rooda")
    bare = [sys.executable, "-c", "pass"]
    ours, theirs = alternate(
        lambda: seconds([rooda, "--version"], folder),
        lambda: seconds(bare, folder),
        rounds=25,
    )
    name = "start-up: rooda --version / python -c pass"
    is_quick = report(name, ours * 1e3, theirs * 1e3, "ms", LIMIT)
    run = [rooda, "build", "--ai-cmd", "true", "--quiet", "-n", "1"]
    ours, theirs = alternate(
        lambda: cpu_seconds(run, folder), lambda: cpu_seconds(bare, folder), rounds=15
    )
    name = "CPU of a run of one iteration / python -c pass"
    return report(name, ours * 1e3, theirs * 1e3, "ms", RUN_LIMIT) and is_quick
