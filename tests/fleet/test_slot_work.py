"""The iterations of a run in a slot are those that its task asks for."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rooda.fleet.faults import DONE, FAULTS
from rooda.fleet.fence import scratch_remote
from rooda.fleet.model import Batch, State, Task
from rooda.workspace.tools import Tools
from support.fleet import Fleet


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path, f"sqlite:///{tmp_path}/fleet.sqlite")
    yield fleet
    fleet.close()


@pytest.mark.slow
def test_a_task_that_speaks_of_a_secret_goes_on_in_another_slot(fleet: Fleet) -> None:
    """Git keeps no flag that may have a secret in it, so the context comes from the task again."""
    prompts = fleet.folder / "prompts"
    agent = fleet.agent(2, f"cat >> {prompts}")
    fleet.add([Task("one", text="Rename TOKEN=abc123.", procedure="build")], agent)
    faults = {FAULTS: "crash:after-step:one:1", DONE: str(fleet.folder)}
    fleet.start_slot(1, more=faults).wait(30)
    fleet.start_slot(2, takeover=1.0)
    fleet.until_ended()
    assert fleet.run("one").state is State.SUCCESS, fleet.story()
    assert prompts.read_text().count("Rename TOKEN=abc123.") == 2
    kept = fleet.git("show", "refs/rooda/fleet/one:record.json")
    assert "abc123" not in kept


@pytest.mark.slow
def test_a_run_with_the_name_of_a_forgotten_one_is_worked_on(fleet: Fleet) -> None:
    for name in ("first", "second"):
        fleet.batch = Batch(name, fleet.batch.base)
        fleet.add([Task("one", text="work")], fleet.agent(1))
        if name == "first":
            fleet.start_slot(1)
        fleet.until_ended()
        assert fleet.run("one").state is State.SUCCESS
        assert fleet.store.forget(fleet.project, "one")
        with scratch_remote(fleet.remote, Tools(fleet.environ())) as remote:
            record = remote.fetch("one")
            assert record is not None
            remote.delete("one", record)
