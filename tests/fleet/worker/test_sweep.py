"""Runs that the queue has lost are queued again, and old turns are deleted."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rooda.fleet.run_model import FleetTask, RunState
from support.fleet import Fleet

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
