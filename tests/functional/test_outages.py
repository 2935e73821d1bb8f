"""Outages of an agent's service through the installed command: rooda waits for their end."""

import json
import signal
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from support.children import Nursery, until
from support.ralphs import Ralphs, ralph_work
from support.screen import Screen
from support.transcripts import transcript
from support.voices import VOICES, Voice, line
from support.workspace import PROCEDURE, Workspace

pytestmark = pytest.mark.real

rare = pytest.mark.long
BY_NAME = {voice.name: voice for voice in VOICES}
CLAUDE = BY_NAME["claude"]
SUCCESS = "<promise>SUCCESS</promise>"
QUICK = ("--backoff", "0.05", "--max-backoff", "0.1")


class Bench:
    """A workspace with fake agents; each start of a fake agent plays its next act."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.bin = workspace.home / "bin"
        self.bin.mkdir()
        workspace.config(PROCEDURE)
        workspace.env["PATH"] = f"{self.bin}:{workspace.environ()['PATH']}"

    def plays(self, name: str, *acts: tuple[bytes, bytes, int], does: str = ":") -> None:
        """Install a fake agent. An act is its stdout, stderr and exit code.

        `does` is a shell command that each act except the last one runs first.
        """
        cases = []
        for number, (out, err, code) in enumerate(acts, 1):
            for stream, data in (("out", out), ("err", err)):
                (self.bin / f"{name}.{number}.{stream}").write_bytes(data)
            pattern = "*" if number == len(acts) else number
            act = f'cat "$0.{number}.out"; cat "$0.{number}.err" >&2'
            before = "" if number == len(acts) else f"{does}; "
            cases.append(f"{pattern}) {before}{act}; exit {code};;")
        lines = ['echo >> "$0.starts"', 'case $(($(wc -l < "$0.starts"))) in', *cases, "esac"]
        path = self.bin / name
        path.write_text("\n".join(["#!/bin/sh", *lines]) + "\n")
        path.chmod(0o755)

    def starts(self, name: str) -> int:
        return len((self.bin / f"{name}.starts").read_text())

    def shown(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.output_of("show", "--json"))
        return found

    def output_of(self, *args: str) -> str:
        done = self.workspace.rooda(*args)
        assert done.code == 0, done.err
        return done.out

    def waits(self) -> list[dict[str, Any]]:
        """Return the waits in the record, or none if the run is not recorded yet."""
        done = self.workspace.rooda("show", "--json")
        return (json.loads(done.out)["waits"] or []) if done.code == 0 else []

    def until_it_waits(self) -> dict[str, Any]:
        until(lambda: bool(self.waits()), "the run waits")
        return self.waits()[-1]


@pytest.fixture
def bench(workspace: Workspace) -> Bench:
    return Bench(workspace)


def printed(*events: Sequence[Any]) -> bytes:
    return b"".join(line(event) for several in events for event in several)


def good(voice: Voice) -> tuple[bytes, bytes, int]:
    """Return an act that does the work and prints SUCCESS."""
    words = f"All done.\n\n{SUCCESS}"
    return printed(voice.begins(), voice.says(words), voice.ends(words)), b"", 0


def bad(voice: Voice, words: str) -> tuple[bytes, bytes, int]:
    """Return an act that ends with an error of the service."""
    return printed(voice.begins(), voice.fails(words)), b"", 1


def again(name: str) -> tuple[bytes, bytes, int]:
    """Return an act that prints what the real CLI printed."""
    one = transcript(name)
    return one.stdout, one.stderr, one.exit_code


OVERLOADED = again("claude-overloaded-stream-retry1")
DONE = good(CLAUDE)
CRASHED = (b"", b"Segmentation fault\n", 139)


# -- no failure ------------------------------------------------------------------------------


@pytest.mark.long
def test_five_outages_count_neither_as_failures_nor_as_iterations(bench: Bench) -> None:
    bench.plays("claude", *[OVERLOADED] * 5, DONE)
    done = bench.workspace.rooda("work", "--ai-cmd-alias", "claude", "-n", "2", *QUICK)
    assert done.code == 0, done.err
    assert bench.starts("claude") == 6
    assert done.err.count("Iteration 1/2 starting") == 6
    assert "Iteration 2/2" not in done.err
    assert "failure" not in done.err
    assert "(1 iteration, total" in done.err

    run = bench.shown()
    (one,) = run["iterations"]
    assert (one["number"], one["status"], one["failures_after"]) == (1, "completed", 0)
    earlier = [(e["status"], e["kind"]) for e in one["earlier_attempts"]]
    assert earlier == [("interrupted", "overloaded")] * 5
    assert run["summary"]["failed_iterations"] == 0
    assert [(w["kind"], w["what"], w["outage"]) for w in run["waits"]] == [
        ("outage", "claude", "overloaded")
    ] * 5
    lasted = [wait["lasted"] for wait in run["waits"]]
    assert lasted == sorted(lasted)
    assert all(wait["waited"] is not None for wait in run["waits"])
    assert "outage of claude (overloaded): 5 waits of " in bench.output_of("show")
    why = bench.output_of("why", "1")
    assert "Failures in a row: 0 before, 0 after" in why
    assert "Attempts 1 to 5: interrupted (overloaded: API Error: 529" in why
    assert "Attempts 1 to 5  interrupted (overloaded)" in bench.output_of("show", "1")


def test_log_names_the_outage_and_its_duration(bench: Bench) -> None:
    offline = bad(CLAUDE, "API Error: Connection error.")
    bench.plays("claude", offline, offline, DONE)
    done = bench.workspace.rooda("work", "--ai-cmd-alias", "claude", *QUICK)
    assert done.code == 0
    stopped, waiting, _, again = [log for log in done.log if "starting" not in log][1:5]
    assert "outage of claude (offline): API Error: Connection error." in stopped
    assert waiting.startswith("WARN: Outage of claude (offline): waiting until ")
    assert "API Error" not in waiting, "the line above has it"
    assert "it has lasted " in again


def test_json_log_has_the_outage(bench: Bench) -> None:
    bench.plays("claude", OVERLOADED, DONE)
    flags = ("--log-format", "json", *QUICK)
    done = bench.workspace.rooda("work", "--ai-cmd-alias", "claude", *flags)
    logged = [json.loads(text) for text in done.err.splitlines()]
    (wait,) = [event for event in logged if event["event"] == "wait_started"]
    assert (wait["kind"], wait["what"], wait["outage"]) == ("outage", "claude", "overloaded")
    assert wait["level"] == "warn"
    assert wait["lasted"] >= 0
    first, last = [event for event in logged if event["event"] == "iteration_ended"]
    assert (first["verdict"], first["kind"], first["status"]) == (
        "limited",
        "overloaded",
        "interrupted",
    )
    assert (first["iteration"], last["iteration"], last["attempt"]) == (1, 1, 2)
    assert first["consecutive_failures"] == 0


WORDS = {
    "claude": (
        'API Error: 529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'
    ),
    "codex": "stream disconnected before completion: error sending request for url (https://x)",
    "gemini": '{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}',
    "opencode": "Unable to connect. Is the computer able to access the url?",
    "qwen": "Connection error. (cause: fetch failed)",
    "copilot": "Failed to get response from the AI model; retried 5 times Last error: 502",
    "cursor-agent": "ConnectError: [unavailable] read ECONNRESET",
}


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    ["claude", "codex", *(pytest.param(name, marks=rare) for name in list(WORDS)[2:])],
)
def test_rooda_waits_for_an_outage_of_each_agent(bench: Bench, name: str) -> None:
    voice = BY_NAME[name]
    bench.plays(name, bad(voice, WORDS[name]), good(voice))
    flags = ("-n", "1", "--failure-threshold", "1", *QUICK)
    done = bench.workspace.rooda("work", "--ai-cmd-alias", name, *flags)
    assert done.code == 0, done.err
    assert [wait["kind"] for wait in bench.shown()["waits"]] == ["outage"]


ON_STDERR = {
    "claude": "Error: getaddrinfo EAI_AGAIN api.anthropic.com",
    "codex": "Error: error sending request for url (https://x): dns error",
    "gemini": "Error when talking to Gemini API ApiError: TypeError: fetch failed",
    "qwen": "[API Error: 503 Service Unavailable]",
    "copilot": "Error: 502 Bad Gateway",
    "cursor-agent": "ConnectError: [unavailable] read ECONNRESET\n    at x.js:1",
    "kiro-cli": (
        "error: Kiro is having trouble responding right now:\n"
        "   0: Failed to send the request: dispatch failure\n"
        "   1: dns error: failed to lookup address information\n\n"
        "Location:\n   crates/chat-cli/src/cli/chat/mod.rs:1234\n\n"
        "Backtrace omitted. Run with RUST_BACKTRACE=1 environment variable to display it."
    ),
}


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        "kiro-cli",
        *(pytest.param(name, marks=rare) for name in ON_STDERR if name != "kiro-cli"),
    ],
)
def test_rooda_waits_for_an_outage_before_the_first_event(bench: Bench, name: str) -> None:
    fine = (f"{SUCCESS}\n".encode(), b"", 0) if name == "kiro-cli" else good(BY_NAME[name])
    bench.plays(name, (b"", ON_STDERR[name].encode() + b"\n", 1), fine)
    flags = ("-n", "1", "--failure-threshold", "1", *QUICK)
    done = bench.workspace.rooda("work", "--ai-cmd-alias", name, *flags)
    assert done.code == 0, done.err
    assert [wait["kind"] for wait in bench.shown()["waits"]] == ["outage"]


@pytest.mark.real(rows=1)
@rare
@pytest.mark.parametrize(
    "name",
    [
        "claude-overloaded",
        "claude-ratelimit-stream",
        "codex-overloaded",
        "codex-ratelimit-stream",
        "gemini-overloaded",
        "copilot-ratelimit-stream",
        "opencode-overloaded",
    ],
)
def test_rooda_waits_for_an_outage_in_a_recorded_transcript(bench: Bench, name: str) -> None:
    one = transcript(name)
    fine = (f"{SUCCESS}\n".encode(), b"", 0)
    bench.plays(one.cli, again(name), fine)
    flags = ("-n", "1", "--failure-threshold", "1", "--max-outage-wait", "1m", *QUICK)
    done = bench.workspace.work(one.command, *flags)
    assert done.code == 0, done.err
    (wait,) = bench.shown()["waits"]
    assert (wait["kind"], wait["outage"]) == ("outage", "overloaded")


@pytest.mark.long
def test_agent_that_only_mentions_an_outage_causes_no_wait(bench: Bench) -> None:
    text = "The log says: API Error: 503 Service Unavailable, ECONNREFUSED. I added a retry."
    answer = printed(CLAUDE.begins(), CLAUDE.tool_prints(text), CLAUDE.says(text))
    bench.plays("claude", (answer + printed(CLAUDE.ends(text)), b"", 0), (answer, b"", 1))
    flags = ("-n", "2", "--failure-threshold", "1", *QUICK)
    done = bench.workspace.rooda("work", "--ai-cmd-alias", "claude", *flags)
    run = bench.shown()
    assert (done.code, run["rule"], run["waits"]) == (1, "failure-threshold", None)
    assert [one["kind"] for one in run["iterations"]] == [None, "exit"]


@pytest.mark.long
def test_usage_limit_is_not_taken_for_an_outage(bench: Bench) -> None:
    limit = bad(CLAUDE, "Usage limit reached. Please try again in 1 second.")
    bench.plays("claude", limit, DONE)
    done = bench.workspace.rooda("work", "--ai-cmd-alias", "claude", "--max-outage-wait", "0")
    assert done.code == 0, done.err
    run = bench.shown()
    assert [wait["kind"] for wait in run["waits"]] == ["limit"]
    assert run["iterations"][0]["earlier_attempts"][0]["kind"] == "limit"


# -- max_outage_wait -------------------------------------------------------------------------


@pytest.mark.long
def test_outage_longer_than_max_outage_wait_aborts_the_run_with_a_reason(bench: Bench) -> None:
    bench.plays("claude", OVERLOADED)
    flags = ("--max-outage-wait", "0.3s", *QUICK)
    done = bench.workspace.rooda("work", "--ai-cmd-alias", "claude", *flags)
    assert done.code == 1
    assert bench.starts("claude") >= 2
    assert "ERROR: Aborting: outage of claude (overloaded)" in done.err
    assert "(0 iterations completed" in done.err
    run = bench.shown()
    assert (run["status"], run["rule"]) == ("aborted", "max-outage-wait")
    assert "max_outage_wait" in run["reason"]
    (one,) = run["iterations"]
    assert (one["status"], one["kind"], one["failures_after"]) == ("interrupted", "overloaded", 0)
    why = bench.output_of("why")
    assert "Rule: max-outage-wait." in why
    assert "0.3s" in why.partition("loop.max_outage_wait")[2].splitlines()[0]
    assert "max_outage_wait" in bench.output_of("history")

    bench.plays("claude", DONE)
    done = bench.workspace.rooda("work", "--ai-cmd-alias", "claude", "--resume", *flags)
    assert done.code == 0, done.err


@pytest.mark.long
def test_failure_ends_an_outage_and_the_next_outage_starts_its_own_count(bench: Bench) -> None:
    bench.plays("claude", OVERLOADED, OVERLOADED, CRASHED, OVERLOADED, OVERLOADED, DONE)
    done = bench.workspace.rooda("work", "--ai-cmd-alias", "claude", *QUICK)
    assert done.code == 0, done.err
    run = bench.shown()
    assert [one["status"] for one in run["iterations"]] == ["failed", "completed"]
    outages = [wait for wait in run["waits"] if wait["kind"] == "outage"]
    assert [wait["tries"] for wait in outages] == [1, 2, 1, 2]
    first, second = outages[1], outages[2]
    assert second["lasted"] < first["lasted"]


# -- how a wait ends -------------------------------------------------------------------------

FAR = ("--backoff", "1h", "--max-backoff", "1h")


@pytest.mark.long
@pytest.mark.parametrize(
    "number", [signal.SIGINT, signal.SIGTERM, pytest.param(signal.SIGHUP, marks=rare)]
)
def test_signal_ends_a_wait_for_an_outage_at_once(
    bench: Bench, nursery: Nursery, number: signal.Signals
) -> None:
    bench.plays("claude", OVERLOADED)
    running = nursery.start(bench.workspace, "work", "--ai-cmd-alias", "claude", *FAR)
    bench.until_it_waits()
    running.signal(number)
    done = running.finish(10)
    assert done.code == 130
    assert "Interrupted (0 iterations completed" in done.err


@pytest.mark.long
def test_rooda_stop_ends_a_wait_for_an_outage(bench: Bench, nursery: Nursery) -> None:
    bench.plays("claude", OVERLOADED)
    running = nursery.start(bench.workspace, "work", "--ai-cmd-alias", "claude", *FAR)
    wait = bench.until_it_waits()
    assert (wait["outage"], wait["waited"]) == ("overloaded", None)
    shown = bench.output_of("show")
    assert "the outage of claude (" in shown
    assert " until " in shown
    assert bench.workspace.rooda("stop").code == 0
    done = running.finish(10)
    assert (done.code, bench.starts("claude")) == (130, 1)


def test_max_duration_ends_a_wait_for_an_outage(bench: Bench) -> None:
    bench.plays("claude", OVERLOADED)
    flags = ("--max-duration", "1s", *FAR)
    done = bench.workspace.rooda("work", "--ai-cmd-alias", "claude", *flags)
    assert (done.code, bench.shown()["rule"]) == (1, "max-duration")


def test_live_line_shows_the_outage(bench: Bench, screen: Screen) -> None:
    bench.plays("claude", OVERLOADED)
    process = screen.start(bench.workspace, "work", "--ai-cmd-alias", "claude", *FAR)
    screen.wait_for(" for the outage of claude")
    screen.wait_for(" left · outage for 0m01s")
    process.send_signal(signal.SIGINT)
    assert screen.finish() == 130
    assert "· outage for" not in "\n".join(screen.lines)


@pytest.mark.long
def test_on_wait_hook_receives_the_outage(bench: Bench) -> None:
    bench.plays("claude", OVERLOADED, DONE)
    flags = ("--hooks-on-wait", 'cat > "$HOME/hook_input"', *QUICK)
    assert bench.workspace.rooda("work", "--ai-cmd-alias", "claude", *flags).code == 0
    received = json.loads((bench.workspace.home / "hook_input").read_text())
    assert (received["kind"], received["what"], received["outage"]) == (
        "outage",
        "claude",
        "overloaded",
    )


@rare
def test_outage_runs_no_on_failure_and_no_post_iteration_hook(bench: Bench) -> None:
    bench.plays("claude", OVERLOADED, OVERLOADED, DONE)
    hooks = {"on-failure": "failed", "post-iteration": "ended"}
    flags = [text for moment, file in hooks.items() for text in _hook(moment, file)]
    assert bench.workspace.rooda("work", "--ai-cmd-alias", "claude", *flags, *QUICK).code == 0
    assert not (bench.workspace.home / "failed").exists()
    assert (bench.workspace.home / "ended").read_text() == "x\n"


def _hook(moment: str, file: str) -> tuple[str, str]:
    return f"--hooks-{moment}", f'echo x >> "$HOME/{file}"'


# -- fallback agents, and ralph --------------------------------------------------------------


def test_fallback_takes_over_in_an_outage_without_a_wait(bench: Bench) -> None:
    bench.plays("claude", OVERLOADED)
    codex = BY_NAME["codex"]
    bench.plays("codex", good(codex))
    flags = ("--ai-cmd-fallbacks", "codex")
    done = bench.workspace.rooda("work", "--ai-cmd-alias", "claude", *flags)
    assert done.code == 0, done.err
    assert "WARN: codex takes over from claude" in done.err
    run = bench.shown()
    (one,) = run["iterations"]
    assert (one["agent"], run["waits"]) == ("codex", None)


@pytest.fixture
def ralph(workspace: Workspace) -> Iterator[Ralphs]:
    with ralph_work(workspace) as found:
        found.plan()
        found.env |= {"ROODA_LOOP_BACKOFF": "0.05", "ROODA_LOOP_MAX_BACKOFF": "0.1"}
        yield found


def plays(ralph: Ralphs, *bodies: str) -> None:
    """Install a `claude` for ralph. Its n-th start runs the n-th body."""
    link = ralph.tools / "claude"
    link.symlink_to(ralph.agents(*bodies).strip("'"))
    ralph.configure(AGENT_CLI=str(link), AGENT_ARGS="-p --output-format stream-json --verbose")


def kept(ralph: Ralphs, name: str, data: bytes) -> str:
    """Return a shell command that prints the data."""
    (ralph.tools / name).write_bytes(data)
    return f"cat '{ralph.tools / name}'"


@pytest.mark.long
def test_outage_does_not_count_as_an_attempt_of_ralph(ralph: Ralphs) -> None:
    """Files that the agent changed before the outage count as changes of the retried iteration."""
    fails = f"echo half > half.txt; {kept(ralph, 'overloaded', OVERLOADED[0])}; exit 1"
    complete = printed(CLAUDE.begins(), CLAUDE.ends("<promise>COMPLETE</promise>"))
    plays(ralph, *[fails] * 4, kept(ralph, "complete", complete))
    done = ralph.ralph("build", "1")
    assert done.code == 0, done.err
    assert ralph.starts == 5
    assert ralph.git("show", "--name-only", "--format=", "HEAD").split() == ["half.txt"]


@pytest.mark.long
def test_endless_outage_ends_ralph_with_exit_code_4(ralph: Ralphs) -> None:
    plays(ralph, f"{kept(ralph, 'overloaded', OVERLOADED[0])}; exit 1")
    ralph.env["ROODA_LOOP_MAX_OUTAGE_WAIT"] = "0.2"
    done = ralph.ralph("build", "1")
    assert done.code == 4, done.err
    assert ralph.starts >= 2
