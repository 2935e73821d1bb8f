"""Ctrl+Z and `fg` on a real terminal: rooda and the agent's process tree stop together."""

import json
import os
import re
import shlex
import signal
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from support.children import Nursery, until
from support.jobs import Job, is_stopped
from support.recorded import git, versioned
from support.screen import Screen
from support.workspace import ROODA, Workspace, alive

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads process states from /proc")

# The agent, a child in its own session, and a daemon that forked twice.

TREE = """
import os, pathlib, signal, sys, time
def note(name):
    pathlib.Path(name + ".new").write_text(str(os.getpid()))
    os.rename(name + ".new", name + ".pid")
def child(name, twice):
    if os.fork():
        return
    os.setsid()
    if twice and os.fork():
        os._exit(0)
    {before}
    note(name)
    while True:
        time.sleep(0.01)
child("child", False)
child("daemon", True)
while not (os.path.exists("child.pid") and os.path.exists("daemon.pid")):
    time.sleep(0.01)
note("agent")
while not os.path.exists("go"):
    time.sleep(0.01)
print("<promise>SUCCESS</promise>")
"""
CHANGES_BOTH = """
import os, pathlib, time
pathlib.Path("own.txt").write_text("of the agent\\n")
pathlib.Path("agent.pid").write_text(str(os.getpid()))
while not os.path.exists("go"):
    time.sleep(0.05)
with open("both.txt", "a") as file:
    file.write("of the agent\\n")
os.remove("go")
os.remove("agent.pid")
"""
WAITS = """
import os, pathlib, time
pathlib.Path("check.pid").write_text(str(os.getpid()))
while not os.path.exists("go"):
    time.sleep(0.05)
os.remove("go")
os.remove("check.pid")
"""
IGNORES = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
NAMES = ("agent", "child", "daemon")


def started(
    workspace: Workspace, nursery: Nursery, job: Job, *args: str, before: str = "pass"
) -> list[int]:
    """Start a run, wait until the agent's tree is complete, and return its pids."""
    command = workspace.python_agent(TREE.format(before=before))
    job.start(workspace, "work", "--ai-cmd", command, "-n", "1", *args)
    return [nursery.pid(name) for name in NAMES]


def change_while_halted(workspace: Workspace, job: Job, pid: int, names: tuple[str, ...]) -> None:
    """Press Ctrl+Z, and change files as the user while the program is halted."""
    job.press_ctrl_z()
    until(lambda: is_stopped(pid), "the program is stopped")
    began = time.monotonic()
    until(lambda: time.monotonic() > began + 0.3, "the first moment of the halt is over")
    for name in names:
        workspace.write(name, "of the user\n")
    until(lambda: time.monotonic() > began + 0.6, "the last moment of the halt begins later")


def let_go(workspace: Workspace) -> None:
    workspace.write("go", "")


def descendants(rooda: int) -> list[int]:
    """The agent's processes: all below rooda, without the warden."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] not in "ZX":
            children.setdefault(int(fields[1]), []).append(int(folder.name))
    below = [child for warden in children.get(rooda, []) for child in children.get(warden, [])]
    found: list[int] = []
    while below:
        pid = below.pop()
        found.append(pid)
        below += children.get(pid, [])
    return found


# -- pause and resume ----------------------------------------------------------------------


@pytest.mark.real
def test_ctrl_z_stops_rooda_and_its_tree_and_fg_continues_them(
    workspace: Workspace, nursery: Nursery, job: Job
) -> None:
    tree = started(workspace, nursery, job)
    job.press_ctrl_z()
    until(lambda: all(map(is_stopped, tree)), "the tree is stopped")
    let_go(workspace)
    job.foreground()
    assert job.finish() == 0
    assert not any(map(alive, tree))


@pytest.mark.real
def test_what_the_user_changes_after_ctrl_z_stays_out_of_the_commit(
    workspace: Workspace, nursery: Nursery, job: Job
) -> None:
    workspace.write("README.md", "text\n")
    workspace.write("both.txt", "text\n")
    versioned(workspace)
    # Python starts no child here. A shell that is halted while it starts `sleep` (vfork) counts as
    # waiting and not as stopped.
    command = workspace.python_agent(CHANGES_BOTH)
    job.start(workspace, "work", "--ai-cmd", command, "-n", "1", "--commit")
    agent = nursery.pid("agent")
    change_while_halted(workspace, job, agent, ("mine.txt", "README.md", "both.txt"))
    job.foreground()
    let_go(workspace)
    job.finish()

    committed = git(workspace, "show", "--name-only", "--format=", "HEAD").split()
    assert {"both.txt", "own.txt"} <= {*committed}
    assert not {"README.md", "mine.txt"} & {*committed}
    assert b"mine.txt" in job.sent
    iteration = json.loads(workspace.rooda("show", "1", "--json").out)["result"]
    assert "mine.txt" not in iteration["files_created"]
    assert "README.md" not in iteration["files_modified"]


@pytest.mark.real
def test_what_the_user_changes_after_ctrl_z_during_verify_stays_out_of_the_commit(
    workspace: Workspace, nursery: Nursery, job: Job
) -> None:
    workspace.write("README.md", "text\n")
    versioned(workspace)
    check = workspace.python_agent(WAITS, "check.py")
    agent = workspace.agent("echo of the agent > own.txt")
    options = ("--verify", check, "--no-verify-baseline", "--commit")
    job.start(workspace, "work", "--ai-cmd", agent, "-n", "1", *options)
    verify = nursery.pid("check")
    change_while_halted(workspace, job, verify, ("mine.txt", "README.md"))
    job.foreground()
    let_go(workspace)
    job.finish()

    assert git(workspace, "show", "--name-only", "--format=", "HEAD").split() == ["own.txt"]
    assert b"mine.txt" in job.sent


@pytest.mark.long
def test_pause_can_be_repeated(workspace: Workspace, nursery: Nursery, job: Job) -> None:
    tree = started(workspace, nursery, job)
    for _ in range(5):
        job.press_ctrl_z()
        until(lambda: all(map(is_stopped, tree)), "the tree is stopped")
        job.foreground()
        until(lambda: not any(map(is_stopped, (job.rooda, *tree))), "all processes continue")
    let_go(workspace)
    assert job.finish() == 0
    assert job.sent.count(b"Paused") == 5
    assert job.sent.count(b"Resumed") == 5


@pytest.mark.long
def test_sigtstp_and_sigcont_from_another_program_pause_and_continue(
    workspace: Workspace, nursery: Nursery, job: Job
) -> None:
    """`kill -CONT` comes without a shell that brings rooda to the foreground."""
    tree = started(workspace, nursery, job)
    os.kill(job.rooda, signal.SIGTSTP)
    job.wait_until_stopped()
    until(lambda: all(map(is_stopped, tree)), "the tree is stopped")
    os.kill(job.rooda, signal.SIGCONT)
    until(lambda: not any(map(is_stopped, tree)), "all processes continue")
    let_go(workspace)
    assert job.finish() == 0


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("capture", ["file", "pipe"])
def test_output_around_a_pause_is_complete(
    workspace: Workspace, nursery: Nursery, job: Job, capture: str
) -> None:
    body = "echo $$ > agent.pid; while ! test -e go; do echo line; done; echo; echo the end"
    command = workspace.agent(body)
    job.start(workspace, "work", "--ai-cmd", command, "-n", "1", "--capture", capture)
    nursery.pid("agent")
    job.press_ctrl_z()
    let_go(workspace)
    job.foreground()
    assert job.finish() == 2
    printed = (workspace.kept() / "stdout.log").read_text()
    assert re.fullmatch(r"(line\n)+\nthe end\n", printed)


# -- clocks --------------------------------------------------------------------------------


@pytest.mark.long
def test_no_clock_counts_a_pause(workspace: Workspace, nursery: Nursery, job: Job) -> None:
    clocks = [
        "--iteration-timeout", "5", "--max-duration", "5", "--idle-timeout", "5",
        "--first-output-timeout", "5",
    ]  # fmt: skip
    began = time.monotonic()
    started(workspace, nursery, job, *clocks)
    job.press_ctrl_z()
    until(lambda: time.monotonic() > began + 5.6, "a pause longer than any limit")
    let_go(workspace)
    job.foreground()
    assert job.finish() == 0
    assert b"exceeded timeout" not in job.sent
    found = re.search(rb"total: (\d+\.\d)s", job.sent)
    assert found is not None
    assert float(found[1]) < 5


@pytest.mark.long
def test_clocks_continue_after_a_pause(workspace: Workspace, nursery: Nursery, job: Job) -> None:
    limit = ("--iteration-timeout", "4", "--failure-threshold", "1")
    tree = started(workspace, nursery, job, *limit)
    job.press_ctrl_z()
    job.foreground()
    assert job.finish() == 1
    assert b"clock=iteration_timeout" in job.sent
    assert not any(map(alive, tree))


# -- the screen ----------------------------------------------------------------------------


@pytest.mark.long
def test_live_line_is_removed_during_a_pause(
    workspace: Workspace, nursery: Nursery, job: Job
) -> None:
    started(workspace, nursery, job)
    job.wait_for("Iteration 1/1 · ")
    job.press_ctrl_z()
    while job.read(0.05):
        pass
    assert "·" not in "\n".join(job.lines)
    assert "^Z" not in "\n".join(job.lines)
    assert job.lines[-1] == ""
    assert re.search(r"\] Paused pid=\d+$", job.lines[-2])
    shown = len(job.sent)
    job.foreground()
    until(lambda: job.read(0.05) and "·".encode() in job.sent[shown:], "the live line is back")
    let_go(workspace)
    assert job.finish() == 0
    assert "· agent" not in "\n".join(job.lines)
    timeless = [re.sub(r"^\[.*?\] |^  ", "", line) for line in job.lines]
    assert [re.sub(r"\d+\.\ds", "X", re.sub(r"pid=\d+", "pid=N", line)) for line in timeless][
        :4
    ] == [
        "Starting procedure: work (max 1 iteration)",
        "Iteration 1/1 starting...",
        "Paused pid=N",
        "Resumed pid=N paused=X",
    ]


# -- signals during a pause ----------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        *(pytest.param(n, marks=pytest.mark.long) for n in (signal.SIGINT, signal.SIGHUP)),
    ],
)
def test_signal_during_a_pause_stops_the_whole_tree(
    workspace: Workspace, nursery: Nursery, job: Job, number: signal.Signals
) -> None:
    tree = started(workspace, nursery, job)
    job.press_ctrl_z()
    os.kill(job.rooda, number)
    os.kill(job.rooda, signal.SIGCONT)
    assert job.finish() == 130
    assert f"Received {number.name}".encode() in job.sent
    assert not any(map(alive, tree))


@pytest.mark.real
def test_signal_during_a_pause_kills_a_tree_that_ignores_sigterm(
    workspace: Workspace, nursery: Nursery, job: Job
) -> None:
    tree = started(workspace, nursery, job, "--kill-grace", "0.5", before=IGNORES)
    job.press_ctrl_z()
    os.kill(job.rooda, signal.SIGTERM)
    os.kill(job.rooda, signal.SIGCONT)
    assert job.finish() == 130
    assert not any(map(alive, tree))


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("before", ["pass", IGNORES], ids=["obeys SIGTERM", "ignores SIGTERM"])
def test_sigkill_of_rooda_during_a_pause_leaves_no_process(
    workspace: Workspace, nursery: Nursery, job: Job, before: str
) -> None:
    tree = started(workspace, nursery, job, before=before)
    job.press_ctrl_z()
    os.kill(job.rooda, signal.SIGKILL)
    assert job.finish() == 128 + signal.SIGKILL
    until(lambda: not any(map(alive, tree)), "the tree exits")


@pytest.mark.long
def test_pause_while_a_stubborn_agent_is_being_stopped(
    workspace: Workspace, nursery: Nursery, job: Job
) -> None:
    tree = started(workspace, nursery, job, "--kill-grace", "1", before=IGNORES)
    job.type(b"\x03")
    job.wait_for("Received SIGINT")
    job.press_ctrl_z()
    job.foreground()
    assert job.finish() == 130
    assert not any(map(alive, tree))


# -- pause at any moment -------------------------------------------------------------------


# Sends SIGTSTP after the program has started and before rooda watches it.
AT_THE_START = """
import os, signal, sys
from pathlib import Path
from rooda.world.process.clocks import Clock, Since
from rooda.world.process.events import ProcessStarted
from rooda.world.process.interrupts import Interrupts
from rooda.world.process.request import ProcessRequest
from rooda.world.process.runner import Runner

def listen(event):
    if isinstance(event, ProcessStarted):
        os.kill(os.getpid(), signal.SIGTSTP)

interrupts = Interrupts()
interrupts.install()
# Without a child: a shell that waits for a child between fork and exec does not show as stopped.
body = "import os, time\\nwhile not os.path.exists('go'): time.sleep(0.01)\\nraise SystemExit(3)"
argv = (sys.executable, "-S", "-c", body)
with interrupts.deferred(), Runner() as runner, open(os.devnull, "rb") as stdin:
    clocks = (Clock("iteration_timeout", 4, Since.START),)
    request = ProcessRequest(argv, Path.cwd(), os.environ, stdin, 1000, clocks=clocks)
    print(runner.run(request, interrupts, listen).exit)
"""


@pytest.mark.real
def test_pause_right_after_the_start_stops_the_agent_too(
    workspace: Workspace, nursery: Nursery, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """rooda is never stopped while the agent runs."""
    assert nursery.folder == workspace.path
    monkeypatch.setattr("support.jobs.ROODA", sys.executable)
    began = time.monotonic()
    job.start(workspace, str(workspace.write("start.py", AT_THE_START)))
    job.wait_until_stopped()
    until(lambda: all(map(is_stopped, descendants(job.rooda))), "the agent is stopped")
    assert descendants(job.rooda)
    until(lambda: time.monotonic() > began + 4.5, "a pause longer than the limit")
    let_go(workspace)
    job.foreground()
    assert job.finish() == 0
    assert b"Exited(code=3)" in job.sent


@pytest.mark.long
def test_ctrl_z_at_any_moment_of_many_iterations_pauses(
    workspace: Workspace, nursery: Nursery, job: Job
) -> None:
    count = workspace.path / "count"
    job.start(workspace, "work", "--ai-cmd", workspace.agent("echo x >> count"), "-u")

    def at_least(iterations: int) -> bool:
        return count.exists() and len(count.read_text()) >= 2 * iterations

    for n in range(15):
        until(partial(at_least, n + 1), "the next iteration")
        job.press_ctrl_z()
        until(lambda: all(map(is_stopped, descendants(job.rooda))), "the agent is stopped")
        job.foreground()
    job.type(b"\x03")
    assert job.finish() == 130
    assert nursery.folder.is_dir()
    assert b"Error" not in job.sent
    assert b"FAIL" not in job.sent


@pytest.mark.long
def test_ctrl_z_does_nothing_in_an_orphaned_process_group(
    workspace: Workspace, nursery: Nursery
) -> None:
    """The kernel does not stop a session leader (a terminal's only program) by Ctrl+Z."""
    screen = Screen()
    try:
        command = workspace.python_agent(TREE.format(before="pass"))
        screen.start(workspace, "work", "--ai-cmd", command, "-n", "1")
        tree = [nursery.pid(name) for name in NAMES]
        screen.type(b"\x1a")
        screen.wait_for("Resumed")
        until(lambda: not any(map(is_stopped, tree)), "all processes continue")
        let_go(workspace)
        assert screen.finish() == 0
    finally:
        screen.close()


@pytest.mark.real
def test_inherited_ignored_sigtstp_stays_ignored(
    workspace: Workspace, nursery: Nursery, job: Job
) -> None:
    workspace.write(
        "site/sitecustomize.py",
        "import signal, sys\n"
        "if sys.argv and sys.argv[0].endswith('rooda'): "
        "signal.signal(signal.SIGTSTP, signal.SIG_IGN)\n",
    )
    workspace.env["PYTHONPATH"] = str(workspace.path / "site")
    tree = started(workspace, nursery, job)
    job.type(b"\x1a\x03")
    assert job.finish() == 130
    assert b"Paused" not in job.sent
    assert not any(map(alive, tree))


# -- with a real shell ---------------------------------------------------------------------


@pytest.mark.long
def test_interactive_shell_pauses_and_continues_rooda(
    workspace: Workspace, nursery: Nursery, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`sh -i`: Ctrl+Z, another command, `fg`."""
    monkeypatch.setattr("support.jobs.ROODA", "/bin/sh")
    command = workspace.python_agent(TREE.format(before="pass"))
    job.start(workspace, "-i", env={"PS1": "ready> ", "ENV": None})
    job.wait_for("ready> ")
    line = shlex.join([str(ROODA), "work", "--ai-cmd", command, "-n", "1"])
    job.type(f"{line}\n".encode())
    tree = [nursery.pid(name) for name in NAMES]
    job.type(b"\x1a")
    job.wait_for("Paused")
    until(lambda: all(map(is_stopped, tree)), "the tree is stopped")
    job.type(b"echo st''ill here\n")
    job.wait_for("still here")
    assert all(map(is_stopped, tree))
    let_go(workspace)
    job.type(b"fg\n")
    job.wait_for("AI signaled SUCCESS")
    job.wait_for("Iteration timing")
    job.type(b"exit $?\n")
    assert job.finish() == 0
