"""What only the user may read stays private in the files that rooda creates."""

import os
import shutil
import stat
from pathlib import Path

import pytest

from support.gitrepo import stored
from support.recorded import SUCCESS, git, versioned
from support.workspace import PROCEDURE, Workspace

pytestmark = pytest.mark.real

AGENT = f"umask 022; echo password > private.txt; chmod 600 private.txt; {SUCCESS}"


def readable_by_others(folder: Path) -> set[Path]:
    """Return the files that other users can read; a private folder hides all files below it."""
    found = set()
    for place, folders, files in os.walk(folder):
        below = Path(place)
        folders[:] = [name for name in folders if (below / name).stat().st_mode & stat.S_IXOTH]
        paths = [below / name for name in files]
        found |= {path for path in paths if path.lstat().st_mode & (stat.S_IROTH | stat.S_IRGRP)}
    return found


def test_run_writes_no_file_that_other_users_can_read(workspace: Workspace) -> None:
    repo = versioned(workspace)
    agent = repo.agent(AGENT)
    before = readable_by_others(repo.path)
    logs = ("--log-file", "run.log", "--session-log", "logs/session.log")
    done = repo.work(agent, *logs)
    assert done.code == 0, done.err
    new = readable_by_others(repo.path) - before
    names = {str(path.relative_to(repo.path)) for path in new}
    assert names == set()
    assert stored(repo.path, "for-each-ref", "refs/rooda"), "there is a snapshot"


def test_restored_files_get_the_modes_that_they_had(workspace: Workspace) -> None:
    repo = versioned(workspace)
    done = repo.work(
        repo.agent(f"umask 022; mkdir new; echo text > new/public.txt; cd new; {AGENT}")
    )
    assert done.code == 0, done.err
    shutil.rmtree(repo.path / "new")
    umask = os.umask(0o022)
    try:
        assert repo.rooda("restore", "1").code == 0
    finally:
        os.umask(umask)
    names = ("new", "new/public.txt", "new/private.txt")
    modes = [stat.S_IMODE((repo.path / name).stat().st_mode) for name in names]
    assert modes == [0o755, 0o644, 0o600]


TOKEN = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz"
VIEWS = (
    *("work --dry-run", "config show", "config show --json", "list --aliases", "info work"),
    *("list --aliases --json", "doctor", "doctor --json", "show", "show --json", "show 1"),
    *("why --json", "history --json", "follow"),
)


@pytest.mark.long
def test_tokens_in_commands_are_shown_in_no_view(workspace: Workspace) -> None:
    command = f"sh -c 'exit 3' {TOKEN} --api-key {TOKEN}"
    aliases = f"ai_cmd_aliases: {{mine: agent {TOKEN}}}"
    workspace.config(f'loop: {{ai_cmd: "{command}"}}\n{aliases}\n{PROCEDURE}')
    done = workspace.rooda("work", "-n", "1", "--log-level", "debug")
    assert done.code == 2, done.err
    for one in (done, *(workspace.rooda(*view.split()) for view in VIEWS)):
        assert TOKEN not in one.out + one.err


def test_untracked_files_that_git_does_not_show_are_not_in_snapshots(workspace: Workspace) -> None:
    repo = versioned(workspace)
    git(repo, "config", "status.showUntrackedFiles", "no")
    secret = repo.write(".ssh/id", "a private key")
    work = "echo more >> kept.txt; echo 1 > new.txt; echo 2 > added.txt; git add added.txt"
    done = repo.work(repo.agent(f"{work}; {SUCCESS}"))
    assert done.code == 0, done.err
    refs = stored(repo.path, "for-each-ref", "--format=%(refname)", "refs/rooda").split()
    files = {ref: stored(repo.path, "ls-tree", "-r", "--name-only", ref).split() for ref in refs}
    assert refs
    assert not any(".ssh/id" in names or "new.txt" in names for names in files.values())
    assert any("added.txt" in names for names in files.values())
    done = repo.rooda("restore", "0")
    assert done.code == 0, done.err
    assert secret.read_text() == "a private key"
    assert (repo.path / "kept.txt").read_text() == "of the user\n"
    assert not (repo.path / "added.txt").exists()
    assert (repo.path / "new.txt").exists()
