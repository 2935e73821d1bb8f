"""The state folder of a fleet, and the one look for the database of version 0.1."""

import errno
import os
from pathlib import Path

import pytest

from rooda.world.state.fleet_state import fleet_state, old_database, take_over_database
from rooda.world.state.home import NoStateHomeError, state_folder_at

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
