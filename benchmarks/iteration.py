"""An iteration with an agent that exits at once, against a bare bash loop that also greps.

Once the time, and once the CPU time of all processes: in a folder, in a repository, and in a
repository where the agent changes a file each time. Start-up is left out on both sides by taking
the difference of a long and a short run.
"""

import subprocess
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.measure import alternate, cpu_seconds, report, seconds

LIMIT = 1.5
# Bash starts four processes. rooda starts one, and after a change also git six times.
CPU_LIMIT, CPU_LIMIT_CHANGED = 1.2, 6.0
SHORT, LONG = 5, 205

_BUILD = ("build", "--ai-cmd")
_AGENT = "#!/bin/sh\necho working\n"
_WORKER = "#!/bin/sh\necho working\necho $$ > changed\n"
_BASH = """\
i=0
while [ $i -lt "$2" ]; do
  cat PROMPT | "$1" | tee out
  grep '<promise>SUCCESS</promise>' out
  i=$((i + 1))
done
"""


def measure(folder: Path) -> bool:
    plain, repository = folder / "plain", folder / "repository"
    for one in (plain, repository):
        _fill(one)
    git = ("git", "-c", "user.name=bench", "-c", "user.email=bench@localhost")
    for arguments in (["init"], ["add", "."], ["commit", "-m", "all"]):
        subprocess.run([*git, *arguments], cwd=repository, check=True, capture_output=True)
    results = [
        _compare("iteration", seconds, "./agent", plain, LIMIT),
        _compare("CPU of an iteration", cpu_seconds, "./agent", plain, CPU_LIMIT),
        _compare("the same in a repository", cpu_seconds, "./agent", repository, CPU_LIMIT),
        _compare("... with a change", cpu_seconds, "./worker", repository, CPU_LIMIT_CHANGED),
    ]
    return all(results)


def _fill(folder: Path) -> None:
    folder.mkdir()
    for name, script in (("agent", _AGENT), ("worker", _WORKER)):
        (folder / name).write_text(script)
        (folder / name).chmod(0o755)
    (folder / "loop.sh").write_text(_BASH)
    (folder / ".gitignore").write_text("out\nPROMPT\n")
    (folder / "PROMPT").write_text(_prompt([_rooda(), *_BUILD, "./agent", "--dry-run"], folder))


def _compare(
    name: str,
    cost: Callable[[Sequence[str], Path], float],
    agent: str,
    folder: Path,
    limit: float,
) -> bool:
    def per_iteration(*words: str) -> float:
        short, long = (cost([*words, str(n)], folder) for n in (SHORT, LONG))
        return (long - short) / (LONG - SHORT)

    ours, theirs = alternate(
        lambda: per_iteration(_rooda(), *_BUILD, agent, "--quiet", "-n"),
        lambda: per_iteration("bash", "loop.sh", agent),
        rounds=5,
    )
    name = f"{name}: rooda / bash loop with cat, tee and grep"
    return report(name, ours * 1e3, theirs * 1e3, "ms", limit)


def _rooda() -> str:
    return str(Path(sysconfig.get_path("scripts")) / "rooda")


def _prompt(command: list[str], folder: Path) -> str:
    shown = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
    return shown.split("─" * 40)[1]
