"""Real agent programs when their service fails or refuses requests."""

import os
import re

import pytest

from real_agents.bench import AT_ONCE, Bench, only

pytestmark = pytest.mark.timeout(150)


def test_failure_signal_fails_the_iteration(bench: Bench) -> None:
    ran = bench.run("failure", *AT_ONCE)
    assert (ran.done.code, ran.run["status"]) == (1, "aborted"), ran
    assert (ran.only["status"], ran.only["kind"]) == ("failed", "signal")


def test_rejected_key_of_a_real_agent_aborts_the_run_with_advice(bench: Bench) -> None:
    ran = bench.run("auth", "-n", "5")
    assert (ran.done.code, ran.run["status"]) == (1, "aborted"), ran
    assert ran.only["kind"] == "auth"
    assert "API key" in ran.only["evidence"]
    assert re.search(r"Try: .*(login|log in)", ran.done.err), ran


def test_overloaded_service_is_an_outage_and_not_a_failure(bench: Bench) -> None:
    ran = bench.run("overloaded", "--max-outage-wait", "0", *AT_ONCE)
    assert (ran.run["status"], ran.run["rule"]) == ("aborted", "max-outage-wait"), ran
    assert (ran.only["status"], ran.only["kind"]) == ("interrupted", "overloaded")
    assert re.search("overloaded|capacity", ran.only["evidence"], re.IGNORECASE)


@only("claude", "codex")
def test_run_waits_for_the_end_of_an_overload_and_continues(bench: Bench) -> None:
    bench.api.trouble = 3
    ran = bench.run("overload-ends", "-n", "1", "--failure-threshold", "1", "--backoff", "2s")
    assert (ran.done.code, ran.run["status"]) == (0, "success"), ran
    assert {one["kind"] for one in ran.only["earlier_attempts"]} == {"overloaded"}
    assert ran.only["kind"] is None
    assert {wait["kind"] for wait in ran.run["waits"]} == {"outage"}, ran


def test_too_long_prompt_has_kind_context(bench: Bench) -> None:
    ran = bench.run("context", *AT_ONCE)
    assert ran.run["status"] == "aborted", ran
    assert ran.only["kind"] == "context"


def test_success_without_answer_and_changes_of_a_real_agent_is_empty(bench: Bench) -> None:
    ran = bench.run("empty", *AT_ONCE)
    assert ran.run["status"] == "aborted", ran
    assert (ran.only["kind"], ran.only["result"]["exit_code"]) == ("empty", 0)


# Codex retries forever without a network, opencode for more than a minute.
@only("claude", "gemini")
def test_unreachable_service_has_kind_offline(bench: Bench) -> None:
    unreachable = "http://127.0.0.1:9/success"
    urls = {"ANTHROPIC_BASE_URL": unreachable, "GOOGLE_GEMINI_BASE_URL": unreachable}
    ran = bench.run("success", "--max-outage-wait", "0", *AT_ONCE, env=urls)
    assert (ran.run["status"], ran.run["rule"]) == ("aborted", "max-outage-wait"), ran
    assert ran.only["kind"] == "offline"


_UNKNOWN_FLAG = {
    "claude": "claude -p --no-such-flag --output-format stream-json --verbose",
    "codex": "codex exec --no-such-flag --json -",
    "gemini": "gemini --no-such-flag -o stream-json",
    "opencode": "opencode run --no-such-flag --format json",
}


def test_unknown_flag_aborts_the_run(bench: Bench) -> None:
    ran = bench.run("success", "-n", "5", command=_UNKNOWN_FLAG[bench.program.name])
    assert (ran.done.code, ran.run["status"]) == (1, "aborted"), ran
    assert ran.only["kind"] == "usage"


@pytest.mark.skipif(os.getuid() != 0, reason="an ordinary user is not refused")
@only("claude")
def test_real_claude_as_root_aborts_the_run_with_advice(bench: Bench) -> None:
    ran = bench.run("success", "-n", "5", env={"IS_SANDBOX": None})
    assert (ran.done.code, ran.run["status"]) == (1, "aborted"), ran
    assert ran.only["kind"] == "usage"
    assert "root" in ran.only["evidence"]
    assert "IS_SANDBOX=1" in ran.done.err
