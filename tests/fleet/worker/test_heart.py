import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rooda.fleet.run_model import FleetTask, RunState
from rooda.fleet.store.store import FleetStore
from rooda.fleet.store.workers import DEAD, WorkerRow
from rooda.fleet.worker.control import Control
from rooda.fleet.worker.heart import Heart, Observer
from support.fleet import Fleet


def worker(name: str, beats: int, state: str = "alive") -> WorkerRow:
    return WorkerRow(name, "p", "host", 1, 1, (), state, beats)


def looks(observer: Observer, *moments: tuple[float, int]) -> list[bool]:
    """Whether the observer finds the worker silent, at each time with this number of beats."""
    return [bool(observer.look([worker("other", beats)], now)) for now, beats in moments]


def test_a_worker_that_beats_stays_alive() -> None:
    moments = [(float(now), now) for now in range(50)]
    assert not any(looks(Observer("me", 10), *moments))


def test_a_worker_is_silent_after_one_ttl_of_contact() -> None:
    found = looks(Observer("me", 10), *((float(now), 7) for now in range(12)))
    assert found == [False] * 11 + [True]


def test_a_gap_in_the_own_contact_starts_the_time_again() -> None:
    observer = Observer("me", 10)
    assert not any(looks(observer, *((float(now), 7) for now in range(9))))
    away = 9.0 + 50.0  # the database was away for five TTLs
    assert not any(looks(observer, *((away + now, 7) for now in range(11))))
    assert looks(observer, (away + 11, 7)) == [True]


def test_an_observer_that_was_asleep_declares_no_worker_dead() -> None:
    observer = Observer("me", 10)
    looks(observer, (0.0, 1), (1.0, 1))
    assert looks(observer, (3600.0, 1)) == [False]


def test_the_own_row_and_the_dead_are_left_out() -> None:
    observer = Observer("me", 1)
    rows = [worker("me", 1), worker("old", 1, DEAD)]
    assert not observer.look(rows, 0.0)
    assert not observer.look(rows, 0.4)
    assert not any(observer.look(rows, 0.4 * step) for step in range(2, 9))


# Runs that the queue has lost are queued again, and old turns are deleted.


DAYS = 2 * 24 * 3600 * 1000


@pytest.fixture
def fleet(url: str, tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path, url)
    yield fleet
    fleet.close()


@pytest.mark.long
def test_a_run_that_the_queue_has_lost_is_queued_again(fleet: Fleet) -> None:
    gate = fleet.folder / "gate"
    wait = f"touch {gate}; while [ ! -e {gate}.open ]; do sleep 0.05; done"
    fleet.add([FleetTask(name, text="work") for name in "abc"], fleet.agent(1, wait))
    first = fleet.start_slot(1)
    fleet.until(gate.exists)
    first.kill()
    (working,) = (
        run.run for run in fleet.store.runs(fleet.project) if run.state is RunState.WORKING
    )
    cancelled, deleted = sorted({"a", "b", "c"} - {working})
    for name, status in ((working, "ERROR"), (cancelled, "CANCELLED")):
        fleet.sql(
            "UPDATE dbos.workflow_status SET status = :status WHERE workflow_uuid = :key",
            status=status,
            key=f"{fleet.project}/{name}/1",
        )
    key = f"{fleet.project}/{deleted}/1"
    fleet.sql("DELETE FROM dbos.workflow_status WHERE workflow_uuid = :key", key=key)
    (fleet.folder / "gate.open").touch()
    fleet.start_slot(2, takeover=1.0)
    fleet.until_ended()
    for name in "abc":
        fleet.check_exactly_once(name, 1)


@pytest.mark.long
def test_a_name_can_be_used_again_and_old_turns_are_deleted(fleet: Fleet) -> None:
    for _ in range(2):
        fleet.add([FleetTask("one", text="work")], fleet.agent(1))
        slot = fleet.start_slot(1, takeover=1.0)
        fleet.until_ended()
        fleet.check_exactly_once("one", 1)
        slot.terminate()
        assert slot.wait(20) == 0
        assert fleet.store.forget(fleet.project, "one")
        fleet.records("update-ref", "-d", "refs/rooda/fleet/one")
        fleet.git("update-ref", "-d", "refs/heads/rooda/one")
    count = "SELECT count(*) FROM dbos.workflow_status"
    assert fleet.sql(count) == [(2,)]
    older = "UPDATE dbos.workflow_status SET completed_at = completed_at - :days"
    oldest = "SELECT workflow_uuid FROM dbos.workflow_status ORDER BY created_at LIMIT 1"
    fleet.sql(f"{older} WHERE workflow_uuid = ({oldest})", days=DAYS)
    fleet.start_slot(1)
    fleet.until(lambda: fleet.sql(count) == [(1,)])


class Queue:
    """A queue that does not answer, or that fails."""

    def __init__(self, error: Exception | None) -> None:
        self._error = error
        self.asked = threading.Semaphore(0)

    def recover(self, _: object) -> None:
        self.asked.release()
        if self._error is not None:
            raise self._error
        threading.Event().wait()


@pytest.mark.parametrize("error", [None, ValueError("an answer that rooda does not know")])
def test_a_worker_beats_whatever_its_queue_does(
    tmp_path: Path, error: Exception | None, capfd: pytest.CaptureFixture[str]
) -> None:
    store = FleetStore(f"sqlite:///{tmp_path}/fleet.sqlite")
    store.workers.register(WorkerRow("w", "p", "host", 1, 1, ()))
    queue: Any = Queue(error)
    stopped = threading.Event()
    heart = Heart(store, queue, Control(), "p", "w", 0.12, on_death=pytest.fail)
    beating = threading.Thread(target=heart.run, args=[stopped])
    beating.start()
    assert queue.asked.acquire(timeout=20)
    first = store.workers.all("p")[0].beats
    end = time.monotonic() + 20
    while store.workers.all("p")[0].beats < first + 3:
        assert time.monotonic() < end
        time.sleep(0.01)
    if error is not None:
        assert queue.asked.acquire(timeout=20)  # it tries again
    stopped.set()
    beating.join()
    store.close()
    assert capfd.readouterr().err.count("rooda does not know") == (0 if error is None else 1)
