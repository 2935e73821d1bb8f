"""A fence is made once, borrows the objects of the user, and takes over what version 0.1 left."""

from pathlib import Path

import pytest

from rooda.fleet.remote import own_fence
from rooda.fleet.remote.fence import scratch_remote
from rooda.fleet.remote.own_fence import free_objects, make_fence, pack_loose_objects
from rooda.fleet.remote.record_commits import Record, RecordKind
from rooda.fleet.run_model import BRANCHES, RECORDS
from rooda.world.tools import Tools
from support.fleetwork import TASK, fingerprint, remote_of, user_repository
from support.gitrepo import Repo
from support.tables import each_row

pytestmark = pytest.mark.real


@pytest.fixture
def user(tmp_path: Path) -> Repo:
    return user_repository(tmp_path / "user")


def tools_of(user: Repo) -> Tools:
    return Tools(user.environ)


def made(user: Repo) -> tuple[Path, int]:
    fence = user.path.parent / "fence.git"
    return fence, make_fence(fence, user.path / ".git", tools_of(user))


def of_old_version(user: Repo, run: str) -> Record:
    """Publish an iteration with uncommitted work as version 0.1 did; return the record."""
    remote = remote_of(str(user.path), user.path.parent / f"old-{run}", user)
    base = user.git("rev-parse", "main")
    remote.add([(run, TASK)])
    remote.ensure(base)
    here = Repo(remote.git_dir, user.environ)
    blob = here.git("hash-object", "-w", "--stdin", given=run.encode())
    tree = here.git("mktree", given=f"100644 blob {blob}\twork.txt\n".encode())
    tip = here.git("commit-tree", tree, "-p", base, "-m", "work")
    wip = here.git("commit-tree", tree, "-p", tip, "-m", "uncommitted work")
    record = remote.fetch(run)
    assert record is not None
    return remote.publish(
        *(run, record), kind=RecordKind.DONE, iteration=1, tip=tip, wip=wip, files={}
    )


def test_fence_is_made_once_and_leaves_the_repository_of_the_user_alone(user: Repo) -> None:
    before = fingerprint(user)
    fence, taken = made(user)
    assert taken == 0
    Repo(fence, user.environ).git("update-ref", f"{RECORDS}api", user.git("rev-parse", "main"))
    assert made(user) == (fence, 0)
    assert "refs/rooda/fleet/api" in Repo(fence, user.environ).git("for-each-ref")
    assert fingerprint(user) == before
    assert sorted(path.name for path in fence.parent.iterdir()) == ["fence.git", "home", "user"]


def test_records_of_version_0_1_move_into_the_fence_with_all_that_only_they_have(
    user: Repo,
) -> None:
    records = [of_old_version(user, run) for run in ("api", "web")]
    fence, taken = made(user)
    assert taken == 2
    assert not (user.path / "HOOK-RAN").exists()
    refs = user.git("for-each-ref", "--format=%(refname)").split()
    assert not [ref for ref in refs if ref.startswith("refs/rooda")]
    assert [f"{BRANCHES}api", f"{BRANCHES}web"] == [ref for ref in refs if BRANCHES in ref]
    # Nothing keeps these objects in the user's repository any more.
    user.git("reflog", "expire", "--expire=now", "--all")
    user.git("gc", "-q", "--prune=now")
    for record in records:
        with scratch_remote(str(user.path), tools_of(user), fence=fence) as remote:
            found = remote.fetch(record.run)
            assert found == record
            assert remote.mirror(found) == found
    Repo(fence, user.environ).git("fsck", "--strict")
    assert made(user) == (fence, 0)


def test_crash_before_the_old_records_are_deleted_is_repaired(
    user: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_old_version(user, "api")
    with monkeypatch.context() as patched:
        patched.setattr(own_fence, "_delete_taken", lambda *_: None)
        made(user)
    assert "refs/rooda/fleet/api" in user.git("for-each-ref")
    made(user)
    assert "refs/rooda/" not in user.git("for-each-ref")


def test_packed_fence_keeps_what_the_repository_of_the_user_loses(user: Repo) -> None:
    record = of_old_version(user, "api")
    fence, _ = made(user)
    worker = remote_of(str(user.path), user.path.parent / "new", user, fence=fence)
    here, decided = Repo(worker.git_dir, user.environ), Repo(fence, user.environ)
    claimed = worker.claim("api", record, "w") if worker.fetch("api") else record
    tip = here.git("commit-tree", f"{claimed.tip}^{{tree}}", "-p", str(claimed.tip), "-m", "more")
    worker.publish(
        *("api", claimed), kind=RecordKind.DONE, iteration=2, tip=tip, wip=None, files={}
    )
    user.git("gc", "-q")
    pack_loose_objects(fence, tools_of(user), 0)
    assert decided.git("count-objects").startswith("0 objects")
    user.git("update-ref", "-d", "refs/heads/rooda/api")
    user.git("gc", "-q", "--prune=now")
    assert decided.git("cat-file", "-t", tip) == "commit"
    decided.git("fsck", "--strict")


@each_row("most_loose", [0, 6700])
def test_objects_of_a_deleted_record_are_freed_and_those_of_others_stay(
    tmp_path: Path, most_loose: int
) -> None:
    user = user_repository(tmp_path / "user")
    gone, stays = (of_old_version(user, run) for run in ("api", "web"))
    fence, _ = made(user)
    pack_loose_objects(fence, tools_of(user), most_loose)
    decided = Repo(fence, user.environ)
    decided.git("update-ref", "-d", gone.ref)
    free_objects(fence, tools_of(user))
    user.git("update-ref", "-d", f"{BRANCHES}api")
    user.git("update-ref", "-d", f"{BRANCHES}web")
    user.git("reflog", "expire", "--expire=now", "--all")
    user.git("gc", "-q", "--prune=now")
    assert "missing" in decided.git("cat-file", "--batch-check", given=f"{gone.wip}\n".encode())
    assert "missing" in decided.git("cat-file", "--batch-check", given=f"{gone.sha}\n".encode())
    for name in (stays.sha, stays.tip, stays.wip):
        decided.git("cat-file", "-e", str(name))
    decided.git("fsck", "--strict")
    size = decided.git("count-objects", "-v")
    free_objects(fence, tools_of(user))
    assert decided.git("count-objects", "-v") == size
    decided.git("update-ref", "-d", stays.ref)
    free_objects(fence, tools_of(user))
    left = [path for path in (fence / "objects").rglob("*") if path.is_file()]
    assert [path.name for path in left if path.parent.name != "info"] == []


def test_taken_over_run_continues_on_its_branch(user: Repo) -> None:
    record = of_old_version(user, "api")
    fence, _ = made(user)
    worker = remote_of(str(user.path), user.path.parent / "new", user, fence=fence)
    found = worker.fetch("api")
    assert found == record
    claimed = worker.claim("api", found, "w")
    here = Repo(worker.git_dir, user.environ)
    tip = here.git("commit-tree", f"{claimed.tip}^{{tree}}", "-p", str(claimed.tip), "-m", "more")
    published = worker.publish(
        *("api", claimed), kind=RecordKind.DONE, iteration=2, tip=tip, wip=None, files={}
    )
    assert user.git("rev-parse", "rooda/api") == published.tip == tip


def test_repository_that_moved_is_found_again(user: Repo, tmp_path: Path) -> None:
    of_old_version(user, "api")
    fence, _ = made(user)
    moved = tmp_path / "moved"
    user.path.rename(moved)
    make_fence(fence, moved / ".git", tools_of(user))
    Repo(fence, user.environ).git("fsck", "--strict")


def test_sha256_and_shallow_repositories_have_a_fence(user: Repo, tmp_path: Path) -> None:
    user.git("commit", "-q", "-am", "second")
    shallow = tmp_path / "shallow"
    user.git("clone", "-q", "--depth=1", f"file://{user.path}", str(shallow))
    other = tmp_path / "other"
    user.git("init", "-q", "--object-format=sha256", str(other))
    for number, repo in enumerate((Repo(shallow, user.environ), Repo(other, user.environ))):
        repo.git("commit", "-q", "--allow-empty", "-m", "here")
        fence = tmp_path / f"fence-{number}.git"
        make_fence(fence, repo.path / ".git", tools_of(user))
        clone = tmp_path / f"clone-{number}"
        repo.git("clone", "-q", str(repo.path), str(clone))
        tip = Repo(clone, user.environ).git("rev-parse", "HEAD")
        Repo(clone, user.environ).git("push", "-q", str(fence), f"{tip}:{RECORDS}api")
        assert Repo(fence, user.environ).git("rev-parse", f"{RECORDS}api") == tip
