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

from rooda.fleet.run_model import FleetTask
from support.postgres import Postgres
from support.storms import Storm, storm_at

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


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("server", ["sqlite", "postgres"], indirect=True)
@pytest.mark.parametrize("seed", seeds())
def test_every_iteration_is_done_exactly_once(
    folder: Path, server: Postgres | None, seed: int
) -> None:
    url = f"sqlite:///{folder}/fleet.sqlite" if server is None else server.database()
    with storm_at(folder, url, server, seed) as storm:
        fleet = storm.fleet
        for name, iterations in RUNS.items():
            agent = fleet.agent(iterations, "sleep 0.$(($$ % 9))")
            task = FleetTask(
                name, text="work", max_iterations=50
            )  # a killed agent costs one of them
            fleet.add([task], agent, batch=f"batch-{name}")
        try:
            storm.rage(SECONDS)
            storm.calm(120)
            for name, iterations in RUNS.items():
                fleet.check_work(name, iterations)
                assert "README" in fleet.git("ls-tree", "--name-only", f"rooda/{name}").split()
                if not storm.has_killed_agents:
                    fleet.check_exactly_once(name, iterations)
        except AssertionError as error:
            pytest.fail(f"seed {seed}\n{storm.told()}\n{str(error)[:2000]}")
    check_nothing_is_left(storm)


def check_nothing_is_left(storm: Storm) -> None:
    end = time.monotonic() + 20
    while left := storm.left_over():
        assert time.monotonic() < end, left
        time.sleep(0.1)
