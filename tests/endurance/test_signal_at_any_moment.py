"""A signal at any moment, during any git command: a prompt answer, and no process left.

The promise is a second if the child obeys SIGTERM, and seven seconds otherwise. A busy machine gets
three seconds more; without the promise each git that hangs cost five seconds.
"""

import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median

import pytest

from support.children import catches, until
from support.faults import processes_of
from support.finished import Finished
from support.gitwork import GitWork, git_work
from support.stand_ins import StandInGit
from support.workspace import PROCEDURE, Running, Workspace, alive

pytestmark = pytest.mark.long


OBEDIENT, STUBBORN = 1.0, 7.0  # seconds
BUSY = 3.0  # seconds more
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
MOMENTS = ("loop_start", "pre_iteration", "post_iteration", "on_failure", "on_wait", "loop_end")
RUN = ("--commit", "--git-dirty", "commit", "--push", "--verify", "true", "-n", "2")
BROKEN = ("Traceback", "Exception ignored", "Internal error")
# The agent of the scripted runs; `new` changes with each start.
AGENT = 'date +%s%N > new; mkdir -p made; cp new "made/$(cat new)"'


@pytest.fixture
def work(workspace: Workspace) -> Iterator[GitWork]:
    with git_work(workspace) as found:
        found.settings(hooks={moment: ["true"] for moment in MOMENTS})
        yield found


def started(work: GitWork, *words: str) -> Running:
    return work.start(*words, env={"GIT_PAGER": "cat"})


def a_run(work: GitWork) -> tuple[str, ...]:
    return ("work", "--ai-cmd", work.agent(AGENT), *RUN)


def answered(
    work: GitWork, running: Running, *numbers: signal.Signals, between: float = 0.2
) -> tuple[Finished, float]:
    """Send the signals; return how rooda ended, and the seconds from the first to the end."""
    began = time.monotonic()
    for count, number in enumerate(numbers):
        if count:
            time.sleep(between)
        running.signal(number)
    done = running.finish(timeout=60)
    seconds = time.monotonic() - began
    left = [Path(f"/proc/{pid}/cmdline") for pid in processes_of(work)]
    assert [file.read_bytes() for file in left if file.exists()] == [], done.err
    assert not any(word in done.err for word in BROKEN), done.err
    return done, seconds


def hangs_or_has_ended(git: StandInGit, running: Running) -> bool:
    return git.hangs() or running.process.poll() is not None


def calls_of(work: GitWork, git: StandInGit, words: tuple[str, ...]) -> list[tuple[str, int]]:
    """Run the command; return each git command with the numbers of its first and last call."""
    git.calls()
    finished = started(work, *words).finish(timeout=60)
    assert finished.code in (0, 2), finished.err
    counts = Counter(git.calls())
    return [(name, number) for name, last in counts.items() for number in sorted({1, last})]


COMMANDS: dict[str, tuple[str, ...]] = {
    "run": (),
    "dry run": ("--dry-run",),
    "doctor": ("doctor",),
    "diff": ("diff", "1"),
    "restore": ("restore", "0"),
}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("stubborn", [False, True], ids=["obedient", "stubborn"])
@pytest.mark.parametrize("name", COMMANDS)
def test_signal_during_each_git_command(work: GitWork, name: str, *, stubborn: bool) -> None:
    git = StandInGit(work)
    words = (*a_run(work), *COMMANDS[name]) if name.endswith("run") else COMMANDS[name]
    assert started(work, *a_run(work)).finish(timeout=60).code == 2
    found = calls_of(work, git, words)
    assert found
    if stubborn:  # each takes its full time
        found = random.Random(6).sample(found, min(len(found), 5))
    took: dict[tuple[str, int], float] = {}
    for count, (command, number) in enumerate(found):
        git.hang_at(command, number, stubborn=stubborn)
        running = started(work, *words)
        until(partial(hangs_or_has_ended, git, running), "git hangs", timeout=60)
        if not git.hangs():
            assert running.finish(timeout=60).code in (0, 2)  # this time there were fewer calls
            continue
        pid = git.wait_until_it_hangs()
        done, took[command, number] = answered(work, running, SIGNALS[count % len(SIGNALS)])
        expected = 130
        if name == "restore" and "Restored" in done.out:  # only the cleanup was stopped
            expected = 0
        # After the end of the run only the last check of the tree is left.
        if name == "run" and "Reached max iterations" in done.err:
            expected = 2
        assert done.code == expected, (command, number, done.err)
        assert not alive(pid)
    slowest = max(took, key=lambda key: took[key])
    assert took[slowest] < (STUBBORN if stubborn else OBEDIENT) + BUSY, slowest
    assert stubborn or median(took.values()) < 2 * OBEDIENT


@pytest.mark.timeout(300)
@pytest.mark.parametrize("command", ["status", "add", "commit", "push"])
def test_second_signal_kills_a_stubborn_git_at_once(work: GitWork, command: str) -> None:
    git = StandInGit(work)
    for number in (signal.SIGINT, signal.SIGTERM):
        git.hang_at(command, 2, stubborn=True)
        running = started(work, *a_run(work))
        pid = git.wait_until_it_hangs()
        done, seconds = answered(work, running, number, number)
        assert (done.code, alive(pid)) == (130, False)
        assert seconds < OBEDIENT + BUSY


def check_the_next_run(work: GitWork) -> None:
    """A run after all those signals finds no lock and no half-made record in its way."""
    assert not [file for file in (work.path / ".git").rglob("*.lock") if file.exists()]
    done = started(work, *a_run(work)).finish(timeout=120)
    assert done.code == 2, done.err
    assert "An earlier run was killed here" not in done.err
    assert work.git("fsck", "--no-dangling", "--no-progress") == ""
    assert {one["status"] for one in work.record()} == {"completed"}


def signals_at_many_moments(work: GitWork, seed: int, count: int) -> None:
    chance = random.Random(seed)
    whole = started(work, *a_run(work)).finish(timeout=120)
    assert whole.code == 2
    took = []
    for turn in range(count):
        number = SIGNALS[turn % len(SIGNALS)]
        running = started(work, *a_run(work))
        if number is signal.SIGINT:  # Python itself shows a traceback for it while it starts
            until(partial(catches, running.process.pid, signal.SIGTERM), "main begins")
        time.sleep(chance.uniform(0, whole.seconds))
        done, seconds = answered(work, running, number)
        # Before rooda has its handlers, a signal ends Python itself.
        assert done.code in (130, 2, -number), (seed, turn, done.err)
        took.append(seconds)
    assert max(took) < OBEDIENT + BUSY
    assert median(took) < 2 * OBEDIENT
    check_the_next_run(work)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [1, 2])
def test_signal_at_many_moments_of_a_run(work: GitWork, seed: int) -> None:
    signals_at_many_moments(work, seed, 20)


def make_large(folder: Path, files: int) -> None:
    for number in range(files // 500):
        below = folder / f"folder-{number}"
        below.mkdir()
        for name in range(500):
            (below / f"{name}.txt").write_text(f"{number} {name}\n")
    (folder / "large.bin").write_bytes(random.Random(3).randbytes(40 * 1024 * 1024))


@pytest.mark.timeout(900)
def test_signal_at_many_moments_in_a_large_repository(work: GitWork) -> None:
    make_large(work.path, 50_000)
    work.commit("large")
    signals_at_many_moments(work, 3, 8)


def test_signal_in_the_first_moments_leaves_nothing_behind(work: GitWork) -> None:
    """SIGTERM and SIGHUP: for SIGINT, Python itself shows a traceback while it starts."""
    chance = random.Random(4)
    for turn in range(20):
        number = (signal.SIGTERM, signal.SIGHUP)[turn % 2]
        running = started(work, *a_run(work))
        time.sleep(chance.uniform(0, 0.1))
        done, seconds = answered(work, running, number)
        assert done.code in (130, -number), (turn, done.err)
        assert seconds < OBEDIENT + BUSY
    check_the_next_run(work)


def test_signal_during_init_leaves_no_half_written_config(workspace: Workspace) -> None:
    chance = random.Random(5)
    for turn in range(15):
        (workspace.path / "rooda-config.yml").unlink(missing_ok=True)
        running = workspace.start("init")
        time.sleep(chance.uniform(0, 0.6))
        running.signal(signal.SIGTERM)
        done = running.finish()
        assert done.code in (0, 130, -signal.SIGTERM), (turn, done.err)
        assert not any(word in done.err for word in BROKEN)
        if (workspace.path / "rooda-config.yml").exists():
            assert workspace.rooda("config", "check").code == 0
    workspace.config(PROCEDURE)
