"""SIGKILL of rooda at any moment loses no finished iteration, and the run can be resumed."""

import json
import random
import signal
import time
from dataclasses import dataclass

import pytest

from support.children import Nursery, until
from support.finished import Rooda
from support.gitrepo import stored
from support.recorded import asked, git, quoted, statuses, versioned
from support.workspace import Workspace, alive

pytestmark = pytest.mark.long


@dataclass
class KilledRun:
    """A run that is killed and resumed repeatedly.

    Its agent records each start outside of the workspace, and appends to a journal inside of it.
    """

    workspace: Workspace
    nursery: Nursery
    inside: Rooda
    arguments: tuple[str, ...]
    kills: int = 0

    def prepare(self) -> None:
        versioned(self.workspace)
        starts = self.workspace.home / "starts.txt"
        self.workspace.write("staged.txt", "staged by the user\n")
        git(self.workspace, "add", "staged.txt")
        body = f"echo x >> {quoted(starts)}; echo $$ > agent.pid; echo line >> journal.txt"
        self.command = self.workspace.agent(f"{body}; seq 200; sleep 0.01")

    @property
    def starts(self) -> int:
        file = self.workspace.home / "starts.txt"
        return len(file.read_text()) // 2 if file.exists() else 0

    def kill_after(self, seconds: float, *, from_the_agent: bool) -> None:
        """Start or resume the run, and kill it `seconds` after its start, or after an agent's."""
        before = self.starts
        has_run = bool(asked(self.inside, "history"))
        flags = ("--resume",) if has_run else ()
        running = self.nursery.start(
            self.workspace, "work", "--ai-cmd", self.command, "-u", *flags, *self.arguments
        )
        if from_the_agent:
            until(lambda: self.starts > before, "an agent starts")
        time.sleep(seconds)
        running.signal(signal.SIGKILL)
        assert running.finish().code == -signal.SIGKILL
        self.kills += 1
        pids = self.workspace.path / "agent.pid"
        until(lambda: not (pids.exists() and alive(int(pids.read_text() or 0))), "its agent exits")

    def check(self) -> None:
        """Check that the store opens, has every finished iteration, and shows no running run."""
        runs = asked(self.inside, "history")
        if not runs:
            assert self.starts == 0
            return
        (listed,) = runs
        assert listed["status"] == "interrupted"
        run = asked(self.inside, "show")
        found = statuses(run)
        assert [number for number, _ in found] == list(range(1, len(found) + 1))
        finished = [number for number, status in found if status == "completed"]
        assert {status for _, status in found} <= {"completed", "interrupted"}
        assert finished in ([n for n, _ in found], [n for n, _ in found[:-1]])
        # Each kill interrupts one attempt at most.
        assert len(finished) >= self.starts - self.kills
        # An agent may be stopped between its two writes, but nothing that it wrote is lost.
        journal = self.workspace.path / "journal.txt"
        written = len(journal.read_text()) // 5 if journal.exists() else 0
        assert len(finished) <= written <= self.starts

    def finish(self) -> None:
        """Resume the run to its end, and check that the user's files are intact."""
        reached = len(
            [one for one in statuses(asked(self.inside, "show")) if one[1] == "completed"]
        )
        total = reached + 3
        done = self.workspace.rooda(
            "work", "--resume", "--ai-cmd", self.command, "-n", str(total), *self.arguments
        )
        assert done.code == 2, done.err
        assert "WARN" not in done.err
        run = asked(self.inside, "show")
        assert statuses(run) == [(number, "completed") for number in range(1, total + 1)]
        assert json.loads(json.dumps(run))["summary"]["total_iterations"] == total
        assert git(self.workspace, "fsck", "--no-dangling", "--no-progress") == ""
        names = stored(
            self.workspace.path, "for-each-ref", "--format=%(refname:lstrip=3)", "refs/rooda"
        )
        assert sorted(map(int, names.split())) == list(range(total + 1))
        locks = list((self.workspace.path / ".git").rglob("*.lock"))
        assert locks == []
        assert (self.workspace.path / "kept.txt").read_text() == "of the user\n"
        assert (self.workspace.path / "staged.txt").read_text() == "staged by the user\n"
        git(self.workspace, "commit", "-q", "--allow-empty", "-am", "the user goes on")


def killed_run(workspace: Workspace, nursery: Nursery, inside: Rooda, *arguments: str) -> KilledRun:
    found = KilledRun(workspace, nursery, inside, arguments)
    found.prepare()
    return found


@pytest.fixture
def inside(workspace: Workspace) -> Rooda:
    """Run `rooda ARGS` in this process, to read the record."""
    return workspace.inside


@pytest.mark.sample
def test_three_kills_lose_nothing(workspace: Workspace, nursery: Nursery, inside: Rooda) -> None:
    run = killed_run(workspace, nursery, inside)
    for _ in range(3):
        run.kill_after(random.uniform(0, 0.2), from_the_agent=True)
        run.check()
    run.finish()


@pytest.mark.timeout(600)
def test_fifty_kills_lose_nothing(workspace: Workspace, nursery: Nursery, inside: Rooda) -> None:
    run = killed_run(workspace, nursery, inside)
    for turn in range(50):
        # Every third kill comes during the start, before there is an agent.
        early = turn % 3 == 0
        run.kill_after(random.uniform(0, 0.8 if early else 0.3), from_the_agent=not early)
        run.check()
    run.finish()


@pytest.mark.timeout(600)
def test_kills_during_verify_commit_and_hooks_lose_nothing(
    workspace: Workspace, nursery: Nursery, inside: Rooda
) -> None:
    commits = ("--commit", "--git-dirty", "commit")  # the user has staged a file
    arguments = ("--verify", "cat journal.txt", *commits, "--hooks-post-iteration", "seq 9")
    run = killed_run(workspace, nursery, inside, *arguments)
    for _ in range(12):
        run.kill_after(random.uniform(0, 0.4), from_the_agent=True)
        run.check()
    run.finish()


def test_kill_before_the_first_iteration_does_not_block_a_new_run(
    workspace: Workspace, nursery: Nursery, inside: Rooda
) -> None:
    run = killed_run(workspace, nursery, inside)
    running = nursery.start(workspace, "work", "--ai-cmd", run.command, "-u")
    until((workspace.state).exists, "the state folder")
    running.signal(signal.SIGKILL)
    running.finish()
    done = workspace.rooda("work", "--ai-cmd", run.command, "-n", "1")
    assert done.code == 2, done.err
    newest = asked(inside, "history")[0]
    assert (newest["status"], newest["summary"]["total_iterations"]) == ("max-iters", 1)
