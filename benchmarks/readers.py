"""What readers cost a run: with `history` and `show` in a loop beside it, against without."""

import subprocess
import sysconfig
from pathlib import Path

from benchmarks.measure import alternate, report, seconds

LIMIT = 1.25
ITERATIONS = 40

# A user may look that often. Without the pause, two processes would share one core.
_LOOK = 'while :; do "$0" history --json > /dev/null; "$0" show > /dev/null; sleep 0.2; done'


def measure(folder: Path) -> bool:
    agent = folder / "agent"
    agent.write_text("#!/bin/sh\nsleep 0.05\necho working\n")
    agent.chmod(0o755)
    rooda = str(Path(sysconfig.get_path("scripts")) / "rooda")
    command = [rooda, "build", "--ai-cmd", "./agent", "--quiet", "-n", str(ITERATIONS)]

    def with_readers() -> float:
        readers = subprocess.Popen(["sh", "-c", _LOOK, rooda], cwd=folder, stderr=subprocess.PIPE)
        try:
            return seconds(command, folder)
        finally:
            readers.kill()
            readers.communicate()

    ours, theirs = alternate(with_readers, lambda: seconds(command, folder), rounds=5)
    return report("readers: a run beside them / alone", ours, theirs, "s", LIMIT)
