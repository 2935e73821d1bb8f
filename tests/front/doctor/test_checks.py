"""The checks of the doctor: decision tables, and checks of real programs, repositories, locks."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from rooda.base.problems import BUILTIN
from rooda.front.doctor.agent_checks import AgentExamination, check_command_line
from rooda.front.doctor.canary_trial import CanaryTask, ScratchRepository, TrialResult, cksum
from rooda.front.doctor.canary_verdict import Evidence, Failure, gather, judge
from rooda.front.doctor.doctor_context import DoctorOptions
from rooda.front.doctor.examine import Examination, examine
from rooda.front.doctor.findings import Finding, Mark, shown_command, without_secrets, worst
from rooda.front.doctor.machine_checks import check_free_space, check_git, check_lock
from rooda.front.doctor.programs import (
    VersionQuestion,
    ask_version,
    ask_versions,
    find_program,
    interpreter_trouble,
)
from rooda.loop.stages.promises import Promises
from rooda.plan.command import split
from rooda.plan.layers import Alias
from rooda.plan.locate import read_builtin
from rooda.plan.world import World
from rooda.world.agents.agent_program import own_words, program_of
from rooda.world.agents.agent_program import variables as variables_of
from rooda.world.agents.agent_report import Tokens, Usage
from rooda.world.agents.facts import CommandLine, account_of, dropped
from rooda.world.agents.failure_kinds import FailureKind
from rooda.world.agents.registry import ADAPTERS, KNOWN
from rooda.world.process.events import NamedProcess
from rooda.world.process.exits import (
    Exited,
    HungAfterResult,
    Interrupted,
    Lost,
    NotStarted,
    Signalled,
    TimedOut,
)
from rooda.world.process.leftovers import start_time
from rooda.world.state.folder import make_state_folder
from rooda.world.state.lock import Lock
from rooda.world.state.lock_note import LockNote, here
from rooda.world.tools import Tools
from support.gitrepo import git
from support.states import own_state_home
from support.tables import each_row
from support.workspace import Workspace, alive, wait_for


def split_command(command: str) -> tuple[str, ...]:
    return split(command, BUILTIN, "ai_cmd", [])


def flag_findings(
    command: str, environ: Mapping[str, str] | None = None, *, root: bool = False
) -> list[Finding]:
    return list(
        check_command_line(CommandLine(own_words(split_command(command)), environ or {}, root))
    )


def not_ok(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(one.topic, str(one.mark)) for one in findings if one.mark is not Mark.OK]


# -- command lines ---------------------------------------------------------------------------


@each_row("name", KNOWN)
def test_every_known_cli_has_permissions_and_flag_rules(name: str) -> None:
    assert KNOWN[name].permissions.all_tools
    assert KNOWN[name].permissions.otherwise
    assert KNOWN[name].flag_rules


@each_row("name", read_builtin().aliases)
def test_built_in_aliases_have_no_findings_other_than_ok(name: str) -> None:
    alias: Alias = read_builtin().aliases[name].value
    findings = flag_findings(alias.command)
    assert not_ok(findings) == []
    assert {one.topic for one in findings} == {"prompt", "permissions"}


WARNED = {
    "claude --dangerously-skip-permissions": ("prompt", "claude -p"),
    "claude -p": ("permissions", "--dangerously-skip-permissions"),
    "claude -p --permission-mode plan": ("permissions", "--dangerously-skip-permissions"),
    "claude -p --dangerously-skip-permissions --output-format stream-json": (
        "output",
        "--verbose",
    ),
    "codex --yolo --json": ("prompt", "codex exec"),
    "codex exec --json -": ("permissions", "--dangerously-bypass-approvals-and-sandbox"),
    "codex exec -s read-only -": ("permissions", "--dangerously-bypass-approvals-and-sandbox"),
    "codex exec --yolo -m gpt-5 'do the work'": ("prompt", "`-`"),
    "gemini --skip-trust -o json": ("permissions", "--yolo"),
    "gemini --yolo": ("permissions", "--skip-trust"),
    "gemini --yolo --skip-trust -i hello": ("prompt", "Leave -i out"),
    "gemini --yolo --skip-trust -p 'more words'": ("prompt", "Leave -p out"),
    "qwen --yolo --prompt-interactive x": ("prompt", "Leave --prompt-interactive out"),
    "qwen -o json": ("permissions", "--yolo"),
    "opencode --auto": ("prompt", "opencode run"),
    "opencode run": ("permissions", "--auto"),
    "opencode run --auto -i": ("prompt", "Leave -i out"),
    "copilot": ("permissions", "--allow-all"),
    "copilot --allow-all -p 'do it'": ("prompt", "Leave -p out"),
    "cursor-agent -f": ("prompt", "cursor-agent -p"),
    "cursor-agent -p": ("permissions", "-f"),
    "kiro-cli chat --trust-all-tools": ("prompt", "kiro-cli chat --no-interactive"),
    "kiro-cli --no-interactive -a": ("prompt", "kiro-cli chat --no-interactive"),
    "kiro-cli chat --no-interactive": ("permissions", "--trust-all-tools"),
    "timeout 1h claude --dangerously-skip-permissions": ("prompt", "claude -p"),
}


@each_row("command", WARNED)
def test_command_that_cannot_run_unattended_gets_a_warning_with_the_missing_flag(
    command: str,
) -> None:
    topic, advice = WARNED[command]
    (one,) = [one for one in flag_findings(command) if one.mark is not Mark.OK]
    assert one.topic == topic
    assert advice in one.advice


@each_row(
    "command",
    [
        "claude --print --permission-mode=bypassPermissions",
        "claude -p --allowedTools 'Bash Edit'",
        "codex exec --full-auto",
        "codex exec --sandbox danger-full-access --json",
        "codex -c 'sandbox_mode=\"workspace-write\"' exec -m gpt-5 -C /tmp -o last.txt",
        "gemini -y --skip-trust -p ''",
        "gemini --approval-mode=auto_edit --skip-trust",
        "cursor-agent -pf --output-format stream-json",
        "copilot --allow-tool shell",
        "env -i IS_SANDBOX=1 gemini --yolo --skip-trust",
        "my-own-agent",
    ],
)
def test_command_that_can_run_unattended_gets_no_warning(command: str) -> None:
    assert not_ok(flag_findings(command)) == []


CLAUDE = "claude -p --dangerously-skip-permissions"


@each_row(
    "command,environ,root,refused",
    [
        (CLAUDE, {}, True, True),
        (CLAUDE, {}, False, False),
        (CLAUDE, {"IS_SANDBOX": "1"}, True, False),
        (CLAUDE, {"IS_SANDBOX": ""}, True, True),
        (CLAUDE, {"IS_SANDBOX": "yes"}, True, True),
        (CLAUDE, {"CLAUDE_CODE_BUBBLEWRAP": "0"}, True, True),
        (CLAUDE, {"CLAUDE_CODE_BUBBLEWRAP": "1"}, True, False),
        ("claude -p --permission-mode bypassPermissions", {}, True, True),
        ("claude -p --allowedTools Bash", {}, True, False),
        ("codex exec --yolo", {}, True, False),
    ],
)
def test_claude_without_permission_checks_is_a_problem_for_root_outside_a_sandbox(
    command: str, environ: dict[str, str], *, root: bool, refused: bool
) -> None:
    topics = [
        one.topic for one in flag_findings(command, environ, root=root) if one.mark is Mark.PROBLEM
    ]
    assert topics == (["root"] if refused else [])


def test_gemini_accepts_the_trust_variable_instead_of_the_flag() -> None:
    assert not_ok(flag_findings("gemini --yolo", {"GEMINI_CLI_TRUST_WORKSPACE": "true"})) == []


@each_row(
    "command,own,variables",
    [
        ("claude -p", ("claude", "-p"), {}),
        ("env A=b timeout 1h /opt/claude -p", ("/opt/claude", "-p"), {"A": "b"}),
        ("codex exec -c model=x", ("codex", "exec", "-c", "model=x"), {}),
        ("env -i", ("env", "-i"), {}),
        ("env -u A B=c nice -n 5 claude", ("claude",), {"A": None, "B": "c"}),
        ("env --unset=A claude -u B", ("claude", "-u", "B"), {"A": None}),
        ("env -u claude claude -p", ("claude", "-p"), {"claude": None}),
    ],
)
def test_launcher_words_and_variables_are_split_from_the_agent_command(
    command: str, own: tuple[str, ...], variables: dict[str, str | None]
) -> None:
    assert own_words(split_command(command)) == own
    assert variables_of(split_command(command)) == variables


# -- accounts and secrets --------------------------------------------------------------------


@each_row("name", ADAPTERS)
def test_account_names_its_variables_and_never_their_values(name: str) -> None:
    facts = ADAPTERS[name].facts
    environ = {variable: f"sk-{variable}-value" for variable in (*facts.payers, *facts.nesting)}
    account = account_of(facts, environ)
    assert [variable for variable, _ in account.variables] == list(facts.payers)
    assert "-value" not in str(account.to_json())
    assert account_of(facts, {}).text == facts.otherwise
    assert dropped(facts, environ) == facts.nesting
    assert dropped(facts, environ, facts.nesting) == (), "a variable set in the config is kept"


@each_row("value", ["", "0", "false", "no"])
def test_variable_with_a_false_value_selects_no_account(value: str) -> None:
    account = account_of(KNOWN["claude"].facts, {"CLAUDE_CODE_USE_BEDROCK": value})
    assert account.variables == ()


@each_row(
    "command,shown",
    [
        ("claude -p --model opus", "claude -p --model opus"),
        ("env ANTHROPIC_API_KEY=sk-1 claude", "env ANTHROPIC_API_KEY=... claude"),
        ("agent --api-key sk-1 --fast", "agent --api-key ... --fast"),
        ("agent --token=sk-1 'two words'", "agent --token=... 'two words'"),
        ("agent -H 'Authorization: Bearer k1'", "agent -H 'Authorization: ...'"),
        ("agent 'http://h/?api_key=k1'", "agent 'http://h/?api_key=..."),
        ("MODE=1 agent -k zq7Wm2Xp", "MODE=... agent -k ..."),
        ("agent 'a\x1b[31mb'", "agent 'ab'"),
    ],
)
def test_shown_command_hides_secrets(command: str, shown: str) -> None:
    assert shown_command(split_command(command)) == shown


def test_without_secrets_replaces_the_values_of_secret_variables() -> None:
    environ = {
        "MY_API_KEY": "sk-abcdef",
        "MY_TOKEN": "sk-abcdef-longer",
        "MAX_TOKENS": "10",
        "GIT_AUTHOR_NAME": "/usr/bin",
    }
    text = "key sk-abcdef-longer and sk-abcdef, 10 on /usr/bin\n\x1b[1mnext"
    shown = "key (masked) and (masked), 10 on /usr/bin next"
    assert without_secrets(text, environ) == shown


# -- programs --------------------------------------------------------------------------------


@pytest.fixture
def tools(workspace: Workspace) -> Path:
    folder = workspace.home / "bin"
    folder.mkdir()
    return folder


def script(folder: Path, name: str, body: str, mode: int = 0o755) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(mode)
    return path


def test_find_program_reports_why_a_file_of_that_name_cannot_run(tools: Path) -> None:
    script(tools, "good", "exit 0")
    script(tools, "plain", "exit 0", mode=0o644)
    (tools / "dangling").symlink_to("nowhere")
    (tools / "folder").mkdir()
    environ = {"PATH": str(tools)}
    assert find_program("good", tools, environ).path == str(tools / "good")
    assert find_program("./good", tools, {"PATH": ""}).path == str(tools / "good")
    assert find_program("nothing", tools, environ).path is None
    places = {name: find_program(name, tools, environ) for name in ("plain", "dangling", "folder")}
    assert {name: place.path for name, place in places.items()} == dict.fromkeys(places)
    assert places["plain"].advice == f"chmod +x {tools / 'plain'}"
    assert "link to a missing file" in places["dangling"].trouble
    assert "is a folder" in places["folder"].trouble
    assert find_program("./plain", tools, environ).advice == f"chmod +x {tools / './plain'}"


@pytest.mark.parametrize(
    "line,missing",
    [
        ("#!/usr/bin/env node", "node"),
        ("#!/usr/bin/env -S node --no-warnings", "node"),
        ("#! /no/such/python", "/no/such/python"),
        ("#!/bin/sh", None),
        ("\x7fELF", None),
    ],
)
def test_missing_interpreter_of_a_script_is_reported(
    tools: Path, line: str, missing: str | None
) -> None:
    path = tools / "claude"
    path.write_text(f"{line}\n")
    trouble = interpreter_trouble(str(path), {"PATH": str(tools)})
    if missing is None:
        assert trouble is None
    else:
        assert trouble is not None
        assert trouble.mark is Mark.PROBLEM
        assert f"{missing} is missing" in trouble.text
        assert ("Node.js" in trouble.advice) == (missing == "node")


def question(path: Path) -> VersionQuestion:
    return VersionQuestion(str(path), {"PATH": os.environ["PATH"]})


@pytest.mark.real
@pytest.mark.parametrize(
    "body,version",
    [
        ("echo '2.1.197 (Claude Code)'", "2.1.197"),
        ("echo WARNING: hm >&2; echo codex-cli 0.166.0", "0.166.0"),
        ("echo v1.2.3-beta.1+x >&2", "1.2.3-beta.1+x"),
        ("printf '\\033[1mnewest\\033[0m\\n'", "newest"),
    ],
)
def test_ask_version_finds_the_version_in_the_output(tools: Path, body: str, version: str) -> None:
    assert ask_version(question(script(tools, "agent", body)), tools).text == version


@pytest.mark.real
@pytest.mark.parametrize(
    "body,trouble",
    [
        ("exit 0", "it printed nothing"),
        ("echo no node here >&2; exit 3", "exit code 3: no node here"),
        ("kill -SEGV $$", "killed by SIGSEGV"),
        ("while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done", "not stop printing"),
    ],
)
def test_ask_version_explains_why_there_is_no_version(tools: Path, body: str, trouble: str) -> None:
    version = ask_version(question(script(tools, "agent", body)), tools)
    assert version.text is None
    assert trouble in version.trouble
    assert version.can_start


@pytest.mark.real
def test_ask_version_reports_a_program_that_the_os_cannot_start(tools: Path) -> None:
    path = tools / "agent"
    path.write_text("no program at all\n")
    path.chmod(0o755)
    version = ask_version(question(path), tools)
    assert (version.text, version.can_start) == (None, False)


@pytest.mark.real
def test_hanging_programs_are_asked_in_parallel_and_leave_no_processes(tools: Path) -> None:
    body = "echo $$ > $0.pid; setsid sleep 600 & echo $! > $0.child; sleep 600"
    paths = [script(tools, name, body) for name in ("one", "two", "three")]
    paths.append(script(tools, "good", "setsid sleep 600 & echo $! > $0.child; echo 1.2"))
    answers = ask_versions(map(question, paths), tools, limit=0.5)
    assert [answer.text for answer in answers.values()] == [None, None, None, "1.2"]
    assert answers[str(paths[0])].trouble == "no answer within 0.5s"
    for file in (*tools.glob("*.pid"), *tools.glob("*.child")):
        assert not alive(int(wait_for(file)))


# -- chosen agents ---------------------------------------------------------------------------


def search_path(workspace: Workspace) -> str:
    """Return a PATH without installed agents: git, shell tools, and the test's own programs."""
    system = workspace.home / "system"
    system.mkdir(exist_ok=True)
    for name in ("git", "sh", "env", "sleep", "setsid"):
        place = shutil.which(name)
        if place is not None and not (system / name).exists():
            (system / name).symlink_to(place)
    return f"{workspace.home / 'bin'}:{system}"


def examine_workspace(
    workspace: Workspace, env: Mapping[str, str] | None = None, **options: str
) -> Examination:
    """Run the checks in the workspace, with its own programs on the PATH."""
    own = {"PATH": search_path(workspace), "HOME": str(workspace.home)}
    environ = {**own, **own_state_home(), **(env or {})}
    flags = {"ai_cmd": ("--ai-cmd", options["ai_cmd"])} if "ai_cmd" in options else {}
    return examine(World(workspace.path, environ), DoctorOptions(flags=flags))


def agents(found: Examination) -> dict[str, AgentExamination]:
    return {agent.name: agent for agent in found.agents}


PROCEDURES = """
procedures:
  work:
    observe: [{content: look}]
    orient: [{content: think}]
    decide: [{content: choose}]
    act: [{content: "say <promise>SUCCESS</promise>"}]
"""


@pytest.mark.real
def test_missing_agents_that_are_not_chosen_are_no_problem(workspace: Workspace) -> None:
    found = examine_workspace(workspace)
    assert {agent.mark for agent in found.agents} == {Mark.ABSENT}
    assert found.problems == 0
    assert "npm install -g @openai/codex" in str(agents(found)["codex"].findings)


@pytest.mark.real
@pytest.mark.parametrize(
    "config,env,name",
    [
        ("loop: {ai_cmd_alias: codex}", {}, "codex"),
        ("loop: {ai_cmd: my-agent --fast}", {}, "my-agent"),
        (PROCEDURES + "    ai_cmd_alias: gemini\n", {}, "gemini"),
        ("loop: {ai_cmd_fallbacks: [qwen]}", {}, "qwen"),
        ("loop: {ai_cmd_fallbacks: ['other -x']}", {}, "other"),
        ("loop: {preset: v1}", {}, "kiro-cli"),
        ("", {"ROODA_LOOP_AI_CMD_ALIAS": "opencode"}, "opencode"),
        ("ai_cmd_aliases: {mine: no-such}\nloop: {ai_cmd_alias: mine}", {}, "mine"),
        ("loop: {ai_cmd: 'timeout 1h no-such'}", {}, "no-such"),
        ('loop: {ai_cmd: "claude \'open"}', {}, "loop.ai_cmd"),
    ],
)
def test_chosen_agent_that_is_missing_is_a_problem(
    workspace: Workspace, config: str, env: dict[str, str], name: str
) -> None:
    workspace.config(config)
    found = examine_workspace(workspace, env)
    broken = {agent.name for agent in found.agents if agent.mark is Mark.PROBLEM}
    assert broken == {name}
    assert found.problems >= 1
    assert agents(found)[name].chosen_by


@pytest.mark.real
def test_broken_agent_is_a_warning_until_the_config_chooses_it(
    workspace: Workspace, tools: Path
) -> None:
    script(tools, "codex", "echo 1.0", mode=0o644)
    found = examine_workspace(workspace)
    assert agents(found)["codex"].mark is Mark.WARNING
    assert found.problems == 0
    workspace.config("loop: {ai_cmd_alias: codex}")
    found = examine_workspace(workspace)
    assert (agents(found)["codex"].mark, found.problems) == (Mark.PROBLEM, 1)


@pytest.mark.real
def test_ai_cmd_flag_checks_a_command_that_the_config_does_not_choose(
    workspace: Workspace, tools: Path
) -> None:
    script(tools, "claude", "echo 2.1")
    found = examine_workspace(workspace, ai_cmd="env FOO=bar claude --verbose")
    one = next(agent for agent in found.agents if agent.chosen_by)
    assert one.chosen_by == ("--ai-cmd (cli: --ai-cmd)",)
    assert (one.path, one.version, one.adapter, one.form) == (
        str(tools / "claude"),
        "2.1",
        "claude",
        "text",
    )
    assert {finding.topic for finding in one.findings if finding.mark is Mark.WARNING} == {
        "prompt",
        "permissions",
    }


@pytest.mark.real
def test_unknown_program_is_never_started(workspace: Workspace, tools: Path) -> None:
    script(tools, "my-agent", "echo started > started")
    workspace.config(
        "loop: {ai_cmd: my-agent}\nai_cmd_aliases: {mine: {command: my-agent, adapter: claude}}"
    )
    found = examine_workspace(workspace)
    assert (found.problems, agents(found)["my-agent"].version) == (0, None)
    assert not (workspace.path / "started").exists()


@pytest.mark.real
def test_program_of_several_aliases_is_asked_once(workspace: Workspace, tools: Path) -> None:
    script(tools, "claude", "echo x >> asked; echo 2.1.197")
    workspace.config("ai_cmd_aliases: {opus: claude -p --model opus}")
    found = agents(examine_workspace(workspace))
    assert (found["claude"].version, found["opus"].version) == ("2.1.197", "2.1.197")
    assert (workspace.path / "asked").read_text() == "x\n"


@pytest.mark.real
def test_account_and_dropped_variables_follow_the_agents_environment(
    workspace: Workspace, tools: Path
) -> None:
    script(tools, "claude", "env > seen; echo 1.0")
    workspace.global_config(
        "loop:\n  env: {ANTHROPIC_API_KEY: sk-secret-1, CLAUDECODE: '1', GEMINI_API_KEY: null}\n"
    )
    environ = {"CLAUDECODE": "0", "CLAUDE_CODE_ENTRYPOINT": "cli", "GEMINI_API_KEY": "sk-gemini-1"}
    found = agents(examine_workspace(workspace, environ))
    assert found["claude"].account.to_json()["variables"] == ["ANTHROPIC_API_KEY"]
    assert found["claude"].dropped == ("CLAUDE_CODE_ENTRYPOINT",)
    assert found["gemini"].account.variables == ()
    seen = (workspace.path / "seen").read_text()
    assert "CLAUDECODE=1" in seen
    assert "CLAUDE_CODE_ENTRYPOINT" not in seen


# -- the machine -----------------------------------------------------------------------------


def git_findings(workspace: Workspace, *, needed: bool = False) -> dict[str, Finding]:
    environ = {
        "PATH": search_path(workspace),
        "HOME": str(workspace.home),
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    return {one.topic: one for one in check_git(workspace.path, Tools(environ), needed=needed)}


@pytest.mark.real
def test_folder_without_repository_is_a_problem_only_if_git_is_needed(
    workspace: Workspace,
) -> None:
    assert git_findings(workspace)["repository"].mark is Mark.WARNING
    assert git_findings(workspace, needed=True)["repository"].mark is Mark.PROBLEM
    assert "git init" in git_findings(workspace)["repository"].advice


@pytest.mark.real
def test_pipe_in_git_s_folder_is_named_and_not_waited_for(workspace: Workspace) -> None:
    (workspace.path / ".git").mkdir()
    os.mkfifo(workspace.path / ".git/HEAD")
    assert "HEAD is a named pipe" in git_findings(workspace)["git"].text


@pytest.mark.real
def test_repository_states_that_endanger_commits_are_warnings(workspace: Workspace) -> None:
    top = workspace.path
    git(top, "init", "-q")
    git(top, "commit", "-q", "--allow-empty", "-m", "one")
    found = git_findings(workspace)
    assert found.keys() == {"git", "identity", "repository"}
    assert found["git"].text.startswith("git version ")
    assert found["identity"].mark is Mark.WARNING
    assert "git config --global user.name" in found["identity"].advice
    git(top, "config", "user.name", "A")
    git(top, "config", "user.email", "a@example.org")
    git(top, "checkout", "-q", "--detach")
    (top / ".git/rebase-merge").mkdir()
    (top / ".git/MERGE_HEAD").write_text("0\n")
    (top / ".git/index.lock").write_text("")
    found = git_findings(workspace)
    assert found["identity"].mark is Mark.OK
    assert {topic for topic, one in found.items() if one.mark is Mark.WARNING} == {
        "head",
        "unfinished",
        "index",
    }
    assert str(top / ".git/index.lock") in found["index"].text


@pytest.mark.real
def test_pipe_in_the_git_folder_is_a_finding_and_git_does_not_start(workspace: Workspace) -> None:
    git(workspace.path, "init", "-q")
    (workspace.path / ".git/HEAD").unlink()
    os.mkfifo(workspace.path / ".git/HEAD")
    (found,) = git_findings(workspace).values()
    assert found.mark is Mark.WARNING
    assert ".git/HEAD is a named pipe" in found.text


@pytest.mark.real
def test_other_checks_still_run_without_git(workspace: Workspace, tools: Path) -> None:
    script(tools, "claude", "echo 1.0")
    found = examine_workspace(workspace, {"PATH": str(tools)})
    marks = {one.topic: one.mark for one in found.machine}
    assert marks["git"] is Mark.WARNING
    assert {"lock", "disk", "permissions", "config"} <= marks.keys()
    assert agents(found)["claude"].version is not None


@pytest.mark.real
def test_broken_git_is_one_finding_with_its_error(workspace: Workspace, tools: Path) -> None:
    script(tools, "git", "echo broken library >&2; exit 127")
    (one,) = check_git(workspace.path, Tools({"PATH": str(tools)}), needed=True)
    assert (one.topic, one.mark) == ("git", Mark.PROBLEM)
    assert "broken library" in one.text


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "setting,is_needed",
    [
        ("git: {commit: true}", True),
        ("git: {push: true}", True),
        ("git: {require_changes: true}", True),
        ("preset: v1", False),  # this preset only pushes if pushing is possible
        ("preset: ralph", True),
        ("git: {commit: false}", False),
    ],
)
def test_settings_decide_whether_git_is_needed(
    workspace: Workspace, tools: Path, setting: str, *, is_needed: bool
) -> None:
    script(tools, "kiro-cli", "echo 1.0")
    workspace.config(f"loop: {{{setting}}}")
    (one,) = [one for one in examine_workspace(workspace).machine if one.topic == "repository"]
    assert one.mark is (Mark.PROBLEM if is_needed else Mark.WARNING)


@pytest.mark.real
def test_user_config_is_reported(workspace: Workspace) -> None:
    def own() -> str:
        return next(
            one.text for one in examine_workspace(workspace).machine if one.topic == "global-config"
        )

    folder = workspace.home / ".config/rooda"
    assert own() == f"no user config in {folder}"
    folder.mkdir(parents=True)
    assert own() == f"no user config in {folder}"
    workspace.global_config("loop: {}")
    assert own() == f"user config in {folder}"


def note(workspace: Workspace, pid: int, started: float) -> LockNote:
    host, boot = here()
    return LockNote(
        run="20260101-000000-abcdef",
        procedure="build",
        pid=pid,
        started=started,
        since="2026-01-01T00:00:00",
        workspace=str(workspace.path),
        host=host,
        boot=boot,
    )


def test_active_run_is_named_and_killed_run_is_a_warning(workspace: Workspace) -> None:
    assert check_lock(workspace.path).text == "no run is active here"
    lock = Lock(workspace.path, state=workspace.state)
    try:
        lock.write(note(workspace, os.getpid(), start_time(os.getpid()) or 0.0))
        found = check_lock(workspace.path)
        assert found.mark is Mark.OK
        assert f"build, pid {os.getpid()}" in found.text
    finally:
        lock.close()
    lock = Lock(workspace.path, state=workspace.state)
    lock.write(note(workspace, os.getpid(), 1.0))
    left = (workspace.state / "run.json").read_bytes()
    lock.close()
    (workspace.state / "run.json").write_bytes(left)  # as a killed run leaves it
    assert check_lock(workspace.path).mark is Mark.WARNING


@pytest.mark.real
def test_missing_or_unusable_folder_is_reported(workspace: Workspace, tmp_path: Path) -> None:
    assert check_free_space(workspace.path).mark is Mark.OK
    assert check_free_space(tmp_path / "gone").mark is Mark.UNKNOWN
    assert check_lock(tmp_path / "gone").mark is Mark.UNKNOWN
    make_state_folder(workspace.state)
    workspace.state.rmdir()
    workspace.state.write_text("")
    found = examine_workspace(workspace)
    assert [one.topic for one in found.machine if one.mark is Mark.PROBLEM] == ["record"]
    assert found.problems == 1


@pytest.mark.real
@pytest.mark.parametrize(
    "config,mark",
    [
        ("loop: {failure_threshold: 2}", Mark.OK),
        ("loop: {failure_treshold: 2}", Mark.PROBLEM),
        ("loop: {failure_threshold: 0}", Mark.PROBLEM),
        ("loop: [", Mark.PROBLEM),
        ("loop: {ai_cmd_alias: klaude}", Mark.PROBLEM),
    ],
)
def test_config_errors_are_counted_and_other_checks_still_run(
    workspace: Workspace, config: str, mark: Mark
) -> None:
    workspace.config(config)
    found = examine_workspace(workspace)
    (one,) = [one for one in found.machine if one.topic == "config"]
    assert one.mark is mark
    assert ("rooda config check" in one.advice) == (mark is not Mark.OK)
    assert len(found.agents) == len(KNOWN)


@pytest.mark.real
def test_other_checks_still_run_without_home(workspace: Workspace) -> None:
    found = examine(World(workspace.path, {"PATH": search_path(workspace)}), DoctorOptions())
    marks = {one.topic: one.mark for one in found.machine}
    assert marks["global-config"] is Mark.WARNING
    assert marks["record"] is Mark.PROBLEM
    assert found.problems == 1


# -- the canary's task ---------------------------------------------------------------------


@pytest.mark.real
@each_row("data", [b"", b"a", b"1234567890abcdef", bytes(range(256)) * 3])
def test_cksum_equals_the_posix_command(data: bytes) -> None:
    done = subprocess.run(["cksum"], input=data, capture_output=True, check=True)
    assert done.stdout.split()[0].decode() == str(cksum(data))


@pytest.mark.real
def test_canary_task_is_long_random_and_ends_with_its_mark(tmp_path: Path) -> None:
    task, other = CanaryTask.new("DONE"), CanaryTask.new("DONE")
    prompt = task.prompt()
    assert 20_000 < len(prompt) < 21_000
    assert prompt.splitlines()[-1] == task.mark
    assert prompt.count(task.mark) == 1
    assert "<promise>DONE</promise>" in prompt
    assert {task.word, task.seed, task.mark}.isdisjoint({other.word, other.seed, other.mark})
    assert task.is_written(f"{task.word}\n".encode())
    assert not task.is_written(other.word.encode())
    subprocess.run(["sh", "-c", task.command], cwd=tmp_path, check=True)
    content = (tmp_path / "canary-command.txt").read_bytes()
    assert task.is_commanded(content)
    assert not task.is_commanded(b"")
    assert not other.is_commanded(content)


GOOD = Evidence(
    Exited(0),
    repeated=True,
    wrote=True,
    ran=True,
    promises=Promises(success=True),
    usage=Usage("a-model", tokens=Tokens(total=8200), cost=0.04),
)
TOPICS = ["started", "prompt", "file", "command", "signal", "exit", "leftovers", "model", "cost"]


def marks_by_topic(evidence: Evidence) -> dict[str, str]:
    return {one.topic: str(one.mark) for one in judge(evidence)}


def good_except(**other: object) -> Evidence:
    """Return the good evidence with other values for these fields."""
    fields = {name: getattr(GOOD, name) for name in GOOD.__struct_fields__}
    return Evidence(**{**fields, **other})


def test_good_evidence_gives_only_ok_findings() -> None:
    findings = judge(GOOD)
    assert [one.topic for one in findings] == TOPICS
    assert worst(findings) is Mark.OK


NOTHING: dict[str, object] = {
    "repeated": False,
    "wrote": None,
    "ran": None,
    "promises": Promises(),
    "usage": Usage(),
}
UNKNOWN = {
    "prompt": "unknown",
    "file": "unknown",
    "command": "unknown",
    "signal": "unknown",
    "model": "unknown",
    "cost": "unknown",
}


@each_row(
    "evidence,expected",
    [
        (good_except(repeated=False), {"prompt": "problem"}),
        (good_except(wrote=None), {"file": "problem"}),
        (good_except(wrote=False), {"file": "problem"}),
        (good_except(ran=None), {"command": "problem"}),
        (good_except(ran=False), {"command": "problem"}),
        (good_except(promises=Promises()), {"signal": "problem"}),
        (
            good_except(
                promises=Promises(failure=True, lines=("no",)),
                failure=Failure(FailureKind.SIGNAL, "blocked"),
                wrote=None,
            ),
            {"signal": "problem", "file": "problem"},
        ),
        (good_except(end=Exited(3)), {"exit": "warning"}),
        (
            good_except(end=HungAfterResult("result_grace", 30)),
            {"exit": "warning", "leftovers": "unknown"},
        ),
        (good_except(cleaned_up=(NamedProcess(7, "sleep"),)), {"leftovers": "warning"}),
        (good_except(survivors=(NamedProcess(7, "sleep"),)), {"leftovers": "problem"}),
        (good_except(usage=Usage()), {"model": "unknown", "cost": "unknown"}),
        (
            good_except(
                **NOTHING,
                end=TimedOut("iteration_timeout", 300.0),
                failure=Failure(FailureKind.TIMEOUT, "nothing was printed"),
            ),
            {**UNKNOWN, "exit": "problem", "leftovers": "unknown"},
        ),
        (
            good_except(
                **NOTHING, end=Exited(1), failure=Failure(FailureKind.AUTH, "Invalid API key")
            ),
            {**UNKNOWN, "failure": "problem"},
        ),
        (
            good_except(**NOTHING, end=Lost("gone"), failure=Failure(FailureKind.CRASH, "gone")),
            {**UNKNOWN, "failure": "problem", "exit": "problem", "leftovers": "unknown"},
        ),
        (
            good_except(**NOTHING, end=Exited(1), failure=Failure(FailureKind.LIMIT, "until 5pm")),
            {**UNKNOWN, "failure": "problem"},
        ),
        (good_except(end=Interrupted(2)), {"exit": "unknown", "leftovers": "unknown"}),
        (
            good_except(**NOTHING, end=Signalled(11), failure=Failure(FailureKind.CRASH, "killed")),
            {**UNKNOWN, "failure": "problem", "exit": "problem"},
        ),
    ],
)
def test_omitted_steps_are_problems_and_steps_after_a_failure_are_unknown(
    evidence: Evidence, expected: dict[str, str]
) -> None:
    got = {topic: mark for topic, mark in marks_by_topic(evidence).items() if mark != "ok"}
    assert got == expected


@pytest.mark.real
def test_agent_that_cannot_start_has_one_finding(workspace: Workspace) -> None:
    assert marks_by_topic(Evidence(NotStarted("claude: No such file"))) == {"started": "problem"}
    scratch = ScratchRepository(
        Tools({"PATH": search_path(workspace), "HOME": str(workspace.home)})
    )
    try:
        assert scratch.trouble == ""
        trial = TrialResult(trouble="no space left on device")
        evidence = gather(trial, CanaryTask.new("DONE"), scratch, program_of(("claude",)))
    finally:
        scratch.remove()
    assert not scratch.folder.exists()
    assert "no space left on device" in judge(evidence)[0].text


def test_failure_finding_has_evidence_last_line_and_advice() -> None:
    failure = Failure(FailureKind.AUTH, "Invalid API key", "Run `claude /login`", "last")
    one = next(
        o
        for o in judge(good_except(**NOTHING, end=Exited(1), failure=failure))
        if o.topic == "failure"
    )
    assert one.text == "failed (auth): Invalid API key; its last line: last"
    assert one.advice == "Run `claude /login`"


@pytest.mark.parametrize(
    "kind,advice",
    [(FailureKind.OVERLOADED, "max_outage_wait"), (FailureKind.OFFLINE, "Check the network")],
)
def test_outage_finding_has_the_advice_of_its_kind(kind: FailureKind, advice: str) -> None:
    evidence = good_except(**NOTHING, end=Exited(1), failure=Failure(kind, "its own words"))
    one = next(one for one in judge(evidence) if one.topic == "failure")
    assert one.text == f"failed ({kind}): its own words"
    assert advice in one.advice


def test_timeout_finding_says_what_was_known_at_the_timeout() -> None:
    failure = Failure(FailureKind.TIMEOUT, "nothing was printed")
    end = TimedOut("iteration_timeout", 300.0)
    evidence = good_except(**NOTHING, end=end, failure=failure, retrying="no network")
    one = next(o for o in judge(evidence) if o.topic == "exit")
    assert "after 300s (--timeout), and was stopped" in one.text
    assert one.text.endswith("; nothing was printed; it was retrying: no network")


def test_denied_tool_finding_names_the_flag_that_allows_it() -> None:
    evidence = good_except(wrote=None, notes=("was not allowed to use Write",))
    one = next(o for o in judge(evidence, "--yolo") if o.topic == "file")
    assert "not allowed to use Write" in one.text
    assert "--yolo" in one.advice
