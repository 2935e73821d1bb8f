"""The repository of the demo: a task list, a config, and the scripted agent as AI command."""

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from rooda.demo.scripted_agent import TASKS

_CONFIG = """\
loop:
  ai_cmd: {command}
procedures:
  tasks:
    description: Do the tasks in TASKS.md, one per iteration
    observe:
      - path: builtin:fragments/announce.md
      - content: Read TASKS.md and the existing files.
    orient:
      - content: Which tasks are open? What can you use from the finished tasks?
    decide:
      - content: Choose the first open task.
    act:
      - content: Do the task, tick its box, commit. SUCCESS means that no box is open.
      - path: builtin:fragments/signals.md
"""


def make(folder: Path) -> None:
    """Create the repository in an empty folder."""
    command = shlex.join([sys.executable, "-m", "rooda.demo.scripted_agent"])
    config = _CONFIG.format(command=f"'{command.replace(chr(39), chr(39) * 2)}'")
    (folder / "rooda-config.yml").write_text(config, encoding="utf-8")
    boxes = "".join(f"- [ ] {name}\n" for name in TASKS)
    (folder / "TASKS.md").write_text(f"# Tasks\n\n{boxes}", encoding="utf-8")
    _git(folder, "init", "-q", "-b", "main")
    # The demo must work if git has no user name and email yet.
    for key, value in (
        ("user.name", "rooda demo"),
        ("user.email", "demo@localhost"),
        ("commit.gpgsign", "false"),
        ("core.hooksPath", "/dev/null"),
    ):
        _git(folder, "config", key, value)
    _git(folder, "add", "-A")
    _git(folder, "commit", "-q", "-m", "A list of tasks")


def history(folder: Path) -> str:
    """Return the commits of the run, oldest first."""
    return _git(folder, "log", "--reverse", "--format=  %h %s")


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *words],
        check=True,
        capture_output=True,
        text=True,
        env=environment(os.environ),
        start_new_session=True,  # Ctrl+C reaches only rooda, which ends the demo cleanly
    )
    return done.stdout


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without variables that lead git or rooda out of the demo's folder."""
    dropped = ("GIT_", "ROODA_")
    return {name: value for name, value in environ.items() if not name.startswith(dropped)}
