"""Signals to rooda, with process trees and real terminals; see also functional/test_interrupts."""

import os
import re
import shutil
import signal
import sys
import time

import pytest

from support.children import Nursery, catches
from support.jobs import Job
from support.screen import Screen
from support.workspace import ROODA, Running, Workspace, alive, wait_for

pytestmark = pytest.mark.real

CAPTURES = ["file", "pipe"]
# Records every signal that it gets; its child in another session does the same.
RECORDS = """
import os, pathlib, signal, sys, time
def note(name):
    pathlib.Path(name + ".new").write_text(str(os.getpid()))
    os.rename(name + ".new", name + ".pid")
def play(name):
    def on_signal(number, _):
        with open(name + ".signals_of", "a") as file:
            file.write(signal.Signals(number).name + "\\n")
        if {ends} and number == signal.SIGTERM:
            os._exit(0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, on_signal)
    note(name)
    while True:
        time.sleep(0.01)
if os.fork() == 0:
    os.setsid()
    play("child")
play("agent")
"""
OBEYS, IGNORES = RECORDS.format(ends=True), RECORDS.format(ends=False)
NAMES = ("agent", "child")


def arguments(workspace: Workspace, body: str, *args: str) -> tuple[str, ...]:
    return ("work", "--ai-cmd", workspace.python_agent(body), *args)


def signals_of(workspace: Workspace, name: str) -> list[str]:
    """The signals that a process of the tree got."""
    file = workspace.path / f"{name}.signals_of"
    return file.read_text().split() if file.exists() else []


def seconds_to_end(running: Running, number: signal.Signals) -> float:
    began = time.monotonic()
    running.signal(number)
    assert running.finish().code == 130
    return time.monotonic() - began


def hang_up(screen: Screen) -> None:
    """Close the terminal: the kernel sends SIGHUP to the session leader, which is rooda."""
    for fd in (screen.slave, screen.master):
        os.close(fd)
    screen.slave = screen.master = -1


# -- duration of the shutdown --------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("capture", CAPTURES)
def test_obedient_tree_is_gone_within_a_second(
    workspace: Workspace, nursery: Nursery, capture: str
) -> None:
    running = nursery.start(workspace, *arguments(workspace, OBEYS, "--capture", capture))
    tree = [nursery.pid(name) for name in NAMES]
    assert seconds_to_end(running, signal.SIGINT) < 1
    assert not any(map(alive, tree))
    for name in NAMES:
        assert signals_of(workspace, name) == ["SIGTERM"]


@pytest.mark.long
@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_stubborn_tree_is_gone_within_seven_seconds(
    workspace: Workspace, nursery: Nursery, number: signal.Signals, capture: str
) -> None:
    running = nursery.start(workspace, *arguments(workspace, IGNORES, "--capture", capture))
    tree = [nursery.pid(name) for name in NAMES]
    assert 5 <= seconds_to_end(running, number) < 7
    assert not any(map(alive, tree))
    for name in NAMES:
        assert signals_of(workspace, name) == ["SIGTERM"]


@pytest.mark.long
def test_grace_starts_for_the_whole_tree_at_once(workspace: Workspace, nursery: Nursery) -> None:
    """A stubborn child gets no extra grace after the agent has obeyed."""
    body = IGNORES.replace('play("agent")', 'note("agent"); time.sleep(60)')
    running = nursery.start(workspace, *arguments(workspace, body))
    tree = [nursery.pid(name) for name in NAMES]
    assert 5 <= seconds_to_end(running, signal.SIGTERM) < 7
    assert not any(map(alive, tree))


def test_second_signal_kills_a_stubborn_tree_at_once(
    workspace: Workspace, nursery: Nursery
) -> None:
    running = nursery.start(workspace, *arguments(workspace, IGNORES, "--kill-grace", "60"))
    tree = [nursery.pid(name) for name in NAMES]
    running.signal(signal.SIGTERM)
    for name in NAMES:
        wait_for(workspace.path / f"{name}.signals_of")
    assert seconds_to_end(running, signal.SIGTERM) < 1
    assert not any(map(alive, tree))


# -- on a terminal -------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("key,name", [(b"\x03", "SIGINT"), (b"\x1c", "SIGQUIT")])
def test_key_signals_rooda_only_and_rooda_stops_the_agent(
    workspace: Workspace, nursery: Nursery, screen: Screen, key: bytes, name: str
) -> None:
    screen.start(workspace, *arguments(workspace, OBEYS))
    tree = [nursery.pid(name) for name in NAMES]
    began = time.monotonic()
    screen.type(key)
    assert screen.finish() == 130
    assert time.monotonic() - began < 1
    assert f"Received {name}, shutting down...".encode() in screen.sent
    assert not any(map(alive, tree))
    for process in NAMES:
        assert signals_of(workspace, process) == ["SIGTERM"]


@pytest.mark.long
def test_ctrl_c_twice_kills_an_agent_that_ignores_sigterm(
    workspace: Workspace, nursery: Nursery, screen: Screen
) -> None:
    screen.start(workspace, *arguments(workspace, IGNORES, "--kill-grace", "60"))
    tree = [nursery.pid(name) for name in NAMES]
    screen.type(b"\x03")
    wait_for(workspace.path / "agent.signals_of")
    began = time.monotonic()
    screen.type(b"\x03")
    assert screen.finish() == 130
    assert time.monotonic() - began < 1
    assert not any(map(alive, tree))
    assert signals_of(workspace, "agent") == ["SIGTERM"]


def test_closed_terminal_ends_the_run(
    workspace: Workspace, nursery: Nursery, screen: Screen
) -> None:
    process = screen.start(workspace, *arguments(workspace, OBEYS))
    tree = [nursery.pid(name) for name in NAMES]
    hang_up(screen)
    assert process.wait(20) == 130
    assert not any(map(alive, tree))
    for name in NAMES:
        assert signals_of(workspace, name) == ["SIGTERM"]


def test_closed_terminal_does_not_end_a_run_under_nohup(
    workspace: Workspace, nursery: Nursery, screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broken ssh connection must not end the run."""
    monkeypatch.setattr("support.screen.ROODA", shutil.which("nohup"))
    waits = "while ! test -e go; do sleep 0.02; done; echo '<promise>SUCCESS</promise>'"
    command = workspace.agent(f"echo $$ > agent.pid; {waits}")
    process = screen.start(workspace, str(ROODA), "work", "--ai-cmd", command, "-n", "1")
    agent = nursery.pid("agent")
    hang_up(screen)
    assert alive(agent)
    workspace.write("go", "")
    assert process.wait(20) == 0
    assert "AI signaled SUCCESS" in (workspace.path / "nohup.out").read_text()


@pytest.mark.long
def test_agent_of_a_run_under_nohup_is_stopped_with_sigterm(
    workspace: Workspace, nursery: Nursery
) -> None:
    running = nursery.start(workspace, *arguments(workspace, OBEYS), before=("nohup",))
    tree = [nursery.pid(name) for name in NAMES]
    if sys.platform == "linux":
        assert not catches(running.process.pid, signal.SIGHUP)
    for _ in range(3):
        running.signal(signal.SIGHUP)
    assert seconds_to_end(running, signal.SIGINT) < 1
    assert not any(map(alive, tree))
    for name in NAMES:
        assert signals_of(workspace, name) == ["SIGTERM"]


# -- signals to the process group ----------------------------------------------------------


def test_signal_to_the_whole_process_group_counts_once(
    workspace: Workspace, nursery: Nursery, job: Job
) -> None:
    """A supervisor that signals the whole group must not kill the warden."""
    job.start(workspace, *arguments(workspace, OBEYS))
    tree = [nursery.pid(name) for name in NAMES]
    os.killpg(job.rooda, signal.SIGTERM)
    assert job.finish() == 130
    assert not any(map(alive, tree))
    assert len(re.findall(rb"Received SIG", job.sent)) == 1
