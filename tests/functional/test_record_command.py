"""`rooda record`: where records are, and how the user moves, deletes and imports them."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from rooda.record.store import Store
from rooda.world.state.folder import StateFolder, make_state_folder
from rooda.world.state.lock import Lock
from rooda.world.state.record_place import fleet_in
from support.finished import Finished
from support.gitwork import GitWork, git_work
from support.record import RUN, a_run, an_iteration
from support.recorded import refused
from support.states import remember, state_of
from support.tables import each_row
from support.workspace import Workspace

DONE = "echo '<promise>SUCCESS</promise>'"


def record(state: StateFolder, run: str = RUN) -> None:
    with contextlib.closing(Store(state, print)) as store:
        store.save(run=a_run(run, "success"), iteration=an_iteration(1, run=run))


@pytest.fixture
def repo(workspace: Workspace) -> Iterator[GitWork]:
    """A work tree that is a repository."""
    with git_work(workspace) as found:
        yield found


@pytest.fixture
def recorded(workspace: Workspace) -> Workspace:
    """A work tree with a record."""
    record(workspace.state)
    remember(workspace.path)
    return workspace


def command(workspace: Workspace, *words: str) -> Finished:
    return workspace.inside("record", *words)


# -- where, list -----------------------------------------------------------------------------


def test_where_prints_the_state_folder_before_and_after_the_first_run(
    workspace: Workspace,
) -> None:
    assert command(workspace, "where").out == f"{workspace.state}\n"
    assert not workspace.state.exists()
    record(workspace.state)
    (workspace.path / "below").mkdir()
    below = Workspace(workspace.path / "below", workspace.home)
    assert command(below, "where").out == f"{workspace.state}\n"


@each_row(
    "words",
    [
        ("record", "where"),
        ("record", "list"),
        ("record", "forget", "--yes"),
        ("record", "move", "/old"),
        ("record", "import", "run.json"),
        ("record", "export", "run"),
        ("history",),
        ("history", "--all"),
        ("show",),
        ("tell", "note"),
    ],
)
def test_command_without_a_state_home_is_one_error(
    workspace: Workspace, words: tuple[str, ...]
) -> None:
    done = workspace.rooda(*words, env={"ROODA_STATE_HOME": "states"})
    refused(done, "ROODA_STATE_HOME is not an absolute path", "Set ROODA_STATE_HOME")


@each_row("words", [("tell", "note"), ("record", "import", "run.json")])
def test_command_that_writes_to_the_record_refuses_a_place_in_the_work_tree(
    workspace: Workspace, words: tuple[str, ...]
) -> None:
    (workspace.path / "run.json").write_text("{}")
    inside = workspace.path / "states"
    done = workspace.rooda(*words, env={"ROODA_STATE_HOME": str(inside)})
    refused(done, f"a part of the work tree {workspace.path}", "Set ROODA_STATE_HOME")
    assert not inside.exists()
    if "import" in words:
        done = workspace.rooda(*words, "--record", str(inside))
        refused(done, f"a part of the work tree {workspace.path}", "another folder with --record")
        assert not inside.exists()


def test_show_names_the_folder_with_the_files_of_a_run(recorded: Workspace) -> None:
    assert f"Folder   {recorded.state}/runs/{RUN}\n" in recorded.inside("show").out
    assert f"{recorded.state}/runs/{RUN}/1\n" in recorded.inside("show", "1").out


def test_fleet_is_a_record_that_no_other_one_replaces(recorded: Workspace) -> None:
    other = recorded.sibling("other")
    make_state_folder(other.state)
    fleet = other.state / "fleet.sqlite"
    fleet.touch()
    remember(other.path)
    assert f"{other.path} " in command(recorded, "list").out
    refused(command(other, "move", str(recorded.path)), "has a record of its own")
    assert fleet.exists()
    assert command(other, "forget", "--yes").code == 0
    assert not other.state.exists()


def test_list_names_each_tree_with_its_size_and_whether_it_is_gone(recorded: Workspace) -> None:
    gone = recorded.sibling("gone").path
    record(state_of(gone), "20200101-000000-abcdef")
    remember(gone)
    shutil.rmtree(gone)
    lines = command(recorded, "list").out.splitlines()
    assert len(lines) == 3
    assert f"{gone} (folder is gone)" in lines[1]
    assert str(recorded.path) in lines[2]
    assert recorded.state.name in lines[2]
    assert "kB" in lines[2]
    assert "2025-03-01" in lines[2]


def test_list_without_a_record_says_so(workspace: Workspace) -> None:
    assert command(workspace, "list").err == "No work tree has a record yet.\n"


# -- move ------------------------------------------------------------------------------------


def test_move_gives_a_tree_the_record_of_another_path(recorded: Workspace) -> None:
    """As after a move to another disk, which gives the folder another inode."""
    new = recorded.sibling("new")
    recorded.inside("tell", "told before")
    shutil.rmtree(recorded.path)
    new.inside("tell", "told after")
    done = command(new, "move", "../work")
    assert done.err == f"The record of {recorded.path} is that of {new.path} now.\n"
    assert RUN in new.inside("history").out
    assert not recorded.state.exists()
    assert str(new.path) in command(new, "list").out
    notes = new.inside("tell", "--list").out
    assert "told before" in notes
    assert "told after" in notes


def test_move_is_refused_where_it_would_mix_records(recorded: Workspace) -> None:
    new = recorded.sibling("new")
    refused(command(new, "move", "../nothing"), "there is no record of", "rooda record list")
    refused(command(recorded, "move", "."), "has that record already")
    lock = Lock(recorded.path, state=recorded.state)
    refused(command(new, "move", "../work"), "a run is at work")
    lock.close()
    record(new.state, "20200101-000000-abcdef")
    refused(command(new, "move", "../work"), "has a record of its own", "rooda record forget")
    assert RUN in recorded.inside("history").out


# -- forget ----------------------------------------------------------------------------------


def test_forget_asks_and_without_a_terminal_needs_yes(recorded: Workspace) -> None:
    refused(command(recorded, "forget"), "without a terminal, rooda can't ask", "--yes")
    done = command(recorded, "forget", "--yes")
    assert done.err == f"Deleted the record of {recorded.path}.\n"
    assert not recorded.state.exists()
    refused(command(recorded, "forget", "--yes"), "there is no record of")


def test_forget_deletes_the_record_of_a_path_that_is_gone(recorded: Workspace) -> None:
    other = recorded.sibling("other")
    shutil.rmtree(recorded.path)
    assert command(other, "forget", str(recorded.path), "--yes").code == 0
    assert not recorded.state.exists()


def test_forget_is_refused_while_a_run_is_at_work(recorded: Workspace) -> None:
    lock = Lock(recorded.path, state=recorded.state)
    refused(command(recorded, "forget", "--yes"), "a run is at work")
    lock.close()
    assert recorded.state.exists()


def test_forget_is_refused_if_a_run_starts_before_the_answer(
    recorded: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    locks = []

    def confirm(_: str, **__: object) -> bool:
        locks.append(Lock(recorded.path, state=recorded.state))
        return True

    terminal = SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("rooda.front.cli.commands.record.sys", terminal)
    monkeypatch.setattr("click.confirm", confirm)
    refused(command(recorded, "forget"), "a run is at work")
    locks[0].close()
    assert recorded.state.exists()


def test_forget_leaves_a_link_in_place_of_the_state_folder_and_names_it(
    recorded: Workspace,
) -> None:
    target = recorded.state.rename(recorded.state.with_name("elsewhere"))
    recorded.state.symlink_to(target)
    refused(command(recorded, "forget", "--yes"), f"{recorded.state} can't be deleted", "link")
    assert (target / "rooda.db").is_file()


def test_record_of_a_fleet_is_not_deleted_or_moved_while_a_worker_is_at_work(
    recorded: Workspace,
) -> None:
    other = recorded.sibling("other")
    with fleet_in(recorded.state), fleet_in(recorded.state):  # a worker and its slot process
        for done in (
            command(recorded, "forget", "--yes"),
            command(other, "move", str(recorded.path)),
        ):
            refused(done, f"the fleet of {recorded.path} is at work", "Stop its workers first")
        moved = recorded.path.rename(recorded.path.with_name("moved"))
        assert RUN in Workspace(moved, recorded.home).inside("history").out
        assert recorded.state.exists()
    assert "its record came along" in Workspace(moved, recorded.home).inside("history").err
    assert command(Workspace(moved, recorded.home), "forget", "--yes").code == 0


# -- import ----------------------------------------------------------------------------------


@pytest.mark.parametrize("source", [".rooda", "."])
def test_import_takes_a_record_of_version_0_1(workspace: Workspace, source: str) -> None:
    record(StateFolder(workspace.path / ".rooda"))
    assert "rooda record import .rooda" in workspace.inside("history").err
    done = command(workspace, "import", source)
    assert done.code == 0, done.err
    assert f"It is in {workspace.state} now" in done.err
    assert RUN in workspace.inside("history").out


def test_import_of_another_folder_is_refused(workspace: Workspace) -> None:
    done = command(workspace, "import", ".")
    refused(done, "neither an exported run nor a record of rooda 0.1")


# -- real runs -------------------------------------------------------------------------------


@pytest.mark.real
def test_run_writes_nothing_into_the_work_tree(repo: GitWork) -> None:
    before = {path: path.read_bytes() for path in (repo.path / ".git").rglob("*.sample")}
    status = repo.git("status", "--porcelain", "--ignored")
    assert repo.work("true", "-n", "1").code == 2
    assert repo.git("status", "--porcelain", "--ignored") == status
    assert not (repo.path / ".rooda").exists()
    assert all(path.read_bytes() == content for path, content in before.items())


@pytest.mark.real
def test_moved_tree_resumes_its_run(workspace: Workspace) -> None:
    assert workspace.work("true", "-n", "1").code == 2
    moved = Workspace(workspace.path.rename(workspace.path.parent / "moved"), workspace.home)
    done = moved.rooda("resume", "-n", "2")
    assert done.code == 2
    assert f"was moved from {workspace.path}" in done.err
    assert '"iteration_count": 2' in moved.rooda("show", "--json").out or "2" in done.err


@pytest.mark.real
def test_run_without_a_place_for_its_record_is_one_error(workspace: Workspace) -> None:
    for value in (str(workspace.path / "states"), "states"):
        done = workspace.work("true", "-n", "1", env={"ROODA_STATE_HOME": value})
        refused(done, "ROODA_STATE_HOME")
    done = workspace.work("true", "-n", "1", env={"ROODA_STATE_HOME": None, "HOME": None})
    refused(done, "HOME is not set", "Set ROODA_STATE_HOME")


@pytest.mark.real
def test_two_trees_with_one_state_folder_do_not_run_at_once(
    workspace: Workspace, tmp_path: Path
) -> None:
    """As in two containers with the same path and a shared state home."""
    make_state_folder(workspace.state)
    lock = Lock(tmp_path, state=workspace.state)
    done = workspace.work("true", "-n", "1")
    lock.close()
    refused(done, f"another run uses {workspace.state}", "ROODA_STATE_HOME")
