"""rooda's own git, which runs outside of the sandbox, runs no program that the tree names."""

import contextlib
import shlex
import subprocess
from pathlib import Path

import pytest

from rooda.world.git.git import GitError
from rooda.world.git.pin import Pin
from rooda.world.git.snapshots.snapshots import Snapshots
from rooda.world.tools import Tools
from support.gitrepo import Repo, repository

pytestmark = pytest.mark.long  # many runs of git

HOOKS = (
    *("pre-commit", "post-commit", "post-checkout", "post-index-change", "reference-transaction"),
    *("pre-push", "post-rewrite", "pre-auto-gc", "push-to-checkout"),
)


class Trap:
    """A program that writes down each of its calls."""

    def __init__(self, folder: Path) -> None:
        self._calls = folder / "calls"
        self.program = folder / "trap"
        self.program.write_text(f'#!/bin/sh\necho "$0 $* in $PWD" >> {self._calls}\ncat\n')
        self.program.chmod(0o755)

    def calls(self) -> list[str]:
        """Return the calls so far, and forget them."""
        found = self._calls.read_text().splitlines() if self._calls.exists() else []
        self._calls.unlink(missing_ok=True)
        return found

    def settings(self, repository: str) -> str:
        """Return a script that puts the program into all settings of a repository."""
        program = shlex.quote(str(self.program))
        keys = (
            *("core.fsmonitor", "core.pager", "core.editor", "core.askPass", "core.sshCommand"),
            *("filter.x.clean", "filter.x.smudge", "filter.x.process", "diff.x.textconv"),
            *("diff.x.command", "diff.external", "merge.x.driver", "gpg.program"),
            *("core.alternateRefsCommand", "credential.helper", "interactive.diffFilter"),
        )
        lines = [f"git -C {repository} config {key} {program}" for key in keys]
        hooks = f"$(git -C {repository} rev-parse --absolute-git-dir)/hooks"
        lines += [f"mkdir -p {hooks}; cp {program} {hooks}/{name}" for name in HOOKS]
        lines += [
            f"git -C {repository} config log.showSignature true",
            f"git -C {repository} config commit.gpgSign true",
            f"git -C {repository} config submodule.recurse true",
            f"git -C {repository} config diff.ignoreSubmodules none",
            f"echo '* filter=x diff=x merge=x' > {repository}/.gitattributes",
            f"touch {repository}/changed",
        ]
        return "\n".join(lines)


@pytest.fixture
def trap(tmp_path: Path) -> Trap:
    return Trap(tmp_path)


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    """A repository with a submodule, and with another repository as an entry of the index."""
    repo = repository(tmp_path / "work")
    repo.write("a.txt", "alpha\n")
    repo.sh(
        "git init -q nest; cd nest; echo n > n; git add n; git commit -qm n; cd ..;"
        "git clone -q nest ../sub; git submodule add -q ../sub sub; git add -A 2>/dev/null;"
        "git commit -qm all"
    )
    return repo


PLANTS = {
    "the repository": ".",
    "a nested repository in the index": "nest",
    "a submodule": "sub",
    "a new repository": "new",
    "a replaced submodule": "sub",
}
BEFORE = {
    "a new repository": "git init -q new; cd new; echo x > x; git add x; git commit -qm x; cd ..",
    "a replaced submodule": "rm -rf sub; cp -r nest sub",
}


def plant(repo: Repo, trap: Trap, where: str) -> None:
    repo.sh(f"{BEFORE.get(where, 'true')}\n{trap.settings(PLANTS[where])}")
    folder = repo.path / PLANTS[where]
    for name in ("a.txt", "n", "x"):
        if (folder / name).exists():
            (folder / name).write_text("changed by the agent\n")
    trap.calls()


def use(repo: Repo, snapshots: Snapshots | None = None) -> None:
    """Do what a run does with git outside, and what `rooda restore` does later."""
    tools = Tools(repo.environ, [repo.path])
    snapshots = snapshots or repo.open()
    for number in ("1", "2"):
        snapshots.take("run", number)
        repo.write("b.txt", number)
        repo.write("nest/n", number)
    snapshots.restore("run", "1", "undo")
    snapshots.forget(["run"])
    if (pin := Pin.of(repo.path, tools)) is not None:
        pin.trouble()
        pin.remote_trouble("origin")
        pin.close()


@pytest.mark.real(rows=3)
@pytest.mark.parametrize("where", PLANTS)
def test_snapshots_run_no_program_of_the_tree(repo: Repo, trap: Trap, where: str) -> None:
    plant(repo, trap, where)
    use(repo)
    assert trap.calls() == []
    # The trap is a real one: plain git runs it.
    for folder, words in ((".", "status"), (".", "add -A"), (PLANTS[where], "status")):
        command = ["git", "-C", folder, *words.split()]
        subprocess.run(command, cwd=repo.path, env=repo.environ, capture_output=True, check=False)
    assert trap.calls() != []


@pytest.mark.real
def test_planted_common_folder_of_git_runs_no_program(repo: Repo, trap: Trap) -> None:
    snapshots = repo.open()
    snapshots.take(None)
    repo.sh(f"git init -q evil\n{trap.settings('evil')}\necho ../evil/.git > .git/commondir")
    trap.calls()
    with contextlib.suppress(GitError):  # the history is gone for git
        use(repo, snapshots)
    assert trap.calls() == []


@pytest.mark.real
def test_folder_without_repository_runs_no_program_of_a_nested_one(
    tmp_path: Path, trap: Trap
) -> None:
    repo = repository(tmp_path / "work")
    repo.sh("rm -rf .git; git init -q nest; cd nest; echo n > n; git add n; git commit -qm n")
    tools = Tools(repo.environ, [repo.path])
    snapshots = Snapshots.open(repo.path, repo.state, tools)
    snapshots.take(None)
    repo.sh(trap.settings("nest"))
    trap.calls()
    repo.write("nest/n", "changed")
    snapshots.take(None)
    assert trap.calls() == []
