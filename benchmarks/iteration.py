"""Time per iteration with an agent that exits at once, against a bare bash loop that also greps.

Start-up is left out on both sides by taking the difference of a long and a short run.
"""

import subprocess
import sysconfig
from pathlib import Path

from benchmarks.measure import alternate, report, seconds

LIMIT = 1.5
SHORT, LONG = 5, 205

_BASH = """\
i=0
while [ $i -lt "$1" ]; do
  cat PROMPT | ./agent | tee out
  grep '<promise>SUCCESS</promise>' out
  i=$((i + 1))
done
"""


def measure(folder: Path) -> bool:
    agent = folder / "agent"
    agent.write_text("#!/bin/sh\necho working\n")
    agent.chmod(0o755)
    (folder / "loop.sh").write_text(_BASH)
    rooda = str(Path(sysconfig.get_path("scripts")) / "rooda")
    command = [rooda, "build", "--ai-cmd", "./agent", "--quiet"]
    shown = [rooda, "build", "--ai-cmd", "./agent", "--dry-run"]
    (folder / "PROMPT").write_text(_prompt(shown, folder))

    def per_iteration(words: list[str]) -> float:
        short, long = (seconds([*words, str(n)], folder) for n in (SHORT, LONG))
        return (long - short) / (LONG - SHORT)

    ours, theirs = alternate(
        lambda: per_iteration([*command, "-n"]),
        lambda: per_iteration(["bash", "loop.sh"]),
        rounds=5,
    )
    name = "iteration: rooda / bash loop with cat, tee and grep"
    return report(name, ours * 1e3, theirs * 1e3, "ms", LIMIT)


def _prompt(command: list[str], folder: Path) -> str:
    shown = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
    return shown.split("─" * 40)[1]
