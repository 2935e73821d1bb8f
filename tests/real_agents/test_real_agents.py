"""Real claude, codex, gemini and opencode through the installed `rooda`: successful runs."""

import re

import pytest

from real_agents.bench import Bench, Ran, only
from real_agents.scenarios import BIG
from real_agents.wire.dialect import CACHED, INPUT, OUTPUT

pytestmark = pytest.mark.timeout(150)

# Two of the programs count cached tokens as input.
_COUNTS_CACHED = ("codex", "gemini")
_MODELS = {"claude": r"claude-.+", "gemini": r"gemini-2\.5-pro"}


def assert_usage(ran: Ran, program: str, turns: int) -> None:
    """Assert that the record contains the usage that the program reported."""
    recorded = ran.only
    cached = 0 if program in _COUNTS_CACHED else CACHED
    assert recorded["turns"] == turns
    assert recorded["tokens"]["input"] == turns * (INPUT - cached)
    assert recorded["tokens"]["output"] == turns * OUTPUT
    assert recorded["tokens"]["cache_read"] == turns * CACHED
    assert recorded["tokens"]["total"] == turns * (INPUT + OUTPUT)
    assert recorded["session_id"]
    assert recorded["model"] is None or re.fullmatch(_MODELS[program], recorded["model"])
    assert (recorded["model"] is None) == (program not in _MODELS)
    assert {
        "claude": recorded["cost"] and recorded["cost"] > 0,
        "opencode": recorded["cost"] == 0.0,
    }.get(program, recorded["cost"] is None)


def test_success_signal_in_the_answer_ends_the_run(bench: Bench) -> None:
    ran = bench.run("success")
    assert (ran.done.code, ran.run["status"]) == (0, "success"), ran
    assert (ran.only["status"], ran.only["kind"]) == ("completed", None)
    assert_usage(ran, bench.program.name, turns=1)


def test_answer_without_signal_leads_to_the_next_iteration(bench: Bench) -> None:
    ran = bench.run("plain", "-n", "2")
    assert (ran.done.code, ran.run["status"]) == (2, "max-iters"), ran
    assert [one["kind"] for one in ran.iterations] == [None, None]
    first, second = ran.iterations
    assert first["session_id"] != second["session_id"]


def test_tool_call_changes_files_and_both_turns_count(bench: Bench) -> None:
    ran = bench.run("tool")
    assert ran.run["status"] == "success", ran
    assert ran.only["result"]["files_created"] == ["made.txt"]
    assert (bench.workspace.path / "made.txt").read_text() == "made\n"
    assert_usage(ran, bench.program.name, turns=2)


def test_long_answer_is_complete_and_its_signal_counts(bench: Bench) -> None:
    ran = bench.run("big")
    assert (ran.done.code, ran.run["status"]) == (0, "success"), ran
    assert not ran.only["truncated"]
    last = BIG.rpartition("\n")[2]
    if bench.program.name != "gemini":  # gemini prints the answer in several events
        assert last in ran.only["result"]["stdout"]


def test_signal_printed_by_a_tool_does_not_count(bench: Bench) -> None:
    ran = bench.run("tool-echo")
    assert ran.run["status"] == "max-iters", ran
    assert (ran.only["signal"], ran.only["kind"]) == (None, None)


def test_limit_message_printed_by_a_tool_is_no_limit(bench: Bench) -> None:
    ran = bench.run("limit-words")
    assert ran.run["status"] == "success", ran
    assert ran.only["kind"] is None
    assert not ran.run["waits"]


def test_verbose_shows_text_and_tools_without_json(bench: Bench) -> None:
    ran = bench.run("tool", "--verbose")
    assert "The file is there.\n<promise>SUCCESS</promise>\n" in ran.done.out
    assert re.search(r"^\[tool\] .*echo made > made\.txt", ran.done.out, re.MULTILINE)
    assert "{" not in ran.done.out


# One turn of claude costs a quarter of a cent in this scenario.
@only("claude")
def test_run_ends_when_max_cost_is_exceeded(bench: Bench) -> None:
    ran = bench.run("plain", "-n", "5", "--max-cost", "0.004")
    assert (ran.done.code, ran.run["status"]) == (1, "aborted"), ran
    assert len(ran.iterations) == 2
    assert ran.run["cost"] == pytest.approx(2 * ran.iterations[0]["cost"])
