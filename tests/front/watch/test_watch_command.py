"""`rooda watch`: what it opens, and when it refuses to start."""

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from rooda.base.problems import InvalidInput
from rooda.base.secrets.masking import Masker
from rooda.front.cli.watched import place_to_open, sources_here
from rooda.front.watch import run_screen as steering
from rooda.front.watch.app import WatchApp
from rooda.front.watch.sources import RunPlace
from rooda.plan.world import World
from support.children import Nursery
from support.finished import Rooda
from support.gitrepo import git
from support.nights import RUN, night
from support.recorded import HANGS, refused
from support.watched import Machine, good_rows
from support.workspace import Workspace


@pytest.fixture
def rooda(workspace: Workspace) -> Rooda:
    return workspace.inside


def opened(machine: Machine, folder: Path, name: str | None = None) -> RunPlace | None:
    return place_to_open(World(folder, machine.environ), name, Masker())


def test_watch_without_a_terminal_is_refused_with_one_message(rooda: Rooda) -> None:
    refused(rooda("watch"), "`rooda watch` needs a terminal", "rooda follow")


def test_watch_on_a_terminal_that_can_not_move_its_cursor_is_refused(
    rooda: Rooda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    refused(rooda("watch"), "`rooda watch` needs a terminal")


def test_watch_without_its_extra_names_the_command_that_installs_it(
    rooda: Rooda, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.util.find_spec

    def find_spec(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "textual" else real(name, package)

    monkeypatch.setattr("rooda.front.extras.find_spec", find_spec)
    refused(rooda("watch"), "textual", "pip install 'rooda[tui]'")


def test_watch_starts_the_view_and_returns_its_exit_code(
    workspace: Workspace, rooda: Rooda, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[WatchApp] = []

    def run(app: WatchApp) -> None:
        shown.append(app)
        app._return_value = 130  # noqa: SLF001

    monkeypatch.setattr(WatchApp, "run", run)
    monkeypatch.setattr("rooda.front.cli.commands.watch._is_terminal", lambda _stream: True)
    monkeypatch.setenv("TERM", "xterm")
    assert rooda("watch").code == 130
    assert len(shown) == 1
    refused(rooda("watch", "no-such-run"), "no-such-run")
    assert workspace.path.is_dir()
    monkeypatch.setattr(WatchApp, "failure", RuntimeError("a bug"))
    assert rooda("watch").code == 3


def test_a_run_is_opened_by_its_name_also_one_of_another_work_tree(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    place = machine.keep("tabq", night(), good_rows(1))
    other = machine.keep("ledger", night(run="20261115-010000-docs"), good_rows(1))
    assert opened(machine, place.tree) is None  # no run is at work
    assert opened(machine, place.tree, "last") == place
    assert opened(machine, place.tree, RUN) == place
    assert opened(machine, place.tree, other.run) == other
    with pytest.raises(InvalidInput, match="no-such-run"):
        opened(machine, place.tree, "no-such-run")


@pytest.mark.real
def test_the_run_at_work_in_this_folder_is_opened_and_can_be_stopped(
    workspace: Workspace, nursery: Nursery, tmp_path: Path
) -> None:
    running = nursery.start(workspace, "work", "--ai-cmd", workspace.agent(HANGS))
    nursery.pid("agent")
    place = opened(Machine(tmp_path), workspace.path)
    assert place is not None
    assert place.tree == workspace.path
    assert place.run in steering.tell(place.tree, "a note")
    with pytest.raises(InvalidInput, match=r"run earlier has ended; run .* is at work"):
        steering.stop_now(place.tree, "earlier")
    assert "stops when its current iteration has ended." in steering.stop_later(
        place.tree, place.run
    )
    assert "stops now" in steering.stop_now(place.tree, place.run)
    assert running.finish().code == 130


@pytest.mark.real
def test_a_folder_without_a_fleet_says_why_there_is_nothing_to_see(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace.path)
    fleet = sources_here(World(workspace.path, {}), Masker()).fleet
    assert "is in no git repository" in fleet()(200)
    git(workspace.path, "init", "-q", "-b", "main")
    assert fleet()(200).startswith("This project has no run of a fleet yet.")
    monkeypatch.setitem(sys.modules, "dbos", None)
    assert "pip install 'rooda[fleet]'" in fleet()(200)


@pytest.mark.real
def test_the_table_of_the_fleet_is_that_of_rooda_fleet(
    workspace: Workspace, rooda: Rooda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace.path)
    git(workspace.path, "init", "-q", "-b", "main")
    git(workspace.path, "config", "user.name", "me")
    git(workspace.path, "config", "user.email", "me@localhost")
    git(workspace.path, "commit", "-q", "--allow-empty", "-m", "first")
    workspace.write("TASKS.md", "## Auth\n\nWrite it.\n")
    monkeypatch.setenv("ROODA_STATE_HOME", str(workspace.home / "state"))
    workspace.env["ROODA_STATE_HOME"] = str(workspace.home / "state")
    fleet = sources_here(World(workspace.path, {}), Masker()).fleet
    assert rooda("fleet", "add", "TASKS.md", "--ai-cmd", "true").code == 0
    shown = fleet()(200)
    assert "TASK" in shown
    assert "auth" in shown
    assert "queued" in shown
    assert "No worker is at work here." in shown
    (database,) = (workspace.home / "state/trees").glob("*/fleet.sqlite")
    database.write_bytes(b"no database" * 1000)
    assert "can't be used" in fleet()(400).replace("\n", " ")
