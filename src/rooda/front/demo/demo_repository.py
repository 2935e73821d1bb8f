"""The repository of the demo: tasks, code with a test, a config with the scripted agent."""

import contextlib
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rooda.front.demo import scripted_agent
from rooda.front.demo.scripted_agent import TASKS, test_of
from rooda.world.git.git import GitError
from rooda.world.process.first_moment import own_module
from rooda.world.state.home import VARIABLE
from rooda.world.tools import Command, Tools

_GRACE = 1.0  # seconds between SIGTERM and SIGKILL
_CONFIG = """\
loop:
  ai_cmd: {agent}
  verify:
    command: {check}
  git:
    commit: true
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
      - content: Do the task and tick its box. SUCCESS means that no box is open.
      - path: builtin:fragments/signals.md
"""


def make(folder: Path, tools: Tools) -> None:
    """Create the repository in an empty folder. Raises GitError if git fails or is stopped."""
    agent = _quoted([sys.executable, "-I", scripted_agent.__file__])
    check = _quoted([sys.executable, "-E", "-B", "-m", "unittest"])
    boxes = "".join(f"- [ ] {name}\n" for name in TASKS)
    files = {
        "rooda-config.yml": _CONFIG.format(agent=agent, check=check),
        "TASKS.md": f"# Tasks\n\n{boxes}",
        "greet.py": 'def greet(name):\n    return f"Hello, {name}!"\n',
        "test_greet.py": test_of("greet", '"Ada"', "Hello, Ada!"),
    }
    for name, content in files.items():
        (folder / name).write_text(content, encoding="utf-8")
    make_repository(folder, tools, "greet, and a list of tasks")


def make_repository(folder: Path, tools: Tools, message: str) -> None:
    """Commit the files of a folder as the first commit of a repository. Raises GitError."""
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
    _git(folder, tools, "commit", "-q", "-m", message)


def _quoted(command: Sequence[str]) -> str:
    """Return a command as a string for YAML."""
    return "'" + shlex.join(command).replace("'", "''") + "'"


def look(folder: Path, *words: str) -> int:
    """Run a command of rooda about the run, on the user's terminal; return its exit code."""
    environ = environment(os.environ) | {"PAGER": "cat", "GIT_PAGER": "cat"}
    return subprocess.run(own_command(*words), cwd=folder, env=environ, check=False).returncode


def own_command(*words: str) -> list[str]:
    """Return the command line of a command of this rooda."""
    return own_module("rooda", *words)


def _git(folder: Path, tools: Tools, *words: str) -> None:
    command = Command(
        what="",
        argv=(tools.program("git"), "-C", str(folder), *words),
        cwd=folder,
        environ=environment(os.environ),
        kill_grace=_GRACE,
    )
    done = tools.run(command)
    if not done.passed:
        said = done.output.decode("utf-8", "replace")
        raise GitError(said.strip() or done.error)


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without variables that lead git or rooda out of the demo's folder."""
    dropped = ("GIT_", "ROODA_")
    return {
        name: value
        for name, value in environ.items()
        if name == VARIABLE or not name.startswith(dropped)
    }


@contextlib.contextmanager
def passing_state(folder: Path) -> Iterator[None]:
    """Keep the record of the demo in a folder that is deleted with it."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = str(folder)
    try:
        yield
    finally:
        del os.environ[VARIABLE]
        if before is not None:
            os.environ[VARIABLE] = before
