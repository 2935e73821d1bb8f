"""Stopping a process tree: SIGTERM, grace period, survivors, and leftovers of killed runs."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import cast

import pytest

from rooda.world.agents.agent_program import program_of
from rooda.world.process.tree import process_table
from rooda.world.process.tree.processes import Process, ProcessTable
from rooda.world.process.tree.stopping import TreeStop
from support.children import Nursery, frozen_cgroup, until
from support.jobs import is_stopped
from support.states import state_of
from support.workspace import PROCEDURE, ROODA, Workspace, alive, wait_for


def run_shell(workspace: Workspace, command: str, *before: str) -> subprocess.CompletedProcess[str]:
    """Run a shell command until it exits; `rooda` in it is the installed one."""
    return subprocess.run(
        [*before, "sh", "-c", command.replace("rooda work", f'"{ROODA}" work')],
        cwd=workspace.path,
        env=workspace.environ(),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


CAPTURES = pytest.mark.parametrize("capture", ["file", "pipe"])


@pytest.mark.long
@CAPTURES
def test_process_started_for_cleanup_gets_the_grace_too(workspace: Workspace, capture: str) -> None:
    cleaning = "trap 'sh -c \"sleep 0.3; echo ok > cleaned\"; echo status $?; exit' TERM"
    agent = workspace.agent(f"{cleaning}; echo > up; while :; do sleep 0.05; done")
    done = workspace.work(
        agent, "-n", "1", "-v", "--iteration-timeout", "3", "--kill-grace", "20",
        "--capture", capture,
    )  # fmt: skip
    assert (workspace.path / "cleaned").read_text() == "ok\n"
    assert "status 0" in done.out


@pytest.mark.long
def test_surviving_process_is_not_reported_as_stopped(workspace: Workspace) -> None:
    with frozen_cgroup() as group:
        freeze = f"echo $$ > {group}/cgroup.procs; echo FROZEN > {group}/freezer.state; sleep 60"
        agent = workspace.agent(
            f"sh -c '{freeze}' & "
            f"until grep -q FROZEN {group}/freezer.state; do sleep 0.01; done; "
            "sleep 30 & until grep -q ^sleep /proc/$!/cmdline; do sleep 0.01; done; "
            "echo '<promise>SUCCESS</promise>'"
        )
        done = workspace.work(agent, "--kill-grace", "0")
        (survived,) = [line for line in done.log if "still running after SIGKILL" in line]
        (stopped,) = [line for line in done.log if "they were stopped" in line]
    assert "freezer.state" in survived
    assert "freezer.state" not in stopped
    assert "sleep 30" in stopped
    assert done.code == 0


@pytest.mark.long
@pytest.mark.skipif(os.geteuid() != 0, reason="needs a mount namespace")
@pytest.mark.skipif(shutil.which("unshare") is None, reason="needs unshare")
def test_process_group_is_stopped_without_proc(workspace: Workspace) -> None:
    workspace.config(PROCEDURE)
    agent = workspace.agent("trap '' TERM; sleep 600 & echo $! > left.pid; echo $$ > a.pid; wait")
    flags = "-n 1 --kill-grace 0 --iteration-timeout 3"
    command = f"mount -t tmpfs none /proc && exec rooda work --ai-cmd {agent} {flags}"
    done = run_shell(workspace, command, "unshare", "-m")
    assert done.returncode == 2, done.stderr
    for name in ("left", "a"):
        assert not alive(int((workspace.path / f"{name}.pid").read_text())), done.stderr


@pytest.mark.real
def test_signal_to_rooda_and_the_agent_is_an_interruption(workspace: Workspace) -> None:
    workspace.config(PROCEDURE)
    agent = workspace.agent("kill -TERM $(cat rooda.pid); kill -TERM $$; sleep 60", "both.sh")
    done = run_shell(workspace, f"echo $$ > rooda.pid; exec rooda work --ai-cmd {agent}")
    assert done.returncode == 130
    assert "Iteration 1/5 interrupted" in done.stderr
    assert "(failure" not in done.stderr
    assert done.stderr.count("Received SIGTERM") == 1


@pytest.mark.long
def test_lock_covers_the_working_folder_of_the_agent(workspace: Workspace) -> None:
    other = workspace.sibling("other")
    holding = other.agent("echo > up; while ! test -e go; do sleep 0.01; done")
    running = other.start("work", "--ai-cmd", holding, "-n", "1")
    wait_for(other.path / "up")
    refused = workspace.work(workspace.agent("exit 0"), "--working-dir", str(other.path))
    (other.path / "go").touch()
    assert running.finish().code == 2
    assert refused.code == 1
    assert f"another run is at work in {other.path}" in refused.err
    assert workspace.work(workspace.agent("exit 0"), "-n", "1").code == 2, (
        "the other folder is not locked"
    )


@pytest.mark.long
def test_agent_that_starts_rooda_in_its_own_folder_gets_advice(workspace: Workspace) -> None:
    inner = f'"{ROODA}" work --ai-cmd true -n 1 2> inner.log; echo $? > inner.code'
    assert workspace.work(workspace.agent(inner), "-n", "1").code == 2
    assert (workspace.path / "inner.code").read_text() == "1\n"
    assert "You are inside of that run" in (workspace.path / "inner.log").read_text()


@pytest.mark.long
def test_each_keep_processes_flag_is_one_pattern(workspace: Workspace, nursery: Nursery) -> None:
    # The shell's child is called `sh` until it runs exec: only then the pattern matches it.
    named = "until grep -q ^sleep /proc/$(cat kept.pid)/cmdline; do sleep 0.01; done"
    agent = workspace.agent(
        "sleep 601 & echo $! > kept.pid; sleep 602 & echo $! > other.pid; "
        f"sleep 603 & echo $! > third.pid; {named}"
    )
    try:
        flags = ("--keep-processes", "sleep 601", "--keep-processes", "nothing *")
        assert workspace.work(agent, "-n", "1", "--kill-grace", "0", *flags).code == 2
        until(lambda: not alive(nursery.pid("other")), "the others exit")
        assert alive(nursery.pid("kept"))
        assert not alive(nursery.pid("third"))
    finally:
        nursery.clear()


@pytest.mark.parametrize(
    "command,known",
    [
        ("claude -p", True),
        ("/opt/bin/codex exec", True),
        ("env A=b claude -p", True),
        ("timeout 1h claude -p", True),
        ("npx gemini --yolo", True),
        ("./agent.sh claude", False),
        ("timeout 1h ./agent.sh --with gemini", False),
        ("env A=b nice -n 5 claude -p", True),
        ("sh -c claude", False),
        ("env A=b ./agent.sh", False),
        ("my-claude", False),
    ],
)
def test_known_cli_is_recognized_behind_a_launcher(command: str, *, known: bool) -> None:
    assert program_of(command.split()).is_known is known


@pytest.mark.real
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_agent_output_that_could_not_be_written_is_reported(workspace: Workspace) -> None:
    workspace.config(PROCEDURE)
    agent = workspace.agent("echo hello")
    done = run_shell(workspace, f"exec rooda work --ai-cmd {agent} -n 1 -v > /dev/full")
    assert done.returncode == 2
    assert "[6 bytes of the agent's output were not shown]" in done.stderr


@pytest.mark.real
def test_process_stopped_by_the_agent_is_not_continued_by_fg(
    workspace: Workspace, nursery: Nursery
) -> None:
    """A process that the agent has stopped stays stopped, whatever is sent to rooda."""
    agent = workspace.agent(
        "sh -c 'echo $$ > own.pid; kill -STOP $$; echo > woken' & "
        "while ! test -s own.pid; do sleep 0.01; done; echo > up; "
        "while ! test -e go; do sleep 0.01; done"
    )
    workspace.config(PROCEDURE)
    running = workspace.start("work", "--ai-cmd", agent, "-n", "1")
    wait_for(workspace.path / "up")
    own = nursery.pid("own")
    until(lambda: is_stopped(own), "the agent's child has stopped itself")
    running.signal(signal.SIGTSTP)
    running.signal(signal.SIGCONT)
    (workspace.path / "go").touch()
    assert running.finish().code == 2
    assert not (workspace.path / "woken").exists()
    assert not alive(own)


# -- other processes stay untouched ----------------------------------------------------------


@pytest.mark.long
def test_run_in_a_copy_of_the_work_tree_leaves_the_original_run_alone(
    workspace: Workspace,
) -> None:
    original = workspace.sibling("original")
    agent = original.agent("echo > up; while ! test -e go; do sleep 0.01; done")
    running = original.start("work", "--ai-cmd", agent, "-n", "1")
    wait_for(original.path / "up")
    wait_for(state_of(original.path) / "run.json")
    shutil.copytree(original.path, workspace.path, dirs_exist_ok=True)
    done = workspace.work(workspace.agent("exit 0", "nothing.sh"), "-n", "1")
    (original.path / "go").touch()
    assert running.finish().code == 2, "the original run was not disturbed"
    assert (done.code, "An earlier run" in done.err) == (2, False)


@pytest.mark.long
def test_symlinked_transcript_makes_no_other_process_a_leftover(
    workspace: Workspace, nursery: Nursery
) -> None:
    agent = workspace.agent("echo $PPID > warden.pid; echo $$ > agent.pid; exec sleep 600")
    running = workspace.start("work", "--ai-cmd", agent)
    pids = [nursery.pid("warden"), running.process.pid, nursery.pid("agent")]
    for pid in pids[:2]:
        os.kill(pid, signal.SIGKILL)
    running.finish()
    precious = workspace.write("precious", "")
    printed = workspace.kept() / "stdout.log"
    printed.unlink()
    printed.symlink_to(precious)
    with precious.open("ab") as file:
        stranger = subprocess.Popen(["sleep", "60"], stdout=file)
    try:
        done = workspace.work(workspace.agent("exit 0", "nothing.sh"), "-n", "1")
        assert "An earlier run was killed here" in done.err
        assert not alive(pids[2])
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()
        nursery.clear()


@pytest.mark.long
def test_failed_start_keeps_the_note_of_leftovers(workspace: Workspace, nursery: Nursery) -> None:
    agent = workspace.agent("echo $PPID > warden.pid; echo $$ > agent.pid; exec sleep 600")
    running = workspace.start("work", "--ai-cmd", agent)
    pid = nursery.pid("agent")
    both = (nursery.pid("warden"), running.process.pid)
    for number in (signal.SIGSTOP, signal.SIGKILL):  # neither may see the end of the other
        for one in both:
            os.kill(one, number)
    running.finish()
    nothing = workspace.agent("exit 0", "nothing.sh")
    elsewhere = workspace.sibling("elsewhere")
    try:
        os.mkfifo(workspace.path / "pipe")
        refused = workspace.work(nothing, "--log-file", str(workspace.path / "pipe"))
        assert (refused.code, alive(pid)) == (1, True)
        cleared = elsewhere.work(nothing, "-n", "1", "--working-dir", str(workspace.path))
        assert "An earlier run was killed here" in cleared.err
        assert not alive(pid)
    finally:
        nursery.clear()


@pytest.mark.long
def test_success_counts_although_the_warden_is_killed_afterwards(workspace: Workspace) -> None:
    leftover = "import os, signal, time; warden = int(os.environ['WARDEN'])\n"
    leftover += "signal.signal(signal.SIGTERM, lambda *_: os.kill(warden, signal.SIGKILL))\n"
    leftover += "open('up', 'w').close()\nwhile True: time.sleep(0.1)\n"
    workspace.write("leftover.py", leftover)
    start = f"WARDEN=$PPID {sys.executable} -S leftover.py > /dev/null 2>&1 &"
    wait = "while ! test -e up; do sleep 0.01; done"
    done = workspace.work(
        workspace.agent(f"{start} {wait}; echo '<promise>SUCCESS</promise>'"), "--kill-grace", "2"
    )
    assert "rooda's warden is gone" in done.err
    assert done.code == 0


@pytest.mark.long
def test_folder_in_place_of_the_ignore_file_leaks_no_descriptors(workspace: Workspace) -> None:
    count = "ls /proc/$(cat rooda.pid)/fd | wc -l >> counts"
    agent = workspace.agent(f"rm -rf $STATE/.gitignore; mkdir $STATE/.gitignore; {count}")
    workspace.config(PROCEDURE)
    done = run_shell(workspace, f"echo $$ > rooda.pid; exec rooda work --ai-cmd {agent} -n 10")
    assert done.returncode == 2, done.stderr
    counts = (workspace.path / "counts").read_text().split()
    assert len(counts) == 10
    # An agent may count before rooda has closed its own ends of the agent's files. A leak in every
    # iteration would add up to more.
    assert max(map(int, counts)) - min(map(int, counts)) < len(counts) - 1, counts


@pytest.mark.real
def test_pause_during_the_grace_does_not_count(tmp_path: Path) -> None:
    """A stopped tree can't use its time."""
    stubborn = "trap '' TERM; echo $$ > up.pid; while :; do sleep 9; done"
    child = subprocess.Popen(["sh", "-c", stubborn], cwd=tmp_path)
    try:
        wait_for(tmp_path / "up.pid")
        table = process_table()

        def members() -> list[Process]:
            found = table.find(child.pid)
            return [found] if found is not None and not found.ended else []

        stopping = TreeStop(table, members)
        stopping.within(1)
        assert not stopping.step()
        stopping.hold()
        end = time.monotonic() + 1.2
        until(lambda: time.monotonic() > end, "more time than the grace passes")
        stopping.go_on()
        assert not stopping.step()
        assert not stopping.killing
        until(lambda: stopping.step() or stopping.killing, "the grace ends")
    finally:
        child.kill()
        child.wait()


@pytest.mark.real
def test_agent_can_not_write_to_its_prompt(workspace: Workspace) -> None:
    agent = workspace.agent("echo more >&0; cat > got")
    workspace.work(agent, "-n", "1")
    assert "more" not in (workspace.path / "got").read_text().splitlines()


def test_kill_loop_starts_without_a_process_table() -> None:
    class Blind:
        def __getattr__(self, name: str) -> object:
            return (lambda *_: 0.0) if name == "now" else (lambda *_: None)

    stopping = TreeStop(cast("ProcessTable", Blind()), list)
    stopping.within(0)
    assert stopping.step(), "no process is visible"
    assert stopping.killing, "so the warden kills blindly"
