"""SIGINT, SIGTERM and SIGHUP at any moment, through the installed command."""

import os
import re
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.children import IN_THE_BACKGROUND, Nursery, catches, until
from support.finished import Finished
from support.workspace import PROCEDURE, Running, Workspace, alive, wait_for

pytestmark = pytest.mark.real

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
HANGS = "echo $$ > agent.pid; exec sleep 60"
STUBBORN = "trap '' TERM; echo $$ > agent.pid; while :; do sleep 60; done"
TIMING = re.compile(r"^  Iteration timing: min=\d+\.\ds, max=\d+\.\ds, mean=\d+\.\ds", re.MULTILINE)
BROKEN = re.compile(r"Traceback|Exception ignored|Internal error|Error")


def ended(running: Running, *numbers: signal.Signals) -> tuple[Finished, float]:
    """Send the signals; return the result, and the seconds since the first signal."""
    began = time.monotonic()
    for number in numbers:
        running.signal(number)
    done = running.finish()
    return done, time.monotonic() - began


# -- while the agent runs ------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_obedient_agent_is_gone_within_a_second(
    workspace: Workspace, nursery: Nursery, number: signal.Signals
) -> None:
    command = workspace.agents("exit 0", "exit 0", HANGS)
    running = nursery.start(workspace, "work", "--ai-cmd", command)
    agent = nursery.pid("agent")
    done, seconds = ended(running, number)
    assert done.code == 130
    assert seconds < 1
    assert not alive(agent)
    assert done.log[-6:-1] == [
        "Iteration 3/5 starting...",
        f"Received {number.name}, shutting down...",
        f"Killing AI CLI process (pid {agent}); a second Ctrl+C kills it at once",
        "AI CLI terminated",
        done.log[-2],
    ]
    assert re.fullmatch(r"Iteration 3/5 interrupted after \d+\.\ds", done.log[-2])
    assert re.fullmatch(r"Interrupted \(2 iterations completed, total: \d+\.\ds\)", done.log[-1])
    assert TIMING.search(done.err)
    assert "stddev=" in done.err
    assert not BROKEN.search(done.err)


def test_interruption_of_the_first_iteration_shows_its_timing(
    workspace: Workspace, nursery: Nursery
) -> None:
    running = nursery.start(workspace, "work", "--ai-cmd", workspace.agent(HANGS))
    nursery.pid("agent")
    done, _ = ended(running, signal.SIGINT)
    assert done.code == 130
    assert re.fullmatch(r"Interrupted \(0 iterations completed, total: \d+\.\ds\)", done.log[-1])
    assert TIMING.search(done.err)
    assert "stddev" not in done.err


def test_interruption_in_logfmt(workspace: Workspace, nursery: Nursery) -> None:
    command = workspace.agents("exit 0", HANGS)
    running = nursery.start(workspace, "work", "--ai-cmd", command, "--log-format", "logfmt")
    agent = nursery.pid("agent")
    done, _ = ended(running, signal.SIGINT)
    assert done.code == 130
    lines = done.err.splitlines()
    assert all(re.match(r"\[\d\d:\d\d:\d\d\.\d{3}\] ", line) for line in lines)
    begins = lines[
        [line[15:].startswith("INFO Starting iteration 2") for line in lines].index(True) :
    ]
    for line, begin in zip(
        begins,
        [
            "INFO Starting iteration 2/5 procedure=work",
            "INFO Received signal signal=SIGINT action=shutting_down",
            f"INFO Killing AI CLI process pid={agent}",
            "INFO AI CLI terminated",
            "INFO Loop interrupted status=interrupted",
        ],
        strict=True,
    ):
        assert line[15:] == begin or line[15:].startswith(f"{begin} ")


@pytest.mark.long
def test_stubborn_agent_is_killed_after_the_grace(workspace: Workspace, nursery: Nursery) -> None:
    command = workspace.agent(STUBBORN)
    running = nursery.start(workspace, "work", "--ai-cmd", command, "--kill-grace", "0.3")
    agent = nursery.pid("agent")
    done, seconds = ended(running, signal.SIGINT)
    assert done.code == 130
    assert 0.3 <= seconds < 5, "less than the default grace"
    assert "WARN: AI CLI did not terminate gracefully action=sending_sigkill" in done.log
    assert not alive(agent)


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda n: n.name)
def test_stubborn_agent_is_gone_within_seven_seconds(
    workspace: Workspace, nursery: Nursery, number: signal.Signals
) -> None:
    running = nursery.start(workspace, "work", "--ai-cmd", workspace.agent(STUBBORN))
    agent = nursery.pid("agent")
    done, seconds = ended(running, number)
    assert done.code == 130
    assert 5 <= seconds < 7
    assert not alive(agent)


def test_stubborn_grandchild_is_killed_too(workspace: Workspace, nursery: Nursery) -> None:
    child = workspace.agent(STUBBORN.replace("agent.pid", "child.pid"), "child.sh")
    command = workspace.agent(f"{child} & {HANGS}")
    running = nursery.start(workspace, "work", "--ai-cmd", command, "--kill-grace", "0.3")
    pids = nursery.pid("agent"), nursery.pid("child")
    done, _ = ended(running, signal.SIGTERM)
    assert done.code == 130
    assert not any(map(alive, pids))


@pytest.mark.long
def test_second_ctrl_c_kills_at_once(workspace: Workspace, nursery: Nursery) -> None:
    body = "trap 'echo > asked' TERM; echo $$ > agent.pid; while :; do sleep 60 & wait; done"
    command = workspace.agent(body.replace("echo > asked", "echo yes > asked"))
    running = nursery.start(workspace, "work", "--ai-cmd", command, "--kill-grace", "60")
    agent = nursery.pid("agent")
    running.signal(signal.SIGINT)
    wait_for(workspace.path / "asked")
    done, seconds = ended(running, signal.SIGINT)
    assert done.code == 130
    assert seconds < 1
    assert "Received SIGINT again, killing at once" in done.log
    assert TIMING.search(done.err)
    assert not alive(agent)


def test_two_sighups_leave_the_agent_its_grace(workspace: Workspace, nursery: Nursery) -> None:
    """The shell and the kernel both send SIGHUP when a terminal closes: that is one request."""
    command = workspace.python_agent("""
import os, pathlib, signal, time
def save(*_):
    pathlib.Path("asked").write_text("yes")
    while not os.path.exists("twice"):
        time.sleep(0.01)
    time.sleep(0.2)
    pathlib.Path("saved").write_text("yes")
    os._exit(0)
signal.signal(signal.SIGTERM, save)
pathlib.Path("agent.pid").write_text(str(os.getpid()))
while True:
    time.sleep(0.01)  # Python's `signal.pause` misses a signal just before it
""")
    running = nursery.start(workspace, "work", "--ai-cmd", command)
    nursery.pid("agent")
    running.signal(signal.SIGHUP)
    wait_for(workspace.path / "asked")
    running.signal(signal.SIGHUP)
    workspace.write("twice", "yes")
    assert running.finish().code == 130
    assert (workspace.path / "saved").exists()


def test_agent_has_its_own_session(workspace: Workspace, nursery: Nursery) -> None:
    """Ctrl+C in a terminal must reach rooda only."""
    running = nursery.start(workspace, "work", "--ai-cmd", workspace.agent(HANGS))
    agent = nursery.pid("agent")
    assert os.getsid(agent) == os.getpgid(agent) == agent
    assert os.getsid(running.process.pid) == os.getsid(0)
    assert ended(running, signal.SIGINT)[0].code == 130


def test_success_in_an_interrupted_iteration_does_not_count(
    workspace: Workspace, nursery: Nursery
) -> None:
    body = f"echo '<promise>SUCCESS</promise>'; {HANGS}"
    running = nursery.start(workspace, "work", "--ai-cmd", workspace.agent(body))
    nursery.pid("agent")
    assert ended(running, signal.SIGTERM)[0].code == 130


@pytest.mark.long
def test_interruption_in_json(workspace: Workspace, nursery: Nursery) -> None:
    command = workspace.agent(HANGS)
    running = nursery.start(workspace, "work", "--ai-cmd", command, "--log-format", "json")
    nursery.pid("agent")
    done, _ = ended(running, signal.SIGHUP)
    assert done.code == 130
    last = done.err.splitlines()[-1]
    for part in ('"event": "run_ended"', '"status": "interrupted"', '"signal": "SIGHUP"',
                 '"exit_code": 130'):  # fmt: skip
        assert part in last


# -- between iterations --------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_signal_between_very_short_iterations_ends_the_run(
    workspace: Workspace, nursery: Nursery, number: signal.Signals
) -> None:
    count = workspace.path / "count"
    command = workspace.agent("echo x >> count")
    running = nursery.start(workspace, "work", "--ai-cmd", command, "-u")
    until(lambda: count.exists() and len(count.read_text()) >= 6, "three iterations")
    finished, seconds = ended(running, number)
    assert finished.code == 130
    assert seconds < 1
    found = re.fullmatch(r"Interrupted \((\d+) iterations completed, .*\)", finished.log[-1])
    assert found is not None
    assert 2 <= int(found[1]) <= len(count.read_text()) // 2
    assert finished.log.count(f"Received {number.name}, shutting down...") == 1
    assert TIMING.search(finished.err)


def test_interruption_during_cleanup_is_reported_once(
    workspace: Workspace, nursery: Nursery
) -> None:
    child = workspace.agent(
        "trap 'echo yes > asked' TERM; echo $$ > left.pid; while :; do sleep 60 & wait; done",
        "child.sh",
    )
    command = workspace.agent(f"{child} > /dev/null 2>&1 & while ! test -s left.pid; do :; done")
    running = nursery.start(workspace, "work", "--ai-cmd", command, "--kill-grace", "1")
    wait_for(workspace.path / "asked")
    done, seconds = ended(running, signal.SIGINT)
    assert done.code == 130
    assert seconds < 5, "less than the default grace"
    assert not alive(nursery.pid("left"))
    assert [line for line in done.log if line.startswith("Received")] == [
        "Received SIGINT, shutting down..."
    ]
    assert done.log[-1].startswith("Interrupted (1 iteration completed, ")


# -- before the run ------------------------------------------------------------------------

AT_ANY_MOMENT = [(n * 0.4 / 29, SIGNALS[n % 3]) for n in range(30)]
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc to see when main begins")


def large_config(workspace: Workspace) -> None:
    """A config that takes a good part of a second to read."""
    phases = "".join(
        f"    {phase}: [{{content: x}}]\n" for phase in ("observe", "orient", "decide", "act")
    )
    workspace.config(PROCEDURE + "".join(f"  p{n}:\n{phases}" for n in range(400)))


def after_main_began(running: Running) -> Running:
    """Wait until main has installed its signal handlers."""
    until(lambda: catches(running.process.pid, signal.SIGHUP), "main begins")
    return running


@pytest.mark.long
@linux
def test_signal_at_any_moment_of_the_start_is_an_interruption(
    workspace: Workspace, nursery: Nursery
) -> None:
    command = workspace.agent(f"echo $$ > {workspace.path}/$$.pid; exec sleep 60")

    def attempt(moment: tuple[float, signal.Signals]) -> Finished:
        delay, number = moment
        own = workspace.sibling(f"{number.name} after {delay}")
        large_config(own)
        running = after_main_began(nursery.start(own, "work", "--ai-cmd", command, "-u"))
        time.sleep(delay)
        return ended(running, number)[0]

    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(attempt, AT_ANY_MOMENT))
    wrong = [done for done in results if done.code != 130 or BROKEN.search(done.err)]
    assert wrong == []
    assert all("Interrupted" in done.err for done in results)
    pids = [int(file.stem) for file in workspace.path.glob("*.pid")]
    assert not any(map(alive, pids))


@pytest.mark.long
@linux
def test_several_signals_at_once_are_an_interruption(
    workspace: Workspace, nursery: Nursery
) -> None:
    command = workspace.agent(f"echo $$ > {workspace.path}/$$.pid; exec sleep 60")

    def attempt(delay: float) -> Finished:
        own = workspace.sibling(f"after {delay}")
        large_config(own)
        running = after_main_began(nursery.start(own, "work", "--ai-cmd", command, "-u"))
        time.sleep(delay)
        # Signals to a stopped process stay pending, and arrive together after SIGCONT.
        return ended(running, signal.SIGSTOP, *SIGNALS, signal.SIGCONT)[0]

    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(attempt, [n * 0.04 for n in range(8)]))
    assert [done for done in results if done.code != 130 or BROKEN.search(done.err)] == []


SWALLOWED = {
    "__set_name__": "class C: d = type('D', (), {'__set_name__': lambda *_: kill_self()})()",
    "weak reference": (
        "import weakref\nf = Finder()\nr = weakref.ref(f, lambda _: kill_self())\ndel f"
    ),
    "destructor": "type('D', (), {'__del__': lambda _: kill_self()})()",
}


@pytest.mark.parametrize("place", SWALLOWED)
def test_signal_where_python_swallows_exceptions_is_an_interruption(
    workspace: Workspace, nursery: Nursery, place: str
) -> None:
    """Imports run such code, so Ctrl+C during the start may arrive in it."""
    code = "".join(f"            {line}\n" for line in SWALLOWED[place].splitlines())
    workspace.write(
        "site/sitecustomize.py",
        "import os, signal, sys\n"
        "def kill_self(): os.kill(os.getpid(), signal.SIGINT)\n"
        "class Finder:\n"
        "    def find_spec(self, name, path, target=None):\n"
        f"        if name == 'rooda.plan.plan':\n{code}"
        "sys.meta_path.insert(0, Finder())\n",
    )
    path = [str(workspace.path / "site"), os.environ.get("PYTHONPATH", "")]
    workspace.env["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    running = nursery.start(workspace, "work", "--ai-cmd", workspace.agent(HANGS))
    done = running.finish()
    assert done.code == 130
    assert not BROKEN.search(done.err)


def test_ctrl_c_before_the_handlers_are_installed_shows_no_traceback(
    workspace: Workspace, nursery: Nursery
) -> None:
    workspace.write(
        "site/sitecustomize.py",
        "import os, signal, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'rooda.front.entry': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n",
    )
    path = [str(workspace.path / "site"), os.environ.get("PYTHONPATH", "")]
    workspace.env["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    done = nursery.start(workspace, "work", "--ai-cmd", "true").finish()
    assert done.code == -signal.SIGINT
    assert done.err == ""
    assert not (workspace.state).exists()


def test_log_file_that_is_a_fifo_without_reader_is_an_error(
    workspace: Workspace, nursery: Nursery
) -> None:
    os.mkfifo(workspace.path / "log")
    command = workspace.agent(HANGS)
    done = nursery.start(workspace, "work", "--ai-cmd", command, "--log-file", "log").finish()
    assert done.code == 1
    assert "the log file" in done.err
    assert "can't be written" in done.err


@pytest.mark.long
@linux
def test_ctrl_c_held_down_is_an_interruption(workspace: Workspace, nursery: Nursery) -> None:
    command = workspace.agent(f"echo $$ > {workspace.path}/$$.pid; exec sleep 60")

    def attempt(delay: float) -> Finished:
        own = workspace.sibling(f"after {delay}")
        large_config(own)
        running = after_main_began(nursery.start(own, "work", "--ai-cmd", command, "-u"))
        time.sleep(delay)
        while running.process.poll() is None:
            running.signal(signal.SIGINT)
            time.sleep(0.001)
        return running.finish()

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(attempt, [n * 0.04 for n in range(8)]))
    assert [done for done in results if done.code != 130 or BROKEN.search(done.err)] == []


@pytest.mark.real(rows=1)
@linux
@pytest.mark.parametrize(
    "number,already",
    [(signal.SIGINT, 0), (signal.SIGTERM, 65_536)],
    ids=["empty pipe", "full pipe"],
)
def test_printing_to_a_pipe_without_reader_can_be_interrupted(
    workspace: Workspace, nursery: Nursery, number: signal.Signals, already: int
) -> None:
    workspace.write("long.md", "many words\n" * (200 if already else 100_000))
    fill = f"import os, sys; os.write(1, b'.' * {already}); os.execv(sys.argv[1], sys.argv[1:])"
    running = nursery.start(
        workspace, "work", "--ai-cmd", "true", "--context", "long.md", "--dry-run",
        before=(sys.executable, "-S", "-c", fill),
    )  # fmt: skip
    after_main_began(running)
    until(
        lambda: all(asleep(running.process.pid) for _ in range(10)), "rooda waits for the full pipe"
    )
    running.signal(number)
    assert running.process.wait(20) == 130


def asleep(pid: int) -> bool:
    """Whether a process sleeps, 10 ms from now."""
    time.sleep(0.01)
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


# -- inherited signal dispositions ---------------------------------------------------------

WAITS = "echo $$ > agent.pid; while ! test -e go; do sleep 0.02; done"


def test_nohup_ignores_sighup(workspace: Workspace, nursery: Nursery) -> None:
    command = workspace.agent(f"{WAITS}; echo '<promise>SUCCESS</promise>'")
    running = nursery.start(workspace, "work", "--ai-cmd", command, before=("nohup",))
    nursery.pid("agent")
    running.signal(signal.SIGHUP)
    workspace.write("go", "")
    done = running.finish()
    assert done.code == 0
    assert "SIGHUP" not in done.err


def test_sigterm_ends_a_run_under_nohup(workspace: Workspace, nursery: Nursery) -> None:
    command = workspace.agent(WAITS)
    running = nursery.start(workspace, "work", "--ai-cmd", command, before=("nohup",))
    agent = nursery.pid("agent")
    running.signal(signal.SIGHUP)
    done, _ = ended(running, signal.SIGTERM)
    assert done.code == 130
    assert "Received SIGTERM, shutting down..." in done.log
    assert not alive(agent)


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, signal.SIGQUIT], ids=lambda number: number.name
)
def test_signal_inherited_as_ignored_still_interrupts(
    workspace: Workspace, nursery: Nursery, number: signal.Signals
) -> None:
    ignoring = ("sh", "-c", f"trap '' {number.name[3:]}; exec \"$@\"", "sh")
    running = nursery.start(workspace, "work", "--ai-cmd", workspace.agent(HANGS), before=ignoring)
    agent = nursery.pid("agent")
    done, _ = ended(running, number)
    assert done.code == 130
    assert f"Received {number.name}, shutting down..." in done.log
    assert not alive(agent)


def test_sigint_interrupts_a_run_that_a_script_started_in_the_background(
    workspace: Workspace, nursery: Nursery
) -> None:
    script = nursery.start(
        workspace, "work", "--ai-cmd", workspace.agent(HANGS), before=IN_THE_BACKGROUND
    )
    rooda, agent = nursery.pid("rooda"), nursery.pid("agent")
    os.kill(rooda, signal.SIGINT)
    done = script.finish()
    assert done.code == 130
    assert "Received SIGINT, shutting down..." in done.log
    assert not alive(agent)


@pytest.mark.long
@pytest.mark.parametrize(
    "before",
    [
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})",
        "signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())",
    ],
    ids=["SIGCHLD ignored", "SIGCHLD blocked", "all blocked"],
)
def test_blocked_or_ignored_sigchld_from_the_parent_does_no_harm(
    workspace: Workspace, nursery: Nursery, before: str
) -> None:
    """A supervisor may start rooda with signals blocked; rooda must still see the agent exit."""
    launch = f"import os, signal, sys; {before}; os.execv(sys.argv[1], sys.argv[1:])"
    running = nursery.start(
        workspace, "work", "--ai-cmd", workspace.agent("exec >&- 2>&-; sleep 0.2; exit 7"),
        "--failure-threshold", "1", before=(sys.executable, "-S", "-c", launch),
    )  # fmt: skip
    assert running.finish().code == 1
