"""`rooda --version` against the bare interpreter."""

import sys
import sysconfig
from pathlib import Path

from benchmarks.measure import alternate, report, seconds

LIMIT = 5.0


def measure(folder: Path) -> bool:
    rooda = str(Path(sysconfig.get_path("scripts")) / "rooda")
    ours, theirs = alternate(
        lambda: seconds([rooda, "--version"], folder),
        lambda: seconds([sys.executable, "-c", "pass"], folder),
        rounds=25,
    )
    return report(
        "start-up: rooda --version / python -c pass", ours * 1e3, theirs * 1e3, "ms", LIMIT
    )
