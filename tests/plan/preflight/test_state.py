"""Where the record may be: each place that is no good is one error that names the variable."""

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace

from rooda.base.problems import InvalidInput, Problem
from rooda.plan.preflight import state as state_checks
from rooda.plan.preflight.state import (
    check_state,
    readable_home,
    record_place,
    warn_of_passing,
    writable_place,
)
from rooda.plan.world import World
from rooda.world.state.folder import StateFolder
from support.states import record_at
from support.users import folder_of_ordinary_user

VARIABLE = "ROODA_STATE_HOME"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git/HEAD").write_text("ref: refs/heads/main\n")
    return folder


def world_of(tree: Path, environ: Mapping[str, str | Path]) -> World:
    return World(tree, {name: str(value) for name, value in environ.items()})


def refusal(world: World, *shown: Path) -> str:
    """The one problem with the place of the record; it names the variable."""
    place = record_place(world)
    (found,) = check_state(world, place, shown)
    assert VARIABLE in found.suggestion
    return found.message


@pytest.mark.parametrize(
    "environ, why",
    [
        ({}, "HOME is not set"),
        ({"HOME": "home"}, "HOME is not set"),
        ({"HOME": "/home/me", VARIABLE: "states"}, f"{VARIABLE} is not an absolute path: states"),
    ],
)
def test_without_a_state_home_no_run_starts(tree: Path, environ: dict[str, str], why: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        record_place(World(tree, environ))
    (found,) = caught.value.problems
    assert why in found.message
    assert VARIABLE in found.suggestion


@pytest.mark.parametrize("name", ["", ".git/states", "deep/states"])
def test_place_inside_of_the_work_tree_is_refused(tree: Path, name: str) -> None:
    world = world_of(tree, {VARIABLE: tree / name})
    assert f"a part of the work tree {tree}" in refusal(world)


def test_link_into_the_work_tree_is_refused(tmp_path: Path, tree: Path) -> None:
    (tmp_path / "link").symlink_to(tree)
    assert "a part of the work tree" in refusal(world_of(tree, {VARIABLE: tmp_path / "link/x"}))


def test_home_that_is_the_work_tree_is_refused(tree: Path) -> None:
    assert "a part of the work tree" in refusal(world_of(tree, {"HOME": tree}))


def test_place_in_a_folder_that_the_agent_sees_is_refused(tmp_path: Path, tree: Path) -> None:
    shown = tmp_path / "data"
    world = world_of(tree, {VARIABLE: shown / "states"})
    assert f"the agent would see it in {shown}" in refusal(world, shown)
    assert [*check_state(world, record_place(world), (tmp_path / "dat",))] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_state_home_of_another_user_is_refused(tmp_path: Path, tree: Path) -> None:
    home = tmp_path / "states"
    home.mkdir()
    os.chown(home, 4711, 4711)
    assert "belongs to another user" in refusal(world_of(tree, {VARIABLE: home}))


def test_state_home_on_a_network_file_system_is_refused(
    tmp_path: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_checks, "network_file_system", lambda _: "nfs4")
    found = refusal(world_of(tree, {VARIABLE: tmp_path / "states"}))
    assert "on a network file system (nfs4)" in found


def test_file_in_the_place_of_the_state_home_is_refused(tmp_path: Path, tree: Path) -> None:
    (tmp_path / "states").touch()
    assert "is not a folder" in refusal(world_of(tree, {VARIABLE: tmp_path / "states"}))


def test_state_home_that_can_not_be_written_to_is_refused(
    tmp_path: Path, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    assert "can't be written to" in refusal(world_of(tree, {VARIABLE: tmp_path / "states"}))


def test_good_place_is_created_for_the_user_alone(tmp_path: Path, tree: Path) -> None:
    world = world_of(tree, {"HOME": tmp_path / "home"})
    place = writable_place(world)
    assert place.state.parent == tmp_path / "home/.local/state/rooda/trees"
    for folder in (place.state, place.state.parent, place.state.parent.parent):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_writing_command_gets_the_same_errors(tree: Path) -> None:
    with pytest.raises(InvalidInput, match="a part of the work tree"):
        writable_place(world_of(tree, {VARIABLE: tree}))


def test_chosen_state_folder_is_checked_instead_of_the_state_home(
    tmp_path: Path, tree: Path
) -> None:
    place = replace(record_at(tree), state=StateFolder(tmp_path / "record"))
    world = World(tree, {"HOME": str(tree)}, place, is_apart=True)
    assert [*check_state(world, place)] == []


@pytest.mark.parametrize(
    "of_state, of_tree, is_warned",
    [
        ("overlay", "ext4", True),
        ("tmpfs", "btrfs", True),
        ("overlay", "overlay", False),
        ("ext4", "tmpfs", False),
        ("tmpfs", "", False),
    ],
)
def test_record_that_ends_with_the_container_is_a_warning_if_the_tree_stays(
    tree: Path, monkeypatch: pytest.MonkeyPatch, of_state: str, of_tree: str, *, is_warned: bool
) -> None:
    monkeypatch.setattr(
        state_checks, "file_system", lambda path: of_tree if path == tree else of_state
    )
    found: list[Problem] = [*warn_of_passing(record_at(tree))]
    assert [VARIABLE in one.suggestion for one in found] == [True] * is_warned


# -- commands that read ------------------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_state_home_in_a_folder_that_the_user_may_not_enter_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As with `sudo -u`, which keeps the HOME of the first user."""
    monkeypatch.setattr(os, "access", partial(os.access, effective_ids=True))
    with folder_of_ordinary_user() as own:
        closed, project = own / "closed", own / "project"
        project.mkdir()
        closed.mkdir()
        closed.chmod(0)
        world = world_of(project, {VARIABLE: closed / "states"})
        assert f"can't be written to {closed}" in refusal(world)
        with pytest.raises(InvalidInput, match="can't be read: Permission denied"):
            readable_home(world)


def test_readers_accept_a_state_home_that_does_not_exist_yet(tmp_path: Path, tree: Path) -> None:
    home = tmp_path / "states"
    assert readable_home(world_of(tree, {VARIABLE: home})) == home
    home.mkdir()
    assert readable_home(world_of(tree, {VARIABLE: home})) == home


@pytest.mark.parametrize(
    "environ, why",
    [
        ({}, "HOME is not set"),
        ({VARIABLE: "states"}, "is not an absolute path"),
        ({VARIABLE: "/dev/null"}, "it is not a folder"),
        ({VARIABLE: "/dev/null/states"}, "Not a directory"),
    ],
)
def test_readers_refuse_a_place_where_no_record_can_be(
    tree: Path, environ: dict[str, str], why: str
) -> None:
    with pytest.raises(InvalidInput, match=why) as caught:
        readable_home(World(tree, environ))
    assert VARIABLE in caught.value.problems[0].suggestion
