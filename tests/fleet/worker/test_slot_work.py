"""The iterations of a run in a slot are those that its task asks for."""

import signal
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec import json
from msgspec.structs import replace

from rooda.fleet.crash_points import DONE, FAULTS
from rooda.fleet.remote.pull_request import PullRequest
from rooda.fleet.remote.record_commits import PublishedResult, Record, RecordKind
from rooda.fleet.remote.server import Unreachable
from rooda.fleet.run_model import Finish, FleetTask, Next, RunState
from rooda.fleet.slot.slot import SlotChanged, slots_root
from rooda.fleet.worker import slot_work
from rooda.fleet.worker.control import Control
from rooda.fleet.worker.slot_plan import REPLACE, SlotPlan
from rooda.fleet.worker.slot_work import SlotWork
from rooda.record.transfer import TransferError
from rooda.run.outcome import RunOutcome
from support.fleet import Fleet

pytestmark = pytest.mark.real


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path, f"sqlite:///{tmp_path}/fleet.sqlite")
    yield fleet
    fleet.close()


@pytest.mark.long
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
    kept = fleet.records("show", "refs/rooda/fleet/one:record.json")
    assert "abc123" not in kept


@pytest.fixture
def work(fleet: Fleet) -> Iterator[SlotWork]:
    """The work in a slot of the fleet, in this process."""
    slot = fleet.open_slot()
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
    with fleet.remote_here() as remote:
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


def test_a_conflict_that_was_published_is_the_end_although_its_worker_died(
    fleet: Fleet, work: SlotWork
) -> None:
    (run,) = fleet.add([FleetTask("one")], "agent")
    told = PublishedResult(life=run.life, state=RunState.WORKING, iteration=1)
    published(fleet, "one", told, RunState.CONFLICT)
    assert work.open(run) == Next("end", state=RunState.CONFLICT)


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
    monkeypatch.setattr(SlotWork, "_check_record", lambda *_: None)  # there was no iteration
    found = work.publish(run, RunOutcome(run="one", status="paused", iteration=1), RunState.WORKING)
    reason = "its record can't be published: run one is too large"
    assert found == Next("end", state=RunState.FAILED, reason=reason)
    assert work.open(replace(run, turn=2)) == found  # also if the worker dies now
    assert fleet.records("show", "refs/rooda/fleet/one^3:new.txt") == "work"
    assert "done" not in fleet.records(
        "log", "--first-parent", "--format=%s", "refs/rooda/fleet/one"
    )


@pytest.mark.long
@pytest.mark.parametrize("is_wild", [False, True])
@pytest.mark.parametrize("procedure", [None, "build"])
def test_no_flag_of_a_pushed_record_reaches_an_iteration(
    fleet: Fleet, procedure: str | None, *, is_wild: bool
) -> None:
    """Every person who can push can write the record, so commands come from the database alone."""
    owned = fleet.folder / "owned"
    fleet.add([FleetTask("one", text="work", procedure=procedure)], fleet.agent(2))
    faults = {FAULTS: "crash:after-step:one:1", DONE: str(fleet.folder)}
    fleet.start_slot(1, more=faults).wait(30)
    ref = "refs/rooda/fleet/one"
    document = json.decode(fleet.records("show", f"{ref}:record.json"))
    data = document["run"][-1]
    data["given"]["flags"] += [["--verify", f"touch {owned}"]]
    if is_wild:  # rooda can't have written this
        document["run"][1] = "build" if procedure is None else "loop"
        data["given"]["flags"] += [["--ai-cmd", f"touch {owned}"]]
        data["given"]["arguments"] = ["../../elsewhere.md"]
    blob = fleet.records("hash-object", "-w", "--stdin", given=json.encode(document).decode())
    entries = [
        line if not line.endswith("record.json") else f"100644 blob {blob}\trecord.json"
        for line in fleet.records("ls-tree", ref).splitlines()
    ]
    tree = fleet.records("mktree", given="\n".join([*entries, ""]))
    message = fleet.records("log", "-1", "--format=%B", ref)
    fleet.records("update-ref", ref, fleet.records("commit-tree", tree, "-p", ref, "-m", message))
    fleet.start_slot(2, takeover=1.0)
    fleet.until_ended()
    assert fleet.run("one").state is RunState.SUCCESS, fleet.story()
    assert not owned.exists()
    assert fleet.git("show", "rooda/one:work.txt").splitlines() == ["line", "line"]


def run_shell(words: str, folder: Path) -> None:
    subprocess.run(["sh", "-c", words], cwd=folder, check=True)


@pytest.mark.long
@pytest.mark.parametrize(
    "damage",
    [
        "rm -rf $slot/work",
        "rm -rf $slot/work; mkdir $slot/work",
        "rm -rf $slot/work; git init -q $slot/work",
        "rm -rf .git",
        "rm -rf .git; git init -q",
        "find . -mindepth 1 -delete",
        "rm -rf $slot/record",
        "rm -rf $slot/record/.rooda",
        "rm -rf $slot",
        "mv $slot $slot-away",
        "rm $slot/lock",
    ],
)
@pytest.mark.parametrize("moment", ["during", "after"])
def test_an_iteration_whose_slot_vanishes_is_done_again_and_deletes_nothing(
    fleet: Fleet, damage: str, moment: str
) -> None:
    """Once, in the second iteration: while the agent works, or while git is away after it."""
    mark, hidden = fleet.folder / "mark", fleet.folder / "hidden"
    act = damage if moment == "during" else f"mv {fleet.repo}/.git {hidden}"
    first = f"[ -e work.txt ] && [ ! -e {mark} ]"
    before = f'slot=$(dirname "$PWD")\nif {first}; then touch {mark}; {act}\nfi'
    fleet.add([FleetTask("one", text="work", max_iterations=20)], fleet.agent(3, before))
    worker = fleet.start_slot(1, takeover=1.0)
    fleet.until(mark.exists)
    if moment == "after":
        fleet.until(lambda: "next try" in fleet.run("one").reason)
        slot = slots_root(fleet.environ()) / fleet.project / "1"
        run_shell(f'slot="{slot}"; {damage}', slot / "work")
        hidden.rename(fleet.repo / ".git")
    fleet.until(lambda: worker.poll() is not None or fleet.run("one").state.is_end, 90)
    if worker.poll() is not None:  # the worker starts it again
        assert worker.returncode == REPLACE
        fleet.start_slot(1, takeover=1.0)
    fleet.until_ended(90)
    assert fleet.run("one").state is RunState.SUCCESS, fleet.story()
    fleet.check_exactly_once("one", 3)
    assert "README" in fleet.git("ls-tree", "--name-only", "rooda/one").split()


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("part", ["work", "work/.git", "record"])
def test_a_slot_that_changes_during_its_setup_does_not_end_the_run(fleet: Fleet, part: str) -> None:
    slot = fleet.open_slot()
    path = slot.folder / part
    setup = f"rm -rf '{path}'; git init -q '{path}'; exit 1"
    plan = SlotPlan(fleet.url, fleet.remote, fleet.project, 1, setup=setup)
    (run,) = fleet.add([FleetTask("one")], "agent")
    with pytest.raises(SlotChanged, match="was deleted or replaced"):
        SlotWork(slot, plan, "worker", Control(), lambda *_: None).open(run)
    slot.close()


@pytest.mark.long
def test_after_sigterm_a_slot_says_that_its_last_iteration_waits_for_git(fleet: Fleet) -> None:
    hidden = fleet.folder / "hidden"
    first = f"[ ! -e work.txt ] && mv {fleet.repo}/.git {hidden}"
    fleet.add([FleetTask("one", text="work")], fleet.agent(2, first))
    slot = fleet.start_slot(1)
    fleet.until(lambda: "next try" in fleet.run("one").reason)
    slot.send_signal(signal.SIGTERM)
    log = fleet.folder / "slot-1.log"
    words = "slot 1 waits for git before it ends: iteration 1 of one is done and not published"
    fleet.until(lambda: words in log.read_text())
    assert slot.poll() is None
    hidden.rename(fleet.repo / ".git")
    assert slot.wait(60) == 0
    assert fleet.run("one").iteration == 1


def test_a_worker_that_is_to_end_does_not_wait_for_git_before_an_iteration(fleet: Fleet) -> None:
    control, told = Control(), threading.Event()
    slot = fleet.open_slot()
    plan = SlotPlan(fleet.url, fleet.remote, fleet.project, 1)
    work = SlotWork(slot, plan, "worker", control, lambda *_: told.set())
    (run,) = fleet.add([FleetTask("one")], "agent")
    (fleet.repo / ".git").rename(fleet.folder / "hidden")
    waiting = ThreadPoolExecutor().submit(work.open, run)
    assert told.wait(30)
    control.drain()
    with pytest.raises(Unreachable):
        waiting.result(10)
    slot.close()


def test_a_run_that_rooda_can_not_work_on_keeps_no_other_run_waiting(fleet: Fleet) -> None:
    """No process can be started with such an argument, and rooda does not look for it."""
    fleet.add([FleetTask("broken")], fleet.agent(1), "--verify", "a\0b", batch="broken")
    fleet.add([FleetTask("good", text="work")], fleet.agent(1))
    fleet.start_slot(1)
    fleet.until(lambda: fleet.run("good").state.is_end)
    assert fleet.run("good").state is RunState.SUCCESS, fleet.story()
    fleet.until(lambda: "rooda could not work on it" in fleet.run("broken").reason)
    assert fleet.run("broken").state is RunState.QUEUED
    # It is tried again after a minute, and set aside after some tries.
    assert "claim" in fleet.records("log", "-1", "--format=%s", "refs/rooda/fleet/broken")
