"""`--branch` through the installed command: a branch of its own for a run."""

import signal
from collections.abc import Iterator

import pytest

from support.gitwork import GitWork, git_work
from support.workspace import Workspace, wait_for

pytestmark = pytest.mark.real

SUCCESS = "echo '<promise>SUCCESS</promise>'"


@pytest.fixture
def work(workspace: Workspace) -> Iterator[GitWork]:
    with git_work(workspace) as found:
        yield found


def current(work: GitWork) -> str:
    return work.git("symbolic-ref", "--short", "HEAD")


def test_branch_is_created_before_the_first_iteration_and_not_by_a_dry_run(work: GitWork) -> None:
    work.write("notes", "mine\n")
    agent = work.agent(f"git symbolic-ref HEAD > {work.marker('seen')}; {SUCCESS}")
    shown = work.work(agent, "--branch", "night/1", "--dry-run")
    assert (shown.code, current(work)) == (0, "main")
    assert "  Git Branch: night/1 (cli: --branch)" in shown.out
    done = work.work(agent, "--branch", "night/1")
    assert done.code == 0
    assert work.marker("seen").read_text() == "refs/heads/night/1\n"
    assert "Created a branch branch=night/1 before=main" in done.err
    assert work.git("rev-parse", "night/1") == work.git("rev-parse", "main")


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("name", ["two words", "mine/sub"])
def test_name_that_git_refuses_is_an_error_before_the_first_iteration(
    work: GitWork, name: str
) -> None:
    work.git("branch", "mine")
    done = work.work("true", f"--branch={name}", "--dry-run")
    assert done.code == 1
    assert "✗ --branch: " in done.out
    assert "Choose a" in done.out


def test_full_name_of_a_branch_is_an_error_that_names_the_plain_one(work: GitWork) -> None:
    work.git("remote", "add", "upstream", "elsewhere")
    for name in (
        "refs/heads/night",
        "heads/night",
        "upstream/night",
        "remotes/upstream/night",
        "refs/remotes/upstream/night",
    ):
        done = work.work("true", f"--branch={name}", "--dry-run")
        assert done.code == 1
        assert f"{name} is not the name of a new branch: it means the branch night" in done.out
        assert "Write night; " in done.out
    work.git("branch", "upstream/night")
    assert work.work("true", "--branch=upstream/night", "--dry-run").code == 0
    assert work.work("true", "--branch=ada/night", "--dry-run").code == 0


def test_hook_that_fails_after_the_switch_is_told_from_a_switch_that_failed(work: GitWork) -> None:
    work.git_hook("post-checkout", "echo 'no network' >&2; exit 3")
    done = work.work(work.agents(SUCCESS), "--branch", "night")
    assert (done.code, work.starts, current(work)) == (1, 0, "night")
    assert "git has switched to the branch night, and failed after that: no network" in done.err
    assert "Check the hook post-checkout" in done.err
    assert "to go back: git switch main" in done.err
    assert work.work(work.agents(SUCCESS), "--branch", "night").code == 0


def test_changed_files_a_merge_and_another_work_tree_are_errors(work: GitWork) -> None:
    agent = work.agents("exit 0")
    work.write("README", "half done\n")
    for flags in ((), ("--commit", "--git-dirty", "commit")):
        done = work.work(agent, "--branch", "night", *flags)
        assert done.code == 1
        assert "Error: --branch: tracked files have uncommitted changes: README" in done.err
        assert done.err.count("README") == 1
    work.git("checkout", "-q", "README")
    other = work.path.parent / "other"
    work.git("worktree", "add", "-q", "-b", "night", str(other))
    done = work.work(agent, "--branch", "night")
    assert (done.code, current(work), work.starts) == (1, "main", 0)
    assert f"the branch night is checked out in another work tree: {other}" in done.err
    work.write(".git/MERGE_HEAD", work.git("rev-parse", "HEAD"))
    assert "a merge is in progress" in work.work(agent, "--branch", "day").err
    outside = work.sibling("outside")
    done = outside.work("true", "--branch", "day")
    assert "is in no git work tree" in done.err


def test_switch_that_git_refuses_ends_the_start_with_git_s_words(work: GitWork) -> None:
    work.git("switch", "-qc", "night")
    work.write("notes", "of the branch\n")
    work.commit("notes")
    work.git("switch", "-q", "main")
    work.write("notes", "mine\n")
    agent = work.agents("exit 0")
    done = work.work(agent, "--branch", "night")
    assert (done.code, work.starts) == (1, 0)
    assert "untracked working tree files would be overwritten" in done.err
    assert (work.path / "notes").read_text() == "mine\n"
    assert "running" not in work.rooda("history").out


def test_existing_branch_is_used_and_a_detached_head_is_no_obstacle(work: GitWork) -> None:
    work.git("switch", "-qc", "night")
    work.commit("on the branch")
    work.git("checkout", "-q", "--detach", "main")
    done = work.work(work.agent(f"touch new; {SUCCESS}"), "--branch", "night", "--commit")
    assert done.code == 0
    assert work.git("log", "--format=%s", "night").splitlines() == [
        "work: iteration 1",
        "on the branch",
        "the beginning",
    ]
    work.git("push", "-q", "origin", "night:theirs")
    work.git("fetch", "-q")
    assert work.work(work.agent(SUCCESS), "--branch", "theirs").code == 0
    assert work.git("rev-parse", "--abbrev-ref", "theirs@{upstream}") == "origin/theirs"


def test_resumed_run_stays_on_its_branch_and_goes_back_to_it_from_a_clean_tree(
    work: GitWork,
) -> None:
    stuck = work.agent(f"echo more >> README; echo . > {work.marker('on')}; sleep 60", "stuck")
    running = work.begin(stuck, "-n", "9", "--branch", "night")
    wait_for(work.marker("on"))
    running.signal(signal.SIGTERM)
    assert running.finish().code == 130
    next_one = work.agent("exit 0", "next")
    assert work.rooda("resume", "--ai-cmd", next_one, "-n", "1").code == 2
    assert current(work) == "night"
    work.git("checkout", "-q", "README")
    work.git("switch", "-q", "main")
    assert work.rooda("resume", "--ai-cmd", next_one, "-n", "2").code == 2
    assert current(work) == "night"
    work.git("switch", "-q", "main")
    work.write("README", "changed\n")
    done = work.rooda("resume", "-n", "3")
    assert (done.code, current(work)) == (1, "main")
    assert "tracked files have uncommitted changes: README" in done.err


def test_signal_during_the_switch_ends_the_run_before_an_agent_starts(work: GitWork) -> None:
    work.git_hook("post-checkout", f"echo . > {work.marker('on')}; sleep 60")
    agent = work.agents("exit 0")
    running = work.begin(agent, "--branch", "night")
    wait_for(work.marker("on"))
    running.signal(signal.SIGTERM)
    assert (running.finish().code, work.starts) == (130, 0)
