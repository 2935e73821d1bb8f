"""The dry run: its report, the origin of each value, and that it starts and writes nothing."""

import os
import shlex
import subprocess
from collections.abc import Mapping

import pytest

from rooda.front.flags import without_dry_run
from rooda.plan.preflight.sandbox import NO_SANDBOX
from rooda.plan.settings.settings import SETTINGS
from support.finished import Rooda
from support.surface import TRUE, dry, listing, plan, planned, procedure
from support.workspace import ROODA, Workspace

RULE = "─" * 40
CLAUDE = "claude -p --dangerously-skip-permissions --output-format stream-json --verbose"
KIRO = "kiro-cli chat --no-interactive --trust-all-tools"

VALID_REPORT = f"""\
=== Dry-Run: build ===

Configuration:
  AI Command: {CLAUDE} (cli: --ai-cmd-alias "claude" → built-in alias)
  Max Iterations: 10 (workspace: ./rooda-config.yml)
  Iteration Timeout: none (built-in)
  Max Output Buffer: 10MB (built-in)
  Failure Threshold: 3 (built-in)

Validation:
  ✓ AI command binary exists: BIN/claude
  ✓ Prompt file exists: builtin:prompts/observe_plan_specs_impl.md
  ✓ Prompt file exists: builtin:prompts/orient_build.md
  ✓ Prompt file exists: builtin:prompts/decide_build.md
  ✓ Prompt file exists: builtin:prompts/act_build.md
  ✓ Sandbox: none: the agent runs as you: it can read and change all your files, and use your logins

Assembled Prompt (SIZE bytes):
{RULE}
PROMPT{RULE}

Dry-run complete. Ready to execute: rooda build --ai-cmd-alias claude
"""

INVALID_REPORT = """\
=== Dry-Run: build ===

Configuration:
  AI Command: nonexistent-cli (cli: --ai-cmd)
  Max Iterations: 10 (workspace: ./rooda-config.yml)
  Iteration Timeout: none (built-in)
  Max Output Buffer: 10MB (built-in)
  Failure Threshold: 3 (built-in)

Validation:
  ✗ AI command binary not found: nonexistent-cli
    Searched PATH: /usr/local/bin:/usr/bin:/bin
  ✓ Prompt file exists: builtin:prompts/observe_plan_specs_impl.md
  ✓ Prompt file exists: builtin:prompts/orient_build.md
  ✓ Prompt file exists: builtin:prompts/decide_build.md
  ✓ Prompt file exists: builtin:prompts/act_build.md
  ✓ Sandbox: none: the agent runs as you: it can read and change all your files, and use your logins

Error: Dry-run validation failed
"""

TEN = "loop:\n  default_max_iterations: 10\n"


def configuration(report: str) -> list[str]:
    """The lines of the Configuration block."""
    block = report.partition("Configuration:\n")[2].partition("\n\n")[0]
    return [line.removeprefix("  ") for line in block.splitlines()]


@pytest.fixture
def inside(workspace: Workspace) -> Rooda:
    workspace.config(procedure())
    return workspace.inside


def validation(report: str) -> str:
    return report.partition("Validation:\n")[2].partition("\n\n")[0]


# -- complete reports ----------------------------------------------------------------------


def test_report_of_a_valid_configuration(workspace: Workspace) -> None:
    workspace.config(TEN)
    claude = workspace.write("bin/claude", "#!/bin/sh\n")
    claude.chmod(0o755)
    env = {"PATH": f"{workspace.path}/bin:/usr/bin:/bin"}
    done = workspace.rooda("build", "--dry-run", "--ai-cmd-alias", "claude", env=env)
    prompt = plan(workspace, "build").prompt()
    expected = (
        VALID_REPORT.replace("BIN", str(claude.parent))
        .replace("SIZE", f"{len(prompt.encode()):,}")
        .replace("PROMPT", prompt)
    )
    assert (done.code, done.out, done.err) == (0, expected, "")


def test_report_of_a_missing_agent_program(workspace: Workspace) -> None:
    workspace.config(TEN)
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
    done = workspace.rooda("build", "--dry-run", "--ai-cmd", "nonexistent-cli", env=env)
    assert (done.code, done.out, done.err) == (1, INVALID_REPORT, "")


@pytest.mark.real
def test_report_shows_the_prompt_that_the_agent_gets(workspace: Workspace) -> None:
    workspace.write("TASK.md", "from a file")
    args = ("-n", "1", "-c", "TASK.md", "-c", "some words", "--orient", "my own")
    shown = workspace.work("true", "--dry-run", *args).out
    workspace.work(workspace.agent("cat > got"), *args)
    got = (workspace.path / "got").read_text()
    assert f"Assembled Prompt ({len(got):,} bytes):\n{RULE}\n{got}{RULE}\n" in shown


# -- origin of values ----------------------------------------------------------------------

FIVE = [
    "AI Command: true (cli: --ai-cmd)",
    "Max Iterations: 5 (built-in)",
    "Iteration Timeout: none (built-in)",
    "Max Output Buffer: 10MB (built-in)",
    "Failure Threshold: 3 (built-in)",
]


def test_default_configuration_has_five_lines(workspace: Workspace) -> None:
    assert configuration(dry(planned(workspace))) == FIVE


@pytest.mark.parametrize("key", [setting.key for setting in SETTINGS])
def test_default_value_is_shown_only_for_the_five_main_settings(
    workspace: Workspace, key: str
) -> None:
    title = next(setting.title for setting in SETTINGS if setting.key == key)
    shown = [line for line in configuration(dry(planned(workspace))) if line.startswith(title)]
    assert all(line in FIVE for line in shown)


@pytest.mark.parametrize(
    "flags,line",
    [
        ("-n 7", "Max Iterations: 7 (cli: --max-iterations)"),
        ("--max-iterations=7", "Max Iterations: 7 (cli: --max-iterations)"),
        ("-u", "Max Iterations: unlimited (cli: --unlimited)"),
        ("--iteration-mode unlimited", "Max Iterations: unlimited (cli: --iteration-mode)"),
        ("--iteration-timeout 30m", "Iteration Timeout: 1800s (cli: --iteration-timeout)"),
        ("--max-output-buffer 2048", "Max Output Buffer: 2KB (cli: --max-output-buffer)"),
        ("--failure-threshold 1", "Failure Threshold: 1 (cli: --failure-threshold)"),
        ("-v", "Show AI Output: true (cli: --verbose)"),
        ("--no-show-ai-output", "Show AI Output: false (cli: --no-show-ai-output)"),
        ("-q", "Log Level: warn (cli: --quiet)"),
        ("-q --log-level debug", "Log Level: debug (cli: --log-level)"),
        ("--preset rooda", "Preset: rooda (cli: --preset)"),
        ("--env TOKEN=hush", "Environment: TOKEN (cli: --env)"),
        ("--signals-success DONE", "Signals Success: DONE (cli: --signals-success)"),
        ("--log-file run.log", "Log File: WORK/run.log (cli: --log-file)"),
        ("--kill-grace 0", "Kill Grace: 0s (cli: --kill-grace)"),
        ("--verify=make", "Verify Command: make (cli: --verify)"),
        ("--no-git-snapshots", "Git Snapshots: false (cli: --no-git-snapshots)"),
        ("--hooks-loop-end sync", "Hooks Loop End: sync (cli: --hooks-loop-end)"),
        ("--history-max-age 30d", "History Max Age: 30d (cli: --history-max-age)"),
        ("--stall-threshold 4", "Stall Threshold: 4 (cli: --stall-threshold)"),
    ],
)
def test_origin_is_a_flag(workspace: Workspace, inside: Rooda, flags: str, line: str) -> None:
    done = inside("work", "--ai-cmd", "true", "--dry-run", *flags.split())
    assert line.replace("WORK", str(workspace.path)) in configuration(done.out)


@pytest.mark.parametrize(
    "env,line",
    [
        (
            {"ROODA_LOOP_ITERATION_TIMEOUT": "90"},
            "Iteration Timeout: 90s (env: ROODA_LOOP_ITERATION_TIMEOUT)",
        ),
        (
            {"ROODA_LOOP_DEFAULT_MAX_ITERATIONS": "8"},
            "Max Iterations: 8 (env: ROODA_LOOP_DEFAULT_MAX_ITERATIONS)",
        ),
        ({"ROODA_LOG_LEVEL": "warn"}, "Log Level: warn (env: ROODA_LOG_LEVEL)"),
        (
            {"ROODA_LOG_LEVEL": "warn", "ROODA_LOOP_LOG_LEVEL": "debug"},
            "Log Level: debug (env: ROODA_LOOP_LOG_LEVEL)",
        ),
        ({"ROODA_SHOW_AI_OUTPUT": "1"}, "Show AI Output: true (env: ROODA_SHOW_AI_OUTPUT)"),
        ({"ROODA_LOOP_VERIFY": "make x"}, "Verify Command: make x (env: ROODA_LOOP_VERIFY)"),
        (
            {"ROODA_LOOP_VERIFY": "make x", "ROODA_LOOP_VERIFY_COMMAND": "make y"},
            "Verify Command: make y (env: ROODA_LOOP_VERIFY_COMMAND)",
        ),
    ],
)
def test_origin_is_a_variable(workspace: Workspace, env: Mapping[str, str], line: str) -> None:
    assert line in configuration(dry(planned(workspace, env=env)))


@pytest.mark.parametrize(
    "loop,own,line",
    [
        ("failure_threshold: 4", "", "Failure Threshold: 4 (workspace: ./rooda-config.yml)"),
        ("", "failure_threshold: 6", "Failure Threshold: 6 (workspace: ./rooda-config.yml)"),
        (
            "failure_threshold: 4",
            "failure_threshold: 6",
            "Failure Threshold: 6 (workspace: ./rooda-config.yml)",
        ),
        (
            "iteration_mode: unlimited",
            "",
            "Max Iterations: unlimited (workspace: ./rooda-config.yml)",
        ),
        (
            "iteration_mode: unlimited",
            "default_max_iterations: 2",
            "Max Iterations: 2 (workspace: ./rooda-config.yml)",
        ),
        (
            "iteration_timeout: null",
            "",
            "Iteration Timeout: none (workspace: ./rooda-config.yml)",
        ),
    ],
)
def test_origin_is_the_workspace_config(
    workspace: Workspace, loop: str, own: str, line: str
) -> None:
    workspace.config(f"loop: {{{loop}}}\n{procedure()}    {own}\n")
    assert line in configuration(dry(planned(workspace)))


def test_origin_is_the_config_given_by_flag(workspace: Workspace) -> None:
    workspace.write("conf/mine.yml", f"loop: {{failure_threshold: 4}}\n{procedure()}")
    line = "Failure Threshold: 4 (workspace: ./conf/mine.yml)"
    assert line in configuration(dry(planned(workspace, config="conf/mine.yml")))


def test_origin_is_the_global_config(workspace: Workspace) -> None:
    workspace.global_config("loop: {failure_threshold: 4}\n")
    line = "Failure Threshold: 4 (global: ~/.config/rooda/rooda-config.yml)"
    assert line in configuration(dry(planned(workspace)))


@pytest.mark.real
@pytest.mark.parametrize(
    "preset,lines",
    [
        (
            "v1",
            [
                f'AI Command: {KIRO} (preset: v1 "kiro-cli" → built-in alias)',
                "Max Iterations: unlimited (preset: v1)",
                "Signals Success: none (preset: v1)",
                "Signals Failure: none (preset: v1)",
                "Ignore Exit Status: true (preset: v1)",
                "Separators: true (preset: v1)",
                "Git Push: true (preset: v1)",
                "Max Iters Exit Code: 0 (preset: v1)",
                "Preset: v1 (cli: --preset)",
            ],
        ),
        (
            "ralph",
            [
                "Max Iterations: 10 (preset: ralph)",
                "Signals Success: COMPLETE (preset: ralph)",
                "Signals Failure: none (preset: ralph)",
                "Signals Streams: stdout (preset: ralph)",
                "Show AI Output: true (preset: ralph)",
                "Max Iters Exit Code: 0 (preset: ralph)",
                "Verify Feedback: false (preset: ralph)",
            ],
        ),
        ("rooda", ["Max Iterations: 5 (built-in)", "Failure Threshold: 3 (built-in)"]),
    ],
)
def test_origin_is_a_preset(workspace: Workspace, preset: str, lines: list[str]) -> None:
    shown = configuration(dry(planned(workspace, flags={"preset": ("--preset", preset)})))
    assert [line for line in lines if line not in shown] == []


def test_origin_of_a_built_in_procedures_value_is_built_in(workspace: Workspace) -> None:
    assert "Max Iterations: 3 (built-in)" in configuration(dry(planned(workspace, "agents-sync")))


@pytest.mark.parametrize(
    "flags,env,loop,own,line",
    [
        (("--ai-cmd", "true"), {}, "ai_cmd: cat", "ai_cmd: cat", "true (cli: --ai-cmd)"),
        (
            ("--ai-cmd-alias", "mine"),
            {},
            "ai_cmd: cat",
            "ai_cmd: cat",
            'true -m (cli: --ai-cmd-alias "mine" → workspace alias)',
        ),
        (None, {}, "ai_cmd: cat", "ai_cmd: true -p", "true -p (workspace: ./rooda-config.yml)"),
        (
            None,
            {},
            "ai_cmd: cat",
            "ai_cmd_alias: mine",
            'true -m (workspace: ./rooda-config.yml "mine" → workspace alias)',
        ),
        (None, {"ROODA_LOOP_AI_CMD": "true -e"}, "", "", "true -e (env: ROODA_LOOP_AI_CMD)"),
        (
            None,
            {"ROODA_LOOP_AI_CMD_ALIAS": "ours"},
            "",
            "",
            'true -g (env: ROODA_LOOP_AI_CMD_ALIAS "ours" → global alias)',
        ),
        (
            None,
            {},
            "ai_cmd_alias: kiro-cli",
            "",
            f'{KIRO} (workspace: ./rooda-config.yml "kiro-cli" → built-in alias)',
        ),
        (
            None,
            {},
            "ai_cmd_alias: claude",
            "",
            'true -c (workspace: ./rooda-config.yml "claude" → global alias)',
        ),
    ],
)
def test_origin_of_the_command_and_of_its_alias(
    workspace: Workspace,
    flags: tuple[str, str] | None,
    env: Mapping[str, str],
    loop: str,
    own: str,
    line: str,
) -> None:
    workspace.global_config("ai_cmd_aliases: {ours: true -g, claude: true -c}\n")
    aliases = "ai_cmd_aliases: {mine: true -m}"
    workspace.config(f"loop: {{{loop}}}\n{aliases}\n{procedure()}    {own}\n")
    given = {flags[0][2:].replace("-", "_"): flags} if flags else {}
    shown = configuration(dry(planned(workspace, flags=given, env=env)))
    assert shown[0] == f"AI Command: {line}"


def test_values_of_environment_variables_are_never_shown(workspace: Workspace) -> None:
    workspace.config(f"loop: {{env: {{TOKEN: hush-hush, OTHER: 1}}}}\n{procedure()}")
    report = dry(planned(workspace))
    assert "Environment: TOKEN, OTHER (workspace: ./rooda-config.yml)" in configuration(report)
    assert "hush-hush" not in report


# -- validation ----------------------------------------------------------------------------


def test_only_failed_checks_are_marked(workspace: Workspace) -> None:
    workspace.write("good.md", "words")
    workspace.write("empty.md", "")
    workspace.write("TASK.md", b"\xff")
    workspace.config(procedure(observe="good.md", orient="empty.md", act="[gone.md, good.md]"))
    prepared = planned(
        workspace, flags={"ai_cmd": ("--ai-cmd", "./agent -p")}, contexts=("TASK.md",)
    )
    marked = [line for line in validation(dry(prepared)).splitlines() if line[2] != " "]
    assert marked == [
        "  ✗ AI command binary not found: ./agent",
        "  ✓ Prompt file exists: good.md",
        "  ✗ Prompt file: empty.md is empty",
        "  ✗ Prompt file: gone.md does not exist",
        "  ✓ Prompt file exists: good.md",
        "  ✗ Context file: TASK.md is not UTF-8 text (byte 0)",
        f"  ✓ Sandbox: none: {NO_SANDBOX}",
    ]


def test_program_that_is_not_executable_differs_from_a_missing_one(workspace: Workspace) -> None:
    workspace.write("agent", "#!/bin/sh\n")
    report = dry(planned(workspace, flags={"ai_cmd": ("--ai-cmd", "./agent")}))
    assert "  ✗ AI command binary is not an executable file: ./agent\n" in report


def test_program_is_searched_in_the_working_dir(workspace: Workspace) -> None:
    workspace.write("sub/agent", "#!/bin/sh\n").chmod(0o755)
    flags = {"ai_cmd": ("--ai-cmd", "./agent"), "working_dir": ("--working-dir", "sub")}
    assert f"  ✓ AI command binary exists: {workspace.path}/sub/agent" in dry(
        planned(workspace, flags=flags)
    )


def test_missing_working_dir_is_marked(workspace: Workspace) -> None:
    done = workspace.work("true", "--dry-run", "--working-dir", "nowhere")
    assert done.code == 1
    assert f"  ✗ Working directory does not exist: {workspace.path}/nowhere" in done.out


@pytest.mark.parametrize(
    "flags,contexts,config,words",
    [
        ({}, (), procedure(), "✗ No AI command configured: must specify AI command via CLI flag"),
        (
            {"ai_cmd_alias": ("--ai-cmd-alias", "claud")},
            (),
            procedure(),
            "✗ --ai-cmd-alias: unknown AI command alias 'claud'\n    Did you mean 'claude'?",
        ),
        (
            {"ai_cmd": ("--ai-cmd", "true 'x")},
            (),
            procedure(),
            "✗ --ai-cmd: the AI command can't be split into words: No closing quotation",
        ),
        (
            {"iteration_timeout": ("--iteration-timeout", "0")},
            (),
            procedure(),
            "✗ --iteration-timeout: timeout must be positive, not '0'",
        ),
        (
            {},
            (),
            f"loop:\n  iteration_timeout: -10\n{procedure()}",
            "✗ rooda-config.yml:2: loop.iteration_timeout: timeout must be positive, not -10\n",
        ),
        ({}, (), "loop: [\n", "✗ rooda-config.yml:2: not valid YAML"),
        (
            {},
            (),
            "procedures:\n  work: {observe: [{content: x}]}\n",
            "✗ rooda-config.yml:2: procedures.work: the procedure 'work' lacks orient, decide, act",
        ),
        ({}, ("",), procedure(), "✗ --context: must not be empty"),
    ],
)
def test_invalid_input_is_shown(
    workspace: Workspace,
    flags: Mapping[str, tuple[str, str]],
    contexts: tuple[str, ...],
    config: str,
    words: str,
) -> None:
    workspace.config(config)
    prepared = planned(workspace, flags=flags, contexts=contexts)
    report = dry(prepared)
    assert f"  {words}" in validation(report)
    assert report.endswith("\n\nError: Dry-run validation failed\n")
    assert "Assembled Prompt" not in report


def test_all_problems_are_shown_at_once_on_stdout(workspace: Workspace) -> None:
    workspace.config(
        "loop:\n  failure_threshold: 0\n  log_level: loud\n" + procedure(observe="gone.md")
    )
    done = workspace.rooda("work", "--dry-run", "-n", "none", "--ai-cmd", "nonexistent-cli")
    assert (done.code, done.err) == (1, "")
    for words in (
        "rooda-config.yml:2: loop.failure_threshold",
        "rooda-config.yml:3: loop.log_level",
        "--max-iterations: must be a whole number, not 'none'",
        "AI command binary not found: nonexistent-cli",
        "gone.md does not exist",
    ):
        assert f"  ✗ {words}" in done.out or f"  ✗ Prompt file: {words}" in done.out


@pytest.mark.parametrize(
    "flags,config,words",
    [
        (
            ("-u",),
            procedure(),
            "the run is unlimited and has no clock",
        ),
        (("-u", "-n", "3"), procedure(), "--max-iterations and --unlimited were both given"),
        (("-c", "gone.md"), procedure(), "  ! --context: 'gone.md' looks like a file"),
    ],
    ids=["unlimited", "both", "context"],
)
def test_warnings_are_shown_and_do_not_fail(
    workspace: Workspace, inside: Rooda, flags: tuple[str, ...], config: str, words: str
) -> None:
    workspace.config(config)
    done = inside("work", "--ai-cmd", "true", "--dry-run", *flags)
    assert (done.code, done.err) == (0, "")
    assert words in done.out


def test_warning_is_no_failed_validation(workspace: Workspace) -> None:
    report = dry(planned(workspace, flags={**TRUE, "iteration_mode": ("-u", "unlimited")}))
    assert "has no clock" in report
    assert "failed" not in validation(report)


def test_unknown_procedure_gets_a_suggestion(workspace: Workspace) -> None:
    done = workspace.rooda("biuld", "--dry-run", "--ai-cmd", "true")
    assert (done.code, done.err) == (1, "")
    assert "no procedure or command named 'biuld'\n    Did you mean 'build'?" in done.out


# -- no side effects -----------------------------------------------------------------------


@pytest.mark.parametrize("args", [(), ("--ai-cmd", "nonexistent-cli")], ids=["valid", "invalid"])
def test_dry_run_starts_and_writes_nothing(workspace: Workspace, args: tuple[str, ...]) -> None:
    agent = workspace.agent("touch started")
    workspace.config(f"loop: {{ai_cmd: {agent}, log_file: run.log}}\n{procedure()}")
    before = listing(workspace.path, workspace.home)
    done = workspace.rooda("work", "--dry-run", "--working-dir", ".", *args)
    assert done.code == (1 if args else 0)
    assert listing(workspace.path, workspace.home) == before
    assert not (workspace.state).exists()


@pytest.mark.real
def test_marks_are_replaced_where_the_encoding_lacks_them(workspace: Workspace) -> None:
    done = workspace.work("true", "--dry-run", env={"PYTHONIOENCODING": "latin-1"})
    assert (done.code, done.err) == (0, "")
    assert "? AI command binary exists:" in done.out
    assert "Dry-run complete." in done.out


def test_control_codes_in_prompt_and_config_do_not_reach_the_terminal(workspace: Workspace) -> None:
    workspace.write("look.md", "red \x1b[31malert\x07\r\nnext")
    workspace.config(procedure(observe="look.md"))
    report = dry(planned(workspace, contexts=("\x1b]0;title\x07words",)))
    assert "\x1b" not in report
    assert "\x07" not in report
    assert "red alert\nnext" in report


@pytest.mark.real
def test_closed_reader_is_no_error(workspace: Workspace) -> None:
    with subprocess.Popen(
        [str(ROODA), "build", "--dry-run", "--ai-cmd", "true"],
        cwd=workspace.path,
        env=workspace.environ(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        err = process.stderr.read()
    assert err == b""


# -- the command to execute ----------------------------------------------------------------


@pytest.mark.parametrize(
    "given,left",
    [
        ("work --dry-run --ai-cmd true", "work --ai-cmd true"),
        ("work --ai-cmd true -d", "work --ai-cmd true"),
        ("-d work --ai-cmd true", "work --ai-cmd true"),
        ("run work -d --ai-cmd true", "run work --ai-cmd true"),
        ("--ai-cmd=true --dry-run work", "--ai-cmd=true work"),
        ("work -dv --ai-cmd true", "work -v --ai-cmd true"),
        ("work -qd --ai-cmd true", "work -q --ai-cmd true"),
        ("work -dn 3 --ai-cmd true", "work -n 3 --ai-cmd true"),
        ("work -da claude --ai-cmd true", "work -a claude --ai-cmd true"),
        ("work -vdn3 --ai-cmd true", "work -vn3 --ai-cmd true"),
        ("work -dc words --ai-cmd true", "work -c words --ai-cmd true"),
        ("work -n 3 -cd --ai-cmd true -d", "work -n 3 -cd --ai-cmd true"),
        ("work -c -d --ai-cmd true -d", "work -c -d --ai-cmd true"),
        ("work --context --dry-run --ai-cmd true -d", "work --context --dry-run --ai-cmd true"),
        ("work --context=--dry-run --ai-cmd true -d", "work --context=--dry-run --ai-cmd true"),
        ("work -d -d --ai-cmd true", "work --ai-cmd true"),
        ("work -d -c 'use --dry-run first' --ai-cmd true", ""),
        ("""work -d -c "it's so" --ai-cmd 'true -m "a b"'""", ""),
        ("work -d -c 'two\n\nparagraphs' --ai-cmd true", ""),
    ],
)
def test_command_to_execute_is_the_same_without_dry_run(
    inside: Rooda, given: str, left: str
) -> None:
    arguments = shlex.split(given)
    done = inside(*arguments)
    assert done.code == 0, done.out + done.err
    line = done.out.partition("Ready to execute: ")[2]
    expected = shlex.split(left) if left else [word for word in arguments if word != "-d"]
    assert shlex.split(line) == ["rooda", *expected]


@pytest.mark.parametrize(
    "given,left",
    [
        ("work --resume --dry-run --ai-cmd true", "work --resume --ai-cmd true"),
        ("-d --resume work --ai-cmd true", "--resume work --ai-cmd true"),
        ("work -d --resume=last --ai-cmd true", "work --resume=last --ai-cmd true"),
        ("resume -d", "resume"),
        ("resume 2026 -dn 9", "resume 2026 -n 9"),
    ],
)
def test_command_to_execute_keeps_the_resume_flag(given: str, left: str) -> None:
    assert without_dry_run(given.split()) == left.split()


def test_account_is_shown_without_its_secret(workspace: Workspace) -> None:
    workspace.agent("true", name="bin/claude")
    path = f"{workspace.path / 'bin'}:{os.environ['PATH']}"
    env = {"PATH": path, "ANTHROPIC_API_KEY": "sk-very-secret", "CLAUDECODE": "1"}
    flags = {"ai_cmd_alias": ("--ai-cmd-alias", "claude")}
    shown = dry(planned(workspace, flags=flags, env=env))
    assert "Account of claude: ANTHROPIC_API_KEY is set: the API key, by use" in shown
    assert "Not passed on to claude: CLAUDECODE" in shown
    assert "secret" not in shown
    kept = flags | {"env": ("--env", "CLAUDECODE=1")}
    assert "Not passed on" not in dry(planned(workspace, flags=kept, env=env))


def test_account_is_not_shown_if_no_variable_decides_it(workspace: Workspace) -> None:
    workspace.agent("true", name="bin/claude")
    env = {"PATH": f"{workspace.path / 'bin'}:{os.environ['PATH']}"}
    flags = {"ai_cmd_alias": ("--ai-cmd-alias", "claude")}
    assert "Account" not in dry(planned(workspace, flags=flags, env=env))


def test_missing_prompt_file_is_shown_with_file_line_and_field(workspace: Workspace) -> None:
    workspace.config(
        "procedures:\n  work:\n    observe: [{content: look}]\n    orient: missing.md\n"
        "    decide: [{content: decide}]\n    act: [{content: act}]\n"
    )
    done = workspace.rooda("work", "--dry-run", "--ai-cmd", "true")
    assert done.code == 1
    lines = validation(done.out).splitlines()
    start = lines.index("  ✗ Prompt file: missing.md does not exist")
    assert lines[start + 1] == "    Set at rooda-config.yml:4: procedures.work.orient"
