"""The private parts of DBOS that rooda uses are there, in every version that rooda allows."""

import inspect
from pathlib import Path

import pytest
from dbos import DBOS
from dbos._serialization import DefaultSerializer
from dbos._sys_db import SystemDatabase, WorkflowStatusString

from rooda.fleet.worker import durable
from tools import dbos_versions


def parameters(function: object) -> list[str]:
    assert callable(function)
    return list(inspect.signature(function).parameters)


def test_the_private_parts_are_there() -> None:
    assert parameters(SystemDatabase.reenqueue_for_recovery) == [
        *("self", "workflow_id", "executor_ids", "recovery_queue_name")
    ]
    claim = parameters(SystemDatabase.start_queued_workflows)
    assert claim[:5] == ["self", "queue", "executor_id", "app_version", "queue_partition_key"]
    assert parameters(DefaultSerializer.deserialize)[1:] == ["serialized_data"]
    own = inspect.getsource(DBOS)
    for name in ("self._sys_db", "self._active_workflows_set", "self._listening_queues"):
        assert name in own


def test_rooda_knows_every_state_of_a_workflow() -> None:
    """A state that it does not know would count as lost: the run would be queued again."""
    assert {one.value for one in WorkflowStatusString} == {
        *durable.UNFINISHED,
        *durable.FINISHED,
    }


@pytest.mark.real(rows=1)
@pytest.mark.timeout(300)
@pytest.mark.parametrize("which", [0, -1], ids=["oldest", "newest"])
def test_the_engine_works_with_every_version_that_is_allowed(which: int, tmp_path: Path) -> None:
    try:
        version = dbos_versions.allowed_versions()[which]
        if dbos_versions.is_installed(version):
            pytest.skip(f"dbos {version} is the installed version: all tests use it")
        done = dbos_versions.run_tests(version, tmp_path / "venv")
    except dbos_versions.NotAvailable as error:
        pytest.skip(str(error))
    assert done.returncode == 0, done.stdout[-5000:]
