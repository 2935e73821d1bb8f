"""Real agent programs that hang, and the processes that they leave behind."""

import os
import shutil
import signal

import pytest

from real_agents.bench import AT_ONCE, Bench
from support.workspace import alive, wait_for

pytestmark = pytest.mark.timeout(150)

# Timeouts that are long enough for the program to start and call a tool.
_HANGS = {"claude": 8, "codex": 6, "gemini": 12, "opencode": 16}
_LONGEST = 60


def _timeout(bench: Bench) -> str:
    """Return a timeout for this machine: on a busy one, programs start slowly."""
    busy = os.getloadavg()[0] / (os.cpu_count() or 1)
    return f"{min(_HANGS[bench.program.name] * max(busy, 1), _LONGEST):.0f}s"


def test_iteration_timeout_kills_a_hanging_tool(bench: Bench) -> None:
    after = _timeout(bench)
    ran = bench.run("hang-in-tool", "--iteration-timeout", after, *AT_ONCE)
    tool = int((bench.workspace.path / "tool.pid").read_text())
    assert bench.sandboxed or not alive(tool)  # a sandbox has pids of its own
    assert not bench.survivors()
    assert (ran.done.code, ran.run["status"]) == (1, "aborted"), ran
    assert ran.only["kind"] == "timeout"


def test_iteration_timeout_ends_a_request_without_answer(bench: Bench) -> None:
    after = _timeout(bench)
    ran = bench.run("hang", "--iteration-timeout", after, *AT_ONCE)
    assert bench.api.asked
    assert not bench.survivors()
    assert ran.run["status"] == "aborted", ran
    assert ran.only["kind"] == "timeout"


def test_ctrl_c_during_a_tool_leaves_no_processes(bench: Bench) -> None:
    running = bench.start("hang-in-tool")
    tool = int(wait_for(bench.workspace.path / "tool.pid", timeout=60))
    running.signal(signal.SIGINT)
    ran = bench.ended(running)
    assert bench.sandboxed or not alive(tool)
    assert not bench.survivors()
    assert (ran.done.code, ran.run["status"]) == (130, "interrupted"), ran


@pytest.mark.skipif(shutil.which("setsid") is None, reason="setsid is missing")
def test_background_process_of_a_tool_is_recorded_and_stopped(bench: Bench) -> None:
    ran = bench.run("background")
    left = int((bench.workspace.path / "left.pid").read_text())
    assert not bench.survivors()
    assert ran.run["status"] == "success", ran
    stopped = ran.only["cleaned_up"]
    assert "sleep" in " ".join(one["name"] for one in stopped), stopped
    assert bench.sandboxed or left in [one["pid"] for one in stopped]
