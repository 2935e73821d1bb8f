"""A night of twelve runs with careless agents leaves the user's repository as it was."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from rooda.fleet.run_model import FleetTask, RunState
from rooda.fleet.slot.slot_clone import PUSH_NOWHERE
from support.fleet import Fleet
from support.fleetwork import changes_since, fingerprint
from support.gitrepo import Repo

# What an agent does in its slot before its first line of work.
CARELESS = {
    "push": "git push; git push --all; git push --tags; git push --force origin HEAD:main",
    "mirror": "git tag mine; git push --mirror; git push origin :main; git push -u origin HEAD",
    "gc": "git gc --prune=now --aggressive; git reflog expire --expire=now --all; git repack -adF",
    "chmod": "chmod -R a-w,a+x . .git; chmod 000 README .git/config; chmod -R 777 .git/objects",
    "no-git": "rm -rf .git",
    "new-git": "rm -rf .git; git init -q; git add -A; git commit -qm mine",
    "stash": "echo dirty >> README; git stash; git stash apply; git stash clear",
    "worktree": "git worktree add ../elsewhere; git worktree add inside; git submodule add ./ sub",
    "branches": "git checkout -B main; git branch -D rooda/branches; git reset --hard HEAD~1",
    "config": "git config core.bare true; git config core.hooksPath x; git config user.name Evil",
    "clean": "git clean -xdff; rm -rf -- *; git update-index --assume-unchanged README",
    "rewrite": "git commit -q --amend -m mine --allow-empty; git fetch; git remote rm origin",
}

DESTRUCTIVE = {"no-git", "new-git"}  # in every new clone, so no iteration can be published


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path, f"sqlite:///{tmp_path}/fleet.sqlite")
    yield fleet
    fleet.close()


def in_the_middle_of_work(fleet: Fleet) -> Repo:
    """Return the user's repository with everything that a person may have there."""
    repo = Repo(fleet.repo, fleet.environ())
    repo.write(".gitignore", "*.log\n.env\n")
    repo.git("add", ".gitignore")
    repo.git("commit", "-qm", "second")
    repo.write("README", "stashed\n")
    repo.git("stash", "-q")
    repo.write("staged.txt", "staged\n")
    repo.git("add", "staged.txt")
    repo.git("branch", "other")
    repo.git("gc", "-q")
    repo.git("tag", "v1")
    repo.git("remote", "add", "origin", "https://example.org/never.git")
    repo.write("README", "dirty\n")
    repo.write("untracked.txt", "mine\n").chmod(0o640)
    repo.write("debug.log", "ignored\n")
    repo.write(".env", "KEY=hush\n").chmod(0o600)
    for name in ("pre-receive", "post-receive", "update", "reference-transaction", "post-update"):
        hook = repo.write(f".git/hooks/{name}", f"#!/bin/sh\ntouch '{fleet.folder}/HOOK-RAN'\n")
        hook.chmod(0o755)
    return repo


def modes_of_folders(top: Path) -> dict[str, int]:
    return {folder: Path(folder).stat().st_mode for folder, _, _ in os.walk(top)}


def refs_of(fleet: Fleet) -> dict[str, str]:
    lines = fleet.git("for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    return dict(line.split(" ") for line in lines)


@pytest.mark.long
@pytest.mark.timeout(400)
def test_the_repository_of_the_user_gets_branches_and_nothing_else(
    fleet: Fleet,
) -> None:
    repo = in_the_middle_of_work(fleet)
    before, refs, modes = fingerprint(repo), refs_of(fleet), modes_of_folders(fleet.repo)
    fleet.batch = type(fleet.batch)("batch", fleet.git("rev-parse", "HEAD"))
    careless = "[ -e work.txt ] || sed -n 's/^do: //p' ../task.md | sh >> ../careless.log 2>&1"
    tasks = [FleetTask(name, text=f"do: {command}") for name, command in CARELESS.items()]
    fleet.add(tasks, fleet.agent(2, careless))
    for number in (1, 2, 3):
        fleet.start_slot(number)
    fleet.until_ended(150)
    runs = {run.run: run for run in fleet.store.runs(fleet.project)}
    said = [path.read_text() for path in fleet.folder.glob("cache/rooda/fleet/*/*/careless.log")]
    assert PUSH_NOWHERE in "".join(said)  # the agents did try
    assert changes_since(before, repo) == []
    after = modes_of_folders(fleet.repo)
    assert {folder: after.get(folder) for folder in modes} == modes
    assert not (fleet.folder / "HOOK-RAN").exists()
    now = refs_of(fleet)
    assert {ref: now.get(ref) for ref in refs} == refs
    added = now.keys() - refs.keys()
    assert added == {f"refs/heads/rooda/{name}" for name in CARELESS.keys() - DESTRUCTIVE}
    fleet.git("fsck", "--strict", "--no-dangling")
    assert {name: run.state for name, run in runs.items()} == {
        name: RunState.FAILED if name in DESTRUCTIVE else RunState.SUCCESS for name in CARELESS
    }
    for name in DESTRUCTIVE:
        assert "work/.git was deleted or replaced during the iteration, 3 times in a row" in (
            runs[name].reason
        )
        subjects = fleet.records("log", "--first-parent", "--format=%s", f"refs/rooda/fleet/{name}")
        kinds = [line.split()[0] for line in subjects.splitlines()]
        assert kinds == ["ended", *["claim"] * 3, "added"], "the user pays three times, not more"
    for name in CARELESS.keys() - DESTRUCTIVE:
        assert fleet.git("show", f"rooda/{name}:work.txt").splitlines() == ["line"] * 2
    assert fleet.git("stash", "list", "--format=%gs").startswith("WIP on main")
