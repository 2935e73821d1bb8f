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


def paused(work: GitWork, number: signal.Signals = signal.SIGTERM) -> None:
    """Interrupt a run whose agent has changed `a` and made `new`, then edit as the user."""
    work.write("a", "a\n")
    work.commit("more")
    on = work.marker("on")
    stuck = work.agent(f"echo more >> a; echo agent > new; echo . > {on}; sleep 60")
    running = work.begin(stuck, "-n", "2", "--commit")
    wait_for(on)
    running.signal(number)
    running.finish()
    work.write("notes", "mine\n")


@pytest.mark.thorough
def test_new_files_of_a_pause_stay_out_of_commits(work: GitWork) -> None:
    paused(work)
    done = work.rooda("resume", "--ai-cmd", work.agent(SUCCESS, "other"))
    assert done.code == 0
    assert committed(work) == ["a", "new"], "what the interrupted iteration left is the run's"


@pytest.mark.thorough
def test_tracked_files_that_changed_in_a_pause_stop_the_resumed_run(work: GitWork) -> None:
    paused(work)
    work.write("README", "half done\n")
    agent = ("--ai-cmd", work.agent(SUCCESS, "other"))
    for _ in range(2):
        done = work.rooda("resume", *agent)
        assert done.code == 1
        assert "tracked files have uncommitted changes: README\n" in done.err
        assert "--git-dirty commit" in done.err
    work.git("checkout", "-q", "README")
    work.write("a", "of the user\n")
    assert "uncommitted changes: a\n" in work.rooda("resume", *agent).err
    assert work.rooda("resume", *agent, "--git-dirty", "commit").code == 0
    assert committed(work) == ["a", "new"]


@pytest.mark.thorough
def test_after_a_kill_all_uncommitted_files_are_the_users_unless_they_say_otherwise(
    work: GitWork,
) -> None:
    paused(work, signal.SIGKILL)
    agent = ("--ai-cmd", work.agent(SUCCESS, "other"))
    done = work.rooda("resume", *agent)
    assert done.code == 1
    assert "uncommitted changes: a\n" in done.err
    assert work.rooda("resume", *agent, "--git-dirty", "commit").code == 0
    assert {"a", "new"} <= set(committed(work))


@pytest.mark.thorough
def test_ralph_commits_everything_as_git_add_does(workspace: Workspace) -> None:
    with ralph_work(workspace) as work:
        work.agent_does(f"touch new; echo a plan > .ralph/implementation_plan.md; {COMPLETE}")
        work.write("README", "half done\n")
        work.write("notes", "mine\n")
        assert work.ralph("plan").code == 0
        assert {"README", "new", "notes"} <= set(committed(work))


@pytest.mark.thorough
def test_commit_names_the_failed_iterations_whose_work_it_contains(work: GitWork) -> None:
    agent = work.agents("touch one; exit 1", "exit 1", "touch three; exit 1", "echo Four is done.")
    assert work.work(agent, "-n", "4", "--commit", "--failure-threshold", "9").code == 2
    assert committed(work) == ["one", "three"]
    message = work.git("log", "-1", "--format=%B").splitlines()
    assert message[:4] == ["Four is done", "", "with the work of iterations 1 and 3 (failed)", ""]
    assert message[4].startswith("Rooda-Run: ")
    shown = work.rooda("show", "4").out
    assert "(with the work of iterations 1 and 3)" in shown
    assert "(with 1, 3)" in work.rooda("show").out
