"""Waits for limits through the installed command, in real time."""

import json
import signal

import pytest

from support.children import Nursery
from support.screen import Screen
from support.workspace import PROCEDURE, Workspace

DONE = {"type": "result", "is_error": False, "result": "<promise>SUCCESS</promise>"}


def limited(words: str) -> dict[str, object]:
    return {"type": "result", "is_error": True, "api_error_status": 429, "result": words}


@pytest.fixture
def claude(workspace: Workspace) -> Workspace:
    """A workspace with a `claude` that is limited at first, and done then."""
    workspace.config(PROCEDURE)
    workspace.env["PATH"] = f"{workspace.path / 'bin'}:{workspace.environ()['PATH']}"
    return workspace


def plays(workspace: Workspace, *events: dict[str, object]) -> tuple[str, ...]:
    """The command line of a run whose agent prints one event at each start."""
    script = workspace.agents(*(f"printf '%s\\n' '{json.dumps(event)}'" for event in events))
    link = workspace.path / "bin" / "claude"
    link.parent.mkdir()
    link.symlink_to(script.strip("'"))
    return "work", "--ai-cmd-alias", "claude"


def test_the_run_says_until_when_it_waits_and_goes_on_with_the_same_iteration(
    claude: Workspace,
) -> None:
    words = "Too many requests. Please try again in 1 second."
    done = claude.rooda(*plays(claude, limited(words), DONE), "-n", "1")
    assert done.code == 0
    log = [line.partition(" (")[0] for line in done.log]
    assert log[1].startswith("Iteration 1/1 starting")
    assert "usage limit of claude" in log[2]
    assert log[3].startswith("WARN: Usage limit of claude: waiting until=")
    assert words in log[3]
    assert log[4].startswith("Going on waited=")
    assert log[5].startswith("Iteration 1/1 starting")
    assert claude.starts == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_wait_at_once(
    claude: Workspace, nursery: Nursery, number: signal.Signals
) -> None:
    running = nursery.start(claude, *plays(claude, limited("limit reached, resets in 5 hours")))
    _until_it_waits(claude)
    running.signal(number)
    done = running.finish(10)
    assert done.code == 130
    assert "Interrupted (0 iterations completed" in done.err
    assert "Traceback" not in done.err


def test_rooda_stop_ends_a_wait(claude: Workspace, nursery: Nursery) -> None:
    running = nursery.start(claude, *plays(claude, limited("limit reached, resets in 5 hours")))
    _until_it_waits(claude)
    assert claude.rooda("stop").code == 0
    done = running.finish(10)
    assert done.code == 130
    assert "Stopped" in done.err


def test_while_it_waits_the_record_says_what_for(claude: Workspace, nursery: Nursery) -> None:
    running = nursery.start(claude, *plays(claude, limited("limit reached, resets in 5 hours")))
    _until_it_waits(claude)
    shown = json.loads(claude.rooda("show", "--json").out)
    assert (shown["status"], shown["iterations"][0]["kind"]) == ("running", "limit")
    assert shown["waits"][0]["kind"] == "limit"
    assert "Waited" in claude.rooda("show").out
    running.signal(signal.SIGINT)
    assert running.finish(10).code == 130


def test_the_live_line_counts_down(claude: Workspace, screen: Screen) -> None:
    args = plays(claude, limited("limit reached, resets in 5 hours"))
    process = screen.start(claude, *args)
    screen.wait_for("Usage limit of claude: waiting · 5h00m0")
    screen.wait_for("5h00m03s left · Ctrl+C ends it")
    process.send_signal(signal.SIGINT)
    assert screen.finish() == 130
    assert "left · Ctrl+C" not in "\n".join(screen.lines)


def _until_it_waits(workspace: Workspace) -> None:
    """Until the record says so."""
    for _ in range(200):
        done = workspace.rooda("show", "--json")
        if done.code == 0 and json.loads(done.out)["waits"]:
            return
    raise AssertionError("it does not wait")
