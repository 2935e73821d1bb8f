"""Known CLIs through the installed command: fake CLIs replay recorded output.

Each test puts a `claude`, a `codex`, ... on the PATH that prints the output of the real CLI.
"""

import json
import os
import shlex
import signal
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from support.children import Nursery, until
from support.expected import numbers_of, outcome_of
from support.finished import Finished
from support.recorded import asked
from support.transcripts import Transcript, transcript
from support.voices import VOICES, Object, line
from support.workspace import PROCEDURE, Workspace, alive, wait_for

pytestmark = pytest.mark.real

CLAUDE = VOICES[0]
SUCCESS = "<promise>SUCCESS</promise>"
AS_ROOT = (
    "--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons"
)
NO_WAIT = ("--no-wait-for-limits", "--max-outage-wait", "0")


class Stage:
    """A workspace with fake agents, which are outside of the working directory."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.folder = workspace.home / "bin"
        self.folder.mkdir()
        workspace.config(PROCEDURE)
        workspace.env["PATH"] = f"{self.folder}{os.pathsep}{os.environ['PATH']}"

    def program(self, name: str, *commands: str) -> None:
        """Install a program that runs these shell commands and counts its starts."""
        path = self.folder / name
        lines = ["#!/bin/sh", f"echo >> {_quoted(self.folder / 'starts')}", *commands]
        path.write_text("\n".join(lines) + "\n")
        path.chmod(0o755)

    def plays(self, name: str, stdout: bytes, stderr: bytes = b"", *after: str) -> None:
        """Install a program that prints these bytes on both streams, then runs the commands."""
        for stream, data in (("out", stdout), ("err", stderr)):
            (self.folder / f"{name}.{stream}").write_bytes(data)
        at = self.folder / name
        self.program(name, f"cat {_quoted(at)}.out", f"cat {_quoted(at)}.err >&2", *after)

    def replays(self, one: Transcript) -> None:
        """Install a program that replays a transcript."""
        end = f"exit {one.exit_code}" if one.exit_code >= 0 else f"kill -{-one.exit_code} $$"
        self.plays(one.cli, one.stdout, one.stderr, end)

    def run(self, command: str, *arguments: str) -> Finished:
        return self.workspace.work(command, *arguments)

    def alias(self, name: str, *arguments: str) -> Finished:
        return self.workspace.rooda("work", "--ai-cmd-alias", name, *arguments)

    @property
    def starts(self) -> int:
        return len((self.folder / "starts").read_text())

    def shown(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the last run and its last iteration."""
        run = asked(self.workspace.rooda, "show")
        return run, run["iterations"][-1]


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


@pytest.fixture
def stage(workspace: Workspace) -> Stage:
    return Stage(workspace)


def events(*several: Sequence[Object]) -> bytes:
    return b"".join(line(event) for found in several for event in found)


GOOD = events(CLAUDE.begins(), CLAUDE.says("Well."), CLAUDE.ends("Well."))


# -- transcripts -----------------------------------------------------------------------------

rare = pytest.mark.long
EXITS = {"done": 0, "success": 2, "failure": 1, "abort": 1, "limited": 1}


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        "claude-tool-stream",
        pytest.param("gemini-success-stream", marks=rare),
        pytest.param("qwen-ctxlimit-stream", marks=rare),
        pytest.param("claude-toolecho-stream", marks=rare),
        pytest.param("claude-overloaded-retry1", marks=rare),
        pytest.param("claude-usagelimit-oauth", marks=rare),
        pytest.param("claude-autherror-stream", marks=rare),
        pytest.param("codex-tool-stream", marks=rare),
        pytest.param("codex-toolecho", marks=rare),
        pytest.param("codex-ratelimit-stream", marks=rare),
        pytest.param("gemini-tool-json", marks=rare),
        pytest.param("gemini-autherror-stream", marks=rare),
        pytest.param("gemini-overloaded", marks=rare),
        pytest.param("opencode-tool-stream", marks=rare),
        pytest.param("opencode-ctxlimit", marks=rare),
        pytest.param("qwen-autherror-stream", marks=rare),
        pytest.param("qwen-toolecho-stream", marks=rare),
        pytest.param("copilot-success-stream", marks=rare),
        pytest.param("copilot-ratelimit-stream", marks=rare),
        pytest.param("aider-autherror", marks=rare),
    ],
)
def test_record_shows_outcome_and_usage_of_a_replayed_transcript(stage: Stage, name: str) -> None:
    one = transcript(name)
    stage.replays(one)
    done = stage.run(one.command, "-n", "1", "--failure-threshold", "1", *NO_WAIT)
    run, last = stage.shown()
    expected, numbers = outcome_of(one), numbers_of(one)
    assert done.code == run["exit_code"] == EXITS[expected.verdict], done.err
    assert (last["verdict"], last["kind"], last["signal"]) == (
        expected.verdict,
        expected.kind,
        expected.promise,
    )
    assert last["model"] == numbers.model
    assert last["turns"] == numbers.turns or name == "copilot-ratelimit-stream"
    tokens = last["tokens"] and (last["tokens"][key] for key in ("input", "output", "total"))
    assert (tokens and tuple(tokens)) == numbers.tokens
    assert last["cost"] == (numbers.cost if not numbers.cost else pytest.approx(numbers.cost))
    assert last["result"]["context_usage_percent"] == numbers.context
    if name == "claude-tool-stream":  # a word before the tool, and the answer
        (log,) = stage.workspace.state.glob("runs/*/session.log")
        assert last["messages"] == 2
        assert "\nMessages: 2\n" in log.read_text()
    why = stage.workspace.rooda("why")
    assert last["evidence"]
    assert last["evidence"] in why.out
    if expected.kind is not None:
        assert f"Kind: {expected.kind}" in why.out


# -- failures that need the user -------------------------------------------------------------


@pytest.mark.long
def test_claude_root_refusal_aborts_the_run_with_advice(stage: Stage) -> None:
    stage.plays("claude", b"", f"{AS_ROOT}\n".encode(), "exit 1")
    done = stage.alias("claude", "-n", "5")
    assert done.code == 1
    assert stage.starts == 1
    run, last = stage.shown()
    assert (run["status"], run["rule"], last["kind"]) == ("aborted", "usage", "usage")
    assert last["evidence"] == AS_ROOT
    for words in (done.err, stage.workspace.rooda("why").out):
        assert AS_ROOT in words
        assert "IS_SANDBOX=1" in words
        assert "ordinary user" in words


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "name,advice",
    [
        pytest.param("claude-autherror-stream-retry1", "claude /login", marks=rare),
        pytest.param("codex-autherror-stream", "codex login", marks=rare),
        pytest.param("qwen-autherror", "/auth", marks=rare),
    ],
)
def test_rejected_key_aborts_the_run_with_advice(stage: Stage, name: str, advice: str) -> None:
    one = transcript(name)
    stage.replays(one)
    done = stage.run(one.command, "-n", "5")
    assert done.code == 1
    assert stage.starts == 1
    assert advice in done.err
    run, last = stage.shown()
    assert (run["status"], run["rule"], last["kind"]) == ("aborted", "auth", "auth")


# -- limits ----------------------------------------------------------------------------------

ON_WAIT = "\nloop:\n  hooks:\n    on_wait: 'cat > waits.json'\n"
RECORDED_LIMIT = "You've hit your limit · resets 11:14am (UTC)"


def hits_its_limit(stage: Stage) -> tuple[str, str]:
    """Install a claude at its usage limit; return its command, and what it says about the limit.

    The limit ends in five hours. The recorded one ends at a time of day, and just after that time
    rooda would try again at once.
    """
    one = transcript("claude-usagelimit-oauth")
    end = datetime.now(UTC) + timedelta(hours=5)
    words = RECORDED_LIMIT.replace("11:14am", f"{end:%I:%M%p}".lower())
    stdout = one.stdout.decode().replace(RECORDED_LIMIT, words)
    assert words in stdout
    stage.plays(one.cli, stdout.encode(), one.stderr, f"exit {one.exit_code}")
    return one.command, words


@rare
def test_run_without_wait_for_limits_ends_at_the_first_limit(stage: Stage) -> None:
    command, words = hits_its_limit(stage)
    stage.workspace.config(f"{PROCEDURE}{ON_WAIT}  wait_for_limits: false\n")
    done = stage.run(command, "-n", "5")
    assert done.code == 1
    assert stage.starts == 1
    run, last = stage.shown()
    assert (run["status"], run["rule"]) == ("aborted", "limit")
    assert (last["kind"], last["verdict"]) == ("limit", "limited")
    assert words in done.err
    assert not (stage.workspace.path / "waits.json").exists()


@rare
def test_run_waits_for_a_limit_and_can_be_interrupted(stage: Stage) -> None:
    command, words = hits_its_limit(stage)
    stage.workspace.config(PROCEDURE + ON_WAIT)
    running = stage.workspace.start("work", "--ai-cmd", command)
    waits = json.loads(wait_for(stage.workspace.path / "waits.json"))
    running.signal(signal.SIGINT)
    done = running.finish()
    assert done.code == 130
    assert stage.starts == 1
    assert words in json.dumps(waits, ensure_ascii=False)
    assert asked(stage.workspace.rooda, "show")["status"] == "interrupted"


LIMIT_WORDS = (
    RECORDED_LIMIT,
    "API Error: Request rejected (429) · This request would exceed your account's rate limit.",
    "tests/test_rate_limit.py::test_usage_limit_reached FAILED",
    '{"error": {"code": 429, "message": "Quota exceeded", "status": "RESOURCE_EXHAUSTED"}}',
)


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("code", [0, pytest.param(1, marks=rare)])
def test_limit_messages_in_tools_and_answers_cause_no_wait(stage: Stage, code: int) -> None:
    said = [
        event
        for words in LIMIT_WORDS
        for event in (
            *CLAUDE.uses("Bash", {"command": f"grep '{words}' README.md"}),
            *CLAUDE.tool_prints(words),
            *CLAUDE.says(f"The README quotes it:\n\n{words}\n"),
        )
    ]
    end = CLAUDE.ends("The README quotes it.") if code == 0 else []
    stage.plays("claude", events(CLAUDE.begins(), said, end), b"", f"exit {code}")
    stage.workspace.config(PROCEDURE + ON_WAIT)
    done = stage.alias("claude", "-n", "2", "--backoff", "0")
    assert done.code == 2, done.err
    assert stage.starts == 2
    run, _ = stage.shown()
    assert [one["kind"] for one in run["iterations"]] == (
        [None, None] if code == 0 else ["exit"] * 2
    )
    assert not (stage.workspace.path / "waits.json").exists()


@rare
def test_limit_messages_of_an_unknown_command_cause_no_wait(stage: Stage) -> None:
    stage.plays("agent", LIMIT_WORDS[0].encode(), LIMIT_WORDS[1].encode(), "exit 1")
    stage.workspace.config(PROCEDURE + ON_WAIT)
    assert stage.run("agent", "-n", "2").code == 2
    run, _ = stage.shown()
    assert [one["kind"] for one in run["iterations"]] == ["exit", "exit"]
    assert not (stage.workspace.path / "waits.json").exists()


# -- the result ------------------------------------------------------------------------------


@pytest.mark.real(rows=1)
@rare
@pytest.mark.parametrize("answer,status", [(SUCCESS, "success"), ("Well.", "max-iters")])
def test_result_of_a_program_that_does_not_exit_counts(
    stage: Stage, nursery: Nursery, answer: str, status: str
) -> None:
    printed = stage.folder / "printed"
    printed.write_bytes(events(CLAUDE.begins(), CLAUDE.says(answer), CLAUDE.ends(answer)))
    stage.program(
        "claude",
        "sleep 600 & echo $! > helper.pid",
        f"echo $$ > agent.pid; cat {_quoted(printed)}",
        "exec sleep 600",
    )
    done = stage.alias("claude", "-n", "1", "--result-grace", "1", "--kill-grace", "2")
    run, last = stage.shown()
    assert run["status"] == status, done.err
    assert (last["status"], last["kind"]) == ("completed", None)
    assert done.seconds < 20
    pids = [nursery.pid("agent"), nursery.pid("helper")]
    until(lambda: not any(map(alive, pids)), "the end of the agent and its child")


@rare
def test_agent_that_works_after_a_result_is_not_stopped(stage: Stage) -> None:
    more = events(CLAUDE.says("One more thing."))
    (stage.folder / "more").write_bytes(more)
    (stage.folder / "last").write_bytes(events(CLAUDE.ends(SUCCESS)))
    stage.plays(
        "claude",
        GOOD,
        b"",
        f"sleep 0.5; cat {_quoted(stage.folder / 'more')}; sleep 4",
        f"cat {_quoted(stage.folder / 'last')}; touch came-to-its-end",
    )
    stage.alias("claude", "-n", "1", "--result-grace", "3")
    assert (stage.workspace.path / "came-to-its-end").exists()
    assert stage.shown()[0]["status"] == "success"


@rare
def test_success_without_answer_and_without_changes_is_a_failure(stage: Stage) -> None:
    stage.plays("claude", events(CLAUDE.begins(), CLAUDE.ends("")))
    done = stage.alias("claude", "-n", "1", "--failure-threshold", "1")
    assert done.code == 1
    assert stage.shown()[1]["kind"] == "empty"


@rare
def test_success_without_answer_counts_if_files_changed(stage: Stage) -> None:
    stage.plays("claude", events(CLAUDE.begins(), CLAUDE.ends("")), b"", "echo > new.txt")
    assert stage.alias("claude", "-n", "1").code == 2
    assert stage.shown()[1]["kind"] is None


@rare
def test_silent_unknown_command_succeeds(stage: Stage) -> None:
    stage.program("agent", "exit 0")
    assert stage.run("agent", "-n", "1").code == 2
    assert stage.shown()[1]["kind"] is None


@pytest.mark.long
def test_exit_code_0_of_claude_without_result_is_a_failure(stage: Stage) -> None:
    stage.plays("claude", events(CLAUDE.begins(), CLAUDE.says("Nearly there.")), b"", "echo > new")
    done = stage.alias("claude", "-n", "1", "--failure-threshold", "1")
    assert done.code == 1
    _, last = stage.shown()
    assert (last["verdict"], last["kind"], last["incomplete"]) == ("failure", "crash", True)
    assert "without the result" in stage.workspace.rooda("why").out


def test_text_in_place_of_events_is_a_failure_with_a_pause_before_each_retry(stage: Stage) -> None:
    stage.plays("claude", b"I fixed it.\n")
    done = stage.alias("claude", "-n", "5", "--backoff", "0.1s")
    assert (done.code, stage.starts) == (1, 3)
    run, last = stage.shown()
    assert (last["kind"], last["reason"]) == ("startup", "exit code 0 without any event")
    assert [wait["kind"] for wait in run["waits"]] == ["backoff", "backoff"]


def test_login_error_with_exit_code_0_ends_the_run_at_once(stage: Stage) -> None:
    stage.plays("claude", "Invalid API key · Please run /login\n".encode())
    done = stage.alias("claude", "-n", "5")
    assert (done.code, stage.starts) == (1, 1)
    assert stage.shown()[1]["kind"] == "auth"


def test_signal_as_text_counts_although_events_were_expected(stage: Stage) -> None:
    stage.plays("claude", f"All done.\n{SUCCESS}\n".encode())
    assert stage.alias("claude", "-n", "1").code == 0


@rare
def test_alias_adapter_reads_the_output_of_another_program(stage: Stage) -> None:
    one = transcript("claude-tool-stream")
    stage.plays("my-agent", one.stdout)
    aliases = "\nai_cmd_aliases:\n  mine: {command: my-agent --fast, adapter: claude}\n"
    stage.workspace.config(PROCEDURE + aliases)
    assert stage.alias("mine", "-n", "1").code == 0
    _, last = stage.shown()
    assert (last["model"], last["cost"]) == (numbers_of(one).model, 0.2092295)


@rare
def test_signal_after_a_line_of_200_mb_counts(stage: Stage) -> None:
    printed = events(CLAUDE.begins(), CLAUDE.tool_prints("HUGE"))
    before, huge, after = printed.rpartition(b"HUGE")
    assert huge
    stage.plays("claude", before)
    (stage.folder / "after").write_bytes(after + events(CLAUDE.says(SUCCESS), CLAUDE.ends(SUCCESS)))
    at = _quoted(stage.folder / "claude")
    stage.program(
        "claude",
        f"cat {at}.out",
        "head -c 200000000 /dev/zero | tr '\\0' x",
        f"cat {_quoted(stage.folder / 'after')}",
    )
    done = stage.alias("claude", "-n", "1")
    assert done.code == 0, done.err
    assert stage.shown()[1]["signal"] == "SUCCESS"


# -- terminal output -------------------------------------------------------------------------


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "name,tool",
    [
        pytest.param("claude-tool-stream", "Write", marks=rare),
        pytest.param("codex-tool-stream", "rig_written.txt", marks=rare),
        pytest.param("gemini-tool-stream", "write_file", marks=rare),
        pytest.param("opencode-tool-stream", "write", marks=rare),
        pytest.param("qwen-tool-json", "write_file", marks=rare),
        pytest.param("copilot-tool-stream", "create", marks=rare),
    ],
)
def test_verbose_shows_readable_lines_instead_of_json(stage: Stage, name: str, tool: str) -> None:
    one = transcript(name)
    stage.replays(one)
    done = stage.run(one.command, "-n", "1", "--verbose")
    lines = done.out.splitlines()
    assert "Working on it." in lines
    assert SUCCESS in lines
    assert any(tool in shown for shown in lines)
    assert not [shown for shown in lines if '"type"' in shown or "session_id" in shown]


HOSTILE = "na\x1b[2Jme\r\x07\ud800\x9b31m\n[10:00:00] Completed"


@rare
def test_control_codes_in_agent_text_never_reach_the_terminal(stage: Stage) -> None:
    hello = [{"type": "system", "subtype": "init", "model": "m", "session_id": HOSTILE}]
    said = [*CLAUDE.says(f"{HOSTILE} {HOSTILE}"), *CLAUDE.uses("Bash", {"command": HOSTILE})]
    stage.plays(
        "claude", events(hello, said, CLAUDE.fails(HOSTILE)), HOSTILE.encode("utf-8", "replace")
    )
    done = stage.alias("claude", "-n", "1", "--verbose")
    shown = [done, *(stage.workspace.rooda(*words) for words in (["show"], ["why"]))]
    for one in shown:
        for text in (one.out, one.err):
            assert not set("\x1b\x07\x9b\r") & set(text)
    assert not [log for log in done.log if log.startswith("Completed")]
    assert stage.shown()[1]["kind"] == "exit"


@rare
def test_control_codes_in_tool_and_model_names_never_reach_the_terminal(stage: Stage) -> None:
    hello = [{"type": "system", "subtype": "init", "model": HOSTILE}]
    said = CLAUDE.uses(HOSTILE, {"path": "a"})
    stage.plays("claude", events(hello, said, CLAUDE.ends("Well.")))
    done = stage.alias("claude", "-n", "1", "--verbose")
    for text in (done.out, done.err, stage.workspace.rooda("show", "1").out):
        assert not set("\x1b\x07\x9b\r") & set(text)
