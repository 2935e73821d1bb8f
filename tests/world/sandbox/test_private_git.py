"""The git folder that an agent gets in the sandbox, and what rooda takes over from it."""

import errno
import hashlib
import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from rooda.world.sandbox.git_import import GitImport
from rooda.world.sandbox.private_git import GitNotice, why_shared
from rooda.world.sandbox.sandbox_plan import SandboxError
from rooda.world.state.folder import AGENT_GIT
from support.gitrepo import git
from support.sandboxes import Inside, printed_by, require_bwrap
from support.states import state_of

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux"),
]
COMMIT = "echo new > new.txt; git add new.txt; git commit -qm agent"
# What a commit on the branch changes in the user's git folder, beside objects.
OF_A_COMMIT = {"index", "logs/HEAD", "logs/refs/heads/main", "refs/heads/main"}


@pytest.fixture
def inside(tmp_path: Path) -> Inside:
    return make(tmp_path)


def make(folder: Path, *init: str) -> Inside:
    require_bwrap()
    home, tree = folder / "home", folder / "work"
    home.mkdir()
    git(tree, "init", "-q", "-b", "main", *init)
    git(tree, "config", "user.name", "A User")
    git(tree, "config", "user.email", "user@example.org")
    for name in ("first", "second"):
        (tree / "a.txt").write_text(f"{name}\n")
        (tree / f"{name}.txt").write_text("text\n")
        git(tree, "add", "-A")
        git(tree, "commit", "-qm", name)
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C"}
    return Inside(tree, home, environ)


class Done:
    """What a program has printed, what rooda reports, and what changed in the user's folder."""

    def __init__(self, inside: Inside, script: str, user: str = "") -> None:
        with inside.sandbox() as sandbox:
            assert sandbox.private_git is not None
            wrapped = sandbox.wrap(("sh", "-c", script), inside.tree, inside.environ)
            before = _files(inside.tree / ".git")
            self.printed = printed_by(wrapped.argv, inside.tree, wrapped.environ)
            assert _files(inside.tree / ".git") == before, "nothing of it reaches the user"
            printed_by(("sh", "-ec", user), inside.tree, dict(os.environ))
            before = _files(inside.tree / ".git")
            sandbox.settle({})
            self.notices = sandbox.private_git.take_notices()
        after = _files(inside.tree / ".git")
        names = {one for one in {*before, *after} if before.get(one) != after.get(one)}
        self.changed = {one for one in names if not one.startswith("objects/")}
        assert printed_by(("git", "fsck", "--no-dangling"), inside.tree, dict(os.environ)) in (
            "",
            "notice: HEAD points to an unborn branch (x)",
        )


def _files(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


def subjects(inside: Inside, *names: str) -> list[str]:
    return git(inside.tree, "log", "--format=%s", *names).splitlines()


def status(inside: Inside) -> list[str]:
    return git(inside.tree, "status", "--short", "--branch").splitlines()


def test_commit_arrives_on_the_branch_with_its_files_and_nothing_else_changes(
    inside: Inside,
) -> None:
    done = Done(inside, COMMIT)
    assert done.changed == OF_A_COMMIT
    assert subjects(inside) == ["agent", "second", "first"]
    assert status(inside) == ["## main"]
    assert "rooda: work of the agent" in git(inside.tree, "reflog", "-1")
    assert [*(state_of(inside.tree) / AGENT_GIT).rglob("now")] == []


def test_program_that_only_reads_changes_nothing(inside: Inside) -> None:
    done = Done(inside, "git status --short; git log --format=%s; git diff HEAD~1 --stat")
    assert (done.changed, done.notices) == (set(), [])


def test_agent_sees_the_staged_files_of_the_user_and_they_survive(inside: Inside) -> None:
    (inside.tree / "mine.txt").write_text("mine\n")
    git(inside.tree, "add", "mine.txt")
    done = Done(inside, "git status --short; git rm -q first.txt; echo x > x; git add x")
    assert done.printed == "A  mine.txt"
    assert status(inside) == ["## main", "D  first.txt", "A  mine.txt", "A  x"]


def test_files_that_the_user_stages_meanwhile_stay_staged(inside: Inside) -> None:
    Done(inside, COMMIT, user="echo u > u; git add u; git rm -q --cached first.txt")
    assert subjects(inside)[0] == "agent"
    assert status(inside) == ["## main", "D  first.txt", "A  u", "?? first.txt"]


def test_commits_are_kept_and_named_if_the_user_commits_meanwhile(inside: Inside) -> None:
    done = Done(inside, COMMIT, user="echo u > u; git add u; git commit -qm user")
    assert subjects(inside) == ["user", "second", "first"]
    ((name,),) = [notice.kept for notice in done.notices]
    assert subjects(inside, name) == ["agent", "second", "first"]
    assert status(inside) == ["## main", "?? new.txt"], "the file is there, and not committed"


def test_branch_that_the_user_checks_out_meanwhile_stays_checked_out(inside: Inside) -> None:
    done = Done(inside, COMMIT, user="git checkout -qb mine")
    assert status(inside) == ["## mine", "?? new.txt"]
    ((name,),) = [notice.kept for notice in done.notices]
    assert subjects(inside, name) == ["agent", "second", "first"]
    assert subjects(inside, "main") == ["second", "first"]


WORK = {
    "amended": ("echo x > x; git add x; git commit -q --amend -m amended", "main", 2),
    "rebased": (
        "git checkout -qb side HEAD~1; echo s > s; git add s; git commit -qm s; git rebase -q main",
        "side",
        3,
    ),
    "a new branch": (f"git checkout -qb feature; {COMMIT}; git tag v1", "feature", 3),
    "a merge": (
        f"git checkout -qb o; {COMMIT}; git checkout -q main; git merge -q --no-ff -m m o",
        "main",
        4,
    ),
    "reset": ("git reset -q --hard HEAD~1; git reflog expire --expire=now --all", "main", 1),
    "many objects": (
        "for i in $(seq 150); do echo $i > n$i; done; git add -A; git commit -qm m",
        "main",
        3,
    ),
}


@pytest.mark.parametrize("row", WORK.values(), ids=WORK)
def test_work_of_the_agent_arrives_as_it_left_it(inside: Inside, row: tuple[str, str, int]) -> None:
    script, branch, commits = row
    done = Done(inside, script)
    assert done.notices == []
    assert status(inside) == [f"## {branch}"]
    assert len(subjects(inside)) == commits


def test_detached_head_and_a_branch_without_a_commit_arrive(inside: Inside) -> None:
    Done(inside, f"git checkout -q --detach; {COMMIT}")
    assert (status(inside), subjects(inside)[0]) == (["## HEAD (no branch)"], "agent")
    Done(inside, "git checkout -q --orphan x")
    assert status(inside)[0] == "## No commits yet on x"


def test_first_commit_of_a_repository_arrives(inside: Inside) -> None:
    inside.tree = inside.tree.parent / "new"
    git(inside.tree, "init", "-q", "-b", "main")
    Done(inside, "git config user.email x; git config user.name x; " + COMMIT)
    assert (subjects(inside), status(inside)) == (["agent"], ["## main"])


def test_stash_of_the_user_survives_and_that_of_the_agent_arrives(inside: Inside) -> None:
    (inside.tree / "a.txt").write_text("mine\n")
    git(inside.tree, "stash", "-q")
    Done(inside, "git stash list; git stash clear")
    Done(inside, "echo agent > a.txt; git stash -q -m agent")
    assert [line.partition(": ")[2] for line in git(inside.tree, "stash", "list").splitlines()] == [
        "On main: agent",
        git(inside.tree, "log", "-1", "--format=WIP on main: %h %s"),
    ]


DESTRUCTION = {
    "the folder": "rm -rf .git",
    "the folder, then a new repository": "rm -rf .git; git init -q; git add -A; git commit -qm x",
    "branches and tags": "git checkout -q --detach; git branch -D main side; git tag -d v1",
    "objects": "git update-ref -d refs/heads/side; git gc -q --prune=now; rm -rf .git/objects",
    "history": "git checkout -q --orphan x; git branch -D main side; git gc --prune=now",
}


@pytest.mark.parametrize("row", DESTRUCTION.values(), ids=DESTRUCTION)
def test_history_of_the_user_is_whole_whatever_the_agent_deletes(inside: Inside, row: str) -> None:
    git(inside.tree, "branch", "side", "HEAD~1")
    git(inside.tree, "tag", "v1")
    before = git(inside.tree, "for-each-ref", "refs/heads/main", "refs/heads/side", "refs/tags")
    Done(inside, f"({row}) 2>&-")
    after = git(inside.tree, "for-each-ref", "refs/heads/main", "refs/heads/side", "refs/tags")
    assert after == before


HOSTILE = {
    "settings": "git config core.fsmonitor ./evil; git config core.hooksPath .; git status",
    "links": "ln -s ~/x .git/COMMIT_EDITMSG; mkdir -p .git/worktrees/e/logs; "
    "ln -s ~/x .git/worktrees/e/logs/HEAD; rm .git/logs/HEAD; ln -s ~/x .git/logs/HEAD",
    "a link in the place of the refs": "rm -rf .git/refs; ln -s ~ .git/refs",
    "a link in the place of a folder": "rm -rf .git/objects/info; ln -s / .git/objects/info",
    "old remotes": "mkdir .git/remotes; echo URL: evil.git > .git/remotes/origin",
    "pipes": "rm .git/index; mkfifo .git/index",
    "another folder": "git init -q --bare evil.git; echo ../evil.git > .git/commondir",
    "a broken index": "echo x > .git/index",
    "a forged HEAD": "printf 'ref: refs/rooda/x\\n' > .git/HEAD",
    "names of others": "git tag main; git branch origin/main; git update-ref refs/tags/HEAD HEAD",
    "a tree that leads out": "t=$(printf '100644 blob %s\\t..\\n' $(git rev-parse HEAD:a.txt) "
    "| git mktree); git update-ref refs/heads/main $(git commit-tree -p HEAD -m x $t)",
    "objects that are missing": "git commit -q --allow-empty -m x; rm -rf .git/objects/??",
    "other objects": "git replace HEAD HEAD~1",
}


@pytest.mark.parametrize("row", HOSTILE.values(), ids=HOSTILE)
def test_user_s_git_folder_is_the_same_byte_for_byte(inside: Inside, row: str) -> None:
    git(inside.tree, "update-ref", "refs/remotes/origin/main", "HEAD")
    assert Done(inside, row).changed == set()


def test_agent_works_on_after_it_broke_its_folder(inside: Inside) -> None:
    with inside.sandbox() as sandbox:
        for script in (f"{COMMIT}; chmod 000 .git/refs; rm -rf .git 2>&-", COMMIT):
            wrapped = sandbox.wrap(("sh", "-c", script), inside.tree, inside.environ)
            printed_by(wrapped.argv, inside.tree, wrapped.environ)
            sandbox.settle({})
        assert sandbox.private_git is not None
        (notice,) = sandbox.private_git.take_notices()
    assert "deleted or damaged its git folder" in notice.refused
    assert subjects(inside) == ["agent", "second", "first"]


def test_housekeeping_of_the_agent_reports_no_error(inside: Inside) -> None:
    assert inside.sh(f"{COMMIT} --no-verify && git gc --prune=now --quiet") == ""
    assert subjects(inside)[0] == "agent"


def test_unfinished_rebase_waits_and_its_commits_are_kept_at_the_end(inside: Inside) -> None:
    git(inside.tree, "branch", "side", "HEAD~1")
    script = (
        "git checkout -q side; echo 1 > new; git add new; git commit -qm one;"
        "echo 2 > a.txt; git commit -qam two; git rebase -q main 2>&-"
    )
    done = Done(inside, script)
    assert done.notices == [GitNotice(unfinished="a rebase is in progress")]
    assert subjects(inside) == ["second", "first"]
    (kept,) = git(inside.tree, "for-each-ref", "refs/heads/rooda-kept").splitlines()
    assert subjects(inside, kept.split()[0]) == ["one", "second", "first"]


def test_work_of_a_run_that_was_killed_arrives_with_the_next_one(inside: Inside) -> None:
    killed = inside.sandbox()
    sandbox = killed.__enter__()
    wrapped = sandbox.wrap(("sh", "-c", COMMIT), inside.tree, inside.environ)
    printed_by(wrapped.argv, inside.tree, wrapped.environ)
    assert subjects(inside)[0] == "second"
    assert inside.sh("git log -1 --format=%s") == "agent"
    assert (subjects(inside)[0], status(inside)) == ("agent", ["## main"])


def test_commits_wait_while_the_disk_is_full(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    killed = inside.sandbox()
    sandbox = killed.__enter__()
    assert sandbox.private_git is not None
    wrapped = sandbox.wrap(("sh", "-c", COMMIT), inside.tree, inside.environ)
    printed_by(wrapped.argv, inside.tree, wrapped.environ)
    with monkeypatch.context() as full:
        full.setattr(GitImport, "take_objects", fail)
        git(inside.tree, "branch", "of-the-user")
        asked = ("git", "log", "-1", "--format=%s")
        wrapped = sandbox.wrap(asked, inside.tree, inside.environ)
        assert printed_by(wrapped.argv, inside.tree, wrapped.environ) == "agent"
        sandbox.close()
        assert sandbox.private_git.take_notices() == []
        with pytest.raises(SandboxError, match="No space left"):
            inside.sandbox().__enter__()
    assert subjects(inside)[0] == "second"
    assert inside.sh("git log -1 --format=%s") == "agent"
    assert (subjects(inside)[0], status(inside)) == ("agent", ["## main"])


def test_user_s_hooks_run_and_the_agent_can_not_switch_them_off(inside: Inside) -> None:
    hook = inside.tree / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\necho hook >> hooked\n")
    hook.chmod(0o755)
    with inside.sandbox() as sandbox:
        for script in ("rm -rf .git/hooks 2>&-; git config core.hooksPath /none", COMMIT):
            wrapped = sandbox.wrap(("sh", "-c", script), inside.tree, inside.environ)
            printed_by(wrapped.argv, inside.tree, wrapped.environ)
    assert (inside.tree / "hooked").read_text() == "hook\n"


FORGED = ("HEAD", "index", "logs/HEAD", "packed-refs", "config", "hooks", "info", "objects")


@pytest.mark.parametrize("name", FORGED)
def test_link_in_a_forged_git_folder_shows_no_file_of_the_user(inside: Inside, name: str) -> None:
    """An archive can bring such a folder."""
    place, secret = inside.tree / ".git" / name, inside.home / "secret"
    if place.is_dir():
        place.rename(secret)
        (secret / "key").write_text("4711")
    else:
        secret.write_text("4711")
        place.unlink(missing_ok=True)
    place.symlink_to(secret)
    with suppress(SandboxError):
        assert "4711" not in inside.sh(
            "cat .git/*; cat .git/*/*; ls -R .git | grep key && echo 4711"
        )


KINDS = {
    "shallow": "git clone -q --depth 1 file://$PWD/../work .",
    "sparse": "git clone -q ../work .; git sparse-checkout set --no-cone /a.txt /new.txt",
    "sparse index": "git clone -q ../work .; git sparse-checkout set --sparse-index d",
    "split index": "git clone -q ../work .; git update-index --split-index",
    "borrowed objects": "git clone -q --shared ../work .",
    "another work tree": "git clone -q ../work .; git worktree add -q ../third",
    "untracked cache": "git clone -q ../work .; git update-index --force-untracked-cache",
}


@pytest.mark.parametrize("row", KINDS.values(), ids=KINDS)
def test_kinds_of_repositories(inside: Inside, row: str) -> None:
    inside.tree = inside.tree.parent / "other"
    inside.tree.mkdir()
    printed_by(("sh", "-ec", row), inside.tree, dict(os.environ))
    git(inside.tree, "config", "user.name", "A")
    git(inside.tree, "config", "user.email", "a@example.org")
    before = len(subjects(inside))
    Done(inside, f"{COMMIT} --no-verify; git gc -q 2>&-; git fsck")
    assert len(subjects(inside)) == before + 1
    assert status(inside) == ["## main...origin/main [ahead 1]"]


def test_repository_with_sha256(tmp_path: Path) -> None:
    inside = make(tmp_path, "--object-format=sha256")
    assert Done(inside, COMMIT).changed == OF_A_COMMIT


SHARED = {
    "submodules": ("mkdir -p .git/modules/x", "there are submodules"),
    "lfs": ("echo '* filter=lfs' > .gitattributes", "git-lfs"),
    "a partial clone": ("git config remote.origin.promisor true", "partial clone"),
    "a merge": ("cp .git/HEAD .git/MERGE_HEAD", "a merge is in progress"),
    "other settings": ("git config include.path x", "include other files"),
    "a repository elsewhere": ("mv .git ../g; echo gitdir: ../g > .git", "work tree alone"),
}


@pytest.mark.parametrize("row", SHARED.values(), ids=SHARED)
def test_other_repositories_are_shared_with_the_agent(inside: Inside, row: tuple[str, str]) -> None:
    script, reason = row
    assert why_shared(inside.tree) == ""
    printed_by(("sh", "-ec", script), inside.tree, dict(os.environ))
    assert reason in why_shared(inside.tree)
