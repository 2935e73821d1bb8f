"""Which folder has the record: for a new run, and for the commands that read it."""

import errno
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from msgspec.structs import asdict, replace

from rooda.world.git.work_tree import had_repository
from rooda.world.state.folder import make_state_folder
from rooda.world.state.home import NoStateHomeError, state_folder_at
from rooda.world.state.lock import Lock, LockHeldError
from rooda.world.state.record_place import (
    RecordPlace,
    find_place,
    fleet_state,
    known_places,
    note_tree,
    old_database,
    place_for,
    recorded_identity,
    take_over_database,
)
from support.states import record_at, remember, state_of

# The state folder of a fleet, and the one look for the database of version 0.1.


ENVIRON = {"ROODA_STATE_HOME": "/state"}


@pytest.fixture
def git_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "tree" / ".git"
    (folder / "rooda").mkdir(parents=True)
    return folder


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "state" / "tree-1"


def test_fleet_has_the_state_folder_of_the_main_work_tree() -> None:
    home = Path("/state")
    assert fleet_state(Path("/shop/.git"), ENVIRON) == state_folder_at(home, Path("/shop"))
    bare = Path("/srv/shop.git")
    assert fleet_state(bare, ENVIRON) == state_folder_at(home, bare)
    with pytest.raises(NoStateHomeError):
        fleet_state(bare, {})


def test_database_of_version_0_1_moves_once(git_dir: Path, state: Path) -> None:
    for part in ("", "-wal"):
        (git_dir / f"rooda/fleet.sqlite{part}").write_text(f"runs{part}")
    old = git_dir / "rooda" / "fleet.sqlite"
    assert old_database(git_dir, state) == old
    assert take_over_database(git_dir, state) == old
    assert (state / "fleet.sqlite").read_text() == "runs"
    assert (state / "fleet.sqlite-wal").read_text() == "runs-wal"
    assert not (git_dir / "rooda").exists()
    assert state.stat().st_mode & 0o777 == 0o700
    assert take_over_database(git_dir, state) is None


def test_database_that_appears_after_the_first_look_is_never_read(
    git_dir: Path, state: Path
) -> None:
    assert take_over_database(git_dir, state) is None
    (git_dir / "rooda/fleet.sqlite").write_text("forged")
    assert old_database(git_dir, state) is None
    assert take_over_database(git_dir, state) is None
    assert not (state / "fleet.sqlite").exists()


def test_own_database_takes_precedence(git_dir: Path, state: Path) -> None:
    state.mkdir(parents=True)
    (state / "fleet.sqlite").write_text("own")
    (git_dir / "rooda/fleet.sqlite").write_text("old")
    assert take_over_database(git_dir, state) is None
    assert (state / "fleet.sqlite").read_text() == "own"


@pytest.mark.parametrize("part", ["", "-wal", "folder"])
def test_link_in_place_of_the_database_is_not_taken(
    git_dir: Path, state: Path, tmp_path: Path, part: str
) -> None:
    secret = tmp_path / "elsewhere"
    secret.mkdir()
    (secret / "fleet.sqlite").write_text("secret")
    if part == "folder":
        (git_dir / "rooda").rmdir()
        (git_dir / "rooda").symlink_to(secret)
    else:
        (git_dir / "rooda/fleet.sqlite").write_text("runs")
        link = git_dir / f"rooda/fleet.sqlite{part}"
        link.unlink(missing_ok=True)
        link.symlink_to(secret / "fleet.sqlite")
    take_over_database(git_dir, state)
    assert not any(path.is_symlink() for path in state.iterdir())
    assert (state / "fleet.sqlite").exists() is (part == "-wal")


def test_database_moves_to_another_disk(
    git_dir: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (git_dir / "rooda/fleet.sqlite").write_text("runs")
    rename = Path.rename

    def refuse(source: Path, target: Path) -> Path:
        if source.is_relative_to(git_dir):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        return rename(source, target)

    monkeypatch.setattr(Path, "rename", refuse)
    assert take_over_database(git_dir, state) is not None
    assert (state / "fleet.sqlite").read_text() == "runs"
    assert (state / "fleet.sqlite").stat().st_mode & 0o777 == 0o600
    assert not (git_dir / "rooda").exists()


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
    make_state_folder(state_of(folder))
    (state_of(folder) / "rooda.db").touch()
    return folder


def workspace_for(folder: Path) -> Path:
    """The work tree whose record a new run in a folder is added to."""
    return place_for(folder, os.environ).tree


def find_workspace(folder: Path) -> Path | None:
    """The work tree whose record a command in a folder reads."""
    place = find_place(folder, os.environ)
    return None if place is None else place.tree


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


def test_record_that_the_user_may_not_read_is_found(top: Path) -> None:
    recorded(top)
    state_of(top).chmod(0)
    assert find_workspace(top) == top
    state_of(top).chmod(0o700)


def test_without_a_state_home_no_record_is_found_and_none_can_be_written(top: Path) -> None:
    assert find_place(top, {}) is None
    assert known_places({}) == []
    with pytest.raises(NoStateHomeError, match="HOME is not set"):
        place_for(top, {})
    with pytest.raises(NoStateHomeError, match="ROODA_STATE_HOME is not an absolute path: here"):
        place_for(top, {"ROODA_STATE_HOME": "here", "HOME": "/home/me"})


# -- identity --------------------------------------------------------------------------------


def known(folder: Path) -> RecordPlace:
    """Give a folder a record as a run does; return its place."""
    recorded(folder)
    remember(folder)
    return record_at(folder)


def found(folder: Path) -> RecordPlace | None:
    return find_place(folder, os.environ)


@pytest.mark.parametrize("renamed", ["top", "."])
def test_moved_tree_keeps_its_record(tmp_path: Path, top: Path, renamed: str) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    top = top.rename(whole / "top")
    place = known(top)
    moved = whole / "new" if renamed == "top" else tmp_path / "parent/top"
    (top if renamed == "top" else whole).rename(moved if renamed == "top" else tmp_path / "parent")
    assert found(moved / "deep/start") == RecordPlace(moved, place.state, moved_from=top)
    assert place_for(moved / "deep", os.environ) == found(moved)


def test_new_tree_at_the_old_path_does_not_keep_the_record_from_the_moved_one(
    tmp_path: Path, top: Path
) -> None:
    place = known(top)
    moved = top.rename(tmp_path / "moved")
    top.mkdir()
    assert found(moved) == RecordPlace(moved, place.state, moved_from=top)


def test_tree_at_the_path_of_a_deleted_one_has_its_record(top: Path) -> None:
    place = known(top)
    shutil.rmtree(top)
    repository(top.parent).joinpath("top").mkdir()
    assert found(top) == place


def test_copy_gets_a_record_of_its_own(tmp_path: Path, top: Path) -> None:
    known(top)
    copy = tmp_path / "copy"
    shutil.copytree(top, copy)
    assert found(copy) is None
    assert place_for(copy, os.environ) == record_at(copy)


def test_link_to_a_tree_leads_to_its_record(tmp_path: Path, top: Path) -> None:
    place = known(top)
    (tmp_path / "link").symlink_to(top)
    assert found(tmp_path / "link/deep") == place


@pytest.mark.parametrize("changed", [{"birth": 1}, {"birth": None}, {"inode": 1}, {"device": 1}])
def test_folder_of_another_identity_is_not_the_moved_tree(
    tmp_path: Path, top: Path, changed: dict[str, int | None]
) -> None:
    """The OS uses the inode of a deleted folder again, but not with its time of birth."""
    place = known(top)
    before = recorded_identity(place.state)
    assert before is not None
    assert before.birth is not None
    (place.state / "tree.json").write_text(json.dumps(asdict(replace(before, **changed))))
    assert found(top.rename(tmp_path / "moved")) is None


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"path": "here", "device": 1, "inode": 1}'])
def test_tree_file_that_makes_no_sense_is_ignored(tmp_path: Path, top: Path, content: str) -> None:
    place = known(top)
    (place.state / "tree.json").write_text(content)
    assert found(top) == place
    assert known_places(os.environ) == []
    assert found(top.rename(tmp_path / "moved")) is None


def test_path_that_is_not_utf_8_is_kept(tmp_path: Path) -> None:
    tree = tmp_path / os.fsdecode(b"t\xffree")
    tree.mkdir()
    place = known(tree)
    assert known_places(os.environ) == [place]


@pytest.mark.real
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a folder")
def test_folder_that_is_mounted_at_two_paths_has_one_record(tmp_path: Path, top: Path) -> None:
    place = known(top)
    second = tmp_path / "second"
    second.mkdir()
    done = subprocess.run(["mount", "--bind", top, second], check=False, capture_output=True)
    if done.returncode:
        pytest.skip("this machine allows no mounts")
    try:
        assert found(second) == RecordPlace(second, place.state)
        note_tree(place.state, second)
        assert known_places(os.environ) == [place]
    finally:
        subprocess.run(["umount", second], check=True)


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
        Lock(folder, state=state_of(folder)).close()
    except LockHeldError:
        return True
    return False


@pytest.mark.parametrize("changed", ["deep/start", "deep"])
def test_lock_holds_in_a_folder_that_became_a_repository(top: Path, changed: str) -> None:
    lock = Lock(top / "deep/start", state=state_of(top / "deep/start"))
    repository(top / changed)
    assert excludes(top / "deep/start")
    assert excludes(top / changed)
    assert excludes(top)
    lock.close()
    assert not excludes(top / "deep/start")


def test_lock_holds_after_the_repository_is_gone(top: Path) -> None:
    lock = Lock(top / "deep/start", state=state_of(top / "deep/start"))
    shutil.rmtree(top / ".git")
    assert excludes(top / "deep/start")
    assert excludes(top)
    lock.close()


def test_lock_holds_after_a_folder_above_became_a_repository(tmp_path: Path) -> None:
    start = tmp_path / "start"
    start.mkdir()
    lock = Lock(start, state=state_of(start))
    repository(tmp_path)
    assert excludes(start)
    lock.close()
