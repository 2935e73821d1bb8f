"""claude, codex, gemini and opencode themselves, through the installed `rooda`: good ends."""

import re

import pytest

from real_agents.bench import Bench, Ran, only
from real_agents.scenarios import BIG
from real_agents.wire.dialect import CACHED, INPUT, OUTPUT

pytestmark = pytest.mark.timeout(150)

# What comes from the cache is part of the input for two of them, and not for the others.
_COUNTS_CACHED = ("codex", "gemini")
_MODELS = {"claude": r"claude-.+", "gemini": r"gemini-2\.5-pro"}


def has_numbers(ran: Ran, program: str, turns: int) -> None:
    """What the program tells of itself is in the record, whole."""
    told = ran.only
    cached = 0 if program in _COUNTS_CACHED else CACHED
    assert told["turns"] == turns
    assert told["tokens"]["input"] == turns * (INPUT - cached)
    assert told["tokens"]["output"] == turns * OUTPUT
    assert told["tokens"]["cache_read"] == turns * CACHED
    assert told["tokens"]["total"] == turns * (INPUT + OUTPUT)
    assert told["session_id"]
    assert told["model"] is None or re.fullmatch(_MODELS[program], told["model"])
    assert (told["model"] is None) == (program not in _MODELS)
    assert {"claude": told["cost"] and told["cost"] > 0, "opencode": told["cost"] == 0.0}.get(
        program, told["cost"] is None
    )


def test_a_promise_in_the_answer_ends_the_run_as_success(bench: Bench) -> None:
    ran = bench.run("success")
    assert (ran.done.code, ran.run["status"]) == (0, "success"), ran
    assert (ran.only["status"], ran.only["kind"]) == ("completed", None)
    has_numbers(ran, bench.program.name, turns=1)


def test_an_answer_without_a_promise_goes_on_to_the_next_iteration(bench: Bench) -> None:
    ran = bench.run("plain", "-n", "2")
    assert (ran.done.code, ran.run["status"]) == (2, "max-iters"), ran
    assert [one["kind"] for one in ran.iterations] == [None, None]
    first, second = ran.iterations
    assert first["session_id"] != second["session_id"]


def test_a_tool_does_its_work_and_both_turns_count(bench: Bench) -> None:
    ran = bench.run("tool")
    assert ran.run["status"] == "success", ran
    assert ran.only["result"]["files_created"] == ["made.txt"]
    assert (bench.workspace.path / "made.txt").read_text() == "made\n"
    has_numbers(ran, bench.program.name, turns=2)


def test_a_long_answer_arrives_whole_and_its_last_line_counts(bench: Bench) -> None:
    ran = bench.run("big")
    assert (ran.done.code, ran.run["status"]) == (0, "success"), ran
    assert not ran.only["truncated"]
    last = BIG.rpartition("\n")[2]
    if bench.program.name != "gemini":  # the others print it in one piece
        assert last in ran.only["result"]["stdout"]


def test_a_promise_that_a_tool_prints_is_not_the_agents(bench: Bench) -> None:
    ran = bench.run("tool-echo")
    assert ran.run["status"] == "max-iters", ran
    assert (ran.only["signal"], ran.only["kind"]) == (None, None)


def test_words_of_a_limit_that_a_tool_prints_are_no_limit(bench: Bench) -> None:
    ran = bench.run("limit-words")
    assert ran.run["status"] == "success", ran
    assert ran.only["kind"] is None
    assert not ran.run["waits"]


def test_the_user_reads_what_the_agent_says_and_does_and_no_json(bench: Bench) -> None:
    ran = bench.run("tool", "--verbose")
    assert "The file is there.\n<promise>SUCCESS</promise>\n" in ran.done.out
    assert re.search(r"^\[tool\] .*echo made > made\.txt", ran.done.out, re.MULTILINE)
    assert "{" not in ran.done.out


# A turn of claude costs a quarter of a cent here.
@only("claude")
def test_a_run_ends_once_it_has_cost_too_much(bench: Bench) -> None:
    ran = bench.run("plain", "-n", "5", "--max-cost", "0.004")
    assert (ran.done.code, ran.run["status"]) == (1, "aborted"), ran
    assert len(ran.iterations) == 2
    assert ran.run["cost"] == pytest.approx(2 * ran.iterations[0]["cost"])
