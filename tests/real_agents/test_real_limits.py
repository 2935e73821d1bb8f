"""Real agent programs at their usage limit."""

import re

import pytest

from real_agents.bench import AT_ONCE, Bench, only
from real_agents.programs import PROGRAMS

pytestmark = pytest.mark.timeout(150)


@pytest.mark.parametrize("scenario,kind", [("limit", "limit"), ("rate", "overloaded")])
def test_limit_ends_a_run_without_waiting_and_is_not_a_failure(
    bench: Bench, scenario: str, kind: str
) -> None:
    ran = bench.run(scenario, "--no-wait-for-limits", "--max-outage-wait", "0", *AT_ONCE)
    assert (ran.done.code, ran.run["status"]) == (1, "aborted"), ran
    assert ran.only["kind"] == kind
    assert ran.run["summary"]["failed_iterations"] == 0
    assert re.search("limit|quota|429|requests", ran.only["evidence"], re.IGNORECASE)


# None of these messages contains the end of the limit. For codex this is a request limit, because
# its usage limit message contains the time.
@pytest.mark.parametrize(
    "bench, scenario",
    [
        ("claude", "limit-ends"),
        ("codex", "rate-ends"),
        ("gemini", "limit-ends"),
        ("opencode", "limit-ends"),
    ],
    indirect=["bench"],
)
def test_run_waits_for_a_limit_of_unknown_length_and_repeats_the_iteration(
    bench: Bench, scenario: str
) -> None:
    bench.api.trouble = 6
    ran = bench.run(scenario, "--limit-wait", "7s", "--backoff", "7s", *AT_ONCE)
    assert (ran.done.code, ran.run["status"]) == (0, "success"), ran
    assert [one["number"] for one in ran.iterations] == [1]
    assert ran.run["waits"], ran
    assert ran.run["summary"]["failed_iterations"] == 0


@only("claude")
def test_run_waits_until_a_subscription_limit_ends(bench: Bench) -> None:
    bench.api.trouble = 4
    token = {"ANTHROPIC_API_KEY": None, "CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-dummy"}
    ran = bench.run("limit-ends", *AT_ONCE, env=token)
    assert (ran.done.code, ran.run["status"]) == (0, "success"), ran
    assert ran.only["number"] == 1
    assert ran.run["waits"], ran


@only("codex")
def test_limit_longer_than_max_limit_wait_ends_the_run(bench: Bench) -> None:
    ran = bench.run("limit", "--max-limit-wait", "1s")
    assert (ran.done.code, ran.run["status"]) == (1, "aborted"), ran
    assert ran.only["kind"] == "limit"
    assert "try again at" in ran.only["evidence"]
    assert "max_limit_wait" in ran.run["reason"]


@only("claude")
def test_fallback_agent_runs_while_the_first_agent_has_a_limit(bench: Bench) -> None:
    other = PROGRAMS["codex"].prepare(bench.workspace.home, f"{bench.api.url}/success")
    ran = bench.run("limit", "--ai-cmd-fallbacks", "codex", env=other)
    assert (ran.done.code, ran.run["status"]) == (0, "success"), ran
    assert ran.only["agent"] == "codex"
    assert not ran.run["waits"]
