"""Ask the installed command what is in the record of a workspace."""

import json
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.finished import Finished
from support.workspace import PROCEDURE, Workspace

SUCCESS = "echo '<promise>SUCCESS</promise>'"
HANGS = "echo $$ > agent.pid; exec sleep 60"
_NAMES = "[user]\n    name = Somebody\n    email = somebody@example.org\n"
_CALM = "[init]\n    defaultBranch = main\n[advice]\n    detachedHead = false\n"


def versioned(workspace: Workspace) -> Workspace:
    """The same as a git repository with one commit; what agents are made of is ignored."""
    (workspace.home / ".gitconfig").write_text(_NAMES + _CALM)
    workspace.config(PROCEDURE)
    workspace.write(".gitignore", "agent.*\nstarts\n*.pid\ngo\n")
    workspace.write("kept.txt", "of the user\n")
    git(workspace, "init", "-q")
    git(workspace, "add", "-A")
    git(workspace, "commit", "-qm", "the first")
    return workspace


def git(workspace: Workspace, *arguments: str) -> str:
    """What the user's git prints."""
    done = subprocess.run(
        ["git", *arguments],
        cwd=workspace.path,
        env=workspace.environ(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip("\n")


def within(workspace: Workspace, name: str) -> Workspace:
    """The same user in a folder of the workspace."""
    folder = workspace.path / name
    folder.mkdir(parents=True, exist_ok=True)
    return Workspace(folder, workspace.home, workspace.env)


def asked(rooda: Callable[..., Finished], *words: str) -> Any:
    """What a reading command says to programs."""
    done = rooda(*words, "--json")
    assert done.code == 0, done.err
    return json.loads(done.out)


def statuses(run: dict[str, Any]) -> list[tuple[int, str]]:
    """The number and the status of each iteration of a run."""
    return [(one["number"], one["status"]) for one in run["iterations"]]


def refused(done: Finished, *words: str) -> None:
    """One message that says it all, and the exit code of a mistake."""
    assert done.code == 1, done.err
    assert not done.out
    assert done.err.count("Error:") == 1, done.err
    assert "Internal error" not in done.err, done.err
    assert "Traceback" not in done.err, done.err
    for word in words:
        assert word in done.err, (word, done.err)


def quoted(path: Path) -> str:
    """A path for a script."""
    return shlex.quote(str(path))
