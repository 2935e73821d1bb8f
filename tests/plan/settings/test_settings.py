"""Rules that each row of the table of settings must follow."""

import re
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from rooda.base.problems import Severity, Tier, errors
from rooda.front.cli.commands.run import run
from rooda.front.options import help_with_all_flags
from rooda.plan.file_reader import TOP_LEVEL
from rooda.plan.first_config import Proposals, template
from rooda.plan.locate import read_preset
from rooda.plan.prepare import Prepared
from rooda.plan.prompts.parts import PHASES
from rooda.plan.settings.json_schema import schema
from rooda.plan.settings.kinds import Boolean, WrongValue
from rooda.plan.settings.setting import Setting
from rooda.plan.settings.settings import (
    AI_CMD,
    AI_CMD_ALIAS,
    BY_KEY,
    GIT_MESSAGE,
    ITERATION_MODE,
    KEEP_AWAKE,
    MAX_ITERATIONS,
    OLD_KEYS,
    PRESET,
    SANDBOX_TRUST,
    SETTINGS,
    VERIFY_BASELINE,
)
from rooda.plan.settings.text_kinds import PathList, PathText, TextMap
from rooda.views.terminal import config_view, dry_run
from support.config import (
    FOUR,
    flag_arguments,
    in_section,
    inspected,
    planned,
    read,
    sample,
    world,
    wrong_text,
)
from support.tables import Test, each_row
from support.workspace import Workspace


def rows(found: Iterable[Setting[Any]]) -> Callable[[Test], Test]:
    return each_row("setting", list(found), ids=lambda setting: setting.key)


each_setting = rows(SETTINGS)
# A file of the work tree can't trust itself.
each_setting_of_a_work_tree = rows(row for row in SETTINGS if row is not SANDBOX_TRUST)
WITH_FLAG = [row for row in SETTINGS if not row.is_secret]  # a command line is no secret
each_setting_with_a_flag = rows(WITH_FLAG)
# The flags of the other settings are switches, which take no text.
each_setting_with_text = rows(row for row in WITH_FLAG if not isinstance(row.kind, Boolean))
# The other settings have their own lines in the dry run.
each_setting_with_a_line = rows(
    row
    for row in SETTINGS
    if row not in (AI_CMD, AI_CMD_ALIAS, ITERATION_MODE, MAX_ITERATIONS, SANDBOX_TRUST)
)
# One setting has `none` as an ordinary value.
each_setting_without_none = rows(
    row
    for row in SETTINGS
    if not isinstance(row.kind, Boolean) and "none" not in row.kind.metavar.split("|")
)


def expected(setting: Setting[Any], folder: Path) -> Any:
    """Return the resolved sample, in which paths are absolute."""
    value = sample(setting).value
    if isinstance(setting.kind, PathList):
        return tuple(str(folder / one) for one in value)
    return str(folder / value) if isinstance(setting.kind, PathText) else value


@each_row(
    "names",
    [
        lambda row: [row.key],
        lambda row: [name for name in (row.flag_name, row.short) if name],
        lambda row: [row.variable, *row.old_variables],
        lambda row: [row.title],
    ],
    ids=["keys", "flags", "variables", "titles"],
)
def test_names_are_unique(names: Callable[[Setting[Any]], list[str]]) -> None:
    found = [name for setting in SETTINGS for name in names(setting)]
    assert sorted(found) == sorted(set(found))


def test_flags_of_a_run_are_unique() -> None:
    flags = [name for param in run.params for name in (*param.opts, *param.secondary_opts)]
    assert sorted(flags) == sorted(set(flags))


def test_no_key_has_another_meaning() -> None:
    assert not {setting.key.partition(".")[0] for setting in SETTINGS} & {*TOP_LEVEL, *PHASES}
    assert not set(OLD_KEYS) & set(BY_KEY)
    assert set(OLD_KEYS.values()) <= set(BY_KEY)


@each_setting
def test_names_follow_their_format(setting: Setting[Any]) -> None:
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*(\.[a-z_]+)?", setting.key)
    assert setting.is_secret or re.fullmatch(r"--[a-z]+(-[a-z]+)*", setting.flag_name)
    assert setting.variable == "ROODA_LOOP_" + re.sub(r"\W", "_", setting.key).upper()


@each_setting
def test_default_passes_its_own_check(setting: Setting[Any]) -> None:
    if setting.default is None:
        assert setting.nullable
    else:
        assert setting.kind.check(setting.default) == setting.default


@each_setting
def test_default_applies_if_nothing_is_set(setting: Setting[Any], tmp_path: Path) -> None:
    prepared = planned(tmp_path, "work", workspace=f"procedures: {{work: {{{FOUR}}}}}")
    assert prepared.values[setting] == setting.default
    assert prepared.values.origin(setting).exact == "built-in"


@pytest.mark.real
@each_setting_of_a_work_tree
def test_key_sets_it(setting: Setting[Any], tmp_path: Path) -> None:
    text = f"# a comment\nloop:\n  {in_section(setting, sample(setting).yaml)}\n"
    prepared = planned(tmp_path, "build", workspace=text)
    assert prepared.values[setting] == expected(setting, tmp_path / "work")
    assert prepared.values.origin(setting).exact == "workspace: ./rooda-config.yml:3"


@pytest.mark.real
@each_setting
def test_key_in_the_global_file_sets_it(setting: Setting[Any], tmp_path: Path) -> None:
    text = f"loop:\n  {in_section(setting, sample(setting).yaml)}\n"
    prepared = planned(tmp_path, "build", global_=text)
    assert prepared.values[setting] == expected(setting, tmp_path / "home/.config/rooda")
    assert prepared.values.origin(setting).exact == "global: ~/.config/rooda/rooda-config.yml:2"


@pytest.mark.long
@each_setting
def test_variable_sets_it(setting: Setting[Any], tmp_path: Path) -> None:
    prepared = planned(tmp_path, "build", env={setting.variable: sample(setting).text})
    assert prepared.values[setting] == expected(setting, tmp_path / "work")
    assert prepared.values.origin(setting).exact == f"env: {setting.variable}"


@pytest.mark.real
@each_setting_with_a_flag
def test_flag_sets_it(setting: Setting[Any], tmp_path: Path) -> None:
    flag = flag_arguments(setting, sample(setting))
    prepared = planned(tmp_path, "build", *flag)
    assert prepared.values[setting] == expected(setting, tmp_path / "work")
    assert prepared.values.origin(setting).exact == f"cli: {flag[0]}"


@pytest.mark.long
@each_setting_with_a_flag
def test_flag_accepts_an_equals_sign(setting: Setting[Any], tmp_path: Path) -> None:
    words = flag_arguments(setting, sample(setting))
    pairs = ["=".join(words[place : place + 2]) for place in range(0, len(words), 2)]
    found = planned(tmp_path, "build", *pairs).values[setting]
    assert found == expected(setting, tmp_path / "work")


@pytest.mark.long
@each_setting_of_a_work_tree
def test_procedure_overrides_it_unless_it_is_about_logging(
    setting: Setting[Any], tmp_path: Path
) -> None:
    text = f"procedures:\n  build:\n    {in_section(setting, sample(setting).yaml)}\n"
    prepared = planned(tmp_path, "build", workspace=text)
    if setting.key.startswith("log_"):
        assert prepared.values.origin(setting).tier is Tier.BUILTIN
        [problem] = [p for p in prepared.problems if p.field == f"procedures.build.{setting.key}"]
        assert problem.severity is Severity.ERROR
        assert "loop" in problem.suggestion
    else:
        assert prepared.values[setting] == expected(setting, tmp_path / "work")
        assert prepared.values.origin(setting).exact == "workspace: ./rooda-config.yml:3"


@pytest.mark.real
@each_setting
def test_null_in_a_file_unsets_it_if_it_is_optional(setting: Setting[Any], tmp_path: Path) -> None:
    prepared = planned(
        tmp_path,
        "build",
        workspace=f"loop: {{{in_section(setting, 'null')}}}",
        global_=f"loop: {{{in_section(setting, sample(setting).yaml)}}}",
    )
    wrong = [p.field for p in errors(prepared.problems)]
    if setting.nullable:
        assert not prepared.values[setting]  # None, or an empty map
        assert setting.field not in wrong
    else:
        assert setting.field in wrong


@pytest.mark.real(rows=1)
@each_setting_without_none
@pytest.mark.parametrize("where", ["variable", "flag"])
def test_none_unsets_it_if_it_is_optional(
    setting: Setting[Any], where: str, tmp_path: Path
) -> None:
    below = f"loop: {{{in_section(setting, sample(setting).yaml)}}}"
    if where == "flag" and setting.is_secret:
        return
    prepared = (
        planned(tmp_path, "build", workspace=below, env={setting.variable: "none"})
        if where == "variable"
        else planned(tmp_path, "build", setting.flag_name, "none", workspace=below)
    )
    name = setting.variable if where == "variable" else setting.flag_name
    wrong = [p.field for p in errors(prepared.problems)]
    if setting.nullable or isinstance(setting.default, dict):
        assert not prepared.values[setting]
        assert name not in wrong
    else:
        assert name in wrong


@each_setting
def test_invalid_value_in_a_file_is_a_problem_with_place_and_advice(setting: Setting[Any]) -> None:
    layer, problems = read(f"loop:\n  {in_section(setting, '[1]')}\n")
    [problem] = problems
    assert problem.severity is Severity.ERROR
    assert (problem.file, problem.line) == ("rooda-config.yml", 2)
    assert problem.field == setting.field
    assert problem.message
    assert problem.suggestion
    assert setting.key not in layer.loop


@each_setting
def test_invalid_value_in_a_procedure_is_a_problem_with_place_and_advice(
    setting: Setting[Any],
) -> None:
    _, problems = read(f"procedures:\n  mine:\n    {in_section(setting, '[1]')}\n")
    [problem] = problems
    assert problem.line == 3
    assert problem.field == f"procedures.mine.{setting.key}"
    assert problem.suggestion


@each_setting
def test_invalid_variable_is_a_problem_that_names_it(setting: Setting[Any], tmp_path: Path) -> None:
    prepared = planned(tmp_path, "build", env={setting.variable: wrong_text(setting)})
    [problem] = [p for p in errors(prepared.problems) if p.field == setting.variable]
    assert problem.message
    assert problem.suggestion
    assert prepared.values[setting] == planned(tmp_path, "build").values[setting]


@each_setting_with_text
def test_invalid_flag_is_a_problem_that_names_it(setting: Setting[Any], tmp_path: Path) -> None:
    prepared = planned(tmp_path, "build", setting.flag_name, wrong_text(setting))
    [problem] = [p for p in errors(prepared.problems) if p.field == setting.flag_name]
    assert problem.message
    assert problem.suggestion


@each_setting
def test_schema_has_it(setting: Setting[Any]) -> None:
    whole = schema()["properties"]
    of_loop = whole["loop"]["anyOf"][0]["properties"]
    of_procedure = whole["procedures"]["anyOf"][0]["additionalProperties"]["anyOf"][0]["properties"]
    for part in setting.key.split("."):
        of_loop = of_loop.get("properties", of_loop)[part]
        of_procedure = of_procedure.get("properties", of_procedure).get(part, {})
    assert of_loop["description"] == setting.help
    assert bool(of_procedure) == setting.per_procedure
    if isinstance(setting.default, (bool, int, float, str)):
        assert of_loop["default"] == setting.default


@each_setting_with_a_flag
def test_help_has_it(setting: Setting[Any]) -> None:
    text = help_with_all_flags(run.make_context("run", ["build"], terminal_width=200))
    line = next(
        line for line in text.splitlines() if setting.flag_name in re.split(r"[\s,/]+", line)
    )
    assert setting.short in line
    assert " ".join(setting.help.split()) in " ".join(text.split())
    assert f"\n{setting.group}:\n" in text


@each_setting
def test_template_has_it_with_its_default(setting: Setting[Any]) -> None:
    name = setting.key.rpartition(".")[2]
    lines = template(Proposals()).splitlines()
    assert [line for line in lines if re.match(rf"\s+#{name}:", line)]
    assert " ".join(setting.help.split()) in " ".join(" ".join(lines).replace("#", " ").split())


def test_default_with_newlines_is_one_line_of_yaml(tmp_path: Path) -> None:
    default = GIT_MESSAGE.default
    assert "\n" in default
    shown = config_view.as_yaml(inspected(tmp_path, workspace="{}\n"))
    for text in (template(Proposals()), shown):
        [line] = [line.strip() for line in text.splitlines() if re.match(r" +#?message: ", line)]
        assert yaml.safe_load(line.removeprefix("#")) == {"message": default}


@each_setting_of_a_work_tree
def test_config_show_prints_it_with_its_origin(setting: Setting[Any], tmp_path: Path) -> None:
    text = f"loop:\n  {in_section(setting, sample(setting).yaml)}\n"
    shown, _, _ = config_view.as_yaml(inspected(tmp_path, workspace=text)).partition("\nfleet:")
    lines = shown.splitlines()
    name = setting.key.rpartition(".")[2]
    if isinstance(setting.kind, TextMap):
        name = "  ONE"  # each name in a map has its own origin
    if "." in setting.key:
        lines = lines[lines.index(f"  {setting.key.partition('.')[0]}:") + 1 :]
        end = next((n for n, line in enumerate(lines) if not line.startswith("    ")), None)
        lines = lines[:end]
    [line] = [line for line in lines if line.startswith((f"  {name}: ", f"    {name}: "))]
    assert line.endswith("  # workspace: ./rooda-config.yml:2")


@pytest.mark.real
@each_setting_with_a_line
def test_dry_run_shows_it_if_it_is_set(setting: Setting[Any], tmp_path: Path) -> None:
    text = f"loop:\n  {in_section(setting, sample(setting).yaml)}\n"
    shown = dry_run.render(planned(tmp_path, "build", workspace=text), [])
    assert re.search(
        rf"^  {setting.title}: .+ \(workspace: \./rooda-config\.yml\)$", shown, re.MULTILINE
    )


@each_row(
    "key,default",
    [
        ("iteration_mode", "max-iterations"),
        ("default_max_iterations", 5),
        ("iteration_timeout", None),
        ("max_output_buffer", 10485760),
        ("failure_threshold", 3),
        ("log_level", "info"),
        ("show_ai_output", False),
        ("ai_cmd", None),
        ("ai_cmd_alias", None),
        ("working_dir", None),
        ("env", {}),
        ("kill_grace", 5.0),
        ("track_file_changes", True),
        ("parse_tests", True),
        ("stall_threshold", None),
        ("verify.command", None),
        ("verify.when", "always"),
        ("verify.timeout", 1800.0),
        ("verify.feedback", True),
        ("verify.retries", 0),
        ("verify.shrink", "warn"),
        ("verify.clean", None),
        ("signals.confirm", 1),
        ("git.commit", False),
        ("git.push", False),
        ("git.require_changes", False),
        ("git.push_timeout", 120.0),
        ("git.snapshots", True),
        ("hooks.loop_end", ()),
        ("history.keep_runs", None),
        ("history.max_age", 90 * 24 * 3600.0),
        ("history.max_size", 2 * 1024**3),
        ("history.max_in_memory", 100),
        ("signals.success", "SUCCESS"),
        ("signals.failure", "FAILURE"),
    ],
)
def test_documented_names_and_defaults(key: str, default: object) -> None:
    assert BY_KEY[key].default == default


@each_row(
    "key,least,too_little",
    [
        ("iteration_timeout", "1", "0.99"),
        ("iteration_timeout", "1", "0"),
        ("iteration_timeout", "1", "-10"),
        ("max_output_buffer", "1024", "1023"),
        ("failure_threshold", "1", "0"),
        ("default_max_iterations", "1", "-1"),
        ("stall_threshold", "1", "0"),
    ],
)
def test_documented_bounds(key: str, least: str, too_little: str) -> None:
    assert read(f"loop: {{{key}: {least}}}")[1] == []
    [problem] = read(f"loop: {{{key}: {too_little}}}")[1]
    assert problem.field == f"loop.{key}"


@pytest.mark.parametrize("name", PRESET.kind.options)  # type: ignore[attr-defined]  # a choice
def test_each_preset_has_a_layer(name: str) -> None:
    layer = read_preset(name)
    assert all(entry.origin.source == name for entry in layer.loop.values())
    for key, entry in layer.loop.items():
        setting = BY_KEY[key]
        assert (
            setting.nullable
            if entry.value is None
            else setting.kind.check(entry.value) == entry.value
        )


def test_keep_awake_takes_booleans_and_auto() -> None:
    for raw, expected in ((True, "true"), (False, "false"), ("auto", "auto"), ("true", "true")):
        assert KEEP_AWAKE.check(raw) == expected
    for text, expected in (("on", "true"), ("0", "false"), ("AUTO", "auto"), ("no", "false")):
        assert KEEP_AWAKE.from_text(text) == expected
    assert [KEEP_AWAKE.plain(word) for word in ("auto", "true", "false")] == ["auto", True, False]
    with pytest.raises(WrongValue, match="must be auto, true or false, not 'sometimes'"):
        KEEP_AWAKE.from_text("sometimes")


def test_baseline_takes_its_words_and_booleans() -> None:
    for raw, expected in ((True, "auto"), (False, "off"), ("require", "require"), ("warn", "warn")):
        assert VERIFY_BASELINE.check(raw) == expected
    for text, expected in (("on", "auto"), ("0", "off"), ("true", "auto"), ("off", "off")):
        assert VERIFY_BASELINE.from_text(text) == expected
    with pytest.raises(WrongValue, match="must be one of auto, require, warn, off, not 'never'"):
        VERIFY_BASELINE.from_text("never")


@pytest.mark.parametrize(
    "words,expected",
    [
        ("build --verify-baseline -n 3", "auto"),
        ("--verify-baseline build", "auto"),
        ("build --verify-baseline", "auto"),
        ("--verify-baseline require build", "require"),
        ("build --verify-baseline=warn", "warn"),
        ("build --verify-baseline false", "off"),
        ("build --no-verify-baseline", "off"),
    ],
)
def test_baseline_flag_takes_a_word_or_none(words: str, expected: str, tmp_path: Path) -> None:
    assert planned(tmp_path, *words.split()).values[VERIFY_BASELINE] == expected


def test_old_variables_still_work(tmp_path: Path) -> None:
    for setting in SETTINGS:
        for name in setting.old_variables:
            prepared = planned(tmp_path, "build", env={name: sample(setting).text})
            assert prepared.values[setting] == sample(setting).value
            assert str(prepared.values.origin(setting)) == f"env: {name}"


@pytest.mark.real
def test_all_settings_can_be_set_at_once(tmp_path: Path) -> None:
    (tmp_path / "work" / "some" / "folder").mkdir(parents=True)
    work = str(tmp_path / "work")
    subprocess.run(["git", "init", "-q", work], check=True)
    subprocess.run(["git", "-C", work, "remote", "add", "origin", str(tmp_path)], check=True)
    flags = [word for row in WITH_FLAG for word in flag_arguments(row, sample(row))]
    prepared: Prepared = planned(tmp_path, "build", *flags)
    assert errors(prepared.all_problems()) == []
    assert all(prepared.values.origin(setting).tier is Tier.CLI for setting in WITH_FLAG)


def test_help_all_of_the_installed_command_has_each_flag(workspace: Workspace) -> None:
    done = workspace.rooda("run", "--help-all")
    assert done.code == 0
    words = set(re.split(r"[\s,/]+", done.out))
    assert {setting.flag_name for setting in WITH_FLAG} <= words


def test_config_show_of_the_installed_command_has_each_setting(workspace: Workspace) -> None:
    workspace.config("loop:\n  failure_threshold: 7\n")
    done = workspace.rooda("config", "show", env={"ROODA_LOOP_KILL_GRACE": "2"})
    assert done.code == 0
    assert done.err == ""
    for setting in SETTINGS:
        assert re.search(rf"^ +{setting.key.rpartition('.')[2]}: ", done.out, re.MULTILINE)
    assert re.search(
        r"failure_threshold: 7 +# workspace: \./rooda-config\.yml:2$", done.out, re.MULTILINE
    )
    assert re.search(r"kill_grace: 2\.0 +# env: ROODA_LOOP_KILL_GRACE$", done.out, re.MULTILINE)


def test_tilde_is_the_home_of_the_given_environment(tmp_path: Path) -> None:
    given = world(tmp_path, workspace="loop: {working_dir: ~/there}")
    prepared = planned(tmp_path, "build", workspace="loop: {working_dir: ~/there}")
    assert prepared.values[BY_KEY["working_dir"]] == str(given.home) + "/there"
