"""The repository of the demo: a task list, a config, and the scripted agent as AI command."""

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from rooda.demo.scripted_agent import TASKS
from rooda.workspace.git import GitError
from rooda.workspace.tools import Command, Tools

_GRACE = 1.0  # seconds between SIGTERM and SIGKILL
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


def make(folder: Path, tools: Tools) -> None:
    """Create the repository in an empty folder. Raises GitError if git fails or is stopped."""
    command = shlex.join([sys.executable, "-m", "rooda.demo.scripted_agent"])
    config = _CONFIG.format(command=f"'{command.replace(chr(39), chr(39) * 2)}'")
    (folder / "rooda-config.yml").write_text(config, encoding="utf-8")
    boxes = "".join(f"- [ ] {name}\n" for name in TASKS)
    (folder / "TASKS.md").write_text(f"# Tasks\n\n{boxes}", encoding="utf-8")
    _git(folder, tools, "init", "-q", "-b", "main")
    # The demo must work if git has no user name and email yet.
    for key, value in (
        ("user.name", "rooda demo"),
        ("user.email", "demo@localhost"),
        ("commit.gpgsign", "false"),
        ("core.hooksPath", "/dev/null"),
    ):
        _git(folder, tools, "config", key, value)
    _git(folder, tools, "add", "-A")
    _git(folder, tools, "commit", "-q", "-m", "A list of tasks")


def history(folder: Path, tools: Tools) -> str:
    """Return the commits of the run, oldest first."""
    return _git(folder, tools, "log", "--reverse", "--format=  %h %s")


def _git(folder: Path, tools: Tools, *words: str) -> str:
    command = Command(
        what="",
        argv=(tools.program("git"), "-C", str(folder), *words),
        cwd=folder,
        environ=environment(os.environ),
        kill_grace=_GRACE,
    )
    done = tools.run(command)
    said = done.output.decode("utf-8", "replace")
    if not done.passed:
        raise GitError(said.strip() or done.error)
    return said


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without variables that lead git or rooda out of the demo's folder."""
    dropped = ("GIT_", "ROODA_")
    return {name: value for name, value in environ.items() if not name.startswith(dropped)}
