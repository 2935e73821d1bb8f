"""What a snapshot costs in a repository of 50,000 files, against the user's own `git status`.

rooda walks the tree itself; `git status` reads the same folders with several threads.
"""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import alternate, report, seconds
from rooda.world.git.snapshots.snapshots import Snapshots
from rooda.world.state.folder import StateFolder
from rooda.world.tools import Tools

SAME, CHANGED = 4.0, 6.0
FOLDERS, FILES = 100, 500
ROUNDS = 15

_STATUS = ["git", "status", "--porcelain"]


def measure(folder: Path) -> bool:
    repository = folder / "repository"
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    _fill(repository, environ)
    snapshots = Snapshots.open(repository, StateFolder(folder / "state"), Tools(environ))
    count = 0

    def take() -> float:
        nonlocal count
        began = time.perf_counter()
        snapshots.take("bench", str(count))
        count += 1
        return time.perf_counter() - began

    def change_and_take() -> float:
        (repository / "f7" / "7").write_text(f"changed for the {count}th time\n")
        return take()

    print(f"snapshots: the first one of a repository takes {take() * 1e3:.0f} ms")
    take()
    cases = (("nothing changed", take, SAME), ("one file changed", change_and_take, CHANGED))
    results = [_compare(what, ours, repository, limit) for what, ours, limit in cases]
    return all(results)


def _compare(what: str, ours: Callable[[], float], repository: Path, limit: float) -> bool:
    name = f"snapshot of {FOLDERS * FILES:,} files, {what} / git status"
    mine, theirs = alternate(ours, lambda: seconds(_STATUS, repository), ROUNDS)
    return report(name, mine * 1e3, theirs * 1e3, "ms", limit)


def _fill(repository: Path, environ: dict[str, str]) -> None:
    for number in range(FOLDERS):
        folder = repository / f"f{number}"
        folder.mkdir(parents=True)
        for file in range(FILES):
            (folder / str(file)).write_text(f"{number} {file}\n")
    identity = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")
    for arguments in (["init"], ["add", "."], [*identity, "commit", "-m", "all"], ["status"]):
        command = ["git", *arguments]
        subprocess.run(command, cwd=repository, env=environ, check=True, capture_output=True)
