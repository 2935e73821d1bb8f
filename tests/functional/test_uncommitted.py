"""What the user had not committed before a run with `git.commit`: changed and untracked files."""

import signal
from collections.abc import Iterator

import pytest

from support.gitwork import GitWork, git_work
from support.ralphs import COMPLETE, ralph_work
from support.workspace import Workspace, wait_for

SUCCESS = "echo '<promise>SUCCESS</promise>'"


@pytest.fixture
def work(workspace: Workspace) -> Iterator[GitWork]:
    with git_work(workspace) as found:
        yield found


def committed(work: GitWork, commit: str = "HEAD") -> list[str]:
    """Return the files that a commit changed."""
    return work.git("show", "--format=", "--name-only", commit).split()


@pytest.mark.thorough
def test_run_with_commit_does_not_start_while_tracked_files_have_changes(work: GitWork) -> None:
    work.write("README", "half done\n")
    agent = work.agents("touch new")
    done = work.work(agent, "-n", "1", "--commit")
    assert (done.code, work.starts) == (1, 0)
    assert done.err == (
        "Error: --commit: git.commit is on, but tracked files have uncommitted changes: README\n"
        "  Commit them, put them aside with `git stash`, or let rooda commit them with the agent's "
        "work: --git-dirty commit\n"
    )
    shown = work.work(agent, "--commit", "--dry-run")
    assert shown.code == 1
    assert "✗ --commit: git.commit is on, but tracked files" in shown.out
    assert work.work(agent, "--dry-run").code == 0, "the agent's own commits are its own affair"


@pytest.mark.thorough
def test_changed_files_are_committed_if_the_user_says_so(work: GitWork) -> None:
    work.write("README", "half done\n")
    work.write("notes", "mine\n")
    flags = ("-n", "1", "--commit", "--git-dirty", "commit")
    assert work.work(work.agent("touch new"), *flags).code == 2
    assert committed(work) == ["README", "new"]


@pytest.mark.thorough
def test_untracked_files_of_the_user_stay_out_of_commits_until_the_agent_changes_them(
    work: GitWork,
) -> None:
    for name in ("notes", "touched", "data/1", "data/2", "mixed/mine", "ü\n"):
        work.write(name, "mine\n")
    (work.path / "link").symlink_to("notes")
    work.git("init", "-q", str(work.path / "vendored"))
    work.write("vendored/code", "mine\n")
    work.commit("of the vendor", cwd=work.path / "vendored")
    agent = work.agents(
        "touch new mixed/new touched",
        "git add -A; touch 2",
        "echo more >> data/1; echo data/2 > .gitignore",
        "rm notes; echo mine > notes; chmod +x mixed/mine; ln -sf README link",
    )
    assert work.work(agent, "-n", "4", "--commit").code == 2
    assert committed(work, "HEAD~3") == ["mixed/new", "new"]
    assert committed(work, "HEAD~2") == ["2"], "the agent has staged them and changed nothing"
    assert committed(work, "HEAD~1") == [".gitignore", "data/1"]
    assert committed(work) == ["link", "mixed/mine"]
    left = work.git("ls-files", "-z", "--others", "--exclude-standard").strip("\0").split("\0")
    assert left == ["notes", "touched", "vendored/", "ü\n"]


@pytest.mark.thorough
def test_resumed_run_knows_the_untracked_files_of_its_start_and_accepts_changed_ones(
    work: GitWork,
) -> None:
    work.write("notes", "mine\n")
    stuck = work.agent(f"echo more >> README; touch new; echo . > {work.marker('on')}; sleep 60")
    running = work.begin(stuck, "-n", "2", "--commit")
    wait_for(work.marker("on"))
    running.signal(signal.SIGTERM)
    assert running.finish().code == 130
    done = work.rooda("resume", "--ai-cmd", work.agent(SUCCESS, "other"))
    assert done.code == 0
    assert committed(work) == ["README", "new"]


@pytest.mark.thorough
def test_ralph_commits_everything_as_git_add_does(workspace: Workspace) -> None:
    with ralph_work(workspace) as work:
        work.agent_does(f"touch new; echo a plan > .ralph/implementation_plan.md; {COMPLETE}")
        work.write("README", "half done\n")
        work.write("notes", "mine\n")
        assert work.ralph("plan").code == 0
        assert {"README", "new", "notes"} <= set(committed(work))
