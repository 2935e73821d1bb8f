"""Each misbehaviour with each end, without and in the sandbox, through the installed command."""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import asdict

from rooda.front.selftest.misbehaviour import (
    AT_MAXIMUM,
    CAPTURES,
    ENDS,
    FINDABLE,
    FINDABLE_IN_FILES,
    MISBEHAVIOURS,
    Capture,
    End,
    Kept,
    Misbehaviour,
)
from rooda.front.selftest.scratch import end_all, is_alive, record, survivors
from rooda.world.state.lock_note import LockNote, here
from support.children import Nursery, until
from support.finished import Finished
from support.sandboxes import require_bwrap
from support.workspace import PROCEDURE, Running, Workspace, wait_for

pytestmark = pytest.mark.real

GRACE = "0.3"
ORPHANED = 30  # seconds until all processes are gone after SIGKILL of rooda
PATIENCE = 60  # seconds until the test reports a hang
ENOUGH = ("1", "5", "20")  # seconds for an agent to be ready; a busy machine needs more


def matrix() -> list[Any]:
    """Return each misbehaviour with each end, with both captures, without and in the sandbox.

    The second ring tries each misbehaviour with each end once. The capture and the sandbox take
    turns, so that each misbehaviour and each end meets all four pairs of them.
    """
    turns = tuple(product((False, True), CAPTURES))
    return [
        pytest.param(
            *(one, end, capture, in_sandbox),
            id=f"{one.name}-{end.name}-{capture}{'-in the sandbox' * in_sandbox}",
            marks=[] if turns[(first + second) % len(turns)] == turn else pytest.mark.long,
        )
        for first, one in enumerate(MISBEHAVIOURS)
        for second, end in enumerate(ENDS)
        for turn in turns
        for in_sandbox, capture in [turn]
    ]


@pytest.fixture
def nursery(workspace: Workspace) -> Iterator[Nursery]:
    workspace.config(PROCEDURE)
    found = Nursery(workspace.path)
    yield found
    found.clear()
    for folder in workspace.path.parent.iterdir():
        end_all(folder)


def start(nursery: Nursery, workspace: Workspace, script: str, word: str, *args: str) -> Running:
    """Start a run with the script as its agent."""
    command = f"{workspace.python_agent(script)} {shlex.quote(word)}"
    limits = ("-n", "1", "--failure-threshold", "1", "--kill-grace", GRACE)
    return nursery.start(workspace, "work", "--ai-cmd", command, *limits, *args)


def transcript(workspace: Workspace) -> Kept:
    folder = workspace.kept()
    return Kept((folder / "stdout.log").read_bytes(), (folder / "stderr.log").read_bytes())


def ended(
    nursery: Nursery, workspace: Workspace, one: Misbehaviour, end: End, capture: Capture
) -> Finished:
    running = start(nursery, workspace, one.script, end.word, "--capture", capture)
    if end.sent is not None:
        wait_for(workspace.path / "ready")
        running.signal(end.sent)
    return running.finish(PATIENCE)


def timed_out(
    nursery: Nursery, workspace: Workspace, one: Misbehaviour, end: End, capture: Capture
) -> tuple[Workspace, Finished]:
    """Run in a new folder, with a timeout that lets the agent get ready."""
    for limit in ENOUGH:
        folder = workspace.sibling(f"within-{limit}")
        args = ("--capture", capture, "--iteration-timeout", limit)
        done = start(nursery, folder, one.script, end.word, *args).finish(PATIENCE + float(limit))
        if (folder.path / "ready").exists():
            break
        assert survivors(folder.path) == []
    return folder, done


@pytest.mark.parametrize("one,end,capture,in_sandbox", matrix())
def test_no_process_is_left_no_output_is_lost_and_nothing_hangs(
    workspace: Workspace,
    nursery: Nursery,
    one: Misbehaviour,
    end: End,
    capture: Capture,
    *,
    in_sandbox: bool,
) -> None:
    if in_sandbox:
        require_bwrap()
        workspace.env["ROODA_LOOP_SANDBOX"] = "bwrap"
    if end.is_timeout:
        workspace, done = timed_out(nursery, workspace, one, end, capture)
        assert "iteration_timeout" in done.err
    else:
        done = ended(nursery, workspace, one, end, capture)
    if end.is_death:
        until(lambda: not survivors(workspace.path), "all processes exit", ORPHANED)
    assert survivors(workspace.path) == []
    promised = one.kept(capture, end).of(workspace.path)
    found = transcript(workspace)
    if end.is_death and capture == "pipe":  # bytes in the pipe are lost with rooda
        assert promised.stdout.startswith(found.stdout)
        assert promised.stderr.startswith(found.stderr)
    else:
        assert len(found.stdout) == len(promised.stdout)
        assert len(found.stderr) == len(promised.stderr)
        assert found == promised
    is_said = promised.stdout.endswith(end.last_words)
    assert done.code == (end.code if is_said or end.code else AT_MAXIMUM)
    assert "Traceback" not in done.err
    assert "still running" not in done.err


# -- killed warden -------------------------------------------------------------------------

PROMISES = "echo '<promise>SUCCESS</promise>'"
LOST = "AI CLI was lost: rooda's warden is gone; the processes that rooda found were stopped"
LEFT = "An earlier run was killed here; what it left behind was stopped"


def findable(*quick: tuple[str, Capture], in_files: Sequence[Capture] = ("file",)) -> list[object]:
    """All cases without a warden, with both captures; all except the given ones are slow."""
    cases = [(one, capture) for one in FINDABLE for capture in CAPTURES]
    cases += [(FINDABLE_IN_FILES, capture) for capture in in_files]
    return [
        pytest.param(
            one,
            capture,
            id=f"{one.name}-{capture}",
            marks=[] if (one.name, capture) in quick else pytest.mark.long,
        )
        for one, capture in cases
    ]


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "one,capture", findable(("plain child", "file"), ("setsid child", "pipe"), in_files=CAPTURES)
)
def test_killed_warden_fails_only_its_own_iteration(
    workspace: Workspace, nursery: Nursery, one: Misbehaviour, capture: Capture
) -> None:
    agent = f"exec {workspace.python_agent(one.script)} stay"
    command = workspace.agents(agent, PROMISES)
    limits = ("-n", "2", "--kill-grace", GRACE, "--capture", capture)
    running = nursery.start(workspace, "work", "--ai-cmd", command, *limits)
    wait_for(workspace.path / "ready")
    os.kill(record(workspace.path, "warden")[0], signal.SIGKILL)
    done = running.finish(PATIENCE)
    assert done.code == 0
    assert survivors(workspace.path) == []
    assert len([line for line in done.log if line.startswith(f"WARN: {LOST}")]) == 1
    assert "Iteration 1/2 completed in " in done.err
    assert "(failure, consecutive: 1/3)" in done.err
    assert "Reason: rooda's warden is gone" in done.err
    assert workspace.starts == 2
    assert "Traceback" not in done.err


def test_lost_agent_has_no_exit_code(workspace: Workspace, nursery: Nursery) -> None:
    running = start(nursery, workspace, FINDABLE[0].script, "stay")
    wait_for(workspace.path / "ready")
    os.kill(record(workspace.path, "warden")[0], signal.SIGKILL)
    done = running.finish(PATIENCE)
    assert done.code == 1
    assert "Reason: rooda's warden is gone" in done.err
    assert "exit code" not in done.err


def killed_together(
    nursery: Nursery, workspace: Workspace, one: Misbehaviour, capture: Capture
) -> None:
    """Kill rooda and the warden, so that neither can react."""
    running = start(nursery, workspace, one.script, "stay", "--capture", capture)
    wait_for(workspace.path / "ready")
    warden = record(workspace.path, "warden")
    running.signal(signal.SIGSTOP)  # a running rooda would continue the warden
    os.kill(warden[0], signal.SIGSTOP)
    running.signal(signal.SIGKILL)
    assert running.finish(PATIENCE).code == -signal.SIGKILL
    os.kill(warden[0], signal.SIGKILL)
    until(lambda: not is_alive(*warden), "the warden exits")


def next_run(nursery: Nursery, workspace: Workspace) -> Finished:
    command = workspace.agent(PROMISES, "next.sh")
    done = nursery.start(workspace, "work", "--ai-cmd", command).finish(PATIENCE)
    assert done.code == 0
    assert "Traceback" not in done.err
    return done


def reports_leftovers(done: Finished) -> bool:
    return any(line.startswith(f"WARN: {LEFT}") for line in done.log)


def check_next_run_clears(nursery: Nursery, workspace: Workspace, *gone: str) -> None:
    """Start the next run; it must stop all processes that the killed run left."""
    left = {file.stem for file in workspace.path.glob("*.pid")} - {"warden", *gone}
    assert all(is_alive(*record(workspace.path, name)) for name in left)
    done = next_run(nursery, workspace)
    assert survivors(workspace.path) == []
    assert reports_leftovers(done)
    assert all(f"(pid {record(workspace.path, name)[0]})" in done.err for name in left)


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "one,capture", findable(("plain child", "pipe"), ("unmarked child", "file"))
)
def test_next_run_stops_leftovers_of_a_killed_run_and_reports_them(
    workspace: Workspace, nursery: Nursery, one: Misbehaviour, capture: Capture
) -> None:
    killed_together(nursery, workspace, one, capture)
    check_next_run_clears(nursery, workspace)
    assert not reports_leftovers(next_run(nursery, workspace))


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "one,capture", findable(("setsid child", "file"), ("unmarked child", "pipe"))
)
def test_next_run_finds_leftovers_without_their_leader(
    workspace: Workspace, nursery: Nursery, one: Misbehaviour, capture: Capture
) -> None:
    killed_together(nursery, workspace, one, capture)
    leader = record(workspace.path, "leader")
    os.kill(leader[0], signal.SIGKILL)
    until(lambda: not is_alive(*leader), "the leader exits")
    check_next_run_clears(nursery, workspace, "leader")


def bystander(nursery: Nursery, workspace: Workspace, *command: str) -> subprocess.Popen[str]:
    """A process of the user in the same folder."""
    process = subprocess.Popen(
        command,
        cwd=workspace.path,
        env=workspace.environ(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    nursery.started.append(process)
    return process


def test_next_run_leaves_other_processes_alone(workspace: Workspace, nursery: Nursery) -> None:
    killed_together(nursery, workspace, FINDABLE[0], "file")
    others = [
        bystander(nursery, workspace, "tail", "-f", str(workspace.kept() / "stdout.log")),
        bystander(nursery, workspace, "sleep", "60"),
    ]
    done = next_run(nursery, workspace)
    assert reports_leftovers(done)
    assert set(survivors(workspace.path)) == {f"is in the folder: pid {one.pid}" for one in others}
    assert [other.poll() for other in others] == [None, None]
    assert "tail" not in done.err
    assert "sleep" not in done.err


def started(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


@pytest.mark.real(rows=1)
@pytest.mark.skipif(sys.platform != "linux", reason="reads start times from /proc")
@pytest.mark.parametrize(
    "later,boot",
    [(1, True), (-1, True), (0, False)],
    ids=["started earlier", "started later", "another boot"],
)
def test_reused_pid_is_left_alone(
    workspace: Workspace, nursery: Nursery, later: int, *, boot: bool
) -> None:
    """The process is even a session leader in the same folder."""
    other = bystander(nursery, workspace, "sleep", "60")
    host, boot_id = here()
    agent = (other.pid, float(started(other.pid) + later))
    note = LockNote(
        "20260101-000000-abcdef", "work", 1, 0.5, "2026-01-01T00:00:00", str(workspace.path), host,
        boot_id if boot else "another", (agent,),
    )  # fmt: skip
    workspace.write(f"{workspace.state}/run.json", json.dumps(asdict(note)))
    assert not reports_leftovers(next_run(nursery, workspace))
    assert other.poll() is None
