"""What rooda prints to a real terminal, and what it writes to a pipe."""

import os
import re
import select
import signal
import subprocess
import time

import pytest

from support.children import Nursery, until
from support.screen import Screen
from support.workspace import Workspace, alive, wait_for

pytestmark = pytest.mark.real

LIVE = "Iteration 1/1 · "
WAITS = "echo $$ > agent.pid; while ! test -e go; do sleep 0.02; done"
HANGS = "echo $$ > agent.pid; exec sleep 60"
SUCCESS = "echo '<promise>SUCCESS</promise>'"
# All controls that could drive a terminal; the pty itself adds the line ends.
RAW = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\r(?!\n)|\xc2[\x80-\x9f]")
# Writes one piece at a time: the next one only after the pipe is empty again.
IN_PIECES = """
import array, fcntl, os, termios, time
def put(fd, data):
    os.write(fd, data)
    left = array.array("i", [1])
    while left[0]:
        fcntl.ioctl(fd, termios.FIONREAD, left)
        time.sleep(0.001)
"""


def work(command: str, *args: str) -> tuple[str, ...]:
    return ("work", "--ai-cmd", command, "-n", "1", *args)


# -- the live line -------------------------------------------------------------------------


@pytest.mark.long
def test_live_line_appears_and_is_removed(workspace: Workspace, screen: Screen) -> None:
    screen.start(workspace, *work(workspace.agent(f"{WAITS}; {SUCCESS}")))
    screen.wait_for(f"{LIVE}agent · 0m00s · total 0s · no output yet")
    screen.wait_for(f"{LIVE}agent · 0m01s · ")
    workspace.write("go", "")
    assert screen.finish() == 0
    assert LIVE not in "\n".join(screen.lines)
    timeless = [re.sub(r"^\[.*?\] |^  ", "", line) for line in screen.lines]
    assert [re.sub(r"\d+\.\ds", "X", line) for line in timeless] == [
        "Starting procedure: work (max 1 iteration)",
        "Iteration 1/1 starting...",
        "Iteration 1/1 completed in X (success)",
        "2 files +1 -0",
        "Completed: AI signaled SUCCESS (1 iteration, total: X)",
        "Iteration timing: min=X, max=X, mean=X",
        "Next: rooda show · rooda report",
        "",
    ]


@pytest.mark.long
def test_live_line_shows_output_and_phase(workspace: Workspace, screen: Screen) -> None:
    body = f"echo 'OODA: ORIENT'; head -c 3000 /dev/zero; {WAITS}"
    screen.start(workspace, *work(workspace.agent(body)))
    screen.wait_for(f"{LIVE}agent ORIENT · ")
    screen.wait_for(" of output, last 0m00s ago")
    workspace.write("go", "")
    assert screen.finish() == 2


@pytest.mark.long
def test_live_line_is_shown_only_on_an_interactive_terminal(
    workspace: Workspace, nursery: Nursery
) -> None:
    command = workspace.agent("sleep 1.3")  # a live line is drawn every half second
    plain = {"NO_COLOR": "1"}
    cases: dict[str, tuple[tuple[str, ...], dict[str, str | None]]] = {
        "interactive": ((), {}),
        "silent agent with --verbose": (("--verbose",), {}),
        "CI": ((), {"CI": "true"}),
        "dumb": ((), {"TERM": "dumb"}),
        "no TERM": ((), {"TERM": None}),
        "quiet": (("--quiet",), {}),
        "json": (("--log-format", "json"), {}),
        "logfmt": (("--log-format", "logfmt"), {}),
    }
    screens = {name: Screen() for name in cases}
    try:
        for name, (args, env) in cases.items():
            screens[name].start(workspace.sibling(name), *work(command, *args), env=plain | env)
        piped = nursery.start(workspace, *work(command))
        assert {name: screen.finish() for name, screen in screens.items()} == dict.fromkeys(
            cases, 2
        )
        live = "· agent".encode()
        shown = [name for name, screen in screens.items() if live in screen.sent]
        controlled = [name for name, screen in screens.items() if RAW.search(screen.sent)]
        assert shown == controlled == ["interactive", "silent agent with --verbose"]
        done = piped.finish()
        assert "· agent" not in done.err
        assert not RAW.search((done.out + done.err).encode())
    finally:
        for screen in screens.values():
            screen.close()


@pytest.mark.long
def test_live_line_fits_a_narrow_terminal_when_output_goes_elsewhere(
    workspace: Workspace, nursery: Nursery
) -> None:
    """A line that wraps can't be removed."""
    assert nursery.folder == workspace.path
    narrow = Screen(columns=24)
    try:
        narrow.start(workspace, *work(workspace.agent(WAITS)), stdout=subprocess.DEVNULL)
        narrow.wait_for("Iteration 1/1 · agent")
        narrow.wait_for("Iteration 1/1 · agent\r")  # drawn again in its place
        workspace.write("go", "")
        assert narrow.finish() == 2
        assert "· agent" not in "\n".join(narrow.lines)
    finally:
        narrow.close()


# -- Ctrl+C --------------------------------------------------------------------------------


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("flags", [(), ("--verbose",)], ids=["live line", "verbose"])
def test_ctrl_c_restores_the_terminal(
    workspace: Workspace, nursery: Nursery, screen: Screen, flags: tuple[str, ...]
) -> None:
    before = screen.settings
    screen.start(workspace, *work(workspace.agent(f"printf 'half a line'; {HANGS}"), *flags))
    agent = nursery.pid("agent")
    screen.wait_for("half a line" if flags else f"{LIVE}agent")
    began = time.monotonic()
    screen.type(b"\x03")
    assert screen.finish() == 130
    assert time.monotonic() - began < 1
    assert not alive(agent)
    assert screen.settings == before
    assert "Interrupted (0 iterations completed, total:" in screen.lines[-4]
    assert re.fullmatch(r"  Iteration timing: min=\S+, max=\S+, mean=\d+\.\ds", screen.lines[-3])
    assert re.fullmatch(
        r"  Next: rooda show · rooda report · rooda resume [\w-]+", screen.lines[-2]
    )
    assert screen.lines[-1] == ""
    assert re.search(rb"rooda resume [\w-]+(\x1b\[0m)?\r\n\Z", screen.sent)
    assert LIVE not in "\n".join(screen.lines)


@pytest.mark.long
def test_ctrl_c_reaches_rooda_only(workspace: Workspace, screen: Screen) -> None:
    command = workspace.python_agent("""
import os, signal, sys, time
def note(number, _):
    with open("got", "a") as file:
        file.write(signal.Signals(number).name + "\\n")
    if number == signal.SIGTERM:
        sys.exit()
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
    signal.signal(number, note)
with open("agent.pid", "w") as file:
    file.write(str(os.getpid()))
while True:
    time.sleep(0.01)  # Python's `signal.pause` misses a signal just before it
""")
    screen.start(workspace, *work(command))
    wait_for(workspace.path / "agent.pid")
    screen.type(b"\x03")
    assert screen.finish() == 130
    assert (workspace.path / "got").read_text() == "SIGTERM\n"


@pytest.mark.long
def test_agent_has_no_controlling_terminal(workspace: Workspace, screen: Screen) -> None:
    screen.start(workspace, *work(workspace.agent("echo garbage > /dev/tty")))
    assert screen.finish() == 2
    assert b"garbage" not in screen.sent


def test_closing_the_terminal_ends_the_run(
    workspace: Workspace, nursery: Nursery, screen: Screen
) -> None:
    process = screen.start(workspace, *work(workspace.agent(HANGS)))
    agent = nursery.pid("agent")
    screen.wait_for("Iteration 1/1 starting...")
    os.close(screen.slave)
    os.close(screen.master)
    assert process.wait(20) == 130
    assert not alive(agent)


# -- --verbose -----------------------------------------------------------------------------

CONTROLS = [
    b"\x1b]0;title\x07", b"\x1b[2J", b"\x1b[31mred\x1b[0m", b"\x1b]52;c;eA==\x1b\\", b"\x1bc",
    b"\x1bPq#1\x1b\\", b"\x1b[?1049h", b"\x1b[6n", b"\x07\x08\x0b\x0c\x0e\x7f", b"50%\r60%\r",
    "\x9b2J\x9d0;t\x9c\x85".encode(), b"\x9b2J\xff\xfe\xc3", b"\x1b", b"\x1b[", b"\xe2\x82",
]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("stream", [1, 2], ids=["stdout", "stderr"])
@pytest.mark.parametrize("size", [99, 1], ids=["whole", "byte by byte"])
def test_output_of_the_agent_never_controls_the_terminal(
    workspace: Workspace, screen: Screen, stream: int, size: int
) -> None:
    body = f"""{IN_PIECES}
for control in {CONTROLS!r}:
    for n in range(0, len(control), {size}):
        put({stream}, control[n : n + {size}])
    put({stream}, b"|")
put({stream}, b"the end")
"""
    flags = ("--verbose", "--color", "never")
    screen.start(workspace, *work(workspace.python_agent(body), *flags))
    assert screen.finish() == 2
    assert not RAW.search(screen.sent)
    assert b"the end\r\n" in screen.sent
    assert screen.sent.decode()  # valid UTF-8


def test_excerpt_and_command_of_a_failed_agent_do_not_control_the_terminal(
    workspace: Workspace, screen: Screen
) -> None:
    body = f"import os\nfor control in {CONTROLS!r}:\n    os.write(2, control + b'|')\nos._exit(1)"
    command = f"{workspace.python_agent(body)} '\x1b[2J\x9b31m\r'"
    screen.start(workspace, *work(command, "--failure-threshold", "1", "--color", "never"))
    assert screen.finish() == 1
    assert not RAW.search(screen.sent.replace(b"\r\x1b[2K", b""))


def test_output_is_shown_while_the_agent_runs(workspace: Workspace, screen: Screen) -> None:
    body = f"echo a line; printf 'half a line'; {WAITS}; echo ' and the rest'; {SUCCESS}"
    screen.start(workspace, *work(workspace.agent(body), "--verbose"))
    screen.wait_for("a line\r\nhalf a line")
    workspace.write("go", "")
    assert screen.finish() == 0
    assert "half a line and the rest" in screen.lines


def test_output_goes_to_stdout_and_logs_to_stderr(workspace: Workspace, nursery: Nursery) -> None:
    command = workspace.agent(f"printf 'one\\ttab\\n'; printf two >&2; {SUCCESS}")
    done = nursery.start(workspace, *work(command, "--verbose")).finish()
    assert done.code == 0
    assert sorted(re.findall(r"one\ttab\n|two|<promise>SUCCESS</promise>\n", done.out)) == [
        "<promise>SUCCESS</promise>\n", "one\ttab\n", "two"
    ]  # fmt: skip
    assert len(done.out) == len("one\ttab\ntwo<promise>SUCCESS</promise>\n")
    assert len(done.log) == 4
    assert not re.search("two|promise", done.err)


def test_output_is_hidden_without_verbose(workspace: Workspace, nursery: Nursery) -> None:
    """The log has only the headline: the first sentence of its closing words."""
    command = workspace.agent(f"echo The headline. One more sentence.; echo two >&2; {SUCCESS}")
    done = nursery.start(workspace, *work(command)).finish()
    assert (done.code, done.out) == (0, "")
    assert not re.search("One|two|promise", done.err)


@pytest.mark.long
def test_log_line_starts_on_a_new_line_after_half_a_line_of_output(
    workspace: Workspace, screen: Screen
) -> None:
    screen.start(workspace, *work(workspace.agent("printf half"), "--verbose"))
    assert screen.finish() == 2
    assert "half" in screen.lines


# -- readers that don't read ---------------------------------------------------------------

FLOOD = f"head -c 5000000 /dev/zero | tr '\\0' x; echo yes > drained; {SUCCESS}"


@pytest.mark.long
def test_reader_that_never_reads_does_not_block_the_run(
    workspace: Workspace, nursery: Nursery
) -> None:
    running = nursery.start(workspace, *work(workspace.agent(FLOOD), "--verbose"))
    assert running.process.wait(30) == 0
    assert (workspace.path / "drained").exists()
    assert "AI signaled SUCCESS" in running.finish().err


@pytest.mark.long
def test_reader_that_closes_the_pipe_does_not_stop_the_run(
    workspace: Workspace, nursery: Nursery
) -> None:
    command = workspace.agent(f"echo first; {WAITS}; {FLOOD}")
    running = nursery.start(workspace, *work(command, "--verbose"))
    assert running.process.stdout is not None
    assert running.process.stdout.readline() == "first\n"
    running.process.stdout.close()
    workspace.write("go", "")
    done = running.finish()
    assert done.code == 0
    assert "AI signaled SUCCESS" in done.err
    assert not re.search("Traceback|Broken|Exception", done.err)


@pytest.mark.long
def test_log_reader_that_closes_the_pipe_does_not_stop_the_run(
    workspace: Workspace, nursery: Nursery
) -> None:
    running = nursery.start(workspace, *work(workspace.agent(f"{WAITS}; {SUCCESS}")))
    assert running.process.stderr is not None
    assert "Starting procedure" in running.process.stderr.readline()
    running.process.stderr.close()
    workspace.write("go", "")
    assert running.process.wait(20) == 0


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "closed", [">&-", "2>&-", "<&-", ">&- 2>&-", "<&- >&- 2>&-"], ids=lambda text: f"[{text}]"
)
def test_closed_streams_do_not_stop_the_run(
    workspace: Workspace, nursery: Nursery, closed: str
) -> None:
    command = workspace.agent(f"cat > prompt; echo output; echo output >&2; {SUCCESS}")
    launch = ("sh", "-c", f'"$@" {closed}', "sh")
    args = work(command, "--verbose", "--log-file", "log")
    done = nursery.start(workspace, *args, before=launch).finish()
    assert done.code == 0
    assert not re.search("Traceback|Exception|Bad file", done.out + done.err)
    assert "## OBSERVE" in (workspace.path / "prompt").read_text()
    log = (workspace.path / "log").read_text()
    assert log.count("\n") == 7
    assert log.count("output") == log.count(" · output\n") == 1, "it is only the headline"


def flooded(workspace: Workspace, screen: Screen) -> subprocess.Popen[bytes]:
    """A run with an agent that floods the terminal."""
    command = workspace.agent("echo $$ > agent.pid; yes")
    process = screen.start(workspace, *work(command, "--verbose"))
    wait_for(workspace.path / "agent.pid")
    return process


def writable(screen: Screen) -> bool:
    """Whether the terminal accepts output now."""
    return bool(select.select([], [screen.slave], [], 0)[1])


@pytest.mark.long
def test_full_terminal_does_not_delay_the_exit(workspace: Workspace, nursery: Nursery) -> None:
    command = workspace.agent(f"echo $$ > {workspace.path}/$$.pid; yes")
    screens = [Screen() for _ in range(6)]  # the fill level differs from run to run
    try:
        processes = [
            screen.start(workspace.sibling(str(n)), *work(command, "--verbose"))
            for n, screen in enumerate(screens)
        ]
        until(lambda: not any(map(writable, screens)), "the terminals are full")
        for process, number in zip(processes, [2, 15, 1] * 2, strict=True):
            process.send_signal(number)
        end = time.monotonic() + 20
        until(lambda: all(process.poll() for process in processes) or time.monotonic() > end, "")
        assert [process.poll() for process in processes] == [130] * 6
        assert not any(alive(int(file.stem)) for file in nursery.folder.glob("*.pid"))
    finally:
        for screen in screens:
            screen.close()


@pytest.mark.long
def test_terminal_stopped_with_ctrl_s_does_not_delay_the_exit(
    workspace: Workspace, nursery: Nursery, screen: Screen
) -> None:
    process = flooded(workspace, screen)
    screen.wait_for("y\r\ny\r\n")
    screen.type(b"\x13")
    until(lambda: not writable(screen), "the terminal is stopped")
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    assert not alive(nursery.pid("agent"))


@pytest.mark.long
def test_ctrl_s_does_not_stop_the_agent(workspace: Workspace, screen: Screen) -> None:
    command = workspace.agent(f"{WAITS}; {FLOOD}")
    process = screen.start(workspace, *work(command, "--verbose"))
    wait_for(workspace.path / "agent.pid")
    screen.type(b"\x13")
    until(lambda: not writable(screen), "the terminal is stopped")
    workspace.write("go", "")
    assert process.wait(30) == 0
    assert (workspace.path / "drained").exists()


@pytest.mark.long
def test_final_lines_are_shown_after_a_flood(workspace: Workspace, screen: Screen) -> None:
    """A slow terminal still gets the final lines of an interrupted run."""
    flooded(workspace, screen)
    screen.wait_for("y\r\ny\r\n")
    screen.type(b"\x03")
    assert screen.finish() == 130
    assert b"Interrupted (0 iterations completed, total:" in screen.sent
    assert b"  Iteration timing: " in screen.sent


@pytest.mark.long
def test_final_lines_reach_a_slow_reader(workspace: Workspace, nursery: Nursery) -> None:
    """As with `2>&1 | ssh ...`: a reader that still reads gets the final lines."""
    command = workspace.agent("echo $$ > agent.pid; yes")
    launch = ("sh", "-c", 'exec "$@" 2>&1', "sh")
    process = nursery.start(workspace, *work(command, "--verbose"), before=launch).process
    nursery.pid("agent")
    assert process.stdout is not None
    received = ""
    while text := process.stdout.read(4096):
        received += text
        if len(received) == 200 * 4096:
            process.send_signal(signal.SIGINT)
        time.sleep(0.002)
    assert process.wait(20) == 130
    assert "Interrupted (0 iterations completed, total:" in received
    assert "  Iteration timing: " in received
