"""`rooda follow` and `rooda stop`: a run that is at work in another terminal."""

import re
import signal

import pytest

from support.children import Nursery
from support.recorded import HANGS, SUCCESS, asked, refused, statuses, versioned, within
from support.screen import Screen
from support.surface import Inside
from support.workspace import Workspace, alive, wait_for

WAITS = "echo $$ > agent.pid; while ! test -e go; do sleep 0.02; done"


@pytest.fixture
def look(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Inside:
    """`rooda ARGS` in this process, to see what is in the record."""
    return Inside(workspace, monkeypatch, capfd)


# -- follow --------------------------------------------------------------------------------


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


def test_a_run_that_is_over_is_shown_whole(workspace: Workspace, look: Inside) -> None:
    bodies = [f"echo word {number}; seq 3000" for number in range(2)]
    assert workspace.work(workspace.agents(*bodies), "-n", "2").code == 2
    (run,) = asked(look, "history")
    done = look("follow", run["run"][:-1])
    assert done.code == 0
    (folder,) = (workspace.path / ".rooda/runs").iterdir()
    assert done.out == (folder / "session.log").read_text()
    assert "word 0\n" in done.out
    assert "SESSION SUMMARY" in done.out
    assert done.err == f"Run {run['run']} (work), max-iters\n"
    refused(look("follow", "nonsense"), "there is no run 'nonsense'")


@pytest.mark.slow
def test_follow_ends_when_rooda_was_killed(workspace: Workspace, nursery: Nursery) -> None:
    running = nursery.start(workspace, "work", "--ai-cmd", workspace.agent(HANGS))
    nursery.pid("agent")
    following = nursery.start(workspace, "follow")
    running.signal(signal.SIGKILL)
    running.finish()
    assert following.finish().code == 0


@pytest.mark.slow
def test_ctrl_c_ends_the_look_and_not_the_run(
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


@pytest.mark.slow
def test_what_an_agent_writes_into_the_session_log_can_not_drive_the_terminal(
    workspace: Workspace, screen: Screen
) -> None:
    words = r"printf 'forged \033]0;owned\007\033[2J words\n'"
    forge = f'for file in .rooda/runs/*/session.log; do {words} >> "$file"; done'
    assert workspace.work(workspace.agent(f"{forge}; {SUCCESS}")).code == 0
    screen.start(workspace, "follow")
    assert screen.finish() == 0
    assert b"forged" in screen.sent
    assert b"\x1b" not in screen.sent
    assert b"\x07" not in screen.sent


def test_without_a_session_log_follow_says_so(workspace: Workspace, look: Inside) -> None:
    assert workspace.work(workspace.agent(f"{SUCCESS}; rm -rf .rooda/runs; sleep 0.1")).code == 0
    for path in (workspace.path / ".rooda/runs").glob("*/session.log"):
        path.unlink()
    refused(look("follow"), "has no session log")


# -- stop ----------------------------------------------------------------------------------


def test_stop_ends_a_run_when_its_iteration_is_over(
    workspace: Workspace, nursery: Nursery, look: Inside
) -> None:
    command = workspace.agents("exit 0", f"{WAITS}; echo > finished", SUCCESS)
    running = nursery.start(workspace, "work", "--ai-cmd", command)
    agent = nursery.pid("agent")
    done = look("stop")
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
    run = asked(look, "show")
    assert (run["status"], run["rule"], run["exit_code"]) == ("interrupted", "stopped", 130)
    assert statuses(run) == [(1, "completed"), (2, "completed")]
    assert "rooda stop" in run["reason"]
    assert "Rule: stopped." in look("why").out
    refused(look("stop"), "no run is at work here")
    refused(look("stop", "--now"), "no run is at work here")


@pytest.mark.slow
def test_a_run_whose_last_iteration_was_the_last_anyway_has_not_been_stopped(
    workspace: Workspace, nursery: Nursery, look: Inside
) -> None:
    command = workspace.agent(f"{WAITS}; {SUCCESS}")
    running = nursery.start(workspace, "work", "--ai-cmd", command)
    nursery.pid("agent")
    assert look("stop").code == 0
    workspace.write("go", "")
    assert running.finish().code == 0
    assert asked(look, "show")["status"] == "success"


def test_stop_now_is_ctrl_c(workspace: Workspace, nursery: Nursery, look: Inside) -> None:
    running = nursery.start(workspace, "work", "--ai-cmd", workspace.agent(HANGS))
    agent = nursery.pid("agent")
    done = look("stop", "--now")
    assert done.code == 0
    assert "stops now." in done.out
    assert running.finish().code == 130
    assert not alive(agent)
    run = asked(look, "show")
    assert (run["status"], run["rule"], run["signal"]) == ("interrupted", "interrupted", "SIGINT")
    assert statuses(run) == [(1, "interrupted")]


@pytest.mark.slow
def test_a_run_is_stopped_from_a_folder_below(workspace: Workspace, nursery: Nursery) -> None:
    versioned(workspace)
    running = nursery.start(workspace, "work", "--ai-cmd", workspace.agent(HANGS))
    nursery.pid("agent")
    assert within(workspace, "deep/down").rooda("stop", "--now").code == 0
    assert running.finish().code == 130


def test_without_a_run_there_is_nothing_to_stop_and_a_stale_note_stops_nobody(
    workspace: Workspace, nursery: Nursery, look: Inside
) -> None:
    refused(look("stop"), "no run is at work here")
    running = nursery.start(workspace, "work", "--ai-cmd", workspace.agent(HANGS))
    nursery.pid("agent")
    running.signal(signal.SIGKILL)
    running.finish()
    assert wait_for(workspace.path / ".rooda/run.json")  # a killed run could not take it away
    refused(look("stop"), "no run is at work here")
