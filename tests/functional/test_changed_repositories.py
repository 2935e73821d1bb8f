"""An agent makes, moves or deletes repositories: rooda still finds the run and its record."""

import json
import subprocess
from collections.abc import Iterator

import pytest

from support.children import Nursery
from support.workspace import PROCEDURE, Workspace, wait_for

pytestmark = pytest.mark.real

# What an agent does in `top/deep/start`, where its run was started.
CHANGES = {
    "repository in the start folder": "git init -q",
    "repository between top and start folder": "git init -q ..",
    "repository of another work tree": "git init -q --separate-git-dir=../../../separate",
    "repository deleted": "rm -rf ../../.git",
    "repository moved": "mv ../../.git ../../../moved",
    "start folder made again": 'here=$PWD; cd ..; rm -rf start; git init -q start; cd "$here"',
}
CHANGES_WITHOUT_GIT = {
    "repository in the start folder": "git init -q",
    "repository above the start folder": "git init -q ..",
    "repository below the start folder": "git init -q below",
}


@pytest.fixture
def nursery(workspace: Workspace) -> Iterator[Nursery]:
    workspace.global_config(PROCEDURE)
    found = Nursery(workspace.path.parent)
    yield found
    found.clear()


def in_folder(workspace: Workspace, name: str) -> Workspace:
    """The same user in a folder below the workspace."""
    path = workspace.path / name
    path.mkdir(parents=True, exist_ok=True)
    return Workspace(path, workspace.home)


def check(start: Workspace, nursery: Nursery, change: str, *others: Workspace) -> None:
    """Let an agent make the change, and look for its run from the start folder and others."""
    begun = nursery.folder / "begun"
    tools = Workspace(nursery.folder / "tools", start.home)
    agent = tools.agent(f"{change}\necho > {begun}; exec sleep 3600")
    running = nursery.start(start, "work", "--ai-cmd", agent)
    wait_for(begun)
    below = in_folder(start, "below")
    for folder in (start, below, *others):
        shown = json.loads(folder.rooda("show", "--json").out)
        assert shown["status"] == "running"
    for folder in (start, *others):
        refusal = folder.rooda("work", "--ai-cmd", "true", "-n", "1")
        assert refusal.code == 1
        assert f"work, pid {running.process.pid}" in refusal.err
    stopped = below.rooda("stop", "--now")
    assert (stopped.code, stopped.out) == (0, f"Run {shown['run']} has ended: interrupted.\n")
    assert running.finish().code == 130
    for folder in (start, below, *others):
        assert json.loads(folder.rooda("history", "--json").out)[0]["run"] == shown["run"]
    resumed = start.rooda("resume", "--ai-cmd", "true", "-n", "1")
    assert resumed.code == 2, resumed.err
    assert f"Resuming run {shown['run']}" in resumed.err
    refs = ["git", "-C", str(start.path), "for-each-ref"]
    assert subprocess.run(refs, capture_output=True, check=False).stdout == b"", (
        "not its repository"
    )


@pytest.mark.long
@pytest.mark.parametrize("change", CHANGES)
def test_run_is_found_after_its_agent_changed_the_repositories(
    workspace: Workspace, nursery: Nursery, change: str
) -> None:
    subprocess.run(["git", "init", "-q", str(workspace.path)], check=True)
    others = [in_folder(workspace, name) for name in ("other", "deep", "")]
    check(in_folder(workspace, "deep/start"), nursery, CHANGES[change], *others)


@pytest.mark.long
@pytest.mark.parametrize("change", CHANGES_WITHOUT_GIT)
def test_run_without_a_repository_is_found_after_its_agent_made_one(
    workspace: Workspace, nursery: Nursery, change: str
) -> None:
    check(in_folder(workspace, "deep/start"), nursery, CHANGES_WITHOUT_GIT[change])


@pytest.mark.real
def test_notes_and_readers_in_a_repository_that_the_agent_made_are_those_of_its_run(
    workspace: Workspace,
) -> None:
    workspace.global_config(PROCEDURE)
    older, made = in_folder(workspace, "older"), in_folder(workspace, "made")
    for folder in (workspace.path, older.path):
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
    ran = workspace.rooda("work", "--ai-cmd", workspace.agent("git init -q made"), "-n", "1")
    assert ran.code == 2, ran.err
    made.rooda("tell", "of the run")
    older.rooda("tell", "of the older one")
    assert "of the run" in workspace.rooda("tell", "--list").out
    assert "of the older one" not in workspace.rooda("tell", "--list").out
    assert "of the older one" in older.rooda("tell", "--list").out
    (run,) = (one["run"] for one in json.loads(workspace.rooda("history", "--json").out))
    exported = made.rooda("record", "export", run)
    assert run in exported.out, exported.err


@pytest.mark.long
def test_repository_that_was_there_before_the_run_is_not_a_part_of_it(
    workspace: Workspace, nursery: Nursery
) -> None:
    nested = in_folder(workspace, "nested")
    for folder in (workspace, nested):
        subprocess.run(["git", "init", "-q", str(folder.path)], check=True)
    begun = nursery.folder / "begun"
    tools = Workspace(nursery.folder / "tools", workspace.home)
    agent = tools.agent(f"echo > {begun}; exec sleep 3600")
    running = nursery.start(workspace, "work", "--ai-cmd", agent)
    wait_for(begun)
    refused = nested.rooda("stop", "--now")
    assert refused.code == 1
    assert f"one is at work in {workspace.path}, the work tree around it" in refused.err
    assert workspace.rooda("stop", "--now").code == 0
    assert running.finish().code == 130
    for words in (("resume",), ("work", "--resume"), ("restore", "0")):
        refused = nested.rooda(*words)
        assert refused.code == 1
        assert f"is one of {workspace.path}, the work tree around {nested.path}" in refused.err
    assert nested.rooda("work", "--ai-cmd", "true", "-n", "1").code == 2
    assert len(json.loads(nested.rooda("history", "--json").out)) == 1
