"""A signal while a git of rooda's hangs: a prompt answer, and no process left."""

import signal
import time
from collections.abc import Iterator

import pytest

from support.faults import processes_of
from support.finished import Finished
from support.gitwork import GitWork, git_work
from support.stand_ins import StandInGit
from support.workspace import Running, Workspace, alive

pytestmark = pytest.mark.real

# A busy machine needs more than the promised second; without the promise it is 5 s and more.
SOON = 3.0


@pytest.fixture
def work(workspace: Workspace) -> Iterator[GitWork]:
    with git_work(workspace) as found:
        yield found


def wish(work: GitWork, command: str) -> str:
    """Return what an agent or a check does so that the next such git command hangs."""
    return f"echo '{command} 1 obedient' > {work.tools / 'wish'}"


def answer(work: GitWork, running: Running, git: StandInGit) -> tuple[Finished, float]:
    """Send SIGTERM when git hangs; return how rooda ended, and after how many seconds."""
    pid = git.wait_until_it_hangs()
    began = time.monotonic()
    running.signal(signal.SIGTERM)
    done = running.finish()
    seconds = time.monotonic() - began
    assert not alive(pid)
    assert processes_of(work) == []
    assert "Internal error" not in done.err
    assert "Traceback" not in done.err
    return done, seconds


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "command", ["diff-tree", pytest.param("rev-parse", marks=pytest.mark.long)]
)
def test_each_later_git_gets_no_time_of_its_own(work: GitWork, command: str) -> None:
    git = StandInGit(work)
    agent = work.agent(f"echo new > new.txt; {wish(work, command)}")
    running = work.begin(agent, "-n", "2", "--commit", "--push")
    done, seconds = answer(work, running, git)
    assert done.code == 130
    assert seconds < SOON
    assert "failure" not in done.err, "the user stopped it: the iteration did not fail"


def test_no_agent_starts_after_a_signal(work: GitWork) -> None:
    git = StandInGit(work)
    agent = work.agents("echo one > one", "echo two > two")
    check = f"echo new > of-verify; {wish(work, 'check-ignore')}"
    running = work.begin(agent, "-n", "2", "--no-verify-baseline", "--verify", check)
    done, seconds = answer(work, running, git)
    assert (done.code, work.starts) == (130, 1)
    assert seconds < SOON
    assert done.err.count("Received SIGTERM") == 1
    assert work.record()[-1]["status"] == "interrupted"


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "words,command,stubborn",
    [
        (("diff", "1"), "diff", False),
        (("restore", "0"), "cat-file", False),
        pytest.param(("doctor",), "var", True, marks=pytest.mark.long),
        pytest.param(("demo",), "init", False, marks=pytest.mark.long),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else str(value),
)
def test_no_git_outlives_a_command_that_a_signal_ends(
    work: GitWork, words: tuple[str, ...], command: str, *, stubborn: bool
) -> None:
    git = StandInGit(work)
    if words[0] in ("diff", "restore"):
        assert work.work(work.agent("echo new > new.txt"), "-n", "1").code == 2
    git.hang_at(command, stubborn=stubborn)
    done, seconds = answer(work, work.start(*words), git)
    assert (done.code, seconds < SOON) == (130, True)
    assert "Interrupted" in done.err


def test_restore_that_a_signal_stops_before_the_first_change_changes_nothing(work: GitWork) -> None:
    git = StandInGit(work)
    assert work.work(work.agent("echo new > new.txt"), "-n", "1").code == 2
    git.hang_at("cat-file")
    done, _ = answer(work, work.start("restore", "0"), git)
    assert done.code == 130
    assert "Interrupted; the work tree is as it was" in done.err
    assert (work.path / "new.txt").exists()


def test_restore_that_a_signal_stops_later_says_how_to_undo_it(work: GitWork) -> None:
    git = StandInGit(work)
    assert work.work(work.agent("echo new > new.txt"), "-n", "1").code == 2
    git.hang_at("diff-tree")
    done, _ = answer(work, work.start("restore", "0"), git)
    assert done.code == 130
    assert "only partly restored" in done.err
    assert "To undo: rooda restore u1" in done.out


def test_hooks_at_the_end_of_an_interrupted_run_get_five_seconds_in_all(work: GitWork) -> None:
    sign = work.marker("hook")
    hook = f"trap '' TERM; echo $$ > {sign}; while :; do sleep 60; done"
    work.settings(hooks={"loop_end": [hook, hook]})
    git = StandInGit(work)
    running = work.begin(work.agent(f"echo new > new; {wish(work, 'diff-tree')}"), "-n", "1")
    done, seconds = answer(work, running, git)
    assert done.code == 130
    assert seconds < 7
    assert not alive(int(sign.read_text()))
