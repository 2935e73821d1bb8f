"""The fleets of the work trees on their page."""

import contextlib
import subprocess
from pathlib import Path

import pytest

from rooda.fleet.display.fleet_table import Sight
from rooda.fleet.place import project_key
from rooda.fleet.run_model import Batch, FleetTask, RunState
from rooda.fleet.store.store import FleetStore
from rooda.front.web import fragments
from rooda.front.web import sources as module
from rooda.front.web.sources import Fleets, FleetTable, table_of
from rooda.world.state.record_place import fleet_state
from support.fleet_runs import NOW, a_run
from support.web import Machine

SECRET = "correct-horse-battery"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path, {"SOME_TOKEN": SECRET})


def database_of(folder: Path, machine: Machine) -> Path:
    state = fleet_state(folder.resolve() / ".git", machine.sources.environ)
    return state / "fleet.sqlite"


@pytest.fixture
def repository(tmp_path: Path, machine: Machine) -> Path:
    """Return a repository with the database of a fleet; rooda has no record in it."""
    folder = tmp_path / "shop"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True, timeout=60)
    database = database_of(folder, machine)
    database.parent.mkdir(parents=True)
    tasks = [FleetTask("login", "Login", "words"), FleetTask(f"use-{SECRET}", "Key", "words")]
    with contextlib.closing(FleetStore(f"sqlite:///{database}")) as store:
        store.add(project_key(str(folder.resolve() / ".git")), Batch("night", "abc"), tasks)
    return folder


@pytest.mark.real
def test_fleet_of_the_folder_has_a_table_without_secrets(
    machine: Machine, repository: Path
) -> None:
    fleets = Fleets(machine.sources, repository)
    assert fleets.are_there()
    (table,) = fleets.tables()
    assert (table.project, table.trouble) == ("shop", "")
    assert [row.state for row in table.rows] == ["queued", "queued"]
    page = fragments.fleet_page([table])
    assert "login" in page
    assert "rooda worker --drain" in page
    assert SECRET not in page


@pytest.mark.real
def test_database_that_is_broken_is_named(machine: Machine, repository: Path) -> None:
    database_of(repository, machine).write_bytes(b"no database" * 1000)
    (table,) = Fleets(machine.sources, repository).tables()
    assert "fleet.sqlite can't be used" in table.trouble
    assert "can&#39;t be used" in fragments.fleet_page([table])


@pytest.mark.git
def test_without_the_extra_there_is_no_fleet(
    machine: Machine, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None if name == "dbos" else object())
    assert not Fleets(machine.sources, repository).are_there()


@pytest.mark.git
def test_repository_without_a_database_is_no_fleet_and_gets_none(
    machine: Machine, tmp_path: Path
) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True, timeout=60)
    assert Fleets(machine.sources, tmp_path).tables() == []
    assert not database_of(tmp_path, machine).parent.exists()


def test_table_has_the_state_of_each_run_and_escapes_it() -> None:
    runs = [
        a_run("auth", state=RunState.WORKING, where="night", iteration=3, max_iterations=20),
        a_run("<b>x</b>", state=RunState.FAILED, reason="<script>alert(1)</script>"),
        a_run("done", state=RunState.SUCCESS, ended="merged", iteration=2),
    ]
    table = table_of("shop", "/home/shop", Sight(runs, NOW))
    assert [row.tone for row in table.rows] == ["", "fail", "good"]
    assert [row.iteration for row in table.rows] == ["3/20", "", "2"]
    page = fragments.fleet_page([table, FleetTable("other", "/home/other", trouble="away")])
    assert "&lt;b&gt;x&lt;/b&gt;" in page
    assert "<script" not in page
    assert "3 runs: 1 at work, 1 success, 1 failed" in page
    assert "away" in page
