"""`rooda diff` and `rooda restore` through the installed command, in real repositories."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.children import Nursery
from support.gitrepo import walk
from support.recorded import HANGS, SUCCESS, asked, git, refused, versioned, within
from support.surface import Inside
from support.workspace import Workspace


@pytest.fixture
def repo(workspace: Workspace) -> Workspace:
    return versioned(workspace)


@pytest.fixture
def look(
    repo: Workspace, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Inside:
    """`rooda ARGS` in this process: there is no agent in it."""
    monkeypatch.setenv("GIT_PAGER", "cat")
    return Inside(repo, monkeypatch, capfd)


def own(workspace: Workspace) -> dict[str, str]:
    """What is the user's in the repository: branch, index, stash, and every ref but ours."""
    refs = git(workspace, "for-each-ref").splitlines()
    return {
        "branch": git(workspace, "symbolic-ref", "HEAD"),
        "index": git(workspace, "ls-files", "-s", "-v"),
        "staged": git(workspace, "diff", "--cached"),
        "stash": git(workspace, "stash", "list", "--format=%H %gs"),
        "refs": "\n".join(line for line in refs if "\trefs/rooda/" not in line),
        "log": git(workspace, "reflog", "--all", "--format=%H %gs"),
    }


def modes(top: Path) -> Iterator[tuple[str, int]]:
    for path in sorted(top.rglob("*")):
        if not {".git", ".rooda"} & set(path.parts) and not path.is_symlink():
            yield str(path), stat.S_IMODE(path.stat().st_mode) & 0o111


WORK = (
    "echo one > new.txt; echo 'echo hi' > tool.sh; chmod +x tool.sh; ln -s new.txt link",
    "echo two > new.txt; rm kept.txt link; mkdir -p deep; printf 'a\\000b\\r\\n' > deep/raw",
    f"rm -r deep new.txt; mv tool.sh moved.sh; {SUCCESS}",
)


def test_every_iteration_can_be_shown_and_brought_back(repo: Workspace, look: Inside) -> None:
    repo.write("staged.txt", "staged\n")
    git(repo, "add", "staged.txt")
    repo.write("stashed.txt", "stashed\n")
    git(repo, "stash", "push", "-q", "-u", "stashed.txt")
    repo.write("loose.txt", "never added\n")
    # Each agent leaves a copy of what it made outside, for an honest look.
    aside = repo.path.parent / "aside"
    copies = [f"cp -a . {aside}/$n" for _ in WORK]
    aside.mkdir()
    command = repo.agents(*(f"{body}; {copy}" for body, copy in zip(WORK, copies, strict=True)))
    trees = [walk(repo.path)]
    mine = own(repo)
    assert repo.rooda("work", "--ai-cmd", command).code == 0
    assert own(repo) == mine
    trees += [walk(aside / str(number)) for number in (1, 2, 3)]
    ignored = {"agent.sh", "starts"}
    trees = [{k: v for k, v in tree.items() if k not in ignored} for tree in trees]

    def now() -> object:
        return {k: v for k, v in walk(repo.path).items() if k not in ignored}

    assert now() == trees[3]
    for number in (2, 0, 1, 3):
        done = look("restore", str(number))
        assert done.code == 0, done.err
        assert f"Restored the work tree of iteration {number} (" in done.out
        assert now() == trees[number], number
    assert own(repo) == mine
    programs = dict(modes(aside / "1"))
    look("restore", "1")
    assert os.access(repo.path / "tool.sh", os.X_OK) == bool(programs[str(aside / "1/tool.sh")])


@pytest.mark.slow
def test_a_diff_is_what_one_iteration_changed(repo: Workspace, look: Inside) -> None:
    assert repo.rooda("work", "--ai-cmd", repo.agents(*WORK)).code == 0
    (run,) = asked(look, "history")
    names = look("diff", "2", "--name-only")
    assert names.code == 0
    assert names.out.split() == ["deep/raw", "kept.txt", "link", "new.txt"]
    whole = look("diff", run["run"], "2").out
    assert "-one\n+two\n" in whole
    assert "deleted file mode 100644" in whole
    assert "4 files changed" in look("diff", run["run"][:-1], "2", "--stat").out
    assert look("diff", "1", "--name-only").out.split() == ["link", "new.txt", "tool.sh"]


@pytest.mark.slow
def test_a_restore_can_be_undone_and_says_how(repo: Workspace, look: Inside) -> None:
    assert repo.rooda("work", "--ai-cmd", repo.agent("echo made > made.txt"), "-n", "1").code == 2
    repo.write("mine.txt", "written afterwards, and nowhere else\n")
    before = walk(repo.path)
    done = look("restore", "0")
    assert not (repo.path / "mine.txt").exists()
    assert not (repo.path / "made.txt").exists()
    last = done.out.splitlines()[-1]
    assert last.startswith("To undo: rooda restore ")
    assert look(*last.removeprefix("To undo: rooda ").split()).code == 0
    assert walk(repo.path) == before


def test_what_is_not_there_is_one_clear_message(repo: Workspace, look: Inside) -> None:
    assert repo.rooda("work", "--ai-cmd", "true", "-n", "1").code == 2
    before = walk(repo.path)
    for words, said in {
        ("diff", "9"): ("there is no snapshot 9", "0, 1"),
        ("restore", "9"): ("there is no snapshot 9", "0, 1"),
        ("diff", "0"): ("nothing comes before 0",),
        ("diff", "u1"): ("nothing comes before u1",),
        ("restore", "HEAD"): ("'HEAD' is not the number of an iteration",),
        ("restore", "-1"): ("-1",),
        ("diff", "nonsense", "1"): ("there is no run 'nonsense'",),
        ("restore", "1", "2", "3"): ("and no more",),
    }.items():
        refused(look(*words), *said)
    assert walk(repo.path) == before


def test_what_can_not_be_brought_back_is_named(repo: Workspace, look: Inside) -> None:
    assert repo.rooda("work", "--ai-cmd", "true", "-n", "1").code == 2
    (repo.path / "kept.txt").unlink()
    repo.write("kept.txt/agent.precious", "ignored, so nobody else has it")
    done = look("restore", "0")
    assert done.code == 0
    assert "Not brought back: kept.txt" in done.err
    assert (repo.path / "kept.txt/agent.precious").exists()


@pytest.mark.slow
def test_while_a_run_is_at_work_its_tree_is_left_alone(
    repo: Workspace, look: Inside, nursery: Nursery
) -> None:
    running = nursery.start(repo, "work", "--ai-cmd", repo.agents("echo 1 > new.txt", HANGS))
    nursery.pid("agent")
    refused(look("restore", "0"), "a run is at work here", "rooda stop")
    assert (repo.path / "new.txt").exists()
    assert look("diff", "1", "--name-only").out == "new.txt\n"
    running.process.kill()
    running.finish()
    assert look("restore", "0").code == 0
    assert not (repo.path / "new.txt").exists()


def test_without_git_there_is_nothing_to_bring_back(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert workspace.work(workspace.agent("echo 1 > new.txt"), "-n", "1").code == 2
    look = Inside(workspace, monkeypatch, capfd)
    for words in (("diff", "1"), ("restore", "0")):
        refused(look(*words), "no snapshots without git", "git init")
    # What changed is known all the same.
    assert asked(look, "show", "1")["result"]["files_created"] == ["new.txt"]


@pytest.mark.slow
def test_from_a_folder_below_the_whole_tree_is_restored(repo: Workspace, look: Inside) -> None:
    assert repo.rooda("work", "--ai-cmd", repo.agent("echo 1 > top.txt"), "-n", "1").code == 2
    below = within(repo, "deep")
    done = below.rooda("restore", "0")
    assert done.code == 0, done.err
    assert not (repo.path / "top.txt").exists()
    assert below.path.is_dir()
    assert look("diff", "1", "--name-only").out == "top.txt\n"


@pytest.mark.slow
def test_with_a_run_its_snapshots_go(repo: Workspace, look: Inside) -> None:
    command = repo.agent("date +%N > new.txt")
    for _ in range(3):
        arguments = ("-n", "1", "--history-keep-runs", "2")
        assert repo.rooda("work", "--ai-cmd", command, *arguments).code == 2
    runs = [run["run"] for run in asked(look, "history")]
    assert len(runs) == 2
    refs = git(repo, "for-each-ref", "--format=%(refname)", "refs/rooda").splitlines()
    assert {ref.split("/")[2] for ref in refs} == set(runs)
    assert {path.name for path in (repo.path / ".rooda/runs").iterdir()} == set(runs)
    assert git(repo, "fsck", "--no-dangling", "--no-progress") == ""


@pytest.mark.slow
def test_snapshots_can_be_turned_off(repo: Workspace, look: Inside) -> None:
    command = repo.agent("echo 1 > new.txt")
    assert repo.rooda("work", "--ai-cmd", command, "-n", "1", "--no-git-snapshots").code == 2
    assert git(repo, "for-each-ref", "refs/rooda") == ""
    assert asked(look, "show", "1")["result"]["files_created"] == ["new.txt"]
    refused(look("restore", "0"), "there is no snapshot 0", "This run has none")
