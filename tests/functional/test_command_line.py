"""The command line: commands, flags, help, messages, completion."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rooda import __version__
from rooda.base.problems import errors
from rooda.front.cli.commands.run import run
from rooda.front.command_table import COMMANDS
from rooda.plan.settings.settings import SETTINGS
from support.finished import Rooda
from support.surface import PHASES, TAG, dry, plan, planned, procedure
from support.workspace import PROCEDURE, ROODA, Workspace

RALPH = ROODA.with_name("ralph")


@pytest.fixture
def inside(workspace: Workspace) -> Rooda:
    workspace.config(PROCEDURE)
    return workspace.inside


def without_times(text: str) -> str:
    return re.sub(r"\d{8}-\d{6}-\w{6}|\d+:\d\d:\d\d|[\d.]+s", "T", text)


# -- running a procedure -------------------------------------------------------------------


@pytest.mark.real
def test_run_command_may_be_omitted(workspace: Workspace) -> None:
    workspace.config(PROCEDURE)
    args = ("work", "--ai-cmd", workspace.agent("cat >> got"), "-n", "1")
    bare, run = workspace.rooda(*args), workspace.rooda("run", *args)
    assert (bare.code, bare.out) == (run.code, run.out) == (2, "")
    assert without_times(bare.err) == without_times(run.err)
    got = (workspace.path / "got").read_text()
    assert got == got[: len(got) // 2] * 2


@pytest.mark.parametrize(
    "before,after",
    [
        ("-n 7 --ai-cmd true -v", ""),
        ("-n 7", "--ai-cmd true -v"),
        ("run -n 7 -v", "--ai-cmd true"),
        ("-vn7", "--ai-cmd=true"),
        ("", "-v -n7 --ai-cmd true"),
        ("", "--verbose --max-iterations 7 --ai-cmd true"),
        ("", "--verbose --max-iterations=7 --ai-cmd=true"),
        ("--max-iterations=7", "--ai-cmd true --verbose"),
    ],
)
def test_flags_may_come_before_or_after_the_procedure_with_space_or_equals(
    inside: Rooda, before: str, after: str
) -> None:
    done = inside(*before.split(), "work", *after.split(), "--dry-run")
    assert done.code == 0, done.out + done.err
    assert "=== Dry-Run: work ===" in done.out
    assert "AI Command: true (cli: --ai-cmd)" in done.out
    assert "Max Iterations: 7 (cli: --max-iterations)" in done.out
    assert "Show AI Output: true (cli: --verbose)" in done.out


def test_last_of_a_repeated_flag_counts(inside: Rooda) -> None:
    done = inside("work", "-n", "3", "--ai-cmd", "true", "-n", "4", "--dry-run")
    assert "Max Iterations: 4 (cli: --max-iterations)" in done.out


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "setting", [one for one in SETTINGS if not one.is_secret], ids=lambda setting: setting.key
)
def test_every_loop_setting_has_a_flag_with_help(inside: Rooda, setting: object) -> None:
    name = getattr(setting, "flag_name", "")
    assert re.search(rf"^ +(-\w, )?{name}[ \n]", inside("run", "--help-all").out, re.MULTILINE)


@pytest.mark.parametrize(
    "key,flag,value,line",
    [
        ("iteration_timeout: 60", "--iteration-timeout", "none", "Iteration Timeout: none"),
        ("ai_cmd: cat", "--ai-cmd", "none", "AI Command: true"),
        ("log_file: a.log", "--log-file", "none", "Log File: none"),
        ("working_dir: sub", "--working-dir", "none", "Working Dir: none"),
        ("signals: {success: DONE}", "--signals-success", "none", "Signals Success: none"),
        ("signals: {failure: NO}", "--signals-failure", "none", "Signals Failure: none"),
        ("verify: make test", "--verify", "none", "Verify Command: none"),
        ("hooks: {loop_end: sync}", "--hooks-loop-end", "none", "Hooks Loop End: none"),
        ("history: {max_size: 1GB}", "--history-max-size", "none", "History Max Size: none"),
    ],
)
@pytest.mark.parametrize("form", ["{} {}", "{}={}"])
def test_none_unsets_an_optional_setting(
    workspace: Workspace, inside: Rooda, form: str, key: str, flag: str, value: str, line: str
) -> None:
    config = "loop: {ai_cmd_alias: mine, " + key + "}\nai_cmd_aliases: {mine: 'true'}\n"
    workspace.config(config + procedure())
    (workspace.path / "sub").mkdir()
    done = inside("work", *form.format(flag, value).split(), "--dry-run")
    assert done.code == 0, done.out
    assert f"  {line} (" in done.out


@pytest.mark.real
def test_max_iterations_overrides_unlimited_with_a_warning(workspace: Workspace) -> None:
    done = workspace.work(workspace.agents("exit 0"), "-n", "2", "-u")
    assert (done.code, workspace.starts) == (2, 2)
    assert "WARN: --max-iterations and --unlimited were both given; the number wins" in done.err


@pytest.mark.real
def test_quiet_prints_only_warnings_and_errors(workspace: Workspace) -> None:
    done = workspace.work(workspace.agent("exit 0"), "-n", "1", "-q")
    assert (done.code, done.out, done.err) == (2, "", "")


@pytest.mark.real
def test_verbose_shows_agent_output_and_keeps_the_log_level(workspace: Workspace) -> None:
    done = workspace.work(workspace.agent("echo said; echo also >&2"), "-n", "1", "-v")
    assert sorted(done.out.split()) == ["also", "said"]
    assert "Iteration 1/1 starting..." in done.err


# -- usage errors --------------------------------------------------------------------------


@pytest.mark.real(rows=3)
@pytest.mark.parametrize(
    "args,words",
    [
        ("--nope work", "No such option '--nope'"),
        ("work --nope", "No such option '--nope'"),
        ("work --max-iteration 3", "'--max-iterations'"),
        ("work --verbos", "Did you mean"),
        ("work -x", "No such option '-x'"),
        ("work extra", "unexpected extra argument (extra)"),
        ("work -n", "Option '-n' requires an argument"),
        ("work --ai-cmd true -n x", "--max-iterations: must be a whole number, not 'x'"),
        ("work --ai-cmd true -n 0", "--max-iterations: must be 1 or more, not 0\n"),
        ("work --ai-cmd true -n 0", "--unlimited"),
        ("work --ai-cmd true -n -1", "--max-iterations: must be"),
        ("work --ai-cmd true --iteration-timeout 0", "--iteration-timeout: timeout must be"),
        ("work --ai-cmd true --log-level loud", "--log-level: must be one of debug, info"),
        ("work --ai-cmd true --log-format jsn", "Did you mean 'json'?"),
        ("work --ai-cmd true --env NAME", "--env: must be NAME=VALUE, not 'NAME'"),
        ("work -v -q", "--verbose and --quiet can't be given together"),
        ("work -vq", "--verbose and --quiet can't be given together"),
        ("-q work --ai-cmd true --verbose", "--verbose and --quiet can't be given together"),
        ("work --config gone.yml --ai-cmd true", "gone.yml: the file does not exist"),
        ("work --ai-cmd-alias claud", "unknown AI command alias 'claud'\n  Did you mean 'claude'?"),
        ("wrok --ai-cmd true", "no procedure or command named 'wrok'\n  Did you mean 'work'?"),
        ("biuld --ai-cmd true", "Did you mean 'build'?"),
        ("lst --ai-cmd true", "Did you mean 'list'?"),
        ("confg --ai-cmd true", "Did you mean 'config'?"),
        ("zzz --ai-cmd true", "`rooda list` shows the procedures"),
        ("work --ai-cmd nonexistent-cli", "AI command binary not found: nonexistent-cli"),
        ("work", "must specify AI command via CLI flag (--ai-cmd or --ai-cmd-alias)"),
        ("run", "Missing argument 'PROCEDURE'"),
        ("list --nope", "No such option '--nope'"),
        ("list extra", "unexpected extra argument (extra)"),
        ("info", "Missing argument 'PROCEDURE'"),
        ("info wrok", "there is no procedure named 'wrok'\n  Did you mean 'work'?"),
        ("config shw", "Did you mean 'show'?"),
        ("work --ai-cmd true --git-message {nope}", "--git-message: '{nope}' can't be filled in"),
        ("work --ai-cmd true --git-message none", "--git-message: can't be none"),
        ("work --ai-cmd true --commit", "--commit: git.commit is on, but "),
        ("config", "--help"),
        ("config show wrok", "there is no procedure named 'wrok'"),
        ("completion", "Missing argument"),
        ("completion tcsh", "'tcsh' is not one of 'bash', 'zsh', 'fish'"),
    ],
)
def test_usage_error_is_explained_and_exits_1(inside: Rooda, args: str, words: str) -> None:
    done = inside(*args.split())
    assert done.code == 1
    assert words in done.err
    assert "Traceback" not in done.err
    assert "Error: Usage" not in done.err


@pytest.mark.parametrize("args", [("--nope",), ("work", "-n"), ("",), ("list", "x")])
def test_installed_command_exits_1_on_usage_errors_and_creates_nothing(
    workspace: Workspace, args: tuple[str, ...]
) -> None:
    workspace.config(PROCEDURE)
    done = workspace.rooda(*args)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("Error: ")
    assert not (workspace.state).exists()


def test_mistyped_command_gets_no_advice_about_agents(inside: Rooda) -> None:
    done = inside("lst")
    assert done.code == 1
    assert (
        done.err == "Error: there is no procedure or command named 'lst'\n  Did you mean 'list'?\n"
    )


@pytest.mark.parametrize("args", ["-q list", "--config other.yml list", "-v version"])
def test_existing_command_after_flags_is_never_reported_as_unknown(
    inside: Rooda, args: str
) -> None:
    assert "no procedure or command named" not in inside(*args.split()).err


@pytest.mark.real(rows=3)
@pytest.mark.parametrize(
    "args",
    [
        "work --ai-cmd true",
        "work --ai-cmd true --dry-run",
        "config check",
        "config show",
        "list",
        "list --aliases",
        "info work",
        "doctor",
    ],
)
def test_misspelled_key_is_an_error_of_every_command_that_reads_the_config(
    workspace: Workspace, inside: Rooda, args: str
) -> None:
    workspace.config(f"loop:\n  max_costs: 5\n{PROCEDURE}")
    done = inside(*args.split())
    assert done.code == 1
    assert "unknown key 'max_costs'" in done.out + done.err
    if args != "doctor":  # doctor counts the errors, and refers to `rooda config check`
        assert "rooda-config.yml:2" in done.out + done.err
        assert "Did you mean 'max_cost'?" in done.out + done.err


def test_misspelled_key_starts_no_agent(workspace: Workspace) -> None:
    workspace.config(f"loop:\n  failure_treshold: 2\n{PROCEDURE}")
    done = workspace.work(workspace.agent("touch started"), "-n", "1")
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "Error: rooda-config.yml:2: loop.failure_treshold: unknown key 'failure_treshold'\n"
        "  Did you mean 'failure_threshold'?\n"
    )
    assert not (workspace.path / "started").exists()
    assert not (workspace.state).exists()


def test_misspelled_key_in_the_global_config_starts_no_agent(workspace: Workspace) -> None:
    workspace.global_config("loop: {max_costs: 5}")
    done = workspace.work(workspace.agent("touch started"))
    assert done.code == 1
    assert "Error: ~/.config/rooda/rooda-config.yml:1: loop.max_costs: unknown key" in done.err
    assert not (workspace.path / "started").exists()


def test_misspelled_variable_starts_no_agent(workspace: Workspace) -> None:
    command = workspace.agent("touch started")
    done = workspace.work(command, env={"ROODA_LOOP_MAX_COSTS": "5"})
    assert (done.code, done.out) == (1, "")
    assert done.err == (
        "Error: ROODA_LOOP_MAX_COSTS: unknown variable ROODA_LOOP_MAX_COSTS\n"
        "  Did you mean 'ROODA_LOOP_MAX_COST'?\n"
    )
    assert not (workspace.path / "started").exists()


@pytest.mark.real
def test_variables_that_rooda_passes_to_hooks_and_agents_are_no_settings(
    workspace: Workspace,
) -> None:
    names = ("EVENT", "RUN", "PROCEDURE", "ITERATION", "STATUS", "LOG_LEVEL", "ANYTHING")
    env = {f"ROODA_{name}": "info" for name in names}
    done = workspace.work(workspace.agent("exit 0"), "-n", "1", env=env)
    assert done.code == 2
    assert "unknown" not in done.err


# -- help ----------------------------------------------------------------------------------


@pytest.mark.parametrize("args", ["--help", "-h", "help"])
def test_help_is_grouped_and_has_examples(inside: Rooda, args: str) -> None:
    done = inside(args)
    assert (done.code, done.err) == (0, "")
    sections = re.findall(r"^([A-Z][a-z ]+):$", done.out, re.MULTILINE)
    assert sections == ["Options", "Run", "Look", "Set up", "Examples"]
    for name in COMMANDS:
        assert re.search(rf"^  {name} +[A-Z]", done.out, re.MULTILINE)


def test_help_names_the_exit_codes(inside: Rooda) -> None:
    text = " ".join(inside("--help").out.split())
    assert "0 success, 1 aborted or wrong input, 2 maximum of iterations reached" in text
    assert "130 interrupted, 3 an error of rooda's own" in text


@pytest.mark.parametrize("args", ["run --help", "run -h", "help run", "build --help", "work -h"])
def test_help_of_run_is_grouped_and_has_examples(inside: Rooda, args: str) -> None:
    done = inside(*args.split())
    assert (done.code, done.err) == (0, "")
    sections = re.findall(r"^([A-Z][a-z ]+):$", done.out, re.MULTILINE)
    assert sections == [
        *("Iterations", "Agent", "Sandbox", "Verify and git", "Output", "Policy"),
        *("Prompt", "Other"),
        "Examples",
    ]
    assert "rooda build -a claude\n" in done.out


@pytest.mark.parametrize(
    "flag",
    [
        "-n, --max-iterations",
        "-u, --unlimited",
        "-d, --dry-run",
        "-c, --context",
        "--ai-cmd",
        "-a, --ai-cmd-alias",
        *(f"--{phase}" for phase in PHASES),
        "-v, --verbose",
        "-q, --quiet",
        "--log-level",
        "--log-format",
        "--log-file",
        "--config",
        "--preset",
        "--iteration-timeout",
        "--failure-threshold",
        "--verify CMD",
        "--commit / --no-commit",
        "--push / --no-push",
        r"--resume\[=RUN\]",
    ],
)
def test_help_of_run_has_the_documented_flags(inside: Rooda, flag: str) -> None:
    assert re.search(rf"^  {flag}[ \n]", inside("run", "--help").out, re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(inside: Rooda, command: str) -> None:
    done = inside(command, "--help")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"Usage: rooda {command}")


def test_examples_in_the_help_work(workspace: Workspace, inside: Rooda) -> None:
    workspace.write("TASK.md", "words")
    text = inside("--help").out + inside("run", "--help").out
    runs = re.findall(r"^  rooda (build.*?)(?:   .*)?$", text, re.MULTILINE)
    assert len(runs) >= 6
    for line in runs:
        done = inside(*shlex.split(line), "--dry-run", "--ai-cmd", "true")
        assert (done.code, done.err) == (0, "")
        assert done.out.startswith("=== Dry-Run: build ===")


@pytest.mark.parametrize("columns", ["40", "80", "200"])
def test_help_fits_any_width(workspace: Workspace, columns: str) -> None:
    done = workspace.rooda("run", "--help", env={"COLUMNS": columns})
    assert done.code == 0
    assert "--max-iterations" in done.out


# -- version -------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["--version", "version"])
def test_version(workspace: Workspace, word: str) -> None:
    done = workspace.rooda(word)
    assert (done.code, done.out, done.err) == (0, f"rooda {__version__}\n", "")


@pytest.mark.real
def test_python_m_rooda_is_the_same_command(workspace: Workspace) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rooda", "version"],
        cwd=workspace.path,
        env=workspace.environ(),
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert (done.returncode, done.stdout) == (0, f"rooda {__version__}\n")


@pytest.mark.real
def test_ralph_without_a_mode_names_the_modes(workspace: Workspace) -> None:
    done = subprocess.run(
        [str(RALPH)],
        cwd=workspace.path,
        env=workspace.environ(),
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "Error: name a mode: plan, build or prompt" in done.stderr


# -- list and info -------------------------------------------------------------------------


def test_list_shows_name_iterations_and_purpose(inside: Rooda) -> None:
    lines = inside("list").out.splitlines()
    assert lines[0].split() == ["PROCEDURE", "ITERATIONS", "WHAT", "IT", "DOES"]
    assert len(lines) == 1 + 17 + 1
    assert re.match(r"build +5 +Take one ready task", lines[3])
    assert re.match(r"work +5$", lines[-1])


def test_list_reads_the_global_config_and_the_given_config(
    workspace: Workspace, inside: Rooda
) -> None:
    workspace.global_config(procedure("everywhere"))
    workspace.write("other.yml", procedure("elsewhere"))
    out = inside("list", "--config", "other.yml").out
    assert "\neverywhere " in out
    assert "\nelsewhere " in out
    assert "\nwork " not in out


def test_list_as_json(inside: Rooda) -> None:
    done = inside("list", "--json")
    rows = {row["name"]: row for row in json.loads(done.out)}
    assert (done.code, done.err, len(rows)) == (0, "", 18)
    assert rows["bootstrap"]["max_iterations"] == 1
    assert rows["bootstrap"]["source"] == "built-in"
    assert rows["work"]["source"] == "workspace: ./rooda-config.yml:3"


def test_list_of_aliases(workspace: Workspace, inside: Rooda) -> None:
    workspace.config("ai_cmd_aliases: {mine: my-agent -p, qwen: null}\n")
    lines = inside("list", "--aliases").out.splitlines()
    assert lines[0].split() == ["ALIAS", "SOURCE", "COMMAND"]
    assert re.match(r"mine +workspace: ./rooda-config.yml:1 +my-agent -p", lines[-1])
    rows = json.loads(inside("list", "--aliases", "--json").out)
    assert [row["name"] for row in rows] == [
        "claude",
        "codex",
        "gemini",
        "opencode",
        "copilot",
        "cursor-agent",
        "kiro-cli",
        "mine",
    ]
    assert rows[-1]["command"] == "my-agent -p"


def test_info_shows_the_parts_of_a_procedure(inside: Rooda) -> None:
    done = inside("info", "build")
    rows = dict(re.split(r"  +", line, maxsplit=1) for line in done.out.splitlines()[:9])
    assert (done.code, done.err) == (0, "")
    assert rows["Procedure"] == "build"
    assert rows["Defined in"] == "built-in"
    assert rows["Max iterations"] == "5"
    assert rows["OBSERVE"] == "builtin:prompts/observe_plan_specs_impl.md"
    assert rows["ACT"] == "builtin:prompts/act_build.md"


def test_info_as_json_uses_the_config(workspace: Workspace, inside: Rooda) -> None:
    workspace.config(
        "loop: {ai_cmd: my-agent}\nprocedures:\n  build: {iteration_mode: unlimited}\n"
    )
    about = json.loads(inside("info", "build", "--json").out)
    assert about["max_iterations"] is None
    assert about["ai_cmd"] == "my-agent"
    assert about["phases"]["decide"] == ["builtin:prompts/decide_build.md"]
    assert about["source"] == "workspace: ./rooda-config.yml:3"


@pytest.mark.parametrize("args", ["list", "list --json", "info build", "config show"])
def test_invalid_config_is_an_error_of_every_reading_command(
    workspace: Workspace, inside: Rooda, args: str
) -> None:
    workspace.config("loop: {failure_threshold: 0}\n")
    done = inside(*args.split())
    assert done.code == 1
    assert "Error: rooda-config.yml:1: loop.failure_threshold: must be 1 or more" in done.err


@pytest.mark.parametrize("args", ["list", "list --aliases", "info build", "version", "config show"])
def test_reading_commands_write_nothing(workspace: Workspace, args: str) -> None:
    assert workspace.rooda(*args.split()).code == 0
    assert list(workspace.path.iterdir()) == []
    assert list(workspace.home.iterdir()) == []


# -- procedures with the name of a command -------------------------------------------------


@pytest.mark.real
def test_procedure_with_the_name_of_a_command_needs_run(workspace: Workspace) -> None:
    workspace.config(procedure("list"))
    args = ("--ai-cmd", workspace.agents("exit 0"), "-n", "1")
    assert "PROCEDURE" in workspace.rooda("list").out
    assert workspace.starts == 0
    done = workspace.rooda("run", "list", *args)
    assert (done.code, workspace.starts) == (2, 1)
    assert "Starting procedure: list (max 1 " in done.err
    assert "WARN: the procedure 'list' is also the name of a command" in done.err
    assert "rooda run list" in done.err


@pytest.mark.parametrize("name", COMMANDS)
def test_every_procedure_with_the_name_of_a_command_gets_a_warning(
    workspace: Workspace, name: str
) -> None:
    workspace.config(procedure(name))
    prepared = planned(workspace, "build", commands=frozenset(COMMANDS))
    (problem,) = prepared.all_problems()
    assert prepared.valid
    assert f"`rooda run {name}`" in problem.suggestion


# -- flags for files and folders -----------------------------------------------------------


@pytest.mark.real
def test_config_flag_selects_another_file(workspace: Workspace) -> None:
    workspace.config("loop: [broken\n")
    workspace.write("conf/mine.yml", f"loop: {{default_max_iterations: 1}}\n{PROCEDURE}")
    agent = workspace.agents("exit 0")
    done = workspace.rooda("work", "--config", "conf/mine.yml", "--ai-cmd", agent)
    assert (done.code, workspace.starts) == (2, 1)


@pytest.mark.real
def test_agent_runs_in_the_folder_where_rooda_was_started(workspace: Workspace) -> None:
    workspace.work(workspace.agent("pwd -P > where"), "-n", "1")
    assert Path((workspace.path / "where").read_text().strip()) == workspace.path.resolve()


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("form", ["flag", "variable", "config"])
def test_working_dir_sets_the_folder_of_the_agent(workspace: Workspace, form: str) -> None:
    (workspace.path / "sub").mkdir()
    loop = "loop: {working_dir: sub}\n" if form == "config" else ""
    workspace.config(loop + PROCEDURE)
    args = ("--working-dir", "sub") if form == "flag" else ()
    env = {"ROODA_LOOP_WORKING_DIR": "sub"} if form == "variable" else {}
    done = workspace.work(workspace.agent("pwd -P > where"), "-n", "1", *args, env=env)
    assert done.code == 2
    where = (workspace.path / "sub/where").read_text().strip()
    assert Path(where) == (workspace.path / "sub").resolve()
    assert (workspace.state).is_dir()


@pytest.mark.real
def test_agent_inherits_the_environment_with_the_configured_variables(workspace: Workspace) -> None:
    workspace.config(f"loop:\n  env: {{FROM_FILE: one, BOTH: file, SPACED: 'a  b'}}\n{PROCEDURE}")
    body = 'printf "%s\\n" "$INHERITED" "$FROM_FILE" "$BOTH" "$SPACED" "$FLAG" > got'
    done = workspace.work(
        workspace.agent(body),
        *("-n", "1", "--env", "BOTH=flag", "--env", "FLAG=it's $HOME = here"),
        env={"INHERITED": "yes", "BOTH": "shell"},
    )
    assert done.code == 2
    got = (workspace.path / "got").read_text().splitlines()
    assert got == ["yes", "one", "flag", "a  b", "it's $HOME = here"]


@pytest.mark.real
def test_command_is_split_like_in_a_shell_but_not_run_by_one(
    workspace: Workspace,
) -> None:
    workspace.agent('printf "%s\\n" "$@" > got')
    command = """./agent.sh 'a b' "c d" e\\ f '' $HOME '$(id)' '; touch oops' *"""
    assert workspace.work(command, "-n", "1").code == 2
    got = (workspace.path / "got").read_text().splitlines()
    assert got == ["a b", "c d", "e f", "", "$HOME", "$(id)", "; touch oops", "*"]
    assert not (workspace.path / "oops").exists()


# -- phase flags ---------------------------------------------------------------------------


@pytest.mark.parametrize("phase", PHASES)
def test_phase_flag_replaces_only_its_phase(workspace: Workspace, phase: str) -> None:
    workspace.config(procedure())
    before = plan(workspace).prompt()
    after = plan(workspace, phases={phase: ("my own words",)}).prompt()
    assert after == before.replace(f"my {phase} {TAG}", "my own words")


def test_phase_flags_accept_texts_files_and_built_in_prompts(
    workspace: Workspace, inside: Rooda
) -> None:
    workspace.write("a.md", "from a file\n")
    done = inside(
        *("work", "--ai-cmd", "true", "--dry-run", "--observe", "a.md"),
        *("--observe", "two\n\nparagraphs", "--observe=a.md"),
        *("--act", "builtin:fragments/signals.md"),
    )
    assert done.code == 0, done.out
    assert (
        "## OBSERVE\nfrom a file\n\ntwo\n\nparagraphs\n\nfrom a file\n\n## ORIENT\nthink\n"
        in done.out
    )
    assert "## ACT\n### How to end\n" in done.out
    assert "✓ Prompt file exists: a.md" in done.out


@pytest.mark.real
def test_run_uses_phase_flags(workspace: Workspace) -> None:
    done = workspace.work(workspace.agent("cat > got"), "-n", "1", "--decide", "toss a coin")
    assert done.code == 2
    assert "\n## DECIDE\ntoss a coin\n\n## ACT\n" in (workspace.path / "got").read_text()


@pytest.mark.parametrize(
    "value,words",
    [
        ("gone.md", "'gone.md' looks like a file, and there is no such file"),
        ("prompts/gone", "looks like a file"),
        ("~/gone", "looks like a file"),
        ("", "must not be empty"),
        (" \n ", "must not be empty"),
        ("builtin:prompts/act_buld.md", "there is no built-in prompt"),
    ],
)
@pytest.mark.parametrize("phase", ["observe", "act"])
def test_invalid_phase_value_is_an_error(
    workspace: Workspace, phase: str, value: str, words: str
) -> None:
    prepared = planned(workspace, phases={phase: (value,)})
    (problem,) = errors(prepared.all_problems())
    assert not prepared.valid
    assert words in problem.message
    assert problem.suggestion


@pytest.mark.parametrize("value", ["look at src/a.py first", "words", "a.md\nb.md", "/ or not /"])
def test_phase_value_that_is_no_path_is_text(workspace: Workspace, value: str) -> None:
    assert f"## OBSERVE\n{value}\n" in plan(workspace, phases={"observe": (value,)}).prompt()


def test_invalid_phase_values_are_reported_once_and_start_no_agent(workspace: Workspace) -> None:
    done = workspace.work(workspace.agents("exit 0"), "--act", "gone.md", "--observe", "")
    assert (done.code, workspace.starts) == (1, 0)
    assert done.err.count("Error:") == 2
    assert "Error: --act: 'gone.md' looks like a file" in done.err
    assert "Error: --observe: must not be empty" in done.err


def test_procedure_may_be_given_by_phase_flags_only(workspace: Workspace) -> None:
    phases = {phase: (f"{phase} {TAG}",) for phase in PHASES}
    prepared = planned(workspace, "adhoc", phases=phases)
    assert prepared.valid
    assert "=== Dry-Run: adhoc ===" in dry(prepared)


# -- resume --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line,procedure,resume",
    [
        ("build", "build", None),
        ("build --resume", "build", ""),
        ("--resume build", "build", ""),
        ("build --resume -n 5", "build", ""),
        ("-n 5 --resume build", "build", ""),
        ("build --resume=", "build", ""),
        ("build --resume=20260301-101500-abcdef", "build", "20260301-101500-abcdef"),
        ("--resume=last build", "build", "last"),
        ("build --resume=-x", "build", "-x"),
        ("build --resume=-1", "build", "-1"),
        ("--resume -- build", "build", ""),
        ("--verify --resume build", "build", None),
        ("-c --resume build", "build", None),
        ("-vc --resume build", "build", None),
        ("-ctext --resume build", "build", ""),
        ("-- --resume", "--resume", None),
    ],
)
def test_resume_flag_needs_no_value_and_does_not_take_the_next_word(
    line: str, procedure: str, resume: str | None
) -> None:
    given = run.make_context("run", line.split()).params
    assert (given["procedure"], given["resume"]) == (procedure, resume)


@pytest.mark.real
def test_arguments_around_the_resume_flag_keep_their_meaning(
    workspace: Workspace, inside: Rooda
) -> None:
    assert workspace.work("false", "--failure-threshold", "1").code == 1
    done = inside("--resume", "work", "-n", "4", "--ai-cmd", "true", "--dry-run")
    assert done.code == 0, done.err
    assert "=== Dry-Run: work ===" in done.out
    assert "Max Iterations: 4 (cli: --max-iterations)" in done.out
    assert done.out.endswith("rooda --resume work -n 4 --ai-cmd true\n")


def test_run_id_after_the_resume_flag_is_an_extra_argument(inside: Rooda) -> None:
    done = inside("work", "--resume", "20260301-101500-abcdef", "--ai-cmd", "true")
    assert done.code == 1
    assert "unexpected extra argument (20260301-101500-abcdef)" in done.err


# -- completion ----------------------------------------------------------------------------


def completions(workspace: Workspace, line: str, shell: str = "bash") -> list[str]:
    """The answer of `rooda` to a shell that completes the end of `line`."""
    words = line.split(" ")
    place = words[-1] if shell == "fish" else str(len(words) - 1)
    env = {f"_{words[0].upper()}_COMPLETE": f"{shell}_complete", "COMP_WORDS": line}
    done = workspace.rooda(env={**env, "COMP_CWORD": place})
    assert (done.code, done.err) == (0, "")
    return done.out.splitlines()


def completed_names(workspace: Workspace, line: str, shell: str = "bash") -> list[str]:
    """The completed names only."""
    rows = completions(workspace, line, shell)
    if shell == "zsh":
        return rows[1::3]
    return [row.partition(",")[2].partition("\t")[0] for row in rows]


@pytest.mark.parametrize(
    "line,names",
    [
        ("rooda bu", ["build"]),
        ("rooda run bo", ["bootstrap"]),
        ("rooda draft-plan-spec-f", ["draft-plan-spec-feat", "draft-plan-spec-fix"]),
        ("rooda inf", ["info"]),
        ("rooda config sh", ["show"]),
        ("rooda completion f", ["fish"]),
        ("rooda build --unl", ["--unlimited"]),
        ("rooda build --iteration-t", ["--iteration-timeout"]),
        ("rooda run build --dry", ["--dry-run"]),
        ("rooda build --resu", ["--result-grace", "--resume", "--result"]),
        ("rooda --resume boot", ["bootstrap"]),
        ("rooda build --verify-when on", ["on-success"]),
        ("rooda build -a cl", ["claude"]),
        ("rooda resume -n 3 -a cod", ["codex"]),
    ],
)
def test_tab_completes_commands_procedures_flags_and_values(
    workspace: Workspace, line: str, names: list[str]
) -> None:
    assert completed_names(workspace, line) == names


@pytest.mark.parametrize(
    "line,kind",
    [
        ("rooda build -c TA", "file"),
        ("rooda loop PRO", "file"),
        ("rooda build --act pro", "file"),
        ("rooda build --log-file lo", "file"),
        ("rooda list --config ro", "file"),
        ("rooda build --working-dir sr", "dir"),
    ],
)
def test_tab_after_a_flag_for_a_path_is_left_to_the_shell(
    workspace: Workspace, line: str, kind: str
) -> None:
    assert [row.partition(",")[0] for row in completions(workspace, line)] == [kind]


@pytest.mark.long
def test_tab_offers_the_last_run_and_the_newest_ones(workspace: Workspace) -> None:
    for _ in range(2):
        assert workspace.work("true", "-n", "1").code == 2
    runs = sorted((one.name for one in (workspace.state / "runs").iterdir()), reverse=True)
    for command in ("show", "why", "report", "follow", "resume"):
        assert completed_names(workspace, f"rooda {command} ") == ["last", *runs]
    assert completed_names(workspace, f"rooda show {runs[0][:-1]}") == runs[:1]
    assert completed_names(workspace, f"rooda show {runs[0]} ") == ["last"]


def test_tab_offers_each_command_and_procedure_once(workspace: Workspace) -> None:
    workspace.config(procedure("mine") + procedure("list").removeprefix("procedures:\n"))
    names = completed_names(workspace, "rooda ")
    assert names[: len(COMMANDS)] == list(COMMANDS)
    assert "build" in names
    assert "mine" in names
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_tab_offers_the_procedures_of_the_config(workspace: Workspace, shell: str) -> None:
    workspace.config(f"# a comment\nloop:\n  env: {{mine-not: 1}}\n{procedure('mine-too')}")
    assert completed_names(workspace, "rooda mi", shell) == ["mine-too"]
    assert completed_names(workspace, "rooda run mi", shell) == ["mine-too"]


@pytest.mark.parametrize("config", [b"\xff\xfe", b"procedures: [", b"", b"procedures:\n\tx: 1\n"])
def test_tab_works_with_a_broken_config(workspace: Workspace, config: bytes) -> None:
    workspace.write("rooda-config.yml", config)
    assert completed_names(workspace, "rooda bui") == ["build"]


@pytest.mark.real
@pytest.mark.parametrize(
    "shell,first,words",
    [
        ("bash", "", "complete -o nosort -F _rooda_completion rooda"),
        ("zsh", "#compdef rooda", "compdef _rooda_completion rooda"),
        ("fish", "", "complete --no-files --command rooda"),
    ],
)
def test_completion_scripts(inside: Rooda, shell: str, first: str, words: str) -> None:
    done = inside("completion", shell)
    assert (done.code, done.err) == (0, "")
    assert words in done.out
    assert f"_ROODA_COMPLETE={shell}_complete" in done.out
    assert done.out.startswith(first)


@pytest.mark.real
@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_completion_script_works_in_bash(workspace: Workspace) -> None:
    workspace.config(procedure("mine"))
    script = """
eval "$(rooda completion bash)"
complete -p rooda
COMP_WORDS=(rooda run mi); COMP_CWORD=2
_rooda_completion rooda mi run
printf '%s\\n' "${COMPREPLY[@]}"
"""
    path = f"{ROODA.parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        cwd=workspace.path,
        env=workspace.environ({"PATH": path}),
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "complete -o nosort -F _rooda_completion rooda",
        "mine",
    ]


@pytest.mark.real
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script_is_valid_for_its_shell(workspace: Workspace, shell: str) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    script = workspace.write("script", workspace.rooda("completion", shell).out)
    done = subprocess.run(
        [program, "-n", str(script)], capture_output=True, text=True, check=False, timeout=30
    )
    assert (done.returncode, done.stderr) == (0, "")
