"""On one machine a private fence decides, and the user's repository gets the branches alone."""

import threading
from pathlib import Path

import pytest
from msgspec.structs import replace

from rooda.fleet.remote import fence as fence_module
from rooda.fleet.remote.fence import Refused, Remote
from rooda.fleet.remote.mirror import MIRRORED, BranchMoved, unmirrored
from rooda.fleet.remote.own_fence import make_fence
from rooda.fleet.remote.record_commits import Record, RecordKind
from rooda.fleet.remote.server import Unreachable
from rooda.fleet.run_model import BRANCHES, RECORDS
from rooda.world.tools import Tools
from support.fleetwork import TASK, changes_since, fingerprint, remote_of, user_repository
from support.gitrepo import Repo

pytestmark = pytest.mark.real
RECORD, BRANCH = f"{RECORDS}api", f"{BRANCHES}api"


class Crash(Exception):  # noqa: N818 - it stands for SIGKILL
    """The process ends here."""


class World:
    """A user's repository with a fence, and workers that see both."""

    def __init__(self, folder: Path) -> None:
        self.user = user_repository(folder / "user")
        self.tools = Tools(self.user.environ)
        self.fence = folder / "fence.git"
        self._folder = folder
        assert make_fence(self.fence, self.user.path / ".git", self.tools) == 0
        self.base = self.user.git("rev-parse", "main")

    def worker(self, name: str = "one") -> Remote:
        place = self._folder / name
        return remote_of(str(self.user.path), place, self.user, fence=self.fence)

    def decided(self) -> Repo:
        return Repo(self.fence, self.user.environ)

    def branch(self) -> str:
        return self.user.git("for-each-ref", "--format=%(objectname)", BRANCH).strip()

    def refs(self) -> set[str]:
        return set(self.user.git("for-each-ref", "--format=%(refname)").split())

    def commit(self, text: str, parent: str, worker: Remote | None = None) -> str:
        """Return a commit made in the repository of a worker, or of the user."""
        if worker is not None:
            worker.ensure(parent)
        here = Repo(worker.git_dir if worker else self.user.path, self.user.environ)
        blob = here.git("hash-object", "-w", "--stdin", given=text.encode())
        tree = here.git("mktree", given=f"100644 blob {blob}\t{text}.txt\n".encode())
        return here.git("commit-tree", tree, "-p", parent, "-m", text)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def begin(worker: Remote) -> Record:
    worker.add([("api", TASK)])
    return worker.claim("api", seen(worker), "w")


def seen(worker: Remote) -> Record:
    record = worker.fetch("api")
    assert record is not None
    return record


def publish(worker: Remote, record: Record, tip: str, iteration: int = 1) -> Record:
    worker.ensure(tip)
    return worker.publish(
        *("api", record), kind=RecordKind.DONE, iteration=iteration, tip=tip, wip=None, files={}
    )


def die_between_pushes(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(*_: object) -> None:
        raise Crash

    monkeypatch.setattr(fence_module, "reach", crash)


def crash_after_decision(worker: Remote, record: Record, tip: str, iteration: int = 1) -> None:
    with pytest.MonkeyPatch.context() as patched:
        die_between_pushes(patched)
        with pytest.raises(Crash):
            publish(worker, record, tip, iteration)


def test_only_the_branch_and_its_objects_reach_the_repository_of_the_user(world: World) -> None:
    before, refs = fingerprint(world.user), world.refs()
    worker = world.worker()
    record = begin(worker)
    assert changes_since(before, world.user) == []
    assert fingerprint(world.user) == before  # not even an object
    tip = world.commit("work", world.base, worker)
    record = publish(worker, record, tip)
    assert world.branch() == tip
    assert world.refs() == {*refs, BRANCH}
    assert record == seen(world.worker("two"))
    assert (record.branch, record.tip, record.mirror, record.iteration) == (tip, tip, None, 1)
    assert record.sha not in world.user.git("cat-file", "--batch-all-objects", "--batch-check")
    assert unmirrored(world.fence, world.tools) == set()
    assert changes_since(before, world.user) == []
    world.decided().git("fsck", "--strict")


def test_next_process_mirrors_what_a_killed_one_decided(world: World) -> None:
    first = world.worker()
    tip = world.commit("work", world.base, first)
    crash_after_decision(first, begin(first), tip)
    assert world.branch() == ""
    assert unmirrored(world.fence, world.tools) == {"api"}
    second = world.worker("two")
    record = seen(second)
    assert (record.iteration, record.tip, record.branch) == (1, tip, None)
    mirrored = second.mirror(record)
    assert world.branch() == tip
    assert mirrored == seen(second)
    assert unmirrored(world.fence, world.tools) == set()
    assert second.mirror(record) == mirrored  # a repeated mirror changes nothing
    assert world.branch() == tip


def test_worker_that_wakes_between_the_pushes_spoils_no_later_work(world: World) -> None:
    first = world.worker()
    tip = world.commit("work", world.base, first)
    crash_after_decision(first, begin(first), tip)
    asleep = seen(first)
    second = world.worker("two")
    record = second.claim("api", second.mirror(seen(second)), "other")
    more = world.commit("more", tip, second)
    last = publish(second, record, more, 2)
    first.mirror(asleep)
    assert world.branch() == more
    assert seen(second) == last
    assert unmirrored(world.fence, world.tools) == set()
    with pytest.raises(Refused):
        publish(first, replace(asleep, mirror=None, branch=tip), world.commit("old", tip), 2)
    assert world.branch() == more


def test_commit_of_a_person_refuses_the_mirror_and_the_record_is_decided(world: World) -> None:
    worker = world.worker()
    tip = world.commit("work", world.base, worker)
    record = publish(worker, begin(worker), tip)
    person = world.commit("person", tip)
    world.user.git("update-ref", BRANCH, person)
    more = world.commit("more", tip, worker)
    with pytest.raises(BranchMoved) as moved:
        publish(worker, record, more, 2)
    assert moved.value.actual == person
    assert moved.value.record.sha == seen(worker).sha
    assert world.branch() == person
    again = world.commit("replayed", person, worker)
    published = publish(worker, replace(moved.value.record, branch=person), again, 2)
    assert (world.branch(), published.mirror) == (again, None)


def test_person_who_continues_from_the_mirrored_work_is_no_conflict(world: World) -> None:
    """The worker died before it noted that the mirror arrived."""
    first = world.worker()
    tip = world.commit("work", world.base, first)
    crash_after_decision(first, begin(first), tip)
    world.user.git("fetch", "-q", str(world.fence), RECORD)
    person = world.commit("person", tip)
    world.user.git("update-ref", BRANCH, person)
    record = first.mirror(seen(first))
    assert (record.branch, record.mirror) == (person, None)
    assert world.branch() == person


def test_branch_that_a_person_set_back_stays_there(world: World) -> None:
    """The mirror has arrived, so an older commit on the branch is the wish of a person."""
    worker = world.worker()
    one = world.commit("one", world.base, worker)
    record = publish(worker, begin(worker), one)
    publish(worker, record, world.commit("two", one, worker), 2)
    world.user.git("update-ref", BRANCH, one)
    found = worker.mirror(seen(worker))
    assert (found.branch, found.start, world.branch()) == (one, one, one)


@pytest.mark.parametrize("is_decided", [False, True])
def test_branch_that_a_person_deleted_comes_back(world: World, *, is_decided: bool) -> None:
    worker = world.worker()
    one = world.commit("one", world.base, worker)
    record = publish(worker, begin(worker), one)
    two = world.commit("two", one, worker)
    if is_decided:
        crash_after_decision(worker, record, two, 2)
    world.user.git("update-ref", "-d", BRANCH)
    if is_decided:
        worker.mirror(seen(worker))
    else:
        publish(worker, record, two, 2)
    assert world.branch() == two


def test_branch_that_is_checked_out_waits_and_the_record_is_safe(world: World) -> None:
    worker = world.worker()
    one = world.commit("one", world.base, worker)
    record = publish(worker, begin(worker), one)
    world.user.git("stash", "-q", "-u")
    world.user.git("switch", "-q", "rooda/api")
    two = world.commit("two", one, worker)
    with pytest.raises(Unreachable, match=r"is checked out in .*: switch to another branch"):
        publish(worker, record, two, 2)
    assert seen(worker).iteration == 2
    world.user.git("switch", "-q", "main")
    published = publish(worker, record, two, 2)  # as a patient worker does
    assert (world.branch(), published.iteration) == (two, 2)
    chain = world.decided().git("log", "--first-parent", "--format=%s", RECORD).split("\n")
    assert chain[0] == "done 2"
    assert chain.count("done 2") == 1


@pytest.mark.parametrize("full", ["fence", "user"])
def test_side_that_git_can_not_write_to_loses_nothing(world: World, full: str) -> None:
    """A lock stands for a full disk: git can't write the new ref."""
    worker = world.worker()
    tip = world.commit("work", world.base, worker)
    record = begin(worker)
    lock = world.fence / f"{RECORD}.lock"
    if full == "user":
        lock = world.user.path / f".git/{BRANCH}.lock"
        lock.parent.mkdir()
    lock.touch()
    with pytest.raises(Unreachable):
        publish(worker, record, tip)
    lock.unlink()
    assert world.branch() == ""
    assert seen(worker).iteration == (0 if full == "fence" else 1)
    assert publish(worker, record, tip) == seen(worker)
    assert world.branch() == tip


def test_records_that_an_agent_puts_into_the_repository_of_the_user_count_for_nothing(
    world: World,
) -> None:
    worker = world.worker()
    for ref in (RECORD, "refs/heads/rooda-record/api", f"{MIRRORED}api"):
        world.user.git("update-ref", ref, world.base)
    assert worker.fetch("api") is None
    record = begin(worker)
    assert publish(worker, record, world.commit("work", world.base, worker)).iteration == 1


def test_forgotten_run_leaves_nothing_in_the_fence(world: World) -> None:
    worker = world.worker()
    tip = world.commit("work", world.base, worker)
    record = publish(worker, begin(worker), tip)
    worker.delete("api", record)
    assert world.decided().git("for-each-ref") == ""
    assert world.branch() == ""
    assert worker.fetch("api") is None


def test_two_processes_mirror_at_the_same_moment(world: World) -> None:
    first = world.worker()
    tip = world.commit("work", world.base, first)
    crash_after_decision(first, begin(first), tip)
    workers = [world.worker(f"other-{number}") for number in range(4)]
    records = [seen(worker) for worker in workers]
    found: list[Record] = []
    threads = [
        threading.Thread(target=lambda pair=pair: found.append(pair[0].mirror(pair[1])))
        for pair in zip(workers, records, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [record.branch for record in found] == [tip] * 4
    assert seen(first).mirror is None
