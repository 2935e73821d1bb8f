"""Precedence of values from flags, variables, files, presets and defaults, without a process."""

import json
from pathlib import Path
from typing import Any

import click
import pytest

from rooda.base.problems import Problem, errors, warnings
from rooda.plan.locate import global_folder
from rooda.plan.settings.setting import Setting
from rooda.plan.settings.settings import (
    BY_KEY,
    ENV,
    GIT_MESSAGE,
    IGNORE_EXIT_STATUS,
    LOG_LEVEL,
    MAX_ITERATIONS,
    MAX_ITERS_EXIT_CODE,
    SANDBOX_TRUST,
    SETTINGS,
    SHOW_AI_OUTPUT,
    SIGNALS_FAILURE,
    SIGNALS_STREAMS,
    SIGNALS_SUCCESS,
)
from rooda.plan.world import World
from support.config import FOUR, flag_arguments, in_section, inspected, planned, sample
from support.tables import each_row

COUNT, MODE = "ROODA_LOOP_DEFAULT_MAX_ITERATIONS", "ROODA_LOOP_ITERATION_MODE"
WORKSPACE, GLOBAL = "workspace: ./rooda-config.yml", "global: ~/.config/rooda/rooda-config.yml"
CLOCK = "has no clock"


def containing(problems: list[Problem], words: str) -> list[Problem]:
    return [problem for problem in problems if words in problem.message]


# -- one order for each setting ------------------------------------------------------------

# A file of the work tree can't trust itself.
_ANYWHERE = [setting for setting in SETTINGS if setting is not SANDBOX_TRUST]
PLACES = ("cli", "own in workspace", "own in global", "env", "workspace", "global", "nowhere")


@pytest.mark.long
@each_row("strongest", PLACES)
@each_row("setting", _ANYWHERE, ids=lambda setting: setting.key)
def test_strongest_place_decides(setting: Setting[Any], strongest: str, tmp_path: Path) -> None:
    """A value of the procedure wins over a value of the loop, from any file or variable."""
    places = PLACES[PLACES.index(strongest) :]
    if strongest == "cli" and setting.is_secret:
        return  # it has no flag
    given = sample(setting)
    line = in_section(setting, given.yaml)
    of_procedure = line if setting.per_procedure else ""

    def config(name: str) -> str:
        own = of_procedure if f"own in {name}" in places else ""
        loop = line if name in places else ""
        return f"loop:\n  {{{loop}}}\nprocedures: {{work:\n  {{{own}}}}}\n"

    prepared = planned(
        tmp_path,
        "work",
        *(flag_arguments(setting, given) if "cli" in places else []),
        workspace=config("workspace"),
        global_=config("global"),
        env={setting.variable: given.text} if "env" in places else {},
    )
    origins = {
        "cli": f"cli: {flag_arguments(setting, given)[0]}",
        "own in workspace": f"{WORKSPACE}:4",
        "own in global": f"{GLOBAL}:4",
        "env": f"env: {setting.variable}",
        "workspace": f"{WORKSPACE}:2",
        "global": f"{GLOBAL}:2",
        "nowhere": "built-in",
    }
    if strongest.startswith("own") and not setting.per_procedure:
        strongest = "env"
    assert prepared.values.origin(setting).exact == origins[strongest]


# -- max iterations ------------------------------------------------------------------------


@pytest.mark.real
@each_row("dropped", range(8))
def test_maximum_falls_through_eight_levels(dropped: int, tmp_path: Path) -> None:
    """Flag, procedure in either file, variable, loop in either file, preset, built-in default."""
    kept = [level >= dropped for level in range(8)]
    prepared = planned(
        tmp_path,
        "bootstrap",
        *(["-n", "20"] if kept[0] else []),
        *(["--preset", "ralph"] if kept[6] else []),
        workspace=_levels(21 if kept[1] else None, 24 if kept[4] else None),
        global_=_levels(22 if kept[2] else None, 25 if kept[5] else None),
        env={COUNT: "23"} if kept[3] else {},
    )
    assert prepared.values.iterations.maximum == [20, 21, 22, 23, 24, 25, 10, 1][dropped]
    assert (
        str(prepared.values.iterations.origin)
        == [
            "cli: --max-iterations",
            WORKSPACE,
            GLOBAL,
            f"env: {COUNT}",
            WORKSPACE,
            GLOBAL,
            "preset: ralph",
            "built-in",
        ][dropped]
    )


def _levels(own: int | None, loop: int | None) -> str:
    values = [{} if n is None else {MAX_ITERATIONS.key: n} for n in (own, loop)]
    return json.dumps({"procedures": {"bootstrap": values[0]}, "loop": values[1]})


@each_row(
    "procedure,count",
    [("build", 5), ("bootstrap", 1), ("agents-sync", 3), ("draft-plan-impl-chore", 3), ("mine", 5)],
)
def test_built_in_maximum_is_the_default(procedure: str, count: int, tmp_path: Path) -> None:
    prepared = planned(tmp_path, procedure, workspace=f"procedures: {{mine: {{{FOUR}}}}}")
    assert prepared.values.iterations.maximum == count
    assert str(prepared.values.iterations.origin) == "built-in"


def own(values: str) -> str:
    return f"procedures: {{build: {{{values}}}}}"


def loop(values: str) -> str:
    return f"loop: {{{values}}}"


UNLIMITED, LIMITED = "iteration_mode: unlimited", "iteration_mode: max-iterations"


def nine(mode: str = "") -> str:
    return f"default_max_iterations: 9{', ' if mode else ''}{mode}"


@pytest.mark.real
@each_row(
    "flags,env,workspace,global_,maximum,origin",
    [
        # the flags
        ("-n 7", {}, own(nine()), "", 7, "cli: --max-iterations"),
        ("--max-iterations=7", {}, own(UNLIMITED), "", 7, "cli: --max-iterations"),
        ("-u", {}, own(nine()), loop(nine()), None, "cli: --unlimited"),
        ("--unlimited", {}, "", "", None, "cli: --unlimited"),
        ("-u -n 7", {}, "", "", 7, "cli: --max-iterations"),
        ("-n 7 -u", {}, own(UNLIMITED), "", 7, "cli: --max-iterations"),
        ("--iteration-mode unlimited", {}, own(nine()), "", None, "cli: --iteration-mode"),
        ("--iteration-mode max-iterations", {}, own(nine(UNLIMITED)), "", 9, WORKSPACE),
        ("--iteration-mode max-iterations", {}, loop(UNLIMITED), "", 5, "built-in"),
        ("-u --iteration-mode max-iterations", {}, "", "", 5, "built-in"),
        # the procedure
        ("", {MODE: "unlimited"}, own(nine()), "", 9, WORKSPACE),
        ("", {COUNT: "4"}, own(UNLIMITED), loop(nine()), None, WORKSPACE),
        ("", {}, loop(UNLIMITED), own(nine()), 9, GLOBAL),
        ("", {}, own(UNLIMITED), own(nine()), None, WORKSPACE),
        ("", {}, own(nine()), own(UNLIMITED), 9, WORKSPACE),
        ("", {}, own(LIMITED), own(nine(UNLIMITED)), 9, GLOBAL),
        ("", {COUNT: "4"}, own(LIMITED), "", 4, f"env: {COUNT}"),
        ("", {}, own(LIMITED), "", 5, "built-in"),
        ("", {}, own(nine(UNLIMITED)), "", None, WORKSPACE),
        # the variables
        ("", {COUNT: "4"}, loop(nine(UNLIMITED)), "", 4, f"env: {COUNT}"),
        ("", {MODE: "unlimited"}, loop(nine()), "", None, f"env: {MODE}"),
        ("", {MODE: "unlimited", COUNT: "4"}, "", "", None, f"env: {MODE}"),
        ("", {MODE: "max-iterations"}, loop(nine(UNLIMITED)), "", 9, WORKSPACE),
        # the loop
        ("", {}, loop(nine()), loop(UNLIMITED), 9, WORKSPACE),
        ("", {}, loop(UNLIMITED), loop(nine()), None, WORKSPACE),
        ("", {}, loop(nine(UNLIMITED)), "", None, WORKSPACE),
        ("", {}, loop(LIMITED), loop(nine(UNLIMITED)), 9, GLOBAL),
        ("", {}, "", loop(nine()), 9, GLOBAL),
        # presets
        ("--preset ralph --no-commit --no-git-require-changes", {}, "", "", 10, "preset: ralph"),
        ("--preset v1", {}, "", "", None, "preset: v1"),
        ("--preset v1 -n 3", {}, "", "", 3, "cli: --max-iterations"),
        ("--preset v1 -n 0", {}, loop(nine()), "", None, "cli: --max-iterations"),
        ("--preset v1", {}, loop("default_iterations: 4"), "", 4, WORKSPACE),
        ("--preset v1", {}, own("default_iterations: 0"), loop(nine()), None, WORKSPACE),
        ("--preset v1", {}, loop(LIMITED), "", 5, "built-in"),
        ("", {}, own("default_iterations: 4"), "", 4, WORKSPACE),
        ("--zero-means-unlimited -n 0", {}, "", "", None, "cli: --max-iterations"),
    ],
)
def test_max_iterations_is_resolved_with_its_origin(
    flags: str,
    env: dict[str, str],
    workspace: str,
    global_: str,
    maximum: int | None,
    origin: str,
    tmp_path: Path,
) -> None:
    prepared = planned(
        tmp_path,
        "build",
        "--ai-cmd=true",
        *flags.split(),
        workspace=workspace,
        global_=global_,
        env=env,
    )
    assert errors(prepared.all_problems()) == []
    assert prepared.values.iterations.maximum == maximum
    assert str(prepared.values.iterations.origin) == origin
    assert prepared.plan is not None
    assert prepared.plan.values.iterations == prepared.values.iterations
    assert bool(containing(warnings(prepared.problems), CLOCK)) == (maximum is None)


def test_number_wins_over_unlimited_with_a_warning_that_names_both(tmp_path: Path) -> None:
    prepared = planned(tmp_path, "build", "-n", "7", "-u")
    [warning] = containing(warnings(prepared.problems), "the number wins")
    assert "--max-iterations" in warning.message
    assert "--unlimited" in warning.message


@pytest.mark.parametrize("flags", [["-n", "7"], ["-u"], []])
def test_number_or_unlimited_alone_gives_no_warning(flags: list[str], tmp_path: Path) -> None:
    assert (
        containing(warnings(planned(tmp_path, "build", *flags).problems), "the number wins") == []
    )


def test_unlimited_with_a_timeout_gives_no_warning(tmp_path: Path) -> None:
    prepared = planned(tmp_path, "build", "-u", "--iteration-timeout", "1h")
    assert containing(warnings(prepared.problems), CLOCK) == []


NONE_AT_ALL = "default_max_iterations: 0"
HERE, THERE = "rooda-config.yml", "~/.config/rooda/rooda-config.yml"


@each_row(
    "flags,env,workspace,global_,place,field",
    [
        ("-n 0", {}, "", "", ("", None), "--max-iterations"),
        ("", {COUNT: "0"}, "", "", ("", None), COUNT),
        ("", {}, f"loop:\n  {NONE_AT_ALL}", "", (HERE, 2), "loop."),
        ("", {}, "loop:\n  default_iterations: 0", "", (HERE, 2), "loop."),
        ("", {}, own(f"\n {NONE_AT_ALL}"), "", (HERE, 2), "procedures.build."),
        (
            "",
            {},
            f"procedures: {{audit-spec: {{{NONE_AT_ALL}}}}}",
            "",
            (HERE, 1),
            "procedures.audit",
        ),
        ("", {}, "", loop(NONE_AT_ALL), (THERE, 1), "loop."),
        ("-n 3", {}, loop(NONE_AT_ALL), "", (HERE, 1), "loop."),
    ],
)
def test_zero_iterations_is_an_error_that_suggests_unlimited(
    flags: str,
    env: dict[str, str],
    workspace: str,
    global_: str,
    place: tuple[str, int | None],
    field: str,
    tmp_path: Path,
) -> None:
    prepared = planned(
        tmp_path,
        "build",
        "--ai-cmd=true",
        *flags.split(),
        workspace=workspace,
        global_=global_,
        env=env,
    )
    [problem] = errors(prepared.all_problems())
    assert "must be 1 or more, not 0" in problem.message
    assert "--unlimited" in problem.suggestion
    assert (problem.file, problem.line) == place
    assert problem.field.startswith(field)
    assert not prepared.valid


@pytest.mark.real
@pytest.mark.parametrize("values", ["preset: v1", "zero_means_unlimited: true"])
def test_zero_is_accepted_in_a_procedure_with_zero_means_unlimited(
    values: str, tmp_path: Path
) -> None:
    text = f"procedures: {{old: {{{FOUR}, default_iterations: 0, {values}}}}}"
    for procedure in ("old", "build"):
        prepared = planned(tmp_path, procedure, "--ai-cmd=true", workspace=text)
        assert errors(prepared.all_problems()) == []
    assert planned(tmp_path, "old", workspace=text).values.iterations.maximum is None
    assert planned(tmp_path, "build", workspace=text).values.iterations.maximum == 5


@pytest.mark.real
def test_zero_is_an_error_in_a_procedure_that_leaves_preset_v1(tmp_path: Path) -> None:
    values = f"{FOUR}, preset: rooda, default_iterations: 0"
    text = f"loop: {{preset: v1}}\nprocedures: {{new: {{{values}}}}}"
    for procedure in ("new", "build"):
        prepared = planned(tmp_path, procedure, "--ai-cmd=true", workspace=text)
        [problem] = errors(prepared.all_problems())
        assert problem.field == "procedures.new.default_max_iterations"


# -- the AI command ------------------------------------------------------------------------

ALIASES = "ai_cmd_aliases: {one: cmd one, two: cmd two, three: cmd three}\n"
CMD, ALIAS = "ROODA_LOOP_AI_CMD", "ROODA_LOOP_AI_CMD_ALIAS"


@each_row("dropped", range(13))
def test_ai_command_falls_through_seven_steps(dropped: int, tmp_path: Path) -> None:
    """Steps 3 and 4 have two places each, steps 5 and 6 three; the last step is an error."""
    kept = [place >= dropped for place in range(12)]

    def config(own_cmd: int, own_alias: int, cmd: int, alias: int, name: str) -> str:
        of = [{"ai_cmd": f"cmd {name} own"} if kept[own_cmd] else {}]
        of.append({"ai_cmd_alias": f"{name}-own"} if kept[own_alias] else {})
        of.append({"ai_cmd": f"cmd {name} loop"} if kept[cmd] else {})
        of.append({"ai_cmd_alias": f"{name}-loop"} if kept[alias] else {})
        names = (f"{name}-own", f"{name}-loop", "flag", "env")
        return json.dumps(
            {
                "procedures": {"build": of[0] | of[1]},
                "loop": of[2] | of[3],
                "ai_cmd_aliases": {n: f"alias {n}" for n in names},
            }
        )

    prepared = planned(
        tmp_path,
        "build",
        *(["--ai-cmd", "cmd flag"] if kept[0] else []),
        *(["--ai-cmd-alias", "flag"] if kept[1] else []),
        workspace=config(2, 4, 7, 10, "workspace"),
        global_=config(3, 5, 8, 11, "global"),
        env={
            **({CMD: "cmd env"} if kept[6] else {}),
            **({ALIAS: "env"} if kept[9] else {}),
        },
    )
    if dropped == 12:
        assert prepared.command is None
        [problem] = errors(prepared.all_problems())
        assert problem.title == "No AI command configured"
        return
    assert prepared.command is not None
    assert (prepared.command.text, prepared.command.provenance) == [
        ("cmd flag", "cli: --ai-cmd"),
        ("alias flag", 'cli: --ai-cmd-alias "flag" → workspace alias'),
        ("cmd workspace own", WORKSPACE),
        ("cmd global own", GLOBAL),
        ("alias workspace-own", f'{WORKSPACE} "workspace-own" → workspace alias'),
        ("alias global-own", f'{GLOBAL} "global-own" → global alias'),
        ("cmd env", f"env: {CMD}"),
        ("cmd workspace loop", WORKSPACE),
        ("cmd global loop", GLOBAL),
        ("alias env", f'env: {ALIAS} "env" → workspace alias'),
        ("alias workspace-loop", f'{WORKSPACE} "workspace-loop" → workspace alias'),
        ("alias global-loop", f'{GLOBAL} "global-loop" → global alias'),
    ][dropped]


@pytest.mark.real
@each_row(
    "flags,env,workspace,global_,command",
    [
        ([], {}, loop("ai_cmd: null"), loop("ai_cmd: cmd weak"), None),
        ([], {}, loop("ai_cmd: null, ai_cmd_alias: one"), loop("ai_cmd: cmd weak"), "cmd one"),
        ([], {}, loop("ai_cmd: null"), loop("ai_cmd: cmd weak, ai_cmd_alias: two"), "cmd two"),
        ([], {}, loop("ai_cmd_alias: null"), loop("ai_cmd_alias: two"), None),
        ([], {}, own("ai_cmd: null"), loop("ai_cmd: cmd weak, ai_cmd_alias: two"), "cmd two"),
        ([], {}, own("ai_cmd: null"), own("ai_cmd: cmd weak"), None),
        ([], {}, own("ai_cmd_alias: null"), loop("ai_cmd_alias: two"), None),
        ([], {}, own("ai_cmd: cmd strong, ai_cmd_alias: null"), "", "cmd strong"),
        ([], {CMD: "none"}, loop("ai_cmd: cmd weak, ai_cmd_alias: one"), "", "cmd one"),
        ([], {CMD: "none"}, own("ai_cmd: cmd strong"), "", "cmd strong"),
        ([], {CMD: ""}, loop("ai_cmd: cmd weak"), "", "cmd weak"),
        (["--ai-cmd", "none"], {}, own("ai_cmd: cmd weak, ai_cmd_alias: one"), "", "cmd one"),
        (["--ai-cmd", "none"], {CMD: "cmd weak"}, loop("ai_cmd_alias: one"), "", "cmd one"),
        (["--ai-cmd-alias", "none"], {}, loop("ai_cmd_alias: one"), "", None),
        (["--ai-cmd-alias", "none"], {}, loop("ai_cmd: cmd weak"), "", "cmd weak"),
        (["--preset", "v1"], {}, "", "", "kiro-cli chat --no-interactive --trust-all-tools"),
        (["--preset", "v1", "--ai-cmd-alias", "none"], {}, "", "", None),
        (["--preset", "v1"], {}, loop("ai_cmd: cmd strong"), "", "cmd strong"),
        (["--preset", "v1"], {}, loop("ai_cmd_alias: two"), "", "cmd two"),
    ],
)
def test_null_removes_weaker_commands(
    flags: list[str],
    env: dict[str, str],
    workspace: str,
    global_: str,
    command: str | None,
    tmp_path: Path,
) -> None:
    prepared = planned(
        tmp_path,
        "build",
        *flags,
        workspace=ALIASES + workspace,
        global_=global_,
        env=env,
    )
    assert (prepared.command and prepared.command.text) == command
    no_command = [p for p in errors(prepared.all_problems()) if "No AI command" in p.title]
    assert bool(no_command) == (command is None)


@each_row(
    "flags,env,workspace,global_,names",
    [
        ([], {}, loop("ai_cmd_alias: one"), loop("ai_cmd: cmd weak"), ("'cmd weak'", "'one'")),
        ([], {ALIAS: "two"}, loop("ai_cmd: cmd weak"), "", ("'cmd weak'", "'two'")),
        ([], {}, own("ai_cmd_alias: one"), own("ai_cmd: cmd weak"), ("'cmd weak'", "'one'")),
        (["--ai-cmd=cmd a", "--ai-cmd-alias=one"], {}, "", "", ("'cmd a'", "'one'")),
    ],
)
def test_direct_command_wins_over_a_stronger_alias_with_a_warning(
    flags: list[str],
    env: dict[str, str],
    workspace: str,
    global_: str,
    names: tuple[str, str],
    tmp_path: Path,
) -> None:
    prepared = planned(
        tmp_path, "build", *flags, workspace=ALIASES + workspace, global_=global_, env=env
    )
    assert prepared.command is not None
    assert repr(prepared.command.text) == names[0]
    [warning] = containing(warnings(prepared.problems), "not the alias")
    assert all(name in warning.message for name in names)


@pytest.mark.real
@each_row(
    "flags,workspace,global_",
    [
        ([], loop("ai_cmd: cmd strong"), loop("ai_cmd_alias: one")),
        ([], own("ai_cmd: cmd strong"), loop("ai_cmd_alias: one")),
        ([], own("ai_cmd_alias: one"), loop("ai_cmd: cmd weak")),
        (["--ai-cmd=cmd strong"], loop("ai_cmd_alias: one"), ""),
        (["--ai-cmd-alias=one"], loop("ai_cmd: cmd weak"), ""),
        (["--preset=v1"], loop("ai_cmd: cmd strong"), ""),
    ],
)
def test_weaker_alias_gives_no_warning(
    flags: list[str], workspace: str, global_: str, tmp_path: Path
) -> None:
    prepared = planned(tmp_path, "build", *flags, workspace=ALIASES + workspace, global_=global_)
    assert prepared.command is not None
    assert containing(warnings(prepared.problems), "not the alias") == []


# -- aliases -------------------------------------------------------------------------------

BUILT_IN = ["claude", "codex", "gemini", "opencode", "qwen", "copilot", "cursor-agent", "kiro-cli"]


def test_aliases_of_both_files_join_the_built_in_ones(tmp_path: Path) -> None:
    aliases = inspected(
        tmp_path,
        "build",
        workspace="ai_cmd_aliases: {mine: cmd w, claude: my-claude, gemini: null, gone: null}",
        global_="ai_cmd_aliases: {mine: cmd g, other: {command: cmd o, adapter: codex}, gone: x}",
    ).layers.aliases()
    kept = [name for name in BUILT_IN if name != "gemini"]
    assert sorted(aliases) == sorted([*kept, "mine", "other"])
    assert aliases["mine"].value.command == "cmd w"
    assert aliases["mine"].origin.exact == f"{WORKSPACE}:1"
    assert aliases["claude"].value.command == "my-claude"
    assert (aliases["other"].value.command, aliases["other"].value.adapter) == ("cmd o", "codex")
    assert aliases["other"].origin.exact == f"{GLOBAL}:1"
    assert aliases["codex"].origin.exact == "built-in"


def test_removed_alias_is_unknown(tmp_path: Path) -> None:
    prepared = planned(
        tmp_path, "build", "--ai-cmd-alias", "claude", workspace="ai_cmd_aliases: {claude: null}"
    )
    [problem] = errors(prepared.all_problems())
    assert "unknown AI command alias 'claude'" in problem.message


def test_removed_alias_can_be_redefined_in_the_stronger_file(tmp_path: Path) -> None:
    prepared = planned(
        tmp_path,
        "build",
        "--ai-cmd-alias=claude",
        workspace="ai_cmd_aliases: {claude: cmd back}",
        global_="ai_cmd_aliases: {claude: null}",
    )
    assert prepared.command is not None
    assert prepared.command.text == "cmd back"


# -- logging -------------------------------------------------------------------------------

LEVEL, OLD_LEVEL = "ROODA_LOOP_LOG_LEVEL", "ROODA_LOG_LEVEL"
SHOW, OLD_SHOW = "ROODA_LOOP_SHOW_AI_OUTPUT", "ROODA_SHOW_AI_OUTPUT"
HIDE = "cli: --no-show-ai-output"


@pytest.mark.real
@each_row(
    "flags,env,workspace,global_,level,origin",
    [
        ("", {}, "", "", "info", "built-in"),
        ("", {}, "", loop("log_level: error"), "error", GLOBAL),
        ("", {}, loop("log_level: debug"), loop("log_level: error"), "debug", WORKSPACE),
        ("", {OLD_LEVEL: "warn"}, loop("log_level: debug"), "", "warn", f"env: {OLD_LEVEL}"),
        ("", {LEVEL: "error"}, loop("log_level: debug"), "", "error", f"env: {LEVEL}"),
        ("", {LEVEL: "error", OLD_LEVEL: "warn"}, "", "", "error", f"env: {LEVEL}"),
        ("", {LEVEL: "", OLD_LEVEL: "warn"}, "", "", "warn", f"env: {OLD_LEVEL}"),
        ("", {LEVEL: "", OLD_LEVEL: ""}, "", "", "info", "built-in"),
        ("-q", {LEVEL: "debug"}, loop("log_level: debug"), "", "warn", "cli: --quiet"),
        ("--quiet", {}, "", "", "warn", "cli: --quiet"),
        ("-q --log-level debug", {}, "", "", "debug", "cli: --log-level"),
        ("--log-level=error -q", {}, "", "", "error", "cli: --log-level"),
        ("--log-level error", {LEVEL: "debug"}, "", "", "error", "cli: --log-level"),
        ("-v", {}, "", "", "info", "built-in"),
        ("-v --log-level warn", {}, "", "", "warn", "cli: --log-level"),
        ("", {}, own("log_level: debug"), "", "info", "built-in"),
        ("--preset v1", {}, "", "", "info", "built-in"),
    ],
)
def test_log_level_is_resolved_with_its_origin(
    flags: str,
    env: dict[str, str],
    workspace: str,
    global_: str,
    level: str,
    origin: str,
    tmp_path: Path,
) -> None:
    values = planned(
        tmp_path, "build", *flags.split(), workspace=workspace, global_=global_, env=env
    ).values
    assert values[LOG_LEVEL] == level
    assert str(values.origin(LOG_LEVEL)) == origin


@pytest.mark.real
@each_row(
    "flags,env,workspace,show,origin",
    [
        ("", {}, "", False, "built-in"),
        ("", {}, loop("show_ai_output: true"), True, WORKSPACE),
        ("", {OLD_SHOW: "true"}, "", True, f"env: {OLD_SHOW}"),
        ("", {OLD_SHOW: "1"}, "", True, f"env: {OLD_SHOW}"),
        ("", {SHOW: "false", OLD_SHOW: "true"}, "", False, f"env: {SHOW}"),
        ("", {SHOW: "false"}, own("show_ai_output: true"), True, WORKSPACE),
        ("-v", {SHOW: "false"}, own("show_ai_output: false"), True, "cli: --verbose"),
        ("--verbose", {}, "", True, "cli: --verbose"),
        ("--show-ai-output", {}, "", True, "cli: --show-ai-output"),
        ("--no-show-ai-output", {}, loop("show_ai_output: true"), False, HIDE),
        ("-v --no-show-ai-output", {}, "", False, HIDE),
        ("-q", {}, loop("show_ai_output: true"), True, WORKSPACE),
        ("--preset ralph", {}, "", True, "preset: ralph"),
        ("--preset ralph", {}, loop("show_ai_output: false"), False, WORKSPACE),
    ],
)
def test_show_ai_output_is_resolved_with_its_origin(
    flags: str, env: dict[str, str], workspace: str, *, show: bool, origin: str, tmp_path: Path
) -> None:
    values = planned(tmp_path, "build", *flags.split(), workspace=workspace, env=env).values
    assert values[SHOW_AI_OUTPUT] is show
    assert str(values.origin(SHOW_AI_OUTPUT)) == origin


@pytest.mark.parametrize("flags", ["-v -q", "--quiet --verbose", "-qv"])
def test_verbose_with_quiet_is_an_error(flags: str, tmp_path: Path) -> None:
    with pytest.raises(click.UsageError, match="--verbose and --quiet"):
        planned(tmp_path, "build", *flags.split())


# -- the agent's environment ---------------------------------------------------------------


def test_env_is_merged_by_name(tmp_path: Path) -> None:
    prepared = planned(
        tmp_path,
        "build",
        "--ai-cmd=true",
        "--env",
        "FLAG=f",
        "--env",
        "WORDS=two words and a 'quote'",
        global_=loop("env: {ALL: global, LOOP: global, GONE: global, GLOBAL: g}"),
        workspace=loop("env: {ALL: workspace, LOOP: workspace, GONE: null, W: w, V: workspace}")
        + "\n"
        + own("env: {ALL: own, OWN: o, FLAG: own, V: own}"),
        env={"ROODA_LOOP_ENV": "ALL=variable V=variable VARIABLE='v w'", "INHERITED": "yes"},
    )
    assert prepared.values[ENV] == {
        "ALL": "own",
        "LOOP": "workspace",
        "GLOBAL": "g",
        "W": "w",
        "V": "own",
        "OWN": "o",
        "VARIABLE": "v w",
        "FLAG": "f",
        "WORDS": "two words and a 'quote'",
        "GONE": None,
    }
    assert prepared.plan is not None
    assert prepared.plan.environ["INHERITED"] == "yes"
    assert prepared.plan.environ["ALL"] == "own"


def test_env_of_the_config_wins_over_the_inherited_environment(tmp_path: Path) -> None:
    prepared = planned(
        tmp_path,
        "build",
        "--ai-cmd=true",
        workspace=loop("env: {EDITOR: 'true', GONE: null}"),
        env={"EDITOR": "vi", "GONE": "inherited"},
    )
    assert prepared.plan is not None
    assert prepared.plan.environ["EDITOR"] == "true"
    assert "GONE" not in prepared.plan.environ, "null removes a variable"


@each_row(
    "written,value",
    [
        ("3.10", "3.10"),
        ("0x1F", "0x1F"),
        ("014", "014"),
        ("1e3", "1e3"),
        ("5", "5"),
        ("true", "true"),
        ("on", "on"),
        ("'5'", "5"),
        ("''", ""),
        ("2024-01-01", "2024-01-01"),
    ],
)
def test_value_of_a_variable_is_its_text_in_the_file(
    written: str, value: str, tmp_path: Path
) -> None:
    prepared = planned(tmp_path, "build", workspace=loop(f"env: {{NAME: {written}}}"))
    assert prepared.values[ENV] == {"NAME": value}


# -- procedures ----------------------------------------------------------------------------


def test_procedures_merge_by_field_and_a_phase_is_replaced(tmp_path: Path) -> None:
    global_ = """
procedures:
  build:
    description: of global
    failure_threshold: 7
    orient: [{content: global orient}]
    act: [{content: global one}, {content: global two}]
"""
    workspace = "procedures: {build: {act: [{content: the only one}], kill_grace: 1}}"
    prepared = planned(tmp_path, "build", "--ai-cmd=true", workspace=workspace, global_=global_)
    assert prepared.plan is not None
    prompt = prepared.plan.prompt()
    assert "\n## ORIENT\nglobal orient\n\n## DECIDE\n" in prompt
    assert prompt.endswith("\n## ACT\nthe only one\n")
    assert [part.source.name for part in prepared.plan.phases["observe"]] == [
        "builtin:prompts/observe_plan_specs_impl.md"
    ]
    found = inspected(tmp_path, workspace=workspace, global_=global_)
    assert found.layers.description("build") == "of global"
    assert prepared.values[BY_KEY["failure_threshold"]] == 7
    assert prepared.values[BY_KEY["kill_grace"]] == 1.0


def test_phase_flag_wins_over_both_files(tmp_path: Path) -> None:
    prepared = planned(
        tmp_path,
        "build",
        "--ai-cmd=true",
        "--act",
        "first words",
        "--act",
        "then more",
        workspace="procedures: {build: {act: [{content: of the file}]}}",
    )
    assert prepared.plan is not None
    assert prepared.plan.prompt().endswith("## ACT\nfirst words\n\nthen more\n")


def test_config_flag_names_another_file(tmp_path: Path) -> None:
    other = tmp_path / "work" / "sub" / "other.yml"
    other.parent.mkdir(parents=True)
    other.write_text("loop: {failure_threshold: 8}")
    prepared = planned(
        tmp_path,
        "build",
        "--config",
        "sub/other.yml",
        workspace=loop("failure_threshold: 9, kill_grace: 9"),
        global_=loop("failure_threshold: 7, default_max_iterations: 7"),
    )
    assert prepared.values[BY_KEY["failure_threshold"]] == 8
    assert (
        prepared.values.origin(BY_KEY["failure_threshold"]).exact == "workspace: ./sub/other.yml:1"
    )
    assert prepared.values[BY_KEY["kill_grace"]] == 5.0
    assert prepared.values.iterations.maximum == 7


# -- presets -------------------------------------------------------------------------------

RALPH = {
    "keep_awake": "false",
    "default_max_iterations": 10,
    "signals.success": "COMPLETE",
    "signals.failure": None,
    "signals.streams": "stdout",
    "show_ai_output": True,
    "ai_output_stream": "stderr",
    "max_iters_exit_code": 0,
    "verify.baseline": "off",
    "verify.feedback": False,
    "max_attempts": 3,
    "git.commit": True,
    "git.dirty": "commit",
    "git.untracked": "commit",
    "git.require_changes": True,
    "git.message": "{mode}: iteration {iteration} - {task}",
    "exit_codes.required": 2,
    "exit_codes.verify": 3,
    "exit_codes.agent": 4,
    "exit_codes.git": 5,
}
V1 = {
    "keep_awake": "false",
    "verify.baseline": "off",
    "ai_cmd_alias": "kiro-cli",
    "iteration_mode": "unlimited",
    "zero_means_unlimited": True,
    "signals.success": None,
    "signals.failure": None,
    "ignore_exit_status": True,
    "max_iters_exit_code": 0,
    "separators": True,
    "git.push": True,
    "git.message": "{procedure}: iteration {iteration}",
}


@pytest.mark.real
@pytest.mark.parametrize("preset,expected", [("ralph", RALPH), ("v1", V1), ("rooda", {})])
def test_preset_is_a_layer_just_above_the_built_in_defaults(
    preset: str, expected: dict[str, object], tmp_path: Path
) -> None:
    values = planned(tmp_path, "build", "--preset", preset).values
    for key, value in expected.items():
        assert values[BY_KEY[key]] == value
        assert str(values.origin(BY_KEY[key])) == f"preset: {preset}"
    others = [row for row in SETTINGS if row.key not in expected and row.key != "preset"]
    assert [row.key for row in others if str(values.origin(row)) == f"preset: {preset}"] == []


@pytest.mark.real
@each_row("place", ["flag", "variable", "procedure", "workspace", "global"])
def test_preset_can_be_set_in_each_place(place: str, tmp_path: Path) -> None:
    line = "preset: ralph"
    values = planned(
        tmp_path,
        "build",
        *(["--preset=ralph"] if place == "flag" else []),
        workspace={"workspace": loop(line), "procedure": own(line)}.get(place),
        global_=loop(line) if place == "global" else loop("preset: v1"),
        env={"ROODA_LOOP_PRESET": "ralph"} if place == "variable" else {},
    ).values
    assert values[SIGNALS_SUCCESS] == "COMPLETE"
    assert values[IGNORE_EXIT_STATUS] is False


@pytest.mark.long
@each_row("key", V1)
@each_row("place", ["global", "workspace", "variable", "flag"])
def test_each_value_of_a_preset_can_be_overridden(key: str, place: str, tmp_path: Path) -> None:
    setting = BY_KEY[key]
    is_shown_as_given = setting.default is not None and setting is not GIT_MESSAGE
    given = sample(setting)._replace(value=setting.default if is_shown_as_given else "other")
    text = setting.kind.show(given.value) if is_shown_as_given else "other"
    flag = flag_arguments(setting, given._replace(text=text))
    line = loop(in_section(setting, text))
    values = planned(
        tmp_path,
        "build",
        "--preset=v1",
        *(flag if place == "flag" else []),
        workspace=line if place == "workspace" else None,
        global_=line if place == "global" else None,
        env={setting.variable: text} if place == "variable" else {},
    ).values
    assert values[setting] == given.value
    assert str(values.origin(setting)).partition(":")[0] == {
        "flag": "cli",
        "variable": "env",
    }.get(place, place)


@pytest.mark.real
def test_signals_of_the_presets_ralph_and_v1(tmp_path: Path) -> None:
    ralph = planned(tmp_path, "build", "--preset=ralph").values
    assert (ralph[SIGNALS_SUCCESS], ralph[SIGNALS_STREAMS]) == ("COMPLETE", "stdout")
    old = planned(tmp_path, "build", "--preset=v1").values
    assert (old[SIGNALS_SUCCESS], old[SIGNALS_FAILURE]) == (None, None)
    assert old[MAX_ITERS_EXIT_CODE] == 0


# -- the folder of the global file ---------------------------------------------------------


@each_row(
    "environ,folder",
    [
        ({"ROODA_CONFIG_HOME": "/r", "XDG_CONFIG_HOME": "/x", "HOME": "/h"}, "/r"),
        ({"ROODA_CONFIG_HOME": "rel/r", "HOME": "/h"}, "/here/rel/r"),
        ({"XDG_CONFIG_HOME": "/x", "HOME": "/h"}, "/x/rooda"),
        ({"ROODA_CONFIG_HOME": "", "XDG_CONFIG_HOME": "/x", "HOME": "/h"}, "/x/rooda"),
        ({"XDG_CONFIG_HOME": "", "HOME": "/h"}, "/h/.config/rooda"),
        ({"XDG_CONFIG_HOME": "relative", "HOME": "/h"}, "/h/.config/rooda"),
        ({"HOME": "/h"}, "/h/.config/rooda"),
        ({"HOME": ""}, None),
        ({}, None),
    ],
)
def test_folder_of_the_global_file(environ: dict[str, str], folder: str | None) -> None:
    found = global_folder(World(Path("/here"), environ))
    assert found == (None if folder is None else Path(folder))


@pytest.mark.parametrize(
    "names,value",
    [
        (("ROODA_CONFIG_HOME", "XDG_CONFIG_HOME"), 11),
        (("XDG_CONFIG_HOME",), 12),
        ((), 13),
    ],
)
def test_only_one_global_file_is_read(names: tuple[str, ...], value: int, tmp_path: Path) -> None:
    folders = {"ROODA_CONFIG_HOME": tmp_path / "own", "XDG_CONFIG_HOME": tmp_path / "xdg"}
    for number, folder in ((11, tmp_path / "own"), (12, tmp_path / "xdg" / "rooda")):
        folder.mkdir(parents=True)
        (folder / "rooda-config.yml").write_text(f"loop: {{failure_threshold: {number}}}")
    values = planned(
        tmp_path,
        "build",
        global_="loop: {failure_threshold: 13}",
        env={name: str(folders[name]) for name in names},
    ).values
    assert values[BY_KEY["failure_threshold"]] == value
