"""Where a fleet is: the database, the remote and the project follow from the current folder."""

import os
from pathlib import Path

import pytest

from rooda.base.problems import InvalidInput
from rooda.fleet import place as place_module
from rooda.fleet.place import Place, find_place, make_state, project_key
from rooda.plan.settings.fleet_values import read_fleet
from rooda.world.files.file_systems import kind_of
from rooda.world.state.home import state_folder_at
from rooda.world.tools import Tools
from support.config import world
from support.gitrepo import git

POSTGRES = "fleet: {url: 'postgresql://me:hush@db/fleet'}\n"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "My Repo"
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


def place_of(folder: Path, config: str = "") -> Place:
    values, _ = read_fleet(world(folder, workspace=config or None), {})
    return find_place(folder, values, Tools(folders=[folder]))


def trouble_of(folder: Path, config: str = "") -> str:
    with pytest.raises(InvalidInput) as caught:
        place_of(folder, config)
    (problem,) = caught.value.problems
    return f"{problem.message}. {problem.suggestion}"


@pytest.mark.real
def test_one_machine_needs_no_settings(repo: Path, state_home: Path) -> None:
    (repo / "sub").mkdir()
    place = place_of(repo / "sub")
    assert place.top == repo
    state = state_folder_at(state_home, repo)
    assert place.url == f"sqlite:///{state}/fleet.sqlite"
    assert place.fence == state / "fence.git"
    assert place.remote == f"{repo}/.git"
    assert place.is_own_remote
    assert place.project.startswith("my-repo-")
    assert not place.has_database
    assert make_state(place) is None
    assert state.stat().st_mode & 0o777 == 0o700
    assert not (repo / ".git" / "rooda").exists()


@pytest.mark.real
def test_a_linked_work_tree_has_the_fleet_of_its_repository(repo: Path, tmp_path: Path) -> None:
    git(repo, "worktree", "add", "-q", str(tmp_path / "other"), "-b", "other")
    one, other = place_of(repo), place_of(tmp_path / "other")
    assert (one.project, one.url, one.remote) == (other.project, other.url, other.remote)
    assert one.fence == other.fence
    assert other.top == tmp_path / "other"


@pytest.mark.real
def test_many_machines_share_a_remote_and_the_password_is_hidden(repo: Path) -> None:
    assert "no remote 'origin'" in trouble_of(repo, POSTGRES)
    git(repo, "remote", "add", "origin", "https://me:hush@example.org/team/app.git")
    git(repo, "remote", "add", "shared", "git@example.org:team/app")
    place = place_of(repo, POSTGRES)
    assert place.remote == "https://me:hush@example.org/team/app.git"
    assert not place.is_own_remote
    assert place.database is None
    assert place.fence is None
    assert place.shown_url == "postgresql://me:...@db/fleet"
    assert place.shown_remote == "https://...@example.org/team/app.git"
    named = place_of(repo, POSTGRES.replace("}", ", remote: shared}"))
    assert named.remote == "git@example.org:team/app"
    assert named.project == place.project
    assert place.project.startswith("team-app-")
    relative = place_of(repo, POSTGRES.replace("}", ", remote: ../hub.git}"))
    assert relative.remote == str(repo.parent / "hub.git")


@pytest.mark.parametrize(
    "one, other",
    [
        ("git@github.com:team/app.git", "https://github.com/team/app"),
        ("ssh://git@host:22/team/app.git/", "https://token:x@host/team/app.git"),
        ("host:~/app", "ssh://host/~/app"),
        ("/srv/app.git", "file:///srv/app.git"),
        ("/srv/app/.git", "/srv/app"),
    ],
)
def test_two_spellings_of_one_repository_are_one_project(one: str, other: str) -> None:
    assert project_key(one) == project_key(other)


@pytest.mark.parametrize(
    "one, other",
    [
        ("git@github.com:team/app", "git@github.com:team/app2"),
        ("https://host/srv/app", "/srv/app"),
        ("/home/a/app", "/home/b/app"),
    ],
)
def test_two_repositories_are_two_projects(one: str, other: str) -> None:
    assert project_key(one) != project_key(other)


def test_a_key_is_a_safe_name_whatever_the_path_is() -> None:
    for remote in ("/a b/\u00fc\n../x", "https://h/" + "x/" * 400, "/", os.fsdecode(b"/\xff/r")):
        key = project_key(remote)
        assert key.replace("-", "").replace(".", "").replace("_", "").isalnum()
        assert len(key) < 60
        assert not key.startswith(".")


@pytest.mark.real
def test_sqlite_on_a_network_file_system_is_refused(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place_module, "network_file_system", lambda _: "nfs4")
    words = trouble_of(repo)
    assert "network file system (nfs4)" in words
    assert "ROODA_FLEET_URL" in words
    assert "ROODA_STATE_HOME" in words


@pytest.mark.real
def test_state_home_that_is_not_known_or_can_not_be_written_is_named(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("ROODA_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(InvalidInput) as caught:
        make_state(place_of(repo))
    assert "ROODA_STATE_HOME" in caught.value.problems[0].suggestion
    for name in ("ROODA_STATE_HOME", "XDG_STATE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    assert "ROODA_STATE_HOME" in trouble_of(repo)


def test_the_deepest_and_last_mount_tells_the_file_system() -> None:
    mounts = (
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
        "2 1 0:40 / /home rw shared:1 - nfs4 server:/home rw\n"
        "3 2 8:2 / /home/my\\040disk rw - ext4 /dev/sdb rw\n"
        "4 1 0:41 / /mnt rw - ext4 /dev/sdc rw\n5 1 0:42 / /mnt rw - fuse.sshfs host: rw\n"
        "nonsense\n"
    )
    for path, kind in (
        ("/srv/x", "ext4"),
        ("/home/me/x", "nfs4"),
        ("/homes/me", "ext4"),
        ("/home/my disk/x", "ext4"),
        ("/mnt/x", "fuse.sshfs"),
    ):
        assert kind_of(path, mounts) == kind


def test_a_folder_without_a_repository_says_what_to_do(tmp_path: Path) -> None:
    assert "git init" in trouble_of(tmp_path)
