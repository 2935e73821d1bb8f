"""The iterations of a run in a slot are those that its task asks for."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rooda.fleet.faults import DONE, FAULTS
from rooda.fleet.model import State, Task
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
