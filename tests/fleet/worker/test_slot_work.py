"""The iterations of a run in a slot are those that its task asks for."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import json
from msgspec.structs import replace

from rooda.engine.run_outcome import RunOutcome
from rooda.fleet.crash_points import DONE, FAULTS
from rooda.fleet.remote.fence import scratch_remote
from rooda.fleet.remote.published_result import PublishedResult
from rooda.fleet.remote.pull_request import PullRequest
from rooda.fleet.remote.record_commits import RecordKind
from rooda.fleet.remote.run_record import Record
from rooda.fleet.run_model import Finish, FleetTask, RunState
from rooda.fleet.slots.slot import Slot
from rooda.fleet.worker import slot_work
from rooda.fleet.worker.control import Control
from rooda.fleet.worker.next_move import Next
from rooda.fleet.worker.slot_plan import SlotPlan
from rooda.fleet.worker.slot_work import SlotWork
from rooda.record.transfer import TransferError
from rooda.workspace.tools import Tools
from support.fleet import Fleet


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path, f"sqlite:///{tmp_path}/fleet.sqlite")
    yield fleet
    fleet.close()


@pytest.mark.slow
def test_a_task_that_speaks_of_a_secret_goes_on_in_another_slot(fleet: Fleet) -> None:
    """Git keeps no flag that may have a secret in it, so the context comes from the task again.

    It is longer than an argument of a command line may be.
    """
    prompts = fleet.folder / "prompts"
    agent = fleet.agent(2, f"cat >> {prompts}")
    text = "Rename TOKEN=abc123.\n" + 5000 * "A line of forty characters in a long task.\n"
    fleet.add([FleetTask("one", text=text, procedure="build")], agent)
    faults = {FAULTS: "crash:after-step:one:1", DONE: str(fleet.folder)}
    fleet.start_slot(1, more=faults).wait(30)
    fleet.start_slot(2, takeover=1.0)
    fleet.until_ended()
    assert fleet.run("one").state is RunState.SUCCESS, fleet.story()
    assert prompts.read_text().count("Rename TOKEN=abc123.") == 2
    kept = fleet.git("show", "refs/rooda/fleet/one:record.json")
    assert "abc123" not in kept


@pytest.fixture
def work(fleet: Fleet) -> Iterator[SlotWork]:
    """The work in a slot of the fleet, in this process."""
    root = fleet.folder / "slots"
    slot = Slot.open(root, fleet.project, 1, fleet.remote, environ=fleet.environ())
    plan = SlotPlan(fleet.url, fleet.remote, fleet.project, 1)
    yield SlotWork(slot, plan, "worker", Control(), lambda *_: None)
    slot.close()


def published(
    fleet: Fleet, name: str, told: PublishedResult, state: RunState | None, file: str = "work.txt"
) -> Record:
    """Let another worker publish a commit of its own, with one file, for a run."""
    blob = fleet.git("hash-object", "-w", "--stdin", given="hush\n")
    tree = fleet.git("mktree", given=f"100644 blob {blob}\t{file}\n")
    tip = fleet.git("commit-tree", tree, "-p", "HEAD", "-m", f"work of {name}")
    with scratch_remote(fleet.remote, Tools(fleet.environ())) as remote:
        record = remote.fetch(name)
        assert record is not None
        remote.ensure(tip)
        return remote.publish(
            name,
            record,
            kind=RecordKind.DONE,
            iteration=1,
            tip=tip,
            wip=None,
            files={"result.json": json.encode(told)},
            state=state,
        )


def pull_requests(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the tips of the pull requests that are made from now on."""
    tips: list[str] = []

    def make(_: str, tip: str, *__: object, **___: object) -> PullRequest:
        tips.append(tip)
        return PullRequest(7, "")

    monkeypatch.setattr(slot_work, "open_pull_request", make)
    return tips


@pytest.mark.slow
def test_a_pull_request_is_for_the_run_that_ended_and_not_for_the_one_in_the_slot(
    fleet: Fleet, work: SlotWork, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that takes over a run after its last iteration has another run in its slot."""
    mine, other = fleet.add([FleetTask("mine"), FleetTask("other")], "agent")
    record = published(fleet, "other", PublishedResult(iteration=1), RunState.SUCCESS)
    assert work.open(mine) is None
    tips = pull_requests(monkeypatch)
    ended = replace(other, batch=replace(other.batch, finish=Finish.PR))
    assert work.finish(ended, RunState.SUCCESS) == "PR #7"
    assert tips == [record.tip]


@pytest.mark.slow
def test_a_key_that_the_users_repository_has_goes_to_no_server_with_a_pull_request(
    fleet: Fleet, work: SlotWork, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run,) = fleet.add([FleetTask("one")], "agent")
    published(fleet, "one", PublishedResult(iteration=1), RunState.SUCCESS, "server.pem")
    tips = pull_requests(monkeypatch)
    ended = replace(run, batch=replace(run.batch, finish=Finish.PR))
    assert "no pull request: new files in the commits look like secrets: server.pem" in (
        work.finish(ended, RunState.SUCCESS)
    )
    assert tips == []
    flags = ("--git-allow-secrets", "*.pem")
    allowed = replace(ended, batch=replace(ended.batch, flags=flags))
    assert work.finish(allowed, RunState.SUCCESS) == "PR #7"


@pytest.mark.slow
def test_a_conflict_that_was_published_is_the_end_although_its_worker_died(
    fleet: Fleet, work: SlotWork
) -> None:
    (run,) = fleet.add([FleetTask("one")], "agent")
    told = PublishedResult(life=run.life, state=RunState.WORKING, iteration=1)
    published(fleet, "one", told, RunState.CONFLICT)
    assert work.open(run) == Next("end", state=RunState.CONFLICT)


@pytest.mark.slow
def test_a_run_whose_record_is_too_large_ends_with_its_work_on_the_branch(
    fleet: Fleet, work: SlotWork, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To work on it again would cost the same again, and end the same way."""
    (run,) = fleet.add([FleetTask("one")], "agent")
    assert work.open(run) is None
    (work.log.parent / "work" / "new.txt").write_text("work\n")

    def refuse(*_: object) -> bytes:
        raise TransferError("run one is too large")

    monkeypatch.setattr(slot_work, "export_run", refuse)
    found = work.publish(run, RunOutcome("one", "paused", iteration=1), RunState.WORKING)
    reason = "its record can't be published: run one is too large"
    assert found == Next("end", state=RunState.FAILED, reason=reason)
    assert work.open(replace(run, turn=2)) == found  # also if the worker dies now
    assert fleet.git("show", "refs/rooda/fleet/one^3:new.txt") == "work"
