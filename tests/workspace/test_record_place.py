"""Which folder has the record: for a new run, and for the commands that read it."""

import os
import shutil
import time
from pathlib import Path

import pytest

from rooda.workspace.lock import Lock, LockHeldError
from rooda.workspace.record_place import find_workspace, workspace_for
from rooda.workspace.work_tree import had_repository


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """The top of a work tree, with the folder `deep/start`."""
    top = tmp_path / "top"
    (top / "deep/start").mkdir(parents=True)
    return repository(top)


def repository(folder: Path) -> Path:
    """Make a folder a repository, as far as its top is concerned."""
    (folder / ".git").mkdir()
    (folder / ".git/HEAD").write_text("ref: refs/heads/main\n")
    return folder


def recorded(folder: Path) -> Path:
    """Give a folder a record."""
    (folder / ".rooda").mkdir()
    (folder / ".rooda/rooda.db").touch()
    return folder


def test_new_record_is_at_the_top_of_the_work_tree(top: Path) -> None:
    for folder in (top, top / "deep", top / "deep/start"):
        assert workspace_for(folder) == top
        assert find_workspace(folder) is None


def test_record_that_exists_in_the_work_tree_is_used(top: Path) -> None:
    recorded(top / "deep")
    assert workspace_for(top / "deep/start") == find_workspace(top / "deep/start") == top / "deep"
    assert workspace_for(top) == top


def test_nested_repository_has_its_own_record_and_reads_the_one_above_until_then(top: Path) -> None:
    recorded(top)
    start = repository(top / "deep/start")
    assert (workspace_for(start), find_workspace(start)) == (start, top)
    recorded(start)
    assert (workspace_for(start), find_workspace(start)) == (start, start)


def test_record_is_found_after_the_repository_is_gone(top: Path) -> None:
    recorded(top)
    shutil.rmtree(top / ".git")
    assert find_workspace(top / "deep/start") == top


def test_new_record_without_a_repository_is_in_the_folder_itself(tmp_path: Path) -> None:
    recorded(tmp_path)
    (tmp_path / "below").mkdir()
    assert workspace_for(tmp_path / "below") == tmp_path / "below"
    assert find_workspace(tmp_path / "below") == tmp_path


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_record_or_repository_of_another_user_in_a_folder_of_all_users_is_ignored(
    tmp_path: Path,
) -> None:
    everyone = tmp_path / "everyone"
    everyone.mkdir(mode=0o1777)
    everyone.chmod(0o1777)
    recorded(repository(everyone))
    mine = everyone / "mine"
    mine.mkdir()
    assert (workspace_for(mine), find_workspace(mine)) == (everyone, everyone)
    os.chown(everyone / ".rooda", 4711, 4711)
    assert find_workspace(mine) is None
    os.chown(everyone / ".git", 4711, 4711)
    assert workspace_for(mine) == mine


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_a_repository_is_older_than_a_later_moment_only(tmp_path: Path, kind: str) -> None:
    before = time.time() - 1
    if kind == "folder":
        repository(tmp_path)
    else:
        (tmp_path / ".git").write_text("gitdir: elsewhere")
    assert not had_repository(tmp_path, before)
    assert had_repository(tmp_path, time.time() + 1)
    assert not had_repository(tmp_path / "without", time.time() + 1)


# -- the lock --------------------------------------------------------------------------------


def excludes(folder: Path) -> bool:
    """Whether the lock of the folder is taken."""
    try:
        Lock(folder).close()
    except LockHeldError:
        return True
    return False


@pytest.mark.parametrize("changed", ["deep/start", "deep"])
def test_lock_holds_in_a_folder_that_became_a_repository(top: Path, changed: str) -> None:
    lock = Lock(top / "deep/start")
    repository(top / changed)
    assert excludes(top / "deep/start")
    assert excludes(top / changed)
    assert excludes(top)
    lock.close()
    assert not excludes(top / "deep/start")


def test_lock_holds_after_the_repository_is_gone(top: Path) -> None:
    lock = Lock(top / "deep/start")
    shutil.rmtree(top / ".git")
    assert excludes(top / "deep/start")
    assert excludes(top)
    lock.close()


def test_lock_holds_after_a_folder_above_became_a_repository(tmp_path: Path) -> None:
    start = tmp_path / "start"
    start.mkdir()
    lock = Lock(start)
    repository(tmp_path)
    assert excludes(start)
    lock.close()
