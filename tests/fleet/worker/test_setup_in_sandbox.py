"""The setup of a slot runs agents' work, so it is in the sandbox of the run. Real bubblewrap."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from rooda.fleet.run_model import FleetTask, Next, Run, RunState
from rooda.fleet.slot.slot import Slot
from rooda.fleet.worker.control import Control
from rooda.fleet.worker.slot_plan import SlotPlan
from rooda.fleet.worker.slot_work import SlotWork
from support.fleet import Fleet
from support.sandboxes import require_bwrap

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux"),
]


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    require_bwrap()
    fleet = Fleet(tmp_path, f"sqlite:///{tmp_path}/fleet.sqlite")
    (fleet.home / "secret").write_text("key")
    yield fleet
    fleet.close()


@contextmanager
def slot_work(fleet: Fleet, setup: str, **variables: str) -> Iterator[tuple[SlotWork, Slot]]:
    """Yield the work in a slot of the fleet, in this process."""
    slot = fleet.open_slot(**variables)
    plan = SlotPlan(fleet.url, fleet.remote, fleet.project, 1, setup=setup)
    yield SlotWork(slot, plan, "worker", Control(), lambda *_: None), slot
    slot.close()


def added(fleet: Fleet, name: str, *flags: str, procedure: str | None = None) -> Run:
    task = FleetTask(name, text="Do it.", procedure=procedure)
    return fleet.add([task], "agent", *flags, batch=name)[0]


def escape(fleet: Fleet) -> str:
    return f"cat ~/secret > found; touch {fleet.folder}/outside; echo $ROODA_SLOT >> ~/cache; true"


@pytest.mark.parametrize(
    "flags, variables, config, procedure",
    [
        (("--sandbox", "bwrap"), {}, "", None),
        (("--sandbox=bwrap", "-n", "3"), {}, "", "build"),
        ((), {"ROODA_LOOP_SANDBOX_KIND": "bwrap"}, "", None),
        ((), {}, "loop: {sandbox: bwrap}\n", None),
        ((), {}, "procedures: {build: {sandbox: bwrap}}\n", "build"),
    ],
)
def test_setup_is_in_the_sandbox_of_the_run_whoever_asked_for_it(
    fleet: Fleet,
    flags: tuple[str, ...],
    variables: dict[str, str],
    config: str,
    procedure: str | None,
) -> None:
    if config:
        (fleet.repo / "rooda-config.yml").write_text(config)
        fleet.git("add", "-A")
        fleet.git("commit", "-qm", "config")
        fleet.batch = replace(fleet.batch, base=fleet.git("rev-parse", "HEAD"))
    with slot_work(fleet, escape(fleet), **variables) as (work, slot):
        assert work.open(added(fleet, "one", *flags, procedure=procedure)) is None
        assert (slot.work / "found").read_text() == ""
        assert not (fleet.folder / "outside").exists()
        # The home folder of the slot stays, with its caches, as for the iterations.
        (cache,) = (fleet.folder / "slots").glob("*/1/record/home/cache")
        assert cache.read_text() == "1\n"
        assert not (fleet.home / "cache").exists()


def test_setup_runs_again_in_another_sandbox(fleet: Fleet) -> None:
    """The one before had another home folder, with other caches and programs."""
    with slot_work(fleet, f"{escape(fleet)}; touch ran") as (work, slot):
        (fleet.repo / ".gitignore").write_text("ran\n")
        for number, (flags, runs) in enumerate(
            [((), True), (("-n", "3"), False), (("--sandbox", "bwrap"), True)]
        ):
            (slot.work / "ran").unlink(missing_ok=True)
            assert work.open(added(fleet, f"run-{number}", *flags)) is None
            assert (slot.work / "ran").exists() is runs, flags


def test_setup_without_its_sandbox_is_an_error_and_not_outside(fleet: Fleet) -> None:
    with slot_work(fleet, escape(fleet)) as (work, _):
        found = work.open(added(fleet, "one", "--sandbox", "command"))
        assert isinstance(found, Next)
        assert found.state is RunState.FAILED
        assert "the setup command failed" in found.reason
        assert "sandbox command needs a command" in found.reason
        assert not (fleet.folder / "outside").exists()


def test_what_the_setup_plants_for_programs_outside_ends_the_run(fleet: Fleet) -> None:
    plant = (
        "mkdir -p .git/rebase-merge; echo 'exec touch owned' > .git/rebase-merge/git-rebase-todo"
    )
    with slot_work(fleet, plant) as (work, slot):
        found = work.open(added(fleet, "one", "--sandbox", "bwrap"))
        assert found is None or "the setup command failed" in found.reason
        assert not (slot.work / ".git/rebase-merge").exists()
