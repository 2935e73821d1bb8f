"""`rooda follow` and `rooda stop`: commands for a run that is running in another terminal."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest

from rooda.base.problems import InvalidInput
from rooda.run.control import AtWork
from rooda.world.process.leftovers import start_time
from support.children import IN_THE_BACKGROUND, Nursery, until
from support.finished import Rooda
from support.jobs import Job
from support.recorded import HANGS, SUCCESS, asked, refused, statuses, versioned, within
from support.screen import Screen
from support.workspace import Workspace, alive, wait_for

WAITS = "echo $$ > agent.pid; while ! test -e go; do sleep 0.02; done"
# An agent that records SIGTERM and keeps running.
ASKED = "trap 'echo yes > asked' TERM; echo $$ > agent.pid; while :; do sleep 60 & wait; done"
STUBBORN = "trap '' TERM; echo $$ > agent.pid; while :; do sleep 60; done"


@pytest.fixture
def rooda(workspace: Workspace) -> Rooda:
    """Run `rooda ARGS` in this process, to read the record."""
    return workspace.inside


# -- follow --------------------------------------------------------------------------------


@pytest.mark.long
def test_follow_shows_a_live_run_and_ends_with_it(
    workspace: Workspace, nursery: Nursery, screen: Screen
) -> None:
    body = f"echo the first word; {WAITS}; echo the last word; {SUCCESS}"
    running = nursery.start(workspace, "work", "--ai-cmd", workspace.agent(body))
    nursery.pid("agent")
    screen.start(workspace, "follow")
    screen.wait_for("the first word")
    assert b"the last word" not in screen.sent
    workspace.write("go", "")
    assert running.finish().code == 0
    assert screen.finish() == 0
    assert "the last word" in screen.lines
    assert "Exit Code: 0" in screen.lines
    assert screen.lines[0].endswith("(work), running")


@pytest.mark.real
def test_follow_prints_the_whole_log_of_an_ended_run(workspace: Workspace, rooda: Rooda) -> None:
    bodies = [f"echo word {number}; seq 3000" for number in range(2)]
    assert workspace.work(workspace.agents(*bodies), "-n", "2").code == 2
    (run,) = asked(rooda, "history")
    done = rooda("follow", run["run"][:-1])
    assert done.code == 0
    (folder,) = (workspace.state / "runs").iterdir()
    assert done.out == (folder / "session.log").read_text()
    assert "word 0\n" in done.out
    assert "SESSION SUMMARY" in done.out
    assert done.err == f"Run {run['run']} (work), max-iters\n"
    refused(rooda("follow", "nonsense"), "there is no run 'nonsense'")


@pytest.mark.real
def test_follow_ends_when_rooda_was_killed(workspace: Workspace, nursery: Nursery) -> None:
    running = nursery.start(workspace, "work", "--ai-cmd", workspace.agent(HANGS))
    nursery.pid("agent")
    following = nursery.start(workspace, "follow")
    running.signal(signal.SIGKILL)
    running.finish()
    assert following.finish().code == 0


@pytest.mark.long
def test_ctrl_c_ends_follow_and_not_the_run(
    workspace: Workspace, nursery: Nursery, screen: Screen
) -> None:
    command = workspace.agent(f"echo a word; {WAITS}; {SUCCESS}")
    running = nursery.start(workspace, "work", "--ai-cmd", command)
    nursery.pid("agent")
    screen.start(workspace, "follow")
    screen.wait_for("a word")
    screen.type(b"\x03")
    assert screen.finish() == 130
    assert b"Traceback" not in screen.sent
    workspace.write("go", "")
    assert running.finish().code == 0


@pytest.mark.long
def test_follow_strips_control_codes_that_an_agent_wrote_into_the_session_log(
    workspace: Workspace, screen: Screen
) -> None:
    words = r"printf 'forged \033]0;owned\007\033[2J words\n'"
    forge = f'for file in $STATE/runs/*/session.log; do {words} >> "$file"; done'
    assert workspace.work(workspace.agent(f"{forge}; {SUCCESS}")).code == 0
    screen.start(workspace, "follow")
    assert screen.finish() == 0
    assert b"forged" in screen.sent
    assert b"\x1b" not in screen.sent
    assert b"\x07" not in screen.sent


@pytest.mark.real
def test_follow_reports_a_missing_session_log(workspace: Workspace, rooda: Rooda) -> None:
    assert workspace.work(workspace.agent(f"{SUCCESS}; rm -rf $STATE/runs; sleep 0.1")).code == 0
    for path in (workspace.state / "runs").glob("*/session.log"):
        path.unlink()
    refused(rooda("follow"), "has no session log")


# -- stop ----------------------------------------------------------------------------------


@pytest.mark.long
def test_stop_ends_a_run_after_its_current_iteration(
    workspace: Workspace, nursery: Nursery, rooda: Rooda
) -> None:
    command = workspace.agents("exit 0", f"{WAITS}; echo > finished", SUCCESS)
    running = nursery.start(workspace, "work", "--ai-cmd", command)
    agent = nursery.pid("agent")
    done = rooda("stop")
    assert done.code == 0
    assert re.fullmatch(
        rf"work \(run \S+, pid {running.process.pid}\) stops when its current iteration has ended"
        r"\.\n",
        done.out,
    )
    assert alive(agent)
    workspace.write("go", "")
    ended = running.finish()
    assert ended.code == 130
    assert (workspace.path / "finished").exists()
    assert workspace.starts == 2
    run = asked(rooda, "show")
    assert (run["status"], run["rule"], run["exit_code"]) == ("interrupted", "stopped", 130)
    assert statuses(run) == [(1, "completed"), (2, "completed")]
    assert "rooda stop" in run["reason"]
    assert "Rule: stopped." in rooda("why").out
    refused(rooda("stop"), "no run is at work here")
    refused(rooda("stop", "--now"), "no run is at work here")


@pytest.mark.real
def test_stop_does_not_change_the_outcome_of_a_run_in_its_last_iteration(
    workspace: Workspace, nursery: Nursery, rooda: Rooda
) -> None:
    command = workspace.agent(f"{WAITS}; {SUCCESS}")
    running = nursery.start(workspace, "work", "--ai-cmd", command)
    nursery.pid("agent")
    assert rooda("stop").code == 0
    workspace.write("go", "")
    assert running.finish().code == 0
    assert asked(rooda, "show")["status"] == "success"


@pytest.mark.real
def test_stop_now_ends_the_run_with_sigterm_and_reports_its_outcome(
    workspace: Workspace, nursery: Nursery, rooda: Rooda
) -> None:
    running = nursery.start(workspace, "work", "--ai-cmd", workspace.agent(HANGS))
    agent = nursery.pid("agent")
    done = rooda("stop", "--now")
    assert not alive(running.process.pid)
    assert not alive(agent)
    assert running.finish().code == 130
    run = asked(rooda, "show")
    assert (done.code, done.err) == (0, "")
    assert done.out == f"Run {run['run']} has ended: interrupted.\n"
    assert (run["status"], run["rule"], run["signal"]) == ("interrupted", "interrupted", "SIGTERM")
    assert statuses(run) == [(1, "interrupted")]


@pytest.mark.long
def test_stop_now_ends_a_run_that_a_script_started_in_the_background(
    workspace: Workspace, nursery: Nursery
) -> None:
    """A shell that is not interactive starts `rooda ... &` with SIGINT ignored."""
    script = nursery.start(
        workspace, "work", "--ai-cmd", workspace.agent(HANGS), before=IN_THE_BACKGROUND
    )
    pids = nursery.pid("rooda"), nursery.pid("agent")
    done = workspace.rooda("stop", "--now")
    assert done.code == 0
    assert re.fullmatch(r"Run \S+ has ended: interrupted\.\n", done.out)
    assert not any(map(alive, pids))
    assert script.finish().code == 130


@pytest.mark.long
def test_stop_now_waits_for_an_agent_that_ignores_sigterm_and_reports_the_wait(
    workspace: Workspace, nursery: Nursery
) -> None:
    command = workspace.agent(STUBBORN)
    running = nursery.start(workspace, "work", "--ai-cmd", command, "--kill-grace", "3")
    agent = nursery.pid("agent")
    done = workspace.rooda("stop", "--now")
    assert not alive(running.process.pid)
    assert not alive(agent)
    assert done.code == 0
    assert f"pid {running.process.pid}) has not ended yet: wait, or kill" in done.err
    assert "has ended: interrupted." in done.out
    assert running.finish().code == 130


@pytest.mark.long
def test_second_stop_now_kills_the_agent_at_once_and_both_report_the_end(
    workspace: Workspace, nursery: Nursery
) -> None:
    command = workspace.agent(ASKED)
    running = nursery.start(workspace, "work", "--ai-cmd", command, "--kill-grace", "60")
    agent = nursery.pid("agent")
    first = nursery.start(workspace, "stop", "--now")
    wait_for(workspace.path / "asked")
    second = workspace.rooda("stop", "--now")
    assert running.finish().code == 130
    assert not alive(agent)
    for done in (first.finish(), second):
        assert done.code == 0
        assert re.fullmatch(r"Run \S+ has ended: interrupted\.\n", done.out)


@pytest.mark.real
def test_stop_now_reports_a_run_that_is_still_running_and_what_to_do(
    workspace: Workspace, nursery: Nursery, rooda: Rooda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rooda.front.cli.commands.at_work._LONGEST_WAIT", 0.2)
    command = workspace.agent(ASKED)
    running = nursery.start(workspace, "work", "--ai-cmd", command, "--kill-grace", "60")
    nursery.pid("agent")
    pid = running.process.pid
    refused(
        rooda("stop", "--now"), f"pid {pid}) is still at work", "rooda follow", f"kill -9 {pid}"
    )
    assert alive(pid)
    wait_for(workspace.path / "asked")
    running.signal(signal.SIGTERM)
    assert running.finish().code == 130


@pytest.mark.long
def test_stop_now_reports_a_run_that_had_its_outcome_before_the_signal(
    workspace: Workspace, nursery: Nursery
) -> None:
    hook = "echo $$ > hook.pid; exec sleep 60"
    running = nursery.start(
        workspace, "work", "--ai-cmd", workspace.agent(SUCCESS), "--hooks-loop-end", hook
    )
    nursery.pid("hook")
    done = workspace.rooda("stop", "--now")
    assert done.code == 0
    assert "has ended: success." in done.out
    assert running.finish().code == 0


@pytest.mark.long
def test_stop_now_ends_a_run_that_sigstop_holds(workspace: Workspace, nursery: Nursery) -> None:
    running = nursery.start(workspace, "work", "--ai-cmd", workspace.agent(HANGS))
    agent = nursery.pid("agent")
    running.signal(signal.SIGSTOP)
    done = workspace.rooda("stop", "--now")
    assert done.code == 0
    assert "has ended: interrupted." in done.out
    assert running.finish().code == 130
    assert not alive(agent)


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="reads process states from /proc")
def test_stop_now_ends_a_run_that_ctrl_z_holds(
    workspace: Workspace, nursery: Nursery, job: Job
) -> None:
    job.start(workspace, "work", "--ai-cmd", workspace.agent(HANGS))
    agent = nursery.pid("agent")
    job.press_ctrl_z()
    done = workspace.rooda("stop", "--now")
    assert done.code == 0
    assert "has ended: interrupted." in done.out
    assert job.finish() == 130
    assert not alive(agent)


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc/locks")
def test_stop_now_ends_a_run_without_run_json(workspace: Workspace, nursery: Nursery) -> None:
    running = nursery.start(workspace, "work", "--ai-cmd", workspace.agent(HANGS))
    nursery.pid("agent")
    note = workspace.state / "run.json"
    until(lambda: bool(json.loads(note.read_text())["agents"]), "the last write of the note")
    note.unlink()
    done = workspace.rooda("stop", "--now")
    assert (done.code, done.out) == (0, f"The run of pid {running.process.pid} has ended.\n")
    assert running.finish().code == 130


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc/locks")
def test_an_agent_cannot_prevent_a_stop_with_a_forged_run_json(
    workspace: Workspace, nursery: Nursery
) -> None:
    running = nursery.start(workspace, "work", "--ai-cmd", workspace.agent(HANGS))
    nursery.pid("agent")
    file = workspace.state / "run.json"
    until(lambda: bool(json.loads(file.read_text())["agents"]), "the last write of the note")
    note = json.loads(file.read_text())
    for forged in ({"started": 1.5}, {"pid": 1}, {"namespace": "pid:[1]"}, {"host": "elsewhere"}):
        file.write_text(json.dumps(note | forged))
        done = workspace.rooda("stop")
        assert done.code == 0, (forged, done.err)
        assert f"pid {running.process.pid}" in done.out
    assert workspace.rooda("stop", "--now").code == 0
    assert running.finish().code == 130


LOCKS = """
import fcntl, os, pathlib, signal, sys
lock = os.open(".", os.O_RDONLY)
fcntl.flock(lock, fcntl.LOCK_EX)
if sys.argv[1:] == ["handles"]:
    signal.signal(signal.SIGUSR1, lambda *_: sys.exit(1))
pathlib.Path("locked").write_text("yes")
signal.pause()
"""


@pytest.mark.real(rows=1)
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc/locks")
@pytest.mark.parametrize("how", ["handles", "does not handle"])
@pytest.mark.parametrize("flags", [(), ("--now",)], ids=["", "now"])
def test_another_program_that_holds_the_lock_gets_no_signal(
    workspace: Workspace, flags: tuple[str, ...], how: str
) -> None:
    other = subprocess.Popen([sys.executable, "-c", LOCKS, how], cwd=workspace.path)
    try:
        wait_for(workspace.path / "locked")
        done = workspace.rooda("stop", *flags)
        assert done.code == 1
        assert f"pid {other.pid} holds the lock of this work tree and is not rooda" in done.err
        assert f"kill {other.pid}" in done.err
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_process_that_reuses_the_pid_of_an_ended_run_gets_no_signal() -> None:
    started = start_time(os.getpid())
    assert started is not None
    run = AtWork(os.getpid(), started - 1, None)
    assert run.has_ended(0, lambda _: None)
    with pytest.raises(InvalidInput, match="no run is at work here"):
        run.send(signal.SIGTERM)
    run.wake()


@pytest.mark.long
def test_stop_works_from_a_subfolder(workspace: Workspace, nursery: Nursery) -> None:
    versioned(workspace)
    running = nursery.start(workspace, "work", "--ai-cmd", workspace.agent(HANGS))
    nursery.pid("agent")
    assert within(workspace, "deep/down").rooda("stop", "--now").code == 0
    assert running.finish().code == 130


@pytest.mark.real
def test_stop_without_a_run_is_refused_also_if_run_json_is_stale(
    workspace: Workspace, nursery: Nursery, rooda: Rooda
) -> None:
    refused(rooda("stop"), "no run is at work here")
    running = nursery.start(workspace, "work", "--ai-cmd", workspace.agent(HANGS))
    nursery.pid("agent")
    running.signal(signal.SIGKILL)
    running.finish()
    assert wait_for(workspace.state / "run.json")  # a killed run leaves its run.json behind
    refused(rooda("stop"), "no run is at work here")
