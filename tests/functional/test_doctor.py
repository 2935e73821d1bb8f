"""`rooda doctor` and its canary through the installed command, with fake CLIs on the PATH."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.children import until
from support.finished import Finished, Rooda
from support.gitrepo import git
from support.surface import listing
from support.workspace import ROODA, Workspace, alive, wait_for

# A fake claude that does what the canary asks, with real events; HABITS are its misbehaviors.
FAKE = """#!{python} -S
import json, os, re, signal, subprocess, sys, time
HABITS = {habits!r}

def say(**event):
    print(json.dumps(event), flush=True)

def assistant(*blocks):
    say(type="assistant", message={{"content": list(blocks)}})

if "--version" in sys.argv:
    print("2.1.197 (Claude Code)")
    sys.exit()
def note(name, pid):
    open(f"{{os.environ['PIDS']}}/{{name}}.pid", "w").write(str(pid))

note("agent", os.getpid())
if "refuses root" in HABITS:
    sys.exit("--dangerously-skip-permissions cannot be used with root/sudo privileges")
if "hangs" in HABITS:
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    note("child", child.pid)
    time.sleep(600)
prompt = sys.stdin.read(8192) if "cuts the prompt" in HABITS else sys.stdin.read()
say(type="system", subtype="init", model="claude-test-1", session_id="s1")
if "is not logged in" in HABITS:
    words = "Invalid API key \\u00b7 Please run /login"
    say(type="result", subtype="success", is_error=True, api_error_status=401, result=words)
    sys.exit(1)
if "says nothing" in HABITS:
    say(type="result", subtype="success", is_error=False, result="", usage={{}})
    sys.exit()
word = re.search(r"only content is this word:\\n +(\\S+)", prompt)[1]
command = re.search(r"exactly as it is:\\n +(.+)", prompt)[1]
tag = re.search(r"line of its own: (\\S+)", prompt)[1]
denials = []
if "may not write" in HABITS:
    denials.append({{"tool_name": "Write"}})
else:
    about = {{"file_path": "canary-written.txt"}}
    assistant({{"type": "tool_use", "name": "Write", "input": about}})
    word = "something else" if "writes nonsense" in HABITS else word
    open("canary-written.txt", "w").write(word + "\\n")
if "makes results up" in HABITS:
    open("canary-command.txt", "w").write("12345 16\\n")
elif "may not run" not in HABITS:
    assistant({{"type": "tool_use", "name": "Bash", "input": {{"command": command}}}})
    subprocess.run(["sh", "-c", command], check=True)
if "leaves a process" in HABITS:
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    note("child", child.pid)
if "is killed" in HABITS:
    os.kill(os.getpid(), signal.SIGKILL)
mark = prompt.split()[-1]
tag = tag.replace("SUCCESS", "FAILURE") if "gives up" in HABITS else tag
tag = "" if "does not signal" in HABITS else tag
answer = f"Done, and the mark is {{mark}}.\\n{{tag}}"
assistant({{"type": "text", "text": answer}})
usage = {{"input_tokens": 8000, "output_tokens": 200}}
say(type="result", subtype="success", is_error=False, result=answer, num_turns=3,
    total_cost_usd=0.0421, usage=usage, permission_denials=denials)
if "never exits" in HABITS:
    time.sleep(600)
sys.exit(3 if "exits badly" in HABITS else 0)
"""


@pytest.fixture
def temporary(workspace: Workspace, tmp_path: Path) -> Path:
    """A folder for temporary files, to check which files are left in it."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    workspace.env["TMPDIR"] = str(folder)
    return folder


@pytest.fixture
def pids(workspace: Workspace, tmp_path: Path) -> Iterator[Path]:
    """A folder in which fake CLIs store their pids; the fixture kills the processes afterwards."""
    folder = tmp_path / "pids"
    folder.mkdir()
    workspace.env["PIDS"] = str(folder)
    yield folder
    for pid in recorded_pids(folder):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def recorded_pids(folder: Path) -> list[int]:
    return [int(wait_for(file)) for file in folder.glob("*.pid")]


@pytest.fixture
def tools(workspace: Workspace, temporary: Path, pids: Path) -> Path:
    """The only folder on the PATH, so that no installed agent of this machine is used."""
    folder = workspace.home / "bin"
    folder.mkdir()
    for name in ("git", "sh", "env", "sleep", "cksum", "cat", "setsid", "true"):
        place = shutil.which(name)
        if place is not None:
            (folder / name).symlink_to(place)
    workspace.env |= {"PATH": str(folder), "IS_SANDBOX": "1"}
    assert temporary.is_dir()
    assert pids.is_dir()
    return folder


@pytest.fixture
def inside(
    workspace: Workspace,
    tools: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Rooda:
    """Run `rooda ARGS` in this process; for tests without interrupts."""
    assert tools.is_dir()
    for name, value in workspace.env.items():
        monkeypatch.setenv(name, value)
    return workspace.inside


def program(folder: Path, name: str, text: str, mode: int = 0o755) -> Path:
    path = folder / name
    path.write_text(text)
    path.chmod(mode)
    return path


def claude(folder: Path, *habits: str, name: str = "claude") -> Path:
    return program(folder, name, FAKE.format(python=sys.executable, habits=habits))


def shell(folder: Path, name: str, body: str) -> Path:
    return program(folder, name, f"#!/bin/sh\n{body}\n")


def marks(done: Finished) -> dict[str, str]:
    """Return the canary's findings that are not ok, by topic."""
    findings = json.loads(done.out)["findings"]
    return {one["topic"]: one["mark"] for one in findings if one["mark"] != "ok"}


def rows(done: Finished) -> dict[str, str]:
    """Return the marks of all agents in the table, by name."""
    found = re.findall(r"^(ok|absent|warning|problem) +(\S+)", done.out, re.MULTILINE)
    return {name: mark for mark, name in found}


# -- rooda doctor ----------------------------------------------------------------------------


@pytest.mark.long
def test_doctor_lists_every_agent_and_checks_the_machine(workspace: Workspace, tools: Path) -> None:
    claude(tools)
    shell(tools, "codex", "echo codex-cli 0.166.0")
    workspace.config("ai_cmd_aliases:\n  chatty: claude --verbose\n")
    before = listing(workspace.path, workspace.home)
    done = workspace.rooda("doctor", env={"OPENAI_API_KEY": "sk-1234567890", "CLAUDECODE": "1"})
    assert (done.code, done.err) == (0, "")
    assert rows(done) == {
        "claude": "ok",
        "codex": "ok",
        "chatty": "warning",
        **dict.fromkeys(
            ("gemini", "opencode", "qwen", "copilot", "cursor-agent", "kiro-cli"), "absent"
        ),
    }
    for words in (
        rf"^ok +claude +2\.1\.197 +claude events +{tools}/claude$",
        rf"^warning +chatty +2\.1\.197 +claude text +{tools}/claude$",
        r"^absent +gemini .*npm install -g @google/gemini-cli",
        r"^  warning +without -p it opens its interactive screen.*\n +Write `claude -p`$",
        r"^  ok +account: the account that `claude /login` chose$",
        r"^  ok +account: OPENAI_API_KEY is set: the API key",
        r"^  ok +not passed on, because it may refuse to run inside another agent: CLAUDECODE$",
        r"^  ok +git version ",
        r"^  ok +no run is active here$",
        r"^  ok +[\d.]+ .B of disk space left$",
        r"^  ok +no errors in rooda-config.yml$",
    ):
        assert re.search(words, done.out, re.MULTILINE), (words, done.out)
    assert "sk-1234567890" not in done.out
    assert listing(workspace.path, workspace.home) == before, "the doctor changes no files"


@pytest.mark.real
@pytest.mark.parametrize("config", ["", "loop: {failure_threshold: 2}"])
def test_doctor_without_any_agent_says_that_none_was_found_and_what_to_do(
    workspace: Workspace, inside: Rooda, config: str
) -> None:
    workspace.config(config)
    done = inside("doctor")
    assert (done.code, done.err) == (0, "")
    assert set(rows(done).values()) == {"absent"}
    summary = done.out.splitlines()[-1]
    assert summary.startswith("No agent was found: install one")
    for words in ("--ai-cmd", "`loop.ai_cmd`", "`rooda init`"):
        assert words in summary


@pytest.mark.real
def test_doctor_with_an_agent_that_no_setting_chooses_says_how_to_choose_it(
    tools: Path, inside: Rooda
) -> None:
    claude(tools)
    done = inside("doctor")
    assert done.code == 0
    summary = done.out.splitlines()[-1]
    assert re.match(r"No problems found\b.*\. No agent is chosen yet: ", summary), summary
    assert "`rooda PROCEDURE -a NAME`" in summary
    assert "`loop.ai_cmd_alias`" in summary


@pytest.mark.real
def test_doctor_counts_its_warnings_at_the_end(
    workspace: Workspace, tools: Path, inside: Rooda
) -> None:
    claude(tools)
    subprocess.run(["git", "init", "-q"], cwd=workspace.path, check=True)
    workspace.write(".git/HEAD", f"{'1' * 40}\n")  # a detached HEAD
    done = inside("doctor")
    warnings = len(re.findall("^  warning ", done.out, re.MULTILINE))
    assert warnings
    words = "1 warning" if warnings == 1 else f"{warnings} warnings"
    assert done.out.splitlines()[-1].startswith(f"No problems found, but {words}. "), done.out


@pytest.mark.real
def test_doctor_with_a_missing_chosen_agent_counts_a_problem(
    workspace: Workspace, inside: Rooda
) -> None:
    workspace.config("loop: {ai_cmd_alias: claude}")
    done = inside("doctor")
    assert done.code == 1
    assert done.out.splitlines()[-1] == "1 problem found: the lines above say what to do."
    assert "npm install -g @anthropic-ai/claude-code" in done.out


@pytest.mark.real
def test_doctor_json_reports_a_missing_chosen_agent_with_advice(
    workspace: Workspace, tools: Path, inside: Rooda
) -> None:
    assert inside("doctor").code == 0
    workspace.config("loop: {ai_cmd_alias: gemini}")
    done = inside("doctor", "--json")
    assert (done.code, done.err) == (1, "")
    found = json.loads(done.out)
    assert (found["schema_version"], found["ok"]) == (1, False)
    one = next(agent for agent in found["agents"] if agent["name"] == "gemini")
    assert one["chosen_by"] == ["loop.ai_cmd_alias (workspace: ./rooda-config.yml:1)"]
    assert [(f["topic"], f["mark"], f["advice"]) for f in one["findings"]] == [
        ("program", "problem", "npm install -g @google/gemini-cli")
    ]
    claude(tools)
    assert inside("doctor", "--ai-cmd", "claude -p").code == 0, "claude is installed"


@pytest.mark.long
def test_doctor_survives_programs_that_hang_flood_or_fail_on_version(
    workspace: Workspace, tools: Path, pids: Path
) -> None:
    shell(tools, "claude", 'echo $$ > "$PIDS/agent.pid"; exec sleep 600')
    shell(tools, "codex", "while :; do echo 0000000000000000000000000000000000000000; done")
    shell(tools, "opencode", "echo no such model >&2; exit 7")
    program(tools, "qwen", "#!/usr/bin/env node\n")
    program(tools, "copilot", "#!/bin/sh\n", mode=0o644)
    done = workspace.rooda("doctor", "--timeout", "1s")
    assert done.code == 0, "none of the agents is chosen"
    assert {name for name, mark in rows(done).items() if mark == "warning"} == {
        "claude",
        "codex",
        "opencode",
        "qwen",
        "copilot",
    }
    for words in (
        "no answer within 1s",
        "it does not stop printing",
        "exit code 7: no such model",
        "it is a node script, and node is missing",
        f"chmod +x {tools / 'copilot'}",
    ):
        assert words in done.out
    assert [alive(pid) for pid in recorded_pids(pids)] == [False]


SECRETS = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "OPENAI_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "COPILOT_GITHUB_TOKEN",
    "GH_TOKEN",
    "CURSOR_API_KEY",
    "KIRO_API_KEY",
    "OPENROUTER_API_KEY",
)


@pytest.mark.long
@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_doctor_never_prints_the_value_of_a_secret(
    workspace: Workspace,
    tools: Path,
    inside: Rooda,
    monkeypatch: pytest.MonkeyPatch,
    flags: tuple[str, ...],
) -> None:
    for name in ("claude", "codex", "gemini", "copilot", "cursor-agent", "kiro-cli", "qwen"):
        shell(tools, name, "env >&2; exit 1")
    shell(tools, "opencode", 'echo "$ANTHROPIC_API_KEY"')
    workspace.config(
        "loop: {ai_cmd: 'env MY_KEY=secret-c-value agent --api-key=secret-d-value'}\n"
        "ai_cmd_aliases: {mine: claude --token secret-e-value}\n"
    )
    for name in SECRETS:
        workspace.env[name] = f"secret-{name}-value"
        monkeypatch.setenv(name, workspace.env[name])
    done = inside("doctor", *flags)
    assert re.findall(r"secret-\S+", done.out + done.err) == []
    for name in SECRETS:
        assert name in done.out


@pytest.mark.real
def test_doctor_reports_the_rest_despite_a_broken_git_config_home_and_state_folder(
    workspace: Workspace, tools: Path
) -> None:
    claude(tools)
    (tools / "git").unlink()
    workspace.config("loop: [\n")
    (workspace.state.parent).mkdir(parents=True)
    workspace.state.write_text("in the way")
    done = workspace.rooda("doctor", env={"HOME": None})
    assert done.code == 1
    for words in (
        "ok      claude",
        "git is not installed",
        "HOME is not set",
        "which is not a folder",
        "the configuration has 1 error",
        "2 problems found",
    ):
        assert words in done.out


@pytest.mark.real
def test_doctor_reports_a_deleted_current_folder(workspace: Workspace, tools: Path) -> None:
    claude(tools)
    gone = workspace.path / "gone"
    gone.mkdir()
    (tools / "rmdir").symlink_to(shutil.which("rmdir") or "")
    shell(tools, "leave", f"cd {gone} && rmdir {gone} && exec {ROODA} doctor")
    done = subprocess.run(
        [str(tools / "leave")],
        env=workspace.environ(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"does not exist: {gone}" in done.stdout
    assert "2.1.197" in done.stdout


# -- the canary ------------------------------------------------------------------------------


@pytest.mark.long
def test_successful_canary_leaves_no_files_and_no_changes(
    workspace: Workspace, tools: Path, temporary: Path
) -> None:
    claude(tools)
    workspace.config(
        "loop:\n  verify: touch verified\n  hooks: {pre_iteration: touch hooked}\n"
        "  git: {commit: true}\n  ai_cmd_fallbacks: [codex]\n"
    )
    before = listing(workspace.path, workspace.home)
    done = workspace.rooda("doctor", "--canary", "claude", env={"CLAUDECODE": "1"})
    assert done.code == 0, done.out
    lines = [line.strip() for line in done.out.splitlines()]
    for words in (
        "ok       got the whole prompt: its last line came back",
        "ok       can write a file",
        "ok       can run a command",
        "ok       can signal that it is done",
        "ok       leaves no processes behind",
        "ok       model: claude-test-1",
        "ok       used 8,200 tokens, $0.04",
        "ok       account: the account that `claude /login` chose",
    ):
        assert words in lines
    assert re.search(r"exits on its own, \d+\.\ds after its result", done.out)
    assert "It costs what a short session costs" in done.err
    assert "claude -p --dangerously-skip-permissions" in done.err
    assert "[tool] Write canary-written.txt" in done.err
    assert list(temporary.iterdir()) == []
    assert listing(workspace.path, workspace.home) == before


GONE = {"prompt": "unknown", "file": "unknown", "command": "unknown", "signal": "unknown"}
BAD: dict[str, dict[str, str]] = {
    "cuts the prompt": {"prompt": "problem"},
    "may not write": {"file": "problem"},
}
MORE: dict[str, dict[str, str]] = {
    "may not run": {"command": "problem"},
    "is not logged in": {"failure": "problem", **GONE, "cost": "unknown"},
    "leaves a process": {"leftovers": "warning"},
    "refuses root": {"failure": "problem", **GONE, "model": "unknown", "cost": "unknown"},
    "writes nonsense": {"file": "problem"},
    "makes results up": {"command": "problem"},
    "does not signal": {"signal": "problem"},
    "gives up": {"signal": "problem"},
    "exits badly": {"exit": "warning"},
    "never exits": {"exit": "warning", "leftovers": "unknown"},
    "is killed": {
        "failure": "problem",
        "prompt": "unknown",
        "signal": "unknown",
        "exit": "problem",
        "cost": "unknown",
    },
    "says nothing": {"failure": "problem", **GONE, "cost": "unknown"},
    "hangs": {
        **GONE,
        "exit": "problem",
        "leftovers": "unknown",
        "model": "unknown",
        "cost": "unknown",
    },
}


@pytest.mark.long
@pytest.mark.parametrize(
    "habit",
    [*BAD, *(pytest.param(habit, marks=pytest.mark.long) for habit in MORE)],
)
def test_canary_detects_each_misbehavior(
    workspace: Workspace, tools: Path, temporary: Path, pids: Path, habit: str
) -> None:
    claude(tools, habit)
    workspace.config("loop: {result_grace: 0.5s, kill_grace: 0.5s}")
    done = workspace.rooda("doctor", "--canary", "claude", "--json", "--timeout", "3s")
    expected = (BAD | MORE)[habit]
    assert marks(done) == expected
    is_problem = "problem" in expected.values()
    assert done.code == (1 if is_problem else 0)
    kept = json.loads(done.out)["kept"]
    folders = [str(folder) for folder in temporary.iterdir()]
    assert folders == ([kept] if is_problem else [])
    if is_problem:
        assert list(Path(kept).glob("record/runs/*/1/prompt.md")), "the evidence is kept"
    assert not any(map(alive, recorded_pids(pids)))


def about(done: Finished, topic: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = json.loads(done.out)["findings"]
    return next(one for one in found if one["topic"] == topic)


@pytest.mark.long
def test_canary_failure_shows_kind_evidence_and_advice(
    workspace: Workspace, tools: Path, temporary: Path
) -> None:
    claude(tools, "is not logged in")
    workspace.config("loop: {failure_threshold: 0, env: {MY_API_KEY: key-with-value}}")
    command = "claude -p --output-format stream-json key-with-value"
    done = workspace.rooda("doctor", "--canary", "--ai-cmd", command)
    (kept,) = temporary.iterdir()
    assert done.code == 1
    assert re.search(
        r"^  problem +failed \(auth\): Invalid API key.*\n +Run `claude /login`",
        done.out,
        re.MULTILINE,
    )
    assert f"The folder is kept: {kept} " in done.out
    assert "1 error in the configuration" in done.err
    assert "key-with-value" not in done.out + done.err


@pytest.mark.long
def test_canary_names_a_denied_tool_and_the_flag_that_allows_it(
    workspace: Workspace, tools: Path
) -> None:
    claude(tools, "may not write")
    done = workspace.rooda(
        "doctor", "--json", "--canary", "--ai-cmd", "claude -p --output-format stream-json"
    )
    assert "was not allowed to use Write" in about(done, "file")["text"]
    assert "--dangerously-skip-permissions" in about(done, "file")["advice"]


@pytest.mark.long
def test_canary_names_and_stops_leftover_processes(
    workspace: Workspace, tools: Path, pids: Path
) -> None:
    claude(tools, "leaves a process")
    done = workspace.rooda("doctor", "--canary", "claude", "--json")
    assert json.loads(done.out)["left_behind"] == ["sleep 600"]
    assert f"sleep 600 ({(pids / 'child.pid').read_text()})" in about(done, "leftovers")["text"]
    assert [alive(pid) for pid in recorded_pids(pids)] == [False, False]


PLAIN = """
prompt=$(cat)
word=$(printf '%s\\n' "$prompt" | grep -A1 'only content' | tail -n 1)
command=$(printf '%s\\n' "$prompt" | grep -A1 'exactly as it is:$' | tail -n 1)
echo $word > canary-written.txt
sh -c "$command"
printf '%s\\n' "$prompt" | tail -n 1
echo '<promise>DONE</promise>'
"""


@pytest.mark.long
def test_canary_runs_an_unknown_agent_with_the_configured_command(
    workspace: Workspace, tools: Path, temporary: Path
) -> None:
    for name in ("grep", "tail"):
        (tools / name).symlink_to(shutil.which(name) or "")
    shell(workspace.path, "agent.sh", PLAIN)
    workspace.config("loop:\n  ai_cmd: ./agent.sh\n  signals: {success: DONE}\n")
    done = workspace.rooda("doctor", "--canary", "--json")
    assert marks(done) == {"model": "unknown", "cost": "unknown"}
    assert json.loads(done.out)["command"] == str(workspace.path / "agent.sh")
    assert (done.code, list(temporary.iterdir())) == (0, [])


@pytest.mark.long
def test_canary_uses_the_default_signal_if_the_config_turns_signals_off(
    workspace: Workspace, tools: Path
) -> None:
    claude(tools)
    workspace.config("loop: {preset: v1}")
    done = workspace.rooda("doctor", "--canary", "claude", "--json")
    assert (done.code, marks(done)) == (0, {})


@pytest.mark.long
def test_canary_reports_a_missing_program(workspace: Workspace, tools: Path) -> None:
    done = workspace.rooda("doctor", "--canary", "claude", "--json")
    assert tools.is_dir()
    assert done.code == 1
    assert "claude: No such file or directory" in about(done, "started")["text"]


@pytest.mark.long
def test_canary_runs_in_a_plain_folder_without_git(workspace: Workspace, tools: Path) -> None:
    claude(tools)
    (tools / "git").unlink()
    done = workspace.rooda("doctor", "--canary", "claude", "--json")
    assert (done.code, marks(done)) == (0, {"repository": "warning"})


@pytest.mark.parametrize(
    "args,words",
    [
        (("--canary", "klaude"), "Did you mean 'claude'?"),
        (("--canary",), "rooda doctor --canary claude"),
        (("--canary", "claude", "--ai-cmd", "x"), "not both"),
        (("--canary", "claude", "--timeout", "soon"), "--timeout: "),
        (("--timeout", "soon"), "--timeout: "),
        (("--canary", "--ai-cmd", "'"), "Check its quotes"),
    ],
)
def test_invalid_arguments_are_rejected_before_any_program_runs(
    inside: Rooda, tools: Path, pids: Path, args: tuple[str, ...], words: str
) -> None:
    claude(tools)
    done = inside("doctor", *args)
    assert (done.code, done.out) == (1, "")
    assert words in done.err
    assert recorded_pids(pids) == []


@pytest.mark.long
@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)]
)
def test_interrupt_stops_the_canary_and_its_process_tree(
    workspace: Workspace, tools: Path, temporary: Path, pids: Path, number: signal.Signals
) -> None:
    claude(tools, "hangs")
    running = workspace.start("doctor", "--canary", "claude")
    try:
        wait_for(pids / "child.pid")
        running.signal(number)
        done = running.finish()
    finally:
        running.process.kill()
    assert (done.code, done.out) == (130, "")
    assert done.err.startswith("This runs claude once, for real"), "announced before the start"
    assert done.err.splitlines()[-1] == "Interrupted"
    assert [alive(pid) for pid in recorded_pids(pids)] == [False, False]
    assert list(temporary.iterdir()) == []


@pytest.mark.real
def test_ctrl_c_during_a_version_query_leaves_no_processes(
    workspace: Workspace, tools: Path, pids: Path
) -> None:
    shell(tools, "claude", 'echo $$ > "$PIDS/agent.pid"; exec sleep 600')
    running = workspace.start("doctor")
    try:
        pid = int(wait_for(pids / "agent.pid"))
        running.signal(signal.SIGINT)
        done = running.finish()
    finally:
        running.process.kill()
    assert done.code == 130
    until(lambda: not alive(pid), "the end of the program asked for its version")


@pytest.mark.long
def test_the_fleet_is_checked_when_asked(workspace: Workspace) -> None:
    git(workspace.path, "init", "-q", "-b", "main")
    plain = json.loads(workspace.rooda("doctor", "--json").out)
    assert "fleet" not in plain
    found = json.loads(workspace.rooda("doctor", "--fleet", "--json").out)["fleet"]
    assert {one["topic"] for one in found} >= {"fleet-extra", "fleet-database", "fleet-remote"}
    shown = workspace.rooda("doctor", "--fleet").out
    assert "\nThe fleet:\n  ok " in shown
    both = workspace.rooda("doctor", "--fleet", "--canary")
    assert (both.code, "not for both" in both.err) == (1, True)
