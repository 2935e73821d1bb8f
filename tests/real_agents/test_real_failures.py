"""The agent programs themselves, when their service refuses them."""

import os
import re

import pytest

from real_agents.bench import AT_ONCE, Bench, only

pytestmark = pytest.mark.timeout(150)


def test_a_promise_of_failure_is_a_failure(bench: Bench) -> None:
    ran = bench.run("failure", *AT_ONCE)
    assert (ran.done.code, ran.run["status"]) == (1, "aborted"), ran
    assert (ran.only["status"], ran.only["kind"]) == ("failed", "signal")


def test_a_key_that_is_refused_ends_the_run_at_once_with_what_to_do(bench: Bench) -> None:
    ran = bench.run("auth", "-n", "5")
    assert (ran.done.code, ran.run["status"]) == (1, "aborted"), ran
    assert ran.only["kind"] == "auth"
    assert "API key" in ran.only["evidence"]
    assert re.search(r"Try: .*(login|log in)", ran.done.err), ran


def test_an_overloaded_service_is_an_outage_and_no_failure(bench: Bench) -> None:
    ran = bench.run("overloaded", "--max-outage-wait", "0", *AT_ONCE)
    assert (ran.run["status"], ran.run["rule"]) == ("aborted", "max-outage-wait"), ran
    assert (ran.only["status"], ran.only["kind"]) == ("interrupted", "overloaded")
    assert re.search("overloaded|capacity", ran.only["evidence"], re.IGNORECASE)


@only("claude", "codex")
def test_after_an_overload_the_run_waits_and_goes_on(bench: Bench) -> None:
    bench.api.trouble = 3
    ran = bench.run("overload-ends", "-n", "1", "--failure-threshold", "1", "--backoff", "2s")
    assert (ran.done.code, ran.run["status"]) == (0, "success"), ran
    assert {one["kind"] for one in ran.only["earlier_attempts"]} == {"overloaded"}
    assert ran.only["kind"] is None
    assert {wait["kind"] for wait in ran.run["waits"]} == {"outage"}, ran


def test_a_prompt_that_is_too_long_is_named_as_that(bench: Bench) -> None:
    ran = bench.run("context", *AT_ONCE)
    assert ran.run["status"] == "aborted", ran
    assert ran.only["kind"] == "context"


def test_no_answer_and_no_change_is_empty(bench: Bench) -> None:
    ran = bench.run("empty", *AT_ONCE)
    assert ran.run["status"] == "aborted", ran
    assert (ran.only["kind"], ran.only["result"]["exit_code"]) == ("empty", 0)


# Codex waits for the network without an end, opencode for more than a minute.
@only("claude", "gemini")
def test_a_service_that_is_not_there_is_offline(bench: Bench) -> None:
    nobody = "http://127.0.0.1:9/success"
    there = {"ANTHROPIC_BASE_URL": nobody, "GOOGLE_GEMINI_BASE_URL": nobody}
    ran = bench.run("success", "--max-outage-wait", "0", *AT_ONCE, env=there)
    assert (ran.run["status"], ran.run["rule"]) == ("aborted", "max-outage-wait"), ran
    assert ran.only["kind"] == "offline"


_UNKNOWN_FLAG = {
    "claude": "claude -p --no-such-flag --output-format stream-json --verbose",
    "codex": "codex exec --no-such-flag --json -",
    "gemini": "gemini --no-such-flag -o stream-json",
    "opencode": "opencode run --no-such-flag --format json",
}


def test_a_flag_that_the_program_does_not_know_ends_the_run_at_once(bench: Bench) -> None:
    ran = bench.run("success", "-n", "5", command=_UNKNOWN_FLAG[bench.program.name])
    assert (ran.done.code, ran.run["status"]) == (1, "aborted"), ran
    assert ran.only["kind"] == "usage"


@pytest.mark.skipif(os.getuid() != 0, reason="an ordinary user is not refused")
@only("claude")
def test_claude_as_root_ends_the_run_at_once_with_what_lifts_it(bench: Bench) -> None:
    ran = bench.run("success", "-n", "5", env={"IS_SANDBOX": None})
    assert (ran.done.code, ran.run["status"]) == (1, "aborted"), ran
    assert ran.only["kind"] == "usage"
    assert "root" in ran.only["evidence"]
    assert "IS_SANDBOX=1" in ran.done.err
