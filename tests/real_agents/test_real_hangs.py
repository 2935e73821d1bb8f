"""The agent programs themselves, when they hang, and what they leave behind."""

import shutil
import signal

import pytest

from real_agents.bench import AT_ONCE, Bench
from support.workspace import alive, wait_for

pytestmark = pytest.mark.timeout(150)

# Seconds that are more than enough to start and to begin with a tool, and a hang after that.
_HANGS = {"claude": "8s", "codex": "6s", "gemini": "12s", "opencode": "16s"}


def test_a_tool_that_hangs_ends_with_the_iteration(bench: Bench) -> None:
    after = _HANGS[bench.program.name]
    ran = bench.run("hang-in-tool", "--iteration-timeout", after, *AT_ONCE)
    tool = int((bench.workspace.path / "tool.pid").read_text())
    assert not alive(tool)
    assert not bench.survivors()
    assert (ran.done.code, ran.run["status"]) == (1, "aborted"), ran
    assert ran.only["kind"] == "timeout"


def test_a_model_that_never_answers_ends_with_the_iteration(bench: Bench) -> None:
    after = _HANGS[bench.program.name]
    ran = bench.run("hang", "--iteration-timeout", after, *AT_ONCE)
    assert bench.api.asked
    assert not bench.survivors()
    assert ran.run["status"] == "aborted", ran
    assert ran.only["kind"] == "timeout"


def test_ctrl_c_in_the_middle_of_a_tool_leaves_nothing(bench: Bench) -> None:
    running = bench.start("hang-in-tool")
    tool = int(wait_for(bench.workspace.path / "tool.pid", timeout=60))
    running.signal(signal.SIGINT)
    ran = bench.ended(running)
    assert not alive(tool)
    assert not bench.survivors()
    assert (ran.done.code, ran.run["status"]) == (130, "interrupted"), ran


@pytest.mark.skipif(shutil.which("setsid") is None, reason="setsid is missing")
def test_what_a_tool_leaves_in_the_background_is_named_and_gone(bench: Bench) -> None:
    ran = bench.run("background")
    left = int((bench.workspace.path / "left.pid").read_text())
    assert not alive(left)
    assert ran.run["status"] == "success", ran
    assert left in [one["pid"] for one in ran.only["cleaned_up"]]
