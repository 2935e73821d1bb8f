"""Storms: whatever happens to workers, slots, database and repository, each iteration is done once.

`ROODA_STORM_SEEDS=10-40` chooses other storms; a storm that fails tells its seed and its story.
"""

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rooda.fleet.run_model import FleetTask, RunState
from support.fleetwork import changes_since, fingerprint
from support.gitrepo import Repo
from support.postgres import Postgres
from support.storms import Storm, storm_at

pytestmark = pytest.mark.long

SECONDS = 20.0  # of trouble
RUNS = {"a": 3, "b": 4, "c": 5, "d": 3, "e": 4, "f": 3}  # iterations of each


def seeds() -> list[int]:
    first, _, last = os.environ.get("ROODA_STORM_SEEDS", "1").partition("-")
    return list(range(int(first), int(last or first) + 1))


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="st"))  # short: it has sockets
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[Postgres | None]:
    if request.param == "sqlite":
        yield None
        return
    made = Path(tempfile.mkdtemp(prefix="pg"))
    server = Postgres(made)
    yield server
    server.close()
    shutil.rmtree(made, ignore_errors=True)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "server", [pytest.param("sqlite", marks=pytest.mark.sample), "postgres"], indirect=True
)
@pytest.mark.parametrize("seed", seeds())
def test_every_iteration_is_done_exactly_once(
    folder: Path, server: Postgres | None, seed: int
) -> None:
    url = f"sqlite:///{folder}/fleet.sqlite" if server is None else server.database()
    with storm_at(folder, url, server, seed) as storm:
        check_storm(storm, seed)
    check_nothing_is_left(storm)


@pytest.mark.sample
@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", seeds())
def test_deleted_and_replaced_slots_work_trees_repositories_and_records_spoil_nothing(
    folder: Path, seed: int
) -> None:
    url = f"sqlite:///{folder}/fleet.sqlite"
    with storm_at(folder, url, None, seed, deletes_only=True) as storm:
        user = Repo(storm.fleet.repo, storm.fleet.environ())
        before = fingerprint(user)
        check_storm(storm, seed)
        assert sum("delete" in line or "move" in line for line in storm.story) > 2, storm.told()
        changed = [name for name in changes_since(before, user) if name in before]
        assert changed == [], storm.told()
    check_nothing_is_left(storm)


def check_storm(storm: Storm, seed: int) -> None:
    """Let the storm rage while runs are at work, and check what must hold afterwards."""
    fleet = storm.fleet
    for name, iterations in RUNS.items():
        agent = fleet.agent(iterations, "sleep 0.$(($$ % 9))")
        task = FleetTask(name, text="work", max_iterations=50)  # a killed agent costs one of them
        fleet.add([task], agent, batch=f"batch-{name}")
    try:
        storm.rage(SECONDS)
        storm.calm(120)
        retry_voided(storm)
        for name, iterations in RUNS.items():
            fleet.check_work(name, iterations)
            assert "README" in fleet.git("ls-tree", "--name-only", f"rooda/{name}").split()
            if not storm.has_failed_iterations:
                fleet.check_exactly_once(name, iterations)
    except AssertionError as error:
        pytest.fail(f"seed {seed}\n{storm.told()}\n{str(error)[:2000]}")


def retry_voided(storm: Storm) -> None:
    """Continue with runs whose slot a storm deleted as often as an agent does that deletes it."""
    fleet = storm.fleet
    for run in fleet.store.runs(fleet.project):
        if run.state is RunState.FAILED and "3 times in a row" in run.reason:
            fleet.store.retry(fleet.project, run.run, run.task)
    storm.calm(120)


def check_nothing_is_left(storm: Storm) -> None:
    end = time.monotonic() + 20
    while left := storm.left_over():
        assert time.monotonic() < end, left
        time.sleep(0.1)
