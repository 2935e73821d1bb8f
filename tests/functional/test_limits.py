"""Waits for usage limits through the installed command, in real time."""

import json
import signal
from typing import Any

import pytest

from support.children import Nursery, until
from support.recorded import git, versioned
from support.screen import Screen
from support.workspace import PROCEDURE, Workspace, alive

pytestmark = pytest.mark.real

DONE = {"type": "result", "is_error": False, "result": "<promise>SUCCESS</promise>"}


def limited(words: str) -> dict[str, object]:
    return {"type": "result", "is_error": True, "api_error_status": 429, "result": words}


@pytest.fixture
def claude(workspace: Workspace) -> Workspace:
    """Return a workspace with its own `bin` folder on the PATH, where `plays` installs `claude`."""
    workspace.config(PROCEDURE)
    workspace.env["PATH"] = f"{workspace.path / 'bin'}:{workspace.environ()['PATH']}"
    return workspace


def prints(*events: dict[str, object]) -> str:
    """Return a shell command that prints the events."""
    return "printf '%s\\n' " + " ".join(f"'{json.dumps(event)}'" for event in events)


def plays(workspace: Workspace, *events: dict[str, object]) -> tuple[str, ...]:
    """Install a `claude` that prints one event at each start. Return the arguments of the run."""
    return does(workspace, *map(prints, events))


def does(workspace: Workspace, *bodies: str) -> tuple[str, ...]:
    """Install a `claude` that runs one body at each start. Return the arguments of the run."""
    script = workspace.agents(*bodies)
    link = workspace.path / "bin" / "claude"
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(script.strip("'"))
    return "work", "--ai-cmd-alias", "claude"


def test_wait_for_a_limit_is_logged_and_retries_the_same_iteration(
    claude: Workspace,
) -> None:
    words = "Usage limit reached. Please try again in 1 second."
    done = claude.rooda(*plays(claude, limited(words), DONE), "-n", "1")
    assert done.code == 0
    log = [line.partition(" (")[0] for line in done.log]
    assert log[1].startswith("Iteration 1/1 starting")
    assert "usage limit of claude" in log[2]
    assert log[3].startswith("WARN: Usage limit of claude: waiting until ")
    assert done.err.count(words) == 1, "the line below"
    assert "Wait over" not in done.err
    assert log[4].startswith("Iteration 1/1 starting")
    assert claude.starts == 2


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_ends_a_wait_at_once(
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


def test_record_of_a_waiting_run_names_the_reason(claude: Workspace, nursery: Nursery) -> None:
    running = nursery.start(claude, *plays(claude, limited("limit reached, resets in 5 hours")))
    _until_it_waits(claude)
    shown = json.loads(claude.rooda("show", "--json").out)
    assert (shown["status"], shown["iterations"][0]["kind"]) == ("running", "limit")
    assert shown["waits"][0]["kind"] == "limit"
    shown = claude.rooda("show").out
    assert "The run waits for the usage limit of claude until 20" in shown
    assert "Waited" in shown
    why = claude.rooda("why").out
    assert "The run waits for the usage limit of claude until 20" in why
    assert "Reason: " in why
    running.signal(signal.SIGINT)
    assert running.finish(10).code == 130


def test_live_line_counts_the_wait_down(claude: Workspace, screen: Screen) -> None:
    args = plays(claude, limited("limit reached, resets in 5 hours"))
    process = screen.start(claude, *args)
    screen.wait_for("Iteration 1/5 · waiting until ")
    screen.wait_for(" for the usage limit of claude · 5h00m0")
    screen.wait_for(" · 5h00m03s left · total 1s")
    process.send_signal(signal.SIGINT)
    assert screen.finish() == 130
    assert " left · " not in "\n".join(screen.lines)


# -- fallback agents, backoff, budgets -------------------------------------------------------


def shown(workspace: Workspace) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(workspace.rooda("show", "--json").out)
    return found


def test_fallback_agent_takes_over_during_a_limit(claude: Workspace) -> None:
    args = plays(claude, limited("limit reached, resets in 5 hours"))
    claude.agent("echo '<promise>SUCCESS</promise>'", name="bin/helper")
    done = claude.rooda(*args, "--ai-cmd-fallbacks", "helper")
    assert done.code == 0
    assert "WARN: helper takes over from claude" in done.err
    run = shown(claude)
    (one,) = run["iterations"]
    assert (one["agent"], one["status"]) == ("helper", "completed")
    assert [(e["agent"], e["kind"]) for e in one["earlier_attempts"]] == [("claude", "limit")]
    assert run["waits"] is None
    assert "helper for claude" in claude.rooda("show").out


def test_agent_that_fails_fast_is_retried_with_backoff(claude: Workspace) -> None:
    begins: dict[str, object] = {"type": "system", "subtype": "init"}
    script = claude.agents("exit 1", f"{prints(begins)}; exit 1", prints(DONE))
    (claude.path / "bin").mkdir()
    (claude.path / "bin" / "claude").symlink_to(script.strip("'"))
    args = ("work", "--ai-cmd-alias", "claude", "--backoff", "0.2", "--max-backoff", "0.3")
    done = claude.rooda(*args)
    assert done.code == 0
    waits = shown(claude)["waits"]
    assert [(one["kind"], one["what"], one["tries"]) for one in waits] == [
        ("backoff", "startup", 1),
        ("backoff", "exit", 2),
    ]
    assert [one["seconds"] for one in waits] == [0.2, 0.3]
    assert "Waiting before the next try (startup)" in done.err
    assert "Waiting before the next try (exit)" in done.err
    assert [one["status"] for one in shown(claude)["iterations"]] == [
        "failed",
        "failed",
        "completed",
    ]


def test_cost_is_logged_and_max_cost_ends_the_run(claude: Workspace) -> None:
    usage = {"input_tokens": 1000, "output_tokens": 24}
    good = DONE | {"result": "one task done", "total_cost_usd": 0.75, "usage": usage}
    done = claude.rooda(*plays(claude, good), "--max-cost", "1.5")
    assert done.code == 1
    assert " · $0.75 · one task done\n" in done.err
    assert "$1.50 of $1.50 spent (max_cost) (2 iterations completed" in done.err
    *_, used, last = done.err.splitlines()
    assert "  Used: 2,048 tokens, $1.50" in used
    assert last.endswith(" --max-cost 3")
    run = shown(claude)
    assert (run["rule"], run["cost"], run["tokens"]) == ("max-cost", 1.5, 2048)
    assert [one["cost"] for one in run["iterations"]] == [0.75, 0.75]
    assert "Rule: max-cost." in claude.rooda("why").out


def test_agent_that_reports_its_usage_is_stopped_when_the_budget_is_spent(
    claude: Workspace,
) -> None:
    tokens = {"input": 900, "output": 100}
    part = {"tokens": tokens, "cost": 0.9, "reason": "tool-calls"}
    step: dict[str, object] = {"type": "step_finish", "part": part}
    body = f"echo $$ > agent.pid; {prints(step)}; exec sleep 600"
    claude.agent(body, name="bin/opencode")
    for flag, kind in (("--max-cost", "0.5"), ("--max-tokens", "1000")):
        done = claude.rooda("work", "--ai-cmd-alias", "opencode", flag, kind)
        assert done.code == 1
        assert "Stopping AI CLI: a limit of the run is reached" in done.err
        (one,) = shown(claude)["iterations"]
        assert (one["kind"], one["tokens"]["total"], one["cost"]) == ("budget", 1000, 0.9)
        assert not alive(int((claude.path / "agent.pid").read_text()))


def test_budget_is_warned_about_if_the_agent_reports_no_cost(claude: Workspace) -> None:
    claude.agent("echo '<promise>SUCCESS</promise>'", name="bin/codex")
    done = claude.rooda("work", "--ai-cmd-alias", "codex", "--max-cost", "5")
    assert done.code == 0
    assert "codex does not tell what it costs, so max_cost can't end the run" in done.err


def test_on_wait_hook_receives_the_wait(claude: Workspace) -> None:
    args = plays(claude, limited("usage limit: try again in 1 second."), DONE)
    done = claude.rooda(
        *args, "--hooks-on-wait", "cat > hook_input; echo $ROODA_STATUS >> hook_input"
    )
    assert done.code == 0
    stdin, status = (claude.path / "hook_input").read_text().rstrip("\n").rsplit("\n", 1)
    assert (json.loads(stdin)["kind"], status) == ("limit", "waiting")


def _until_it_waits(workspace: Workspace) -> None:
    """Return as soon as the record has a wait."""

    def waits() -> bool:
        done = workspace.rooda("show", "--json")
        return done.code == 0 and bool(json.loads(done.out)["waits"])

    until(waits, "the run waits")


# What the agent prints at its first start, and flags: a wait of some seconds follows.
WAITS = {
    "limit": (limited("Usage limit reached. Please try again in 4 seconds."), ()),
    "outage": (limited("Overloaded") | {"api_error_status": 529}, ("--backoff", "5s")),
}


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("wait", WAITS)
def test_what_the_user_changes_during_a_wait_stays_out_of_the_next_commits(
    claude: Workspace, nursery: Nursery, wait: str
) -> None:
    versioned(claude)
    for name in ("README", "gone"):
        claude.write(name, "text\n")
    git(claude, "add", "-A")
    git(claude, "commit", "-qm", "all")
    event, flags = WAITS[wait]
    agent = does(
        claude,
        prints(event),
        prints({**DONE, "result": "Nothing to do."}),
        f"touch new; {prints({**DONE, 'result': 'It is new.'})}",
        f"touch own; git add own; git commit -qm own; touch last; {prints(DONE)}",
    )
    git(claude, "add", "-A")
    git(claude, "commit", "-qm", "the agent")
    running = nursery.start(claude, *agent, "-n", "9", "--commit", *flags)
    _until_it_waits(claude)
    claude.write("my notes", "mine\n")
    claude.write("staged", "mine\n")
    git(claude, "add", "staged")
    claude.write("README", "mine\n")
    (claude.path / "gone").unlink()
    done = running.finish()
    assert done.code == 0, done.err
    assert done.err.count("Changed while no agent worked") == 1
    assert 'files="README, gone, staged, my notes"' in done.err
    results = [one["result"] for one in shown(claude)["iterations"]]
    assert [one["files_created"] for one in results] == [[], ["new"], ["last", "own"]]
    assert [one["progress_detected"] for one in results] == [False, True, True]
    names = git(claude, "log", "-3", "--format=", "--name-only").split("\n")
    assert [name for name in names if name] == ["last", "own", "new"]


@pytest.mark.real
def test_what_changes_while_an_on_wait_hook_runs_stays_out_of_the_next_commits(
    claude: Workspace,
) -> None:
    versioned(claude)
    claude.write("README", "text\n")
    event, _ = WAITS["outage"]
    agent = does(claude, prints(event), f"touch new; {prints(DONE)}")
    git(claude, "add", "-A")
    git(claude, "commit", "-qm", "all")
    hook = ("--hooks-on-wait", "echo mine > notes; echo mine >> README")
    done = claude.rooda(*agent, "-n", "1", "--commit", "--backoff", "0.05s", *hook)
    assert done.code == 0, done.err
    assert 'files="README, notes"' in done.err
    assert git(claude, "log", "-1", "--format=", "--name-only").split() == ["new"]
