"""`rooda watch` in a real terminal, with a real run in another work tree."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator

import pytest

from support.children import Nursery, until
from support.tmux import Tmux
from support.workspace import Workspace, alive, wait_for

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed"),
]

# Keeps each prompt, says something, and waits for the test.
AGENT = """
n=$(($(cat starts 2>/dev/null || echo 0) + 1)); echo $n > starts
cat > prompt.$n.part; mv prompt.$n.part prompt.$n
echo "I begin with step $n [red]now[/red]"
echo $$ > agent.pid
while ! test -e go.$n; do sleep 0.02; done
"""
COLOR = re.compile(r"\x1b\[(?:[0-9;]*;)?(?:3[1-6]|9[0-7]|38|48)[;m0-9]*")


@pytest.fixture
def terminal() -> Iterator[Tmux]:
    found = Tmux()
    yield found
    found.close()


def test_watch_tells_and_stops_a_run_of_another_work_tree_and_shows_its_end(
    workspace: Workspace, nursery: Nursery, terminal: Tmux
) -> None:
    other = workspace.sibling("other")
    running = nursery.start(other, "work", "--ai-cmd", other.agent(AGENT), "-n", "5")
    wait_for(other.path / "agent.pid")
    terminal.start(workspace, "watch")
    terminal.wait_for("1 run at work", "other")
    terminal.press("Enter")
    terminal.wait_for("▶ other: work has been running", "I begin with step 1 [red]now[/red]")
    terminal.type("tplease use tabs\r")  # all at once: no letter of a note is a command
    terminal.wait_for("reads it in its next iteration.")
    other.write("go.1", "")
    assert "please use tabs" in wait_for(other.path / "prompt.2")
    terminal.wait_for("I begin with step 2")
    terminal.press("s")
    terminal.wait_for("stops when its current iteration has ended.")
    other.write("go.2", "")
    text = terminal.wait_for("other: work ended as", "The user ended it with `rooda stop`", "Next")
    assert "rooda resume" in text
    assert running.finish().code != 0
    terminal.press("q")
    terminal.wait_for("exit 0")


def test_watch_opens_the_run_of_this_folder_and_quit_leaves_it_alone(
    workspace: Workspace, nursery: Nursery, terminal: Tmux
) -> None:
    running = nursery.start(workspace, "work", "--ai-cmd", workspace.agent(AGENT), "-n", "5")
    nursery.pid("agent")
    terminal.start(workspace, "watch", env={"NO_COLOR": "1"})
    terminal.wait_for("▶ work: work has been running", "I begin with step 1")
    assert COLOR.search(terminal.text("-e")) is None
    terminal.press("q")
    terminal.wait_for("exit 0")
    assert running.process.poll() is None
    again = Tmux(columns=40, rows=12)
    try:
        again.start(workspace, "watch", "last")
        again.wait_for("▶ work: work")
        assert COLOR.search(again.text("-e"))
        again.press("S")
        again.wait_for("y: yes")
        again.press("y")
        again.wait_for("ended as")
        assert running.finish().code == 130
        os.kill(view_in(again), signal.SIGTERM)
        again.wait_for("exit 130")  # and the terminal is as before
    finally:
        again.close()


def test_watch_ends_with_its_terminal(workspace: Workspace, terminal: Tmux) -> None:
    terminal.start(workspace, "watch")
    terminal.wait_for("q Quit")
    view = view_in(terminal)
    terminal.close()
    until(lambda: not alive(view), "the view ends")


def view_in(terminal: Tmux) -> int:
    """The process of the view: the only child of the shell in that terminal."""
    found = subprocess.run(
        ["pgrep", "-P", str(terminal.pid)], capture_output=True, text=True, check=True, timeout=30
    )
    return int(found.stdout)
