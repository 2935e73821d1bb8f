"""`rooda fleet merge`: what fits is merged, what does not is named, and the user's files stay."""

import os
from pathlib import Path

import pytest

from rooda.fleet.actions.merge_runs import (
    MergeCheck,
    MergeOutcome,
    MergeRefused,
    MergeResult,
    merge_runs,
)
from rooda.fleet.remote.replay import TooOldGit
from rooda.world.tools import Tools
from support.fleetwork import changes_since, fingerprint, user_repository
from support.gitrepo import Repo

pytestmark = pytest.mark.real


@pytest.fixture
def user(tmp_path: Path) -> Repo:
    """A user with dirty files, and branches of runs that change some files each."""
    repo = user_repository(tmp_path / "user")
    for run, changes in {
        "api": {"api.py": "api\n", "both.py": "api\n"},
        "web": {"web.py": "web\n"},
        "auth": {"both.py": "auth\n"},
        "bad": {"bad.py": "bad\n"},
        "old": {"a.txt": "old\n"},
    }.items():
        add_branch(repo, f"rooda/{run}", changes)
    (repo.path / "HOOK-RAN").unlink()
    return repo


def add_branch(repo: Repo, name: str, changes: dict[str, str], parent: str = "main") -> str:
    index = repo.path.parent / "their-index"
    there = Repo(repo.path, repo.environ | {"GIT_INDEX_FILE": str(index)})
    there.git("read-tree", parent)
    for file, text in changes.items():
        blob = there.git("hash-object", "-w", "--stdin", given=text.encode())
        there.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{file}")
    commit = there.git("commit-tree", there.git("write-tree"), "-p", parent, "-m", name)
    repo.git("update-ref", f"refs/heads/{name}", commit)
    return commit


def merge(
    user: Repo, *runs: str, into: str = "night", verify: str | None = None
) -> list[MergeResult]:
    tools = Tools(user.environ, [user.path])
    check = None if verify is None else MergeCheck(verify, 30)
    return merge_runs(user.path, runs, into, base="main", tools=tools, check=check)


def test_what_fits_is_merged_and_a_conflict_names_run_and_files(user: Repo) -> None:
    before = fingerprint(user)
    found = merge(user, "api", "web", "auth", "gone")
    assert [one.line for one in found] == [
        "merged",
        "merged",
        "conflict with api: both.py",
        "there is no branch rooda/gone here: try git fetch",
    ]
    names = user.git("ls-tree", "--name-only", "night").split()
    assert names == [".gitignore", "a.txt", "api.py", "both.py", "web.py"]
    assert user.git("log", "--first-parent", "--format=%an: %s", "night").splitlines() == [
        "A User: Merge rooda/web into night",
        "A User: Merge rooda/api into night",
        "A User: first",
    ]
    (user.path / ".git/refs/heads/night").unlink()
    assert changes_since(before, user) == []
    assert not (user.path / "HOOK-RAN").exists()


def test_a_second_merge_adds_only_what_is_new(user: Repo) -> None:
    merge(user, "api")
    commit = user.git("rev-parse", "night")
    assert [one.outcome for one in merge(user, "api")] == [MergeOutcome.ALREADY]
    assert user.git("rev-parse", "night") == commit
    found = merge(user, "api", "web", "auth")
    assert [one.line for one in found][1:] == ["merged", "conflict with api: both.py"]


def test_a_run_that_a_later_one_brings_along_is_no_conflict_any_more(user: Repo) -> None:
    merge(user, "api")
    commit = add_branch(user, "rooda/auth-onto-night", {"both.py": "both\n"}, "night")
    tree = user.git("rev-parse", f"{commit}^{{tree}}")
    words = ("commit-tree", tree, "-p", "night", "-p", "rooda/auth", "-m", "both")
    user.git("update-ref", "refs/heads/rooda/auth-onto-night", user.git(*words))
    found = merge(user, "api", "auth", "auth-onto-night")
    assert [one.line for one in found] == ["already merged", "merged with another run", "merged"]


def test_a_conflict_with_the_branch_itself_names_the_branch(user: Repo) -> None:
    add_branch(user, "night", {"a.txt": "night\n"})
    (found,) = merge(user, "old")
    assert found.line == "conflict with night: a.txt"


def test_a_run_that_does_not_pass_the_check_is_left_out(user: Repo, tmp_path: Path) -> None:
    before = fingerprint(user)
    log = tmp_path / "log"
    check = (
        f"ls >> {log}; pwd >> {log}; git rev-parse HEAD > left; chmod -R a-w .; "
        "echo TOKEN=abc why; ! test -e bad.py"
    )
    found = merge(user, "api", "bad", "web", verify=check)
    assert [one.outcome for one in found] == [
        *(MergeOutcome.MERGED, MergeOutcome.VERIFY_FAILED, MergeOutcome.MERGED)
    ]
    assert "why" in found[1].words
    assert "abc" not in found[1].words
    assert "bad.py" not in user.git("ls-tree", "--name-only", "night")
    lines = log.read_text().splitlines()
    assert "left" not in lines  # each check starts with the merge alone
    assert "untracked.txt" not in lines
    assert not any(Path(line).exists() for line in lines if line.startswith("/"))
    (user.path / ".git/refs/heads/night").unlink()
    assert changes_since(before, user) == []


def test_a_branch_that_is_checked_out_anywhere_is_refused(user: Repo, tmp_path: Path) -> None:
    with pytest.raises(MergeRefused, match="main is checked out in"):
        merge(user, "api", into="main")
    user.git("worktree", "add", "-q", "-b", "night", str(tmp_path / "linked"))
    with pytest.raises(MergeRefused, match="linked"):
        merge(user, "api")
    for name, words in (("a..b", "no name"), ("rooda", "beside")):
        with pytest.raises(MergeRefused, match=words):
            merge(user, "api", into=name)
    assert not user.git("branch", "--list", "rooda")


def test_a_branch_that_moves_meanwhile_is_not_overwritten(user: Repo) -> None:
    add_branch(user, "night", {"n.txt": "night\n"})
    add_branch(user, "theirs", {"t.txt": "theirs\n"}, "night")
    move = f"git -C {user.path} update-ref refs/heads/night theirs"
    with pytest.raises(MergeRefused, match="moved while"):
        merge(user, "api", verify=move)
    assert user.git("rev-parse", "night") == user.git("rev-parse", "theirs")


def test_an_old_git_gets_one_clear_message(user: Repo, tmp_path: Path) -> None:
    old = tmp_path / "bin" / "git"
    old.parent.mkdir()
    old.write_text(
        '#!/bin/sh\ncase "$*" in *" version") echo git version 2.34.1;; *) exit 1;; esac\n'
    )
    old.chmod(0o755)
    environ = user.environ | {"PATH": f"{old.parent}{os.pathsep}{user.environ['PATH']}"}
    tools = Tools(environ, [user.path])
    with pytest.raises(TooOldGit, match=r"2\.38 or newer; this is git version 2\.34\.1"):
        merge_runs(user.path, ["api"], "night", base="main", tools=tools)


def test_a_run_that_git_can_not_merge_is_left_out_and_the_others_are_merged(user: Repo) -> None:
    tree = user.git("rev-parse", "main^{tree}")
    orphan = user.git("commit-tree", tree, "-m", "orphan")
    user.git("update-ref", "refs/heads/rooda/orphan", orphan)
    parent = add_branch(user, "rooda/lost", {"lost.py": "lost\n"})
    add_branch(user, "rooda/lost", {"more.py": "more\n"}, parent)
    (user.path / ".git/objects" / parent[:2] / parent[2:]).unlink()
    (user.path / ".git/refs/heads/rooda/gone").write_text(f"{'1' * 40}\n")
    (user.path / ".git/refs/heads/rooda/junk").write_text("no commit\n")
    (user.path / ".git/refs/heads/rooda/blob").write_text(
        user.git("hash-object", "-w", "--stdin", given=b"x") + "\n"
    )
    names = ("api", "orphan", "lost", "gone", "junk", "blob", "web")
    found = {one.run: one for one in merge(user, *names)}
    assert {name: str(one.outcome) for name, one in found.items()} == {
        "orphan": "conflict",
        "lost": "conflict",
        "gone": found["gone"].outcome,
        "junk": "no branch",
        "blob": "no branch",
        "api": "merged",
        "web": "merged",
    }
    assert found["gone"].outcome in (MergeOutcome.CONFLICT, MergeOutcome.MISSING)
    assert "conflict with night: git merge-tree" in found["orphan"].line
    assert "unrelated histories" in found["orphan"].line


def test_a_check_that_can_not_run_is_an_error_before_the_first_merge(user: Repo) -> None:
    check = MergeCheck("true", 30, within=lambda _: ("sh", "-c", "echo no sandbox here; exit 1"))
    with pytest.raises(MergeRefused, match=r"the check can't run: (.|\n)*no sandbox here"):
        merge_runs(user.path, ["api"], "night", base="main", tools=Tools(user.environ), check=check)
    assert "night" not in user.git("branch", "--list")
