"""Outages, partitions and wrong clocks: what a fleet does, one scene at a time."""

import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rooda.fleet.crash_points import DONE, FAULTS
from rooda.fleet.run_model import FleetTask, RunState
from support.fleet import Fleet
from support.postgres import Postgres
from support.socket_proxy import SocketProxy

pytestmark = pytest.mark.long

TTL = 1.5
HOUR = 3600
# Python reads this at its start: the clock of that process, and of what it starts, is wrong.
WRONG_CLOCK = f"import time\n_time = time.time\ntime.time = lambda: _time() + {HOUR}\n"


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="sc"))  # short: it has sockets
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture
def server() -> Iterator[Postgres]:
    made = Path(tempfile.mkdtemp(prefix="pg"))
    server = Postgres(made)
    yield server
    server.close()
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture
def fleet(folder: Path, server: Postgres) -> Iterator[Fleet]:
    fleet = Fleet(folder, server.database())
    yield fleet
    fleet.close()


def workers_of(fleet: Fleet, name: str) -> list[str]:
    """Return who claimed a run, the latest first."""
    lines = fleet.records("log", "--first-parent", "--format=%s", f"refs/rooda/fleet/{name}")
    claims = (line.split() for line in lines.splitlines())
    return [words[1] for words in claims if words[0] == "claim"]


def test_without_the_database_agents_work_on_and_no_worker_takes_over(
    fleet: Fleet, server: Postgres
) -> None:
    """It is away for five TTLs while both workers have an agent at work."""
    fleet.add([FleetTask(name, text="work") for name in "ab"], fleet.agent(3, "sleep 0.3"))
    for number in (1, 2):
        fleet.start_slot(number, TTL)
    fleet.until(lambda: fleet.agent_starts >= 2)
    server.halt()
    time.sleep(5 * TTL)
    server.go_on()
    fleet.until_ended()
    for name in "ab":
        fleet.check_exactly_once(name, 3)
        assert len(workers_of(fleet, name)) == 1
    assert fleet.agent_starts == 6


@pytest.mark.parametrize("how", ["silently", "refused"])
def test_a_worker_without_the_database_loses_its_run_although_it_reaches_git(
    fleet: Fleet, how: str
) -> None:
    """Both work on the same iteration, and git accepts the work of one of them."""
    proxy = SocketProxy(fleet.folder / "p", fleet.url)
    gate = fleet.folder / "gate"
    wait = f"touch {gate}; while [ ! -e {gate}.open ]; do sleep 0.05; done"
    wait = f"if [ $ROODA_SLOT = 1 ]; then {wait}; fi"
    fleet.add([FleetTask("one", text="work")], fleet.agent(3, wait))
    first = fleet.start_slot(1, TTL, url=proxy.url)
    fleet.until(gate.exists)
    proxy.cut(silently=how == "silently")
    fleet.start_slot(2, TTL)
    fleet.until(lambda: fleet.run("one").iteration >= 1)
    (fleet.folder / "gate.open").touch()
    assert first.wait(30) == 75  # its push was refused: it wants to be replaced
    assert "has another owner now" in (fleet.folder / "slot-1.log").read_text()
    fleet.until_ended()
    fleet.check_exactly_once("one", 3)
    assert len(workers_of(fleet, "one")) == 2
    proxy.close()


def test_a_worker_whose_clock_is_wrong_is_a_worker_like_any_other(fleet: Fleet) -> None:
    (fleet.folder / "wrong").mkdir()
    (fleet.folder / "wrong" / "sitecustomize.py").write_text(WRONG_CLOCK)
    fleet.add([FleetTask(name, text="work") for name in "abcd"], fleet.agent(3, "sleep 0.2"))
    fleet.store.accounts.set_hold("default", 4.0, "a limit")
    until = fleet.store.accounts.hold("default").until
    wrong = fleet.start_slot(1, TTL, {"PYTHONPATH": str(fleet.folder / "wrong")})
    right = fleet.start_slot(2, TTL)
    fleet.until(lambda: fleet.agent_starts > 0)
    assert fleet.store.now() >= until  # no run started before the end of the hold
    fleet.until_ended()
    for name in "abcd":
        fleet.check_exactly_once(name, 3)
        assert len(workers_of(fleet, name)) == 1  # no false death
    assert fleet.agent_starts == 12
    assert (wrong.poll(), right.poll()) == (None, None)
    most = max(run.turn for run in fleet.store.runs(fleet.project))
    assert most <= 6, "a hold is waited for, not asked for again and again"


def test_a_worker_that_is_to_end_hands_its_run_over_at_once(fleet: Fleet) -> None:
    """The other worker does not wait for a takeover, which would be after an hour here."""
    fleet.add([FleetTask("one", text="work")], fleet.agent(4, "sleep 0.5"))
    first = fleet.start_slot(1, HOUR)
    fleet.until(lambda: fleet.agent_starts == 1)
    fleet.start_slot(2, HOUR)
    first.send_signal(signal.SIGTERM)
    assert first.wait(30) == 0
    fleet.until_ended()
    fleet.check_exactly_once("one", 4)
    assert fleet.agent_starts == 4
    assert len(workers_of(fleet, "one")) == 2


def test_a_worker_that_must_end_at_once_does_not_wait_for_the_database(
    fleet: Fleet, server: Postgres
) -> None:
    fleet.add([FleetTask("one", text="work")], fleet.agent(1, "sleep 60"))
    first = fleet.start_slot(1, TTL)
    fleet.until(lambda: fleet.agent_starts == 1)
    server.halt()
    assert fleet.hurry(first) == 0
    server.go_on()
    assert fleet.run("one").state is RunState.WORKING  # until others notice


def test_work_is_published_while_the_database_is_away_and_not_done_again(
    fleet: Fleet, server: Postgres
) -> None:
    """The worker dies between its push and the note of it, while the database is away."""
    faults = {FAULTS: "crash:after-push:one:2", DONE: str(fleet.folder)}
    gate = fleet.folder / "gate"
    wait = f"if [ -e work.txt ]; then touch {gate}; sleep 1; fi"
    fleet.add([FleetTask("one", text="work")], fleet.agent(3, wait))
    first = fleet.start_slot(1, TTL, faults)
    fleet.until(gate.exists)
    server.halt()
    assert first.wait(30) == -signal.SIGKILL
    server.go_on()
    assert fleet.run("one").iteration == 1
    fleet.start_slot(2, TTL)
    fleet.until_ended()
    assert fleet.run("one").state is RunState.SUCCESS
    fleet.check_exactly_once("one", 3)
    assert fleet.agent_starts == 3
