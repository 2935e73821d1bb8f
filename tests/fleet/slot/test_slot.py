"""A slot is fit for the next run, whatever the last agent did in it, and no work is lost."""

import os
import stat
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from rooda.fleet.remote.fence import Refused, scratch_remote
from rooda.fleet.remote.own_fence import make_fence
from rooda.fleet.remote.record_commits import Record, RecordKind
from rooda.fleet.remote.replay import Conflict
from rooda.fleet.remote.server import Unreachable
from rooda.fleet.slot.publishing import Publication, PublishedConflict, publish_work
from rooda.fleet.slot.slot import Slot, SlotChanged, SlotGone, project_folder, slots_root
from rooda.fleet.slot.slot_setup import Setup, SetupFailed
from rooda.world.git.git import GitError
from rooda.world.tools import Tools
from support.fleetwork import TASK, changes_since, fingerprint, user_repository
from support.gitrepo import Repo, repository, walk

pytestmark = pytest.mark.real


@pytest.fixture
def user(tmp_path: Path) -> Repo:
    return user_repository(tmp_path / "user")


def open_slot(user: Repo, number: int = 1, url: str = "") -> Slot:
    folder = user.path.parent
    fence = fence_of(user) if url in ("", "user") else None
    where = url or str(user.path)
    return Slot.open(folder / "slots", "project", number, where, fence=fence, environ=user.environ)


def fence_of(user: Repo) -> Path:
    fence = user.path.parent / "fence.git"
    make_fence(fence, user.path / ".git", Tools(user.environ))
    return fence


@pytest.fixture
def slot(user: Repo) -> Iterator[Slot]:
    found = open_slot(user)
    yield found
    found.close()


@pytest.fixture
def base(user: Repo) -> str:
    return user.git("rev-parse", "main")


def begin(slot: Slot, run: str = "api") -> Record:
    """Add a run and claim it."""
    fence = slot.folder.parents[2] / "fence.git"
    with scratch_remote(slot.remote.url, Tools(), fence=fence) as remote:
        remote.add([(run, TASK)])
    record = slot.remote.fetch(run)
    assert record is not None
    return slot.remote.claim(run, record, "w")


def agent(slot: Slot, user: Repo) -> Repo:
    return Repo(slot.work, user.environ)


def publish(slot: Slot, record: Record, iteration: int = 1) -> Record:
    return publish_work(
        slot,
        record.run,
        record,
        slot.snapshot(),
        Publication(RecordKind.DONE, iteration, {}),
        is_stopped=lambda: True,
        tell=lambda _: None,
    )


def files(slot: Slot) -> dict[str, bytes]:
    return {name: content for name, (_, content) in walk(slot.work).items()}


def test_work_moves_from_slot_to_slot_with_what_is_not_committed(
    slot: Slot, user: Repo, base: str
) -> None:
    before = fingerprint(user)
    record = begin(slot)
    assert slot.prepare(record, base, "api") == base
    here = agent(slot, user)
    assert here.git("symbolic-ref", "--short", "HEAD") == "rooda/api"
    assert files(slot) == {"a.txt": b"one\n", ".gitignore": b"*.log\n.env\n"}
    here.write("b.txt", "two\n")
    tip = here.commit("agent's work")
    assert here.git("log", "-1", "--format=%an") == "A User"
    here.write("a.txt", "half\n")
    here.write("new/c.txt", "three\n")
    (slot.work / "b.txt").unlink()
    here.write("kept.log", "ignored\n")
    published = publish(slot, record)
    assert (published.tip, published.branch) == (tip, tip)
    assert published.wip is not None
    assert changes_since(before, user) == []
    assert not (user.path / "HOOK-RAN").exists()

    other = open_slot(user, 2)
    found = other.remote.fetch("api")
    assert found == published
    other.prepare(published, base, "api")
    there = agent(other, user)
    assert there.git("rev-parse", "HEAD") == tip
    assert files(other) == {
        "a.txt": b"half\n",
        ".gitignore": b"*.log\n.env\n",
        "new/c.txt": b"three\n",
    }
    assert there.git("status", "--porcelain").splitlines() == [" M a.txt", " D b.txt", "?? new/"]
    assert there.git("diff", "--cached") == ""
    other.close()


def test_secrets_repositories_and_copied_files_are_in_no_snapshot(
    slot: Slot, user: Repo, base: str
) -> None:
    user.write(".env", "KEY=1\n")
    user.write("local.log", "x\n")
    slot.prepare(begin(slot), base, "api")
    slot.copy_from(user.path, [".env", "local.log"])
    here = agent(slot, user)
    here.write(".gitignore", "")  # now .env and local.log look like new files
    here.write("id_rsa", "key\n")
    here.write("server.pem", "key\n")
    here.git("add", "server.pem")
    here.write("plain.txt", "text\n")
    here.sh(HOSTILE["nested repository"])
    here.git("add", "nested")
    found = slot.snapshot()
    assert found.tip == base
    names = here.git("diff", "--name-only", base, str(found.wip)).split()
    assert names == [".gitignore", "plain.txt"]
    allowed = slot.snapshot(("id_rsa",))
    assert "id_rsa" in here.git("diff", "--name-only", base, str(allowed.wip)).split()


def test_a_clean_slot_has_no_uncommitted_work(slot: Slot, user: Repo, base: str) -> None:
    slot.prepare(begin(slot), base, "api")
    assert slot.snapshot().wip is None
    agent(slot, user).write("token.json", "{}")
    tip = agent(slot, user).commit()
    assert (slot.snapshot().tip, slot.snapshot().wip) == (tip, None)
    assert slot.committed_secrets(tip) == ["token.json"]


HOSTILE = {
    "hooks path": "mkdir h; echo 'touch RAN; exit 1' > h/pre-commit; chmod +x h/pre-commit; "
    "git config core.hooksPath h",
    "own hook": "mkdir -p .git/hooks; printf '#!/bin/sh\\ntouch RAN; exit 1\\n' "
    "> .git/hooks/post-checkout; chmod +x .git/hooks/post-checkout",
    "filter": "git config filter.x.smudge 'touch RAN; cat'; "
    "echo '* filter=x' > .git/info/attributes",
    "monitor": "git config core.fsmonitor 'touch RAN; false'",
    "other address": 'git config url.file:///nowhere.insteadOf "$(git remote get-url origin)"',
    "index lock": "touch .git/index.lock .git/HEAD.lock .git/refs/heads/rooda/api.lock",
    "other branch": "git switch -q -c other; echo x > x; git add x; git commit -qm x",
    "rewritten history": "git checkout -q --orphan new; git commit -qm new",
    "unfinished rebase": "echo 1 > a.txt; git commit -qam 1; git rebase -q --exec false HEAD~1 "
    "|| true; test -d .git/rebase-merge",
    "no rights": "mkdir -p deep/er; touch deep/er/x; chmod -R a-w .",
    "no rights to read": "mkdir deep; touch deep/x; chmod 0 deep a.txt",
    "nested repository": "git init -q nested; cd nested; touch x; git add x; git commit -qm x",
    "link out": "rm a.txt; ln -s /etc/hostname a.txt; ln -s / root",
    "hidden change": "git update-index --assume-unchanged a.txt; echo hidden > a.txt",
    "skipped file": "git update-index --skip-worktree a.txt; echo hidden > a.txt",
    "sparse": "git sparse-checkout set --no-cone nothing",
    "broken index": "echo garbage > .git/index",
    "broken head": "echo garbage > .git/HEAD",
    "no repository": "rm -rf .git",
    "other repository": "rm -rf .git; git init -q; git add -A; git commit -qm other",
    "git file": "mv .git ../elsewhere; echo 'gitdir: ../elsewhere' > .git",
    "linked folder": "mv .git/refs ../refs; ln -s ../../refs .git/refs",
    "replaced object": "git replace HEAD $(git commit-tree HEAD^{tree} -m other)",
    "alternates": "echo /nowhere > .git/objects/info/alternates",
    "work tree elsewhere": "git config core.worktree /nowhere",
    "foreign refs": "git tag t; git branch a; git stash -q || true; echo zz > .git/refs/heads/bad",
    "pipe": "rm -f .git/config; mkfifo .git/config",
}
SLOW_ONES = tuple(HOSTILE)[3:]


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "kind",
    [pytest.param(one, marks=pytest.mark.long) if one in SLOW_ONES else one for one in HOSTILE],
)
def test_the_next_run_finds_a_clean_slot_whatever_an_agent_did(
    slot: Slot, user: Repo, base: str, kind: str
) -> None:
    before = fingerprint(user)
    slot.prepare(begin(slot), base, "api")
    agent(slot, user).write("kept.log", "ignored\n")
    agent(slot, user).sh(HOSTILE[kind])
    slot.prepare(begin(slot, "web"), base, "web")
    found = files(slot)
    found.pop("kept.log", None)  # it is gone if the clone had to be made again
    assert found == {"a.txt": b"one\n", ".gitignore": b"*.log\n.env\n"}
    here = agent(slot, user)
    assert here.git("status", "--porcelain") == ""
    assert here.git("symbolic-ref", "HEAD") == "refs/heads/rooda/web"
    assert here.git("for-each-ref", "--format=%(refname)", "refs/heads", "refs/replace") == (
        "refs/heads/rooda/web"
    )
    assert not (slot.work / "RAN").exists()
    here.write("a.txt", "next\n")
    tip = here.commit()
    assert (slot.work / "a.txt").stat().st_mode & stat.S_IWUSR
    assert slot.snapshot().tip == tip
    assert not (slot.work / "RAN").exists()
    assert changes_since(before, user) == []


def test_an_agent_that_changed_the_settings_of_git_is_published_without_them(
    slot: Slot, user: Repo, base: str
) -> None:
    record = begin(slot)
    slot.prepare(record, base, "api")
    here = agent(slot, user)
    here.write("a.txt", "work\n")
    tip = here.commit()
    here.sh(HOSTILE["other address"] + "\n" + HOSTILE["index lock"])
    here.git("config", "core.sshCommand", "touch RAN")
    assert publish(slot, record).branch == tip
    assert user.git("rev-parse", "rooda/api") == tip


def test_an_agent_that_switched_branches_or_rewrote_history_is_published_as_it_is(
    slot: Slot, user: Repo, base: str
) -> None:
    record = begin(slot)
    slot.prepare(record, base, "api")
    agent(slot, user).sh(HOSTILE["other branch"])
    record = publish(slot, record)
    assert user.git("show", "rooda/api:x") == "x"
    agent(slot, user).sh(HOSTILE["rewritten history"])
    record = publish(slot, record, 2)
    assert user.git("log", "--format=%s", "rooda/api") == "new"
    assert record.iteration == 2


def test_the_push_of_an_agent_goes_nowhere_and_says_why(slot: Slot, user: Repo, base: str) -> None:
    slot.prepare(begin(slot), base, "api")
    done = subprocess.run(
        ["git", "push", "origin", "HEAD:refs/heads/mine"],
        cwd=slot.work,
        env=user.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "rooda-publishes-the-work" in done.stderr


def test_slots_are_private_and_take_over_who_commits(slot: Slot, user: Repo, base: str) -> None:
    for folder in (slot.folder, slot.record_folder, slot.temporary):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    user.git("config", "user.name", "Local Name")
    again = open_slot(user, 3)
    again.prepare(begin(again), base, "api")
    assert agent(again, user).git("config", "user.name") == "Local Name"
    assert not list((again.work / ".git").rglob("hooks/*"))
    objects = [path for path in (again.work / ".git/objects").rglob("*") if path.is_file()]
    assert objects
    assert all(path.stat().st_nlink == 1 for path in objects)
    again.close()


def test_programs_of_slots_are_kept_apart(slot: Slot, base: str) -> None:
    found = slot.environment()
    assert found["ROODA_SLOT"] == "1"
    assert found["ROODA_PORT_BASE"] == "20100"
    assert found["COMPOSE_PROJECT_NAME"] == "rooda-project-1"
    (Path(found["TMPDIR"]) / "left").write_text("x")
    slot.prepare(begin(slot), base, "api")
    assert list(Path(found["TMPDIR"]).iterdir()) == []
    assert slots_root({"HOME": "/h"}) == Path("/h/.cache/rooda/fleet")
    assert slots_root({"HOME": "/h", "XDG_CACHE_HOME": "/c"}) == Path("/c/rooda/fleet")
    assert project_folder("../a b") != project_folder("../a-b")
    assert "/" not in project_folder("../a/b")


def test_a_slot_is_locked_until_its_process_and_its_child_are_gone(slot: Slot, user: Repo) -> None:
    child = subprocess.Popen(["sleep", "60"], pass_fds=[slot.lock_fd])
    slot.lock_fd, own = os.dup(slot.lock_fd), slot.lock_fd
    os.close(own)
    waits = threading.Event()
    os.close(slot.lock_fd)
    opened: list[Slot] = []

    def open_again() -> None:
        opened.append(
            Slot.open(
                *(slot.folder.parents[1], "project", 1, str(user.path)),
                environ=user.environ,
                tell=lambda _: waits.set(),
            )
        )

    thread = threading.Thread(target=open_again)
    thread.start()
    assert waits.wait(10)
    child.kill()
    child.wait()
    thread.join(20)
    slot.lock_fd = opened[0].lock_fd


def test_after_a_person_pushed_each_commit_is_on_the_branch_once(
    slot: Slot, user: Repo, base: str
) -> None:
    record = begin(slot)
    slot.prepare(record, base, "api")
    for number in (1, 2):
        agent(slot, user).write(f"{number}.txt", "agent\n")
        agent(slot, user).commit(f"iteration {number}")
        if number == 2:
            pushed_by_a_person(user, str(record.branch), "c.txt")
        record = publish(slot, record, number)
    assert user.git("log", "--format=%s", "rooda/api").splitlines() == [
        *("iteration 2", "a person", "iteration 1", "first")
    ]


def half_pushed(slot: Slot, user: Repo, base: str, record: Record) -> str:
    """Let the agent work, and move the branch alone, as a push does whose git was killed."""
    slot.prepare(record, base, "api")
    agent(slot, user).write("1.txt", "agent\n")
    agent(slot, user).commit("did it\n\nRooda-Run: api/1")
    agent(slot, user).git("push", "-q", str(user.path), "HEAD:refs/heads/rooda/api")
    return user.git("rev-parse", "rooda/api")


def test_the_second_half_of_a_push_follows_the_first(slot: Slot, user: Repo, base: str) -> None:
    record = begin(slot)
    tip = half_pushed(slot, user, base, record)
    published = publish(slot, record)
    assert (published.branch, published.tip, published.iteration) == (tip, tip, 1)
    assert user.git("rev-parse", "rooda/api") == tip


def test_an_iteration_that_was_half_pushed_is_done_again_and_is_there_once(
    slot: Slot, user: Repo, base: str
) -> None:
    half_pushed(slot, user, base, begin(slot))
    other = open_slot(user, 2)
    record = other.remote.fetch("api")
    assert record is not None
    record = other.remote.claim("api", record, "other")
    assert other.prepare(record, base, "api") == base
    agent(other, user).write("2.txt", "agent\n")
    agent(other, user).commit("did it again\n\nRooda-Run: api/1")
    record = publish(other, record)
    assert user.git("log", "--format=%s", "rooda/api").splitlines() == ["did it again", "first"]
    again = other.remote.fetch("api")
    assert again is not None
    assert again.start == record.tip == user.git("rev-parse", "rooda/api")
    other.close()


def test_work_whose_objects_are_gone_is_an_error_and_no_endless_push(
    slot: Slot, user: Repo, base: str
) -> None:
    slot.prepare(begin(slot), base, "api")
    here = agent(slot, user)
    here.write("b.txt", "agent\n")
    here.commit()
    blob = here.git("rev-parse", "HEAD:b.txt")
    here.write("b.txt", "later\n")
    here.commit()
    (slot.work / ".git/objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(GitError, match=blob):
        slot.snapshot()


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "careless",
    [
        "rm -rf ../work",
        "rm -rf ../work; mkdir ../work",
        "rm -rf ../work; git init -q ../work",
        "cd ..; rm -rf work; git clone -q {user} work",
        "mv ../work ../away; ln -s away ../work",
        "find . -mindepth 1 -delete",
        "find . -path ./.git -prune -o -type f -exec rm {{}} +; rm -rf .git/*",
        "git rm -rq --cached .; find . -path ./.git -prune -o -type f -exec rm {{}} +",
        "rm -rf ../record",
        "rm -rf ../record; mkdir ../record",
        "rm -rf .git",
        "rm -rf .git; git init -q; git add -A; git -c user.name=x -c user.email=x commit -qm mine",
        "rm -rf .git/objects; echo x > .git/HEAD",
        "mv .git ../git; ln -s ../git .git; rm -rf ../git",
        "rm -rf .git; ln -s {user}/.git .git",
        "rm -rf .git; echo gitdir: {user}/.git > .git",
        "rm -rf .git/info .git/refs; ln -s {user}/.git/info .git/info; ln -s {user}/.git/refs .git",
    ],
)
def test_nothing_is_published_of_a_work_tree_repository_or_record_that_rooda_did_not_make(
    slot: Slot, user: Repo, base: str, careless: str
) -> None:
    record = begin(slot)
    slot.prepare(record, base, "api")
    here = agent(slot, user)
    here.write("b.txt", "agent\n")
    here.write("a.log", "ignored\n")
    before = fingerprint(user)
    here.sh(careless.format(user=user.path))
    with pytest.raises(SlotChanged):
        slot.snapshot()
    assert changes_since(before, user) == []
    slot.discard()
    slot.prepare(begin(slot) if slot.remote.fetch("api") is None else record, base, "api")
    assert (slot.work / "a.txt").read_text() == "one\n"


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("careless", ["rm -rf ../../1", "rm ../lock", "mv ../../1 ../../2"])
def test_a_slot_that_is_gone_is_not_taken_for_a_remote_that_is_away(
    slot: Slot, user: Repo, base: str, careless: str
) -> None:
    slot.prepare(begin(slot), base, "api")
    agent(slot, user).sh(careless)
    with pytest.raises(SlotGone):
        slot.check()
    with pytest.raises(SlotGone):
        slot.snapshot()


@pytest.mark.parametrize("place", ["1", "../project"])
def test_a_link_in_place_of_a_slot_is_removed_and_not_followed(
    user: Repo, tmp_path: Path, place: str
) -> None:
    """Behind it, rooda would delete folders of the user that are named as those of a slot."""
    for folder in ("work", "record", "1/work", "1/record"):
        user.write(f"{folder}/mine.txt", "mine\n")
    user.path.chmod(0o755)
    before = fingerprint(user), user.path.stat().st_mode
    project = open_slot(user).folder.parent
    path = (project / place).resolve()
    path.rename(tmp_path / "away")
    path.symlink_to(user.path)
    again = open_slot(user)
    assert (changes_since(before[0], user), user.path.stat().st_mode) == ([], before[1])
    assert not again.folder.resolve().is_relative_to(user.path)
    again.close()


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "leftover",
    [
        "ln -s {user} ../record",
        "echo x > ../record",
        "mkdir -p ../record/x; chmod 000 ../record",
        "rm -rf ../work; ln -s {user} ../work",
        "mkdir ../clone-alternates ../setup-mark; rm -rf .git",
    ],
)
def test_what_an_agent_leaves_in_place_of_a_folder_does_not_stop_the_next_run(
    slot: Slot, user: Repo, base: str, leftover: str
) -> None:
    slot.prepare(begin(slot), base, "api")
    (user.path / ".git/refs/tags").chmod(0o500)  # git does not need to write there
    before = fingerprint(user)
    agent(slot, user).sh(f"rm -rf ../record ../setup-mark; {leftover.format(user=user.path)}")
    slot.leave_run()
    slot.prepare(begin(slot, "next"), base, "next")
    slot.check()
    assert list(slot.record_folder.iterdir()) == []
    assert (slot.work / "a.txt").read_text() == "one\n"
    assert changes_since(before, user) == []
    assert (user.path / ".git/refs/tags").stat().st_mode & 0o777 == 0o500


def test_deleted_files_of_an_intact_work_tree_are_work(slot: Slot, user: Repo, base: str) -> None:
    slot.prepare(begin(slot), base, "api")
    agent(slot, user).sh("git rm -q a.txt; echo x > new.txt")
    work = slot.snapshot()
    assert work.wip is not None
    assert slot.git.line("ls-tree", "--name-only", work.wip).split() == [".gitignore", "new.txt"]
    agent(slot, user).sh("git rm -rq --cached . ; rm -f .gitignore new.txt; git commit -qm gone")
    assert slot.snapshot().wip is None


def test_a_clone_that_was_never_finished_is_made_again(
    slot: Slot, user: Repo, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    slot.close()
    (slot.folder / "clone-config").unlink()
    agent(slot, user).sh("rm -rf .git; git init -q")
    monkeypatch.chdir(user.path.parent)
    again = open_slot(user, url="user")
    again.prepare(begin(again), base, "api")
    assert (again.work / "a.txt").read_text() == "one\n"
    slot.lock_fd = again.lock_fd


def test_a_person_who_pushed_to_the_branch_keeps_their_work_and_so_does_the_agent(
    slot: Slot, user: Repo, base: str
) -> None:
    record = begin(slot)
    slot.prepare(record, base, "api")
    here = agent(slot, user)
    here.write("b.txt", "agent\n")
    here.commit("agent's work")
    here.write("open.txt", "not committed\n")
    theirs = pushed_by_a_person(user, base, "c.txt")
    record = publish(slot, record)
    assert user.git("log", "--format=%s", "rooda/api").splitlines() == [
        *("agent's work", "a person", "first")
    ]
    assert user.git("rev-parse", "rooda/api~1") == theirs
    assert record.branch == user.git("rev-parse", "rooda/api")
    assert files(slot).keys() == {"a.txt", "b.txt", "c.txt", "open.txt", ".gitignore"}
    assert here.git("status", "--porcelain") == "?? open.txt"
    again = pushed_by_a_person(user, str(record.branch), "d.txt")
    fetched = slot.remote.fetch("api")
    assert fetched is not None
    assert slot.prepare(fetched, base, "api") == again
    assert "open.txt" in files(slot)
    user.git("branch", "-D", "rooda/api")
    here.write("e.txt", "more\n")
    tip = here.commit("second")
    assert publish(slot, fetched, 2).branch == tip


def pushed_by_a_person(user: Repo, parent: str, name: str, text: str = "person\n") -> str:
    """Put a commit on the branch of the run without a work tree."""
    index = {"GIT_INDEX_FILE": str(user.path.parent / "their-index")}
    there = Repo(user.path, user.environ | index)
    there.git("read-tree", parent)
    blob = there.git("hash-object", "-w", "--stdin", given=text.encode())
    there.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{name}")
    commit = there.git("commit-tree", there.git("write-tree"), "-p", parent, "-m", "a person")
    user.git("update-ref", "refs/heads/rooda/api", commit)
    return commit


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("is_committed", [True, False])
def test_work_that_conflicts_with_a_person_is_kept_in_the_record(
    slot: Slot, user: Repo, base: str, *, is_committed: bool
) -> None:
    record = begin(slot)
    slot.prepare(record, base, "api")
    here = agent(slot, user)
    here.write("a.txt", "agent\n")
    if is_committed:
        here.commit("agent's work")
    theirs = pushed_by_a_person(user, base, "a.txt")
    with pytest.raises(PublishedConflict, match=r"a\.txt") as caught:
        publish(slot, record)
    assert caught.value.files == ("a.txt",)
    assert user.git("rev-parse", "rooda/api") == theirs
    found = slot.remote.fetch("api")
    assert found is not None
    assert (found.kind, found.state) == (RecordKind.ENDED, "conflict")
    kept = found.tip if is_committed else found.wip
    assert Repo(fence_of(user), user.environ).git("show", f"{kept}:a.txt") == "agent"


def test_work_of_a_slot_that_lost_its_run_is_refused(slot: Slot, user: Repo, base: str) -> None:
    record = begin(slot)
    slot.prepare(record, base, "api")
    slot.remote.claim("api", record, "other")
    agent(slot, user).write("a.txt", "late\n")
    with pytest.raises(Refused):
        publish(slot, record)


def test_a_run_starts_from_the_merged_work_of_those_before_it(
    slot: Slot, user: Repo, base: str
) -> None:
    one = pushed_by_a_person(user, base, "b.txt")
    two = pushed_by_a_person(user, base, "c.txt")
    three = pushed_by_a_person(user, base, "b.txt", "other\n")
    for name, tip in (("one", one), ("two", two), ("three", three)):
        user.git("update-ref", f"refs/heads/rooda/{name}", tip)
    assert slot.merged_base(base, [("one", one)]) == one
    merged = slot.merged_base(base, [("one", one), ("two", two)])
    assert agent(slot, user).git("ls-tree", "--name-only", merged).split() == [
        *(".gitignore", "a.txt", "b.txt", "c.txt")
    ]
    with pytest.raises(Conflict, match=r"three conflicts .*\(one, two\): b\.txt"):
        slot.merged_base(base, [("one", one), ("two", two), ("three", three)])


def test_the_setup_runs_in_a_new_slot_and_when_its_inputs_change(
    slot: Slot, user: Repo, base: str
) -> None:
    slot.prepare(begin(slot), base, "api")
    setup = Setup("echo $ROODA_SLOT >> ../ran; echo out", ("lock*.json", "missing"))
    assert slot.set_up(setup)
    assert not slot.set_up(setup)
    agent(slot, user).write("lock.json", "2")
    assert slot.set_up(setup)
    assert (slot.folder / "ran").read_text() == "1\n1\n"
    assert (slot.folder / "setup.log").read_text() == "out\n"
    slot.close()
    agent(slot, user).sh("rm -rf .git")
    again = open_slot(user)
    assert again.set_up(setup)
    slot.lock_fd = again.lock_fd
    with pytest.raises(SetupFailed, match=r"exit.*code 3(.|\n)*why it failed"):
        again.set_up(Setup("echo why it failed; exit 3"))
    assert again.set_up(setup)  # the last one that worked is not the one of this slot any more
    with pytest.raises(SetupFailed, match="setup command failed"):
        again.set_up(Setup("sleep 60", timeout=0.2))


def test_links_that_an_agent_has_committed_do_not_hold_up_the_setup(
    slot: Slot, user: Repo, base: str
) -> None:
    slot.prepare(begin(slot), base, "api")
    setup = Setup("true", ("**/lock.json", "linked.json"))
    assert slot.set_up(setup)
    work = agent(slot, user)
    work.sh("ln -s . x; ln -s . y; ln -s . z; ln -s real.json linked.json")
    assert not slot.set_up(setup)
    work.write("real.json", "2")
    assert slot.set_up(setup), "a link within the slot counts as the file that it leads to"


def test_only_ignored_files_of_the_checkout_are_copied(
    slot: Slot, user: Repo, base: str, tmp_path: Path
) -> None:
    user.write(".env", "KEY=1\n").chmod(0o600)
    user.write("deep/local.log", "x\n").chmod(0o755)
    user.write("deep/other.log", "y\n")
    user.write("run.log", "z\n")
    user.write(".worktreeinclude", "# ours\nlocal.log\nuntracked.txt\na.txt\n")
    before = fingerprint(user)
    slot.prepare(begin(slot), base, "api")
    outside = tmp_path / "outside"
    outside.mkdir()
    (slot.work / "deep").symlink_to(outside)
    (slot.work / ".env").symlink_to(tmp_path / "stolen")
    slot.copy_from(user.path, [".env", "a.txt"])
    found = walk(slot.work)
    assert found.keys() == {".env", "deep/local.log", "a.txt", ".gitignore"}
    assert found["a.txt"][1] == b"one\n"
    assert stat.S_IMODE((slot.work / ".env").stat().st_mode) == 0o600
    assert found["deep/local.log"] == ("program", b"x\n")
    assert not list(outside.iterdir())
    assert not (tmp_path / "stolen").exists()
    assert changes_since(before, user) == []
    (user.path / "out.log").symlink_to("/etc/hostname")
    with pytest.raises(SetupFailed, match=r"out\.log .* leads out"):
        slot.copy_from(user.path, ["out.log"])


def test_submodules_are_there_or_the_setup_fails_with_the_reason(
    user: Repo, tmp_path: Path
) -> None:
    inner = repository(tmp_path / "inner")
    inner.write("x.txt", "inner\n")
    inner.commit()
    user.git("stash", "-q", "-u")
    user.git("submodule", "--quiet", "add", str(inner.path), "sub")
    base = user.commit("with a submodule")
    slot = open_slot(user)
    slot.prepare(begin(slot), base, "api")
    assert (slot.work / "sub/x.txt").read_text() == "inner\n"
    agent(slot, user).write("sub/x.txt", "changed")
    slot.prepare(begin(slot, "web"), base, "web")
    assert (slot.work / "sub/x.txt").read_text() == "inner\n"
    inner.path.rename(tmp_path / "away")
    other = open_slot(user, 2)
    with pytest.raises(SetupFailed, match="submodules"):
        other.prepare(begin(other, "other"), base, "other")
    slot.close()
    other.close()


def test_a_repository_that_can_not_be_cloned_is_unreachable(user: Repo, tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="could not clone"):
        open_slot(user, 1, str(tmp_path / "nowhere"))
    with pytest.raises(Unreachable) as caught:
        open_slot(user, 1, "https://me:pass-word@127.0.0.1:1/x.git")
    assert "pass-word" not in str(caught.value)
    open_slot(user).close()


def test_a_slot_does_not_open_without_the_settings_of_the_repository(user: Repo) -> None:
    """Its commits would have another author, or none."""
    open_slot(user).close()
    hidden = user.path.with_name("hidden")
    user.path.rename(hidden)
    with pytest.raises(Unreachable, match="settings of the repository"):
        open_slot(user)
    hidden.rename(user.path)
    open_slot(user).close()


def with_submodule(user: Repo, name: str, path: str = "sub") -> Repo:
    """Return another repository, which is a submodule of the user's; nothing is committed."""
    inner = repository(user.path.parent / name)
    inner.write("x.txt", f"{name}\n")
    inner.commit()
    user.git("submodule", "--quiet", "add", "--force", str(inner.path), path)
    return inner


def test_only_submodules_that_the_users_commit_names_are_fetched(user: Repo) -> None:
    """Rooda fetches with the user's login, and an agent may have written the addresses."""
    user.git("stash", "-q", "-u")
    inner = with_submodule(user, "inner")
    base = user.commit("with a submodule")
    secret = repository(user.path.parent / "secret")
    secret.write("x.txt", "secret\n")
    secret.commit()
    slot = open_slot(user)
    record = begin(slot)
    slot.prepare(record, base, "api")
    here = agent(slot, user)
    here.sh(
        f"git submodule --quiet add {secret.path} new; rm -rf new .git/modules/new; mkdir new;"
        "git init -q nest; git -C nest commit -q --allow-empty -m n; git add nest 2>/dev/null;"
        "git commit -qm new"
    )
    record = publish(slot, record)
    slot.prepare(record, base, "api")
    assert slot.empty_submodules == ["nest", "new"]
    assert (slot.work / "sub/x.txt").read_text() == "inner\n"
    assert [list((slot.work / name).iterdir()) for name in ("new", "nest")] == [[], []]
    assert not (slot.git.folder / ".git/modules/new").exists()
    # The same path with another address, and a second address for one path.
    for change in (
        f"git config -f .gitmodules submodule.sub.url {secret.path}",
        f"git config -f .gitmodules --add submodule.sub.url {secret.path}",
        "git config -f .gitmodules submodule.other.path sub",
    ):
        here.sh(f"git checkout -q {base} -- .gitmodules; {change}; git commit -qam change")
        record = publish(slot, record, record.iteration + 1)
        slot.prepare(record, base, "api")
        assert "sub" in slot.empty_submodules, change
        assert list((slot.work / "sub").iterdir()) == [], change
    # The user's own commit decides, also if the run starts from the work of another run.
    moved = user.git("rev-parse", "rooda/api")
    slot.prepare(begin(slot, "web"), moved, "web", base)
    assert "sub" in slot.empty_submodules
    assert inner.path.exists()
    slot.close()


def test_a_submodule_within_one_comes_along_if_the_user_chose_its_commit(user: Repo) -> None:
    user.git("stash", "-q", "-u")
    inner = with_submodule(user, "inner")
    deep = repository(user.path.parent / "deep")
    deep.write("d.txt", "deep\n")
    deep.commit()
    plain = inner.git("rev-parse", "HEAD")
    inner.git("submodule", "--quiet", "add", str(deep.path), "deep")
    whole = inner.commit("with deep")
    user.sh(f"git -C sub fetch -q; git -C sub checkout -q {whole}; git add sub")
    base = user.commit("with both")
    slot = open_slot(user)
    record = begin(slot)
    slot.prepare(record, base, "api")
    assert slot.empty_submodules == []
    assert (slot.work / "sub/deep/d.txt").read_text() == "deep\n"
    user.sh(f"git -C sub checkout -q {plain}; git add sub")
    older = user.commit("without deep")
    slot.prepare(begin(slot, "web"), base, "web", older)
    assert slot.empty_submodules == ["sub/..."]
    assert (slot.work / "sub/x.txt").read_text() == "inner\n"
    assert list((slot.work / "sub/deep").iterdir()) == []
    slot.close()


def test_no_program_that_a_submodule_names_is_run(user: Repo, tmp_path: Path) -> None:
    user.git("stash", "-q", "-u")
    with_submodule(user, "inner")
    base = user.commit("with a submodule")
    user.git("config", "submodule.recurse", "true")
    slot = open_slot(user)
    record = begin(slot)
    slot.prepare(record, base, "api")
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path}/called\ncat\n")
    trap.chmod(0o755)
    keys = ("core.fsmonitor", "core.sshCommand", "filter.x.clean", "filter.x.smudge")
    agent(slot, user).sh(
        "\n".join(f"git -C sub config {key} {trap}" for key in keys)
        + f"\nmkdir -p .git/modules/sub/hooks; cp {trap} .git/modules/sub/hooks/post-checkout"
        "\necho '* filter=x' > sub/.gitattributes; echo changed > sub/x.txt; echo b > b.txt"
    )
    (tmp_path / "called").unlink(missing_ok=True)
    record = publish(slot, record)
    slot.prepare(record, base, "api")
    assert (slot.work / "sub/x.txt").read_text() == "inner\n"
    assert not (tmp_path / "called").exists()
    slot.close()


def test_work_with_another_history_is_a_conflict_for_the_run_after_it(
    slot: Slot, user: Repo, base: str
) -> None:
    """An agent did `git checkout --orphan`: to try again and again does not help."""
    one = pushed_by_a_person(user, base, "b.txt")
    tree = user.git("rev-parse", f"{base}^{{tree}}")
    other = user.git("commit-tree", tree, "-m", "orphan")
    user.git("update-ref", "refs/heads/rooda/one", one)
    user.git("update-ref", "refs/heads/rooda/two", other)
    with pytest.raises(Conflict, match=r"two can't be merged .* unrelated histories"):
        slot.merged_base(base, [("one", one), ("two", other)])
