"""Problems of the configuration are reported all at once, each with its place and advice."""

import re
from pathlib import Path

import pytest

from rooda.base.problems import Problem, Severity, errors, warnings
from rooda.plan.prompts.parts import PHASES
from rooda.plan.settings.settings import BY_KEY, LOG_FILE, WORKING_DIR
from support.config import FOUR, inspected, planned, read
from support.tables import each_row
from support.workspace import PROCEDURE, Workspace

FILE, GLOBAL_FILE = "rooda-config.yml", "~/.config/rooda/rooda-config.yml"


def places(problems: list[Problem]) -> list[tuple[str, int | None, str]]:
    return sorted((p.file, p.line or 0, p.field) for p in problems)


MANY = """\
loop:
  iteration_timeout: -10
  failure_threshold: 0
  max_output_buffer: 12
  log_level: loud
  show_ai_output: yes
  iteration_mode: sometimes
  env: [A, B]
  signals:
    success: two words
    match: everywhere
ai_cmd_aliases:
  empty: ""
  nothing: {adapter: claude}
  listed: [claude]
procedures:
  other:
    failure_threshold: -1
    observe: 5
    orient: []
    decide: [{content: a, path: b}]
    act: [{parameters: {}}]
  partial:
    observe: [{content: look}]
  "-flag": {}
  text: words
"""


def test_all_problems_of_a_file_are_reported_at_once() -> None:
    _, problems = read(MANY)
    assert places(errors(problems)) == [
        (FILE, 2, "loop.iteration_timeout"),
        (FILE, 3, "loop.failure_threshold"),
        (FILE, 4, "loop.max_output_buffer"),
        (FILE, 5, "loop.log_level"),
        (FILE, 6, "loop.show_ai_output"),
        (FILE, 7, "loop.iteration_mode"),
        (FILE, 8, "loop.env"),
        (FILE, 10, "loop.signals.success"),
        (FILE, 11, "loop.signals.match"),
        (FILE, 13, "ai_cmd_aliases.empty"),
        (FILE, 14, "ai_cmd_aliases.nothing"),
        (FILE, 15, "ai_cmd_aliases.listed"),
        (FILE, 18, "procedures.other.failure_threshold"),
        (FILE, 19, "procedures.other.observe"),
        (FILE, 20, "procedures.other.orient"),
        (FILE, 21, "procedures.other.decide"),
        (FILE, 22, "procedures.other.act"),
        (FILE, 25, "procedures.-flag"),
        (FILE, 26, "procedures.text"),
    ]
    assert all(problem.message and problem.suggestion for problem in problems)


def test_problems_of_all_sources_are_reported_at_once(tmp_path: Path) -> None:
    prepared = planned(
        tmp_path,
        "build",
        "--failure-threshold=0",
        "--act=missing.md",
        "--context=",
        workspace="loop:\n  kill_grace: -1\nprocedures:\n  mine: {}\n",
        global_="loop:\n  log_format: xml\nai_cmd_aliases: {x: []}\n",
        env={"ROODA_LOOP_ITERATION_TIMEOUT": "never", "ROODA_LOOP_PRESET": "v3"},
    )
    found = errors(prepared.all_problems())
    assert places(found) == sorted(
        [
            ("", 0, ""),  # no AI command
            ("", 0, "--act"),
            ("", 0, "--context"),
            ("", 0, "--failure-threshold"),
            ("", 0, "ROODA_LOOP_ITERATION_TIMEOUT"),
            ("", 0, "ROODA_LOOP_PRESET"),
            (FILE, 2, "loop.kill_grace"),
            (FILE, 4, "procedures.mine"),
            (GLOBAL_FILE, 2, "loop.log_format"),
            (GLOBAL_FILE, 3, "ai_cmd_aliases.x"),
        ]
    )
    assert all(problem.message and problem.suggestion for problem in found)
    assert not prepared.valid


def test_valid_values_of_an_invalid_file_still_apply(tmp_path: Path) -> None:
    text = "loop: {log_format: logfmt, failure_threshold: 0}\nlop: {}\n"
    prepared = planned(tmp_path, "build", workspace=text)
    assert prepared.values[BY_KEY["log_format"]] == "logfmt"
    assert prepared.values[BY_KEY["failure_threshold"]] == 3


@each_row(
    "text,words",
    [
        ("loop: []", "must be a mapping of keys to values, not a list"),
        ("loop: words", "must be a mapping of keys to values, not 'words'"),
        ("- loop", "must be a mapping of keys to values, not a list"),
        ("words", "must be a mapping of keys to values, not 'words'"),
        ("procedures: 5", "must be a mapping of keys to values, not 5"),
        ("ai_cmd_aliases: true", "must be a mapping of keys to values, not true"),
        ("procedures: {p: [a]}", "must be a mapping of keys to values, not a list"),
        ("loop: {signals: SUCCESS}", "must be a mapping of keys to values, not 'SUCCESS'"),
        ("procedures: {p: {observe: {content: a}}}", "must be a path or a list of items"),
        ("procedures: {p: {observe: null}}", "must be a path or a list of items, not nothing"),
        ("procedures: {p: {observe: ''}}", "must be a path or a list of items, not ''"),
        ("procedures: {p: {observe: [[a]]}}", "must be a path or a list of items, not a list"),
        ("procedures: {p: {observe: [{}]}}", "exactly one of `path` and `content`"),
        ("procedures: {p: {observe: [{content: ''}]}}", "must not be empty"),
        ("procedures: {p: {observe: [{path: [a]}]}}", "must be text, not a list"),
        ("procedures: {p: {observe: [{content: a, parameters: [b]}]}}", "must be a mapping"),
        ("procedures: {p: {observe: [{content: a, parameters: {b: [c]}}]}}", "must be text"),
        ("procedures: {p: {description: []}}", "must be text, not a list"),
        ("ai_cmd_aliases: {x: {}}", "has no command"),
        ("ai_cmd_aliases: {x: {command: ''}}", "must not be empty"),
        ("ai_cmd_aliases: {x: {command: a, adapter: []}}", "not a list"),
    ],
)
def test_wrong_shape_is_one_problem(text: str, words: str) -> None:
    _, problems = read(text)
    [problem] = errors(problems)
    assert words in problem.message
    assert problem.line == 1
    assert problem.suggestion


def test_mistake_in_a_phase_is_reported_once(tmp_path: Path) -> None:
    rest = ", ".join(f"{phase}: [{{content: a}}]" for phase in PHASES[1:])
    text = f"procedures: {{mine: {{observe: 5, {rest}}}}}"
    prepared = planned(tmp_path, "mine", "--ai-cmd=true", workspace=text)
    assert [p.field for p in errors(prepared.all_problems())] == ["procedures.mine.observe"]


# -- suggestions ---------------------------------------------------------------------------

PART, ALIAS = "observe: [{contents: a, path: b}]", "x: {command: a, adaptor: b}"
BILD = "--observe=builtin:prompts/observe_bild.md"


@each_row(
    "text,line,field,guess",
    [
        ("lop:\n  {}", 1, "lop", "'loop'"),
        ("procedure: {}", 1, "procedure", "'procedures'"),
        ("ai_cmd_alias: {}", 1, "ai_cmd_alias", "loop"),
        ("failure_threshold: 3", 1, "failure_threshold", "loop"),
        ("loop:\n  iteration_timout: 5", 2, "loop.iteration_timout", "'iteration_timeout'"),
        ("loop:\n  iteration-timeout: 5", 2, "loop.iteration-timeout", "'iteration_timeout'"),
        ("loop:\n  Log_Level: info", 2, "loop.Log_Level", "'log_level'"),
        ("loop:\n  signals:\n    sucess: A", 3, "loop.signals.sucess", "'signals.success'"),
        ("loop:\n  exit_codes:\n    zebra: 1", 3, "loop.exit_codes.zebra", "config schema"),
        ("loop:\n  verfy: make", 2, "loop.verfy", "'verify'"),
        ("hooks: {}", 1, "hooks", "below `loop`"),
        ("procedures:\n  p:\n    observ: a", 3, "procedures.p.observ", "'observe'"),
        ("procedures:\n  p:\n    log_level: info", 3, "procedures.p.log_level", "loop"),
        ("procedures:\n  p:\n    ai_cmd_allias: a", 3, "procedures.p.ai_cmd_allias", "_alias'"),
        (f"procedures:\n  p:\n    {PART}", 3, "procedures.p.observe.contents", "'content'"),
        (f"ai_cmd_aliases:\n  {ALIAS}", 2, "ai_cmd_aliases.x.adaptor", "'adapter'"),
    ],
)
def test_unknown_key_is_an_error_with_a_suggestion(
    text: str, line: int, field: str, guess: str
) -> None:
    _, problems = read(text)
    [problem] = problems
    assert problem.severity is Severity.ERROR
    assert (problem.file, problem.line, problem.field) == (FILE, line, field)
    assert "unknown key" in problem.message
    assert guess in problem.suggestion


def test_unknown_key_without_a_similar_key_has_advice() -> None:
    [problem] = read("loop: {xyzzy: 1}")[1]
    assert problem.severity is Severity.ERROR
    assert "config schema" in problem.suggestion


def test_dotted_key_is_no_section() -> None:
    layer, problems = read("loop: {signals.success: A}")
    assert layer.loop == {}
    [problem] = problems
    assert "unknown key" in problem.message


def test_unknown_keys_prevent_a_run(tmp_path: Path) -> None:
    prepared = planned(tmp_path, "build", "--ai-cmd=true", workspace="lop: {}\nloop: {colour: 1}")
    assert not prepared.valid
    assert places(errors(prepared.all_problems())) == [(FILE, 1, "lop"), (FILE, 2, "loop.colour")]


@each_row("text", ["x_mine: 1", "X-mine: 1", "loop: {x-mine: 1}", "x: {}"])
def test_only_top_level_keys_that_start_with_x_dash_are_free(text: str) -> None:
    [problem] = read(text)[1]
    assert problem.severity is Severity.ERROR
    assert "unknown key" in problem.message


def test_merge_key_inserts_an_anchor_and_own_keys_override_it() -> None:
    text = (
        "x-limits: &limits {max_cost: 5, default_max_iterations: 9}\n"
        "x-more: &more {max_cost: 7, max_tokens: 1000}\n"
        "loop:\n  <<: [*limits, *more]\n  default_max_iterations: 3\n"
    )
    layer, problems = read(text)
    assert problems == []
    found = {key: valued.value for key, valued in layer.loop.items()}
    assert found == {"max_cost": 5.0, "default_max_iterations": 3, "max_tokens": 1000}


def test_merge_key_without_a_mapping_is_an_error() -> None:
    [problem] = read("loop:\n  <<: 5\n")[1]
    assert (problem.line, problem.message) == (2, "`<<` needs a mapping")


def test_misspelled_key_of_an_anchor_is_an_error_where_it_is_merged() -> None:
    [problem] = read("x-limits: &limits {max_cosst: 5}\nloop: {<<: *limits}\n")[1]
    assert problem.line == 1
    assert "max_cost" in problem.suggestion


@each_row(
    "arguments,env,words,guess",
    [
        (["bild"], {}, "no procedure or command named 'bild'", "'build'"),
        (["lst"], {}, "no procedure or command named 'lst'", "'list'"),
        (["build", "--ai-cmd-alias=claud"], {}, "unknown AI command alias 'claud'", "'claude'"),
        (["build", "--preset=raplh"], {}, "must be one of", "'ralph'"),
        (["build", "--log-level=debgu"], {}, "must be one of", "'debug'"),
        (["build", BILD], {}, "no built-in prompt", "builtin:"),
        (["build"], {"ROODA_LOOP_LOG_LEVEL": "warning"}, "must be one of", "'warn'"),
        (["build"], {"ROODA_LOOP_AI_CMD_ALIAS": "cluade"}, "unknown AI command alias", "'claude'"),
    ],
)
def test_other_unknown_names_have_suggestions(
    arguments: list[str], env: dict[str, str], words: str, guess: str, tmp_path: Path
) -> None:
    found = errors(planned(tmp_path, *arguments, env=env).all_problems())
    [problem] = [problem for problem in found if words in problem.message]
    assert guess in problem.suggestion


def test_unknown_variable_is_an_error_with_a_suggestion(tmp_path: Path) -> None:
    env = {"ROODA_LOOP_ITERATION_TIMEOT": "5", "ROODA_OTHER": "x", "ROODA_LOOP_AI_CMD": "true"}
    prepared = planned(tmp_path, "build", env=env)
    [problem] = errors(prepared.all_problems())
    assert "ROODA_LOOP_ITERATION_TIMEOT" in problem.message
    assert "'ROODA_LOOP_ITERATION_TIMEOUT'" in problem.suggestion


def test_unknown_variable_without_a_similar_name_has_advice(tmp_path: Path) -> None:
    env = {"ROODA_LOOP_XYZZY": "5", "ROODA_LOOP_AI_CMD": "true"}
    [problem] = errors(planned(tmp_path, "build", env=env).all_problems())
    assert "rooda config show" in problem.suggestion
    assert "Did you mean" not in problem.suggestion


def test_empty_unknown_variable_is_ignored(tmp_path: Path) -> None:
    env = {"ROODA_LOOP_XYZZY": "", "ROODA_LOOP_AI_CMD": "true"}
    assert planned(tmp_path, "build", env=env).valid


# -- procedures ----------------------------------------------------------------------------


@each_row("missing", PHASES)
def test_procedure_without_a_phase_is_an_error(missing: str, tmp_path: Path) -> None:
    phases = ", ".join(f"{phase}: [{{content: a}}]" for phase in PHASES if phase != missing)
    text = f"# mine\nprocedures:\n  mine: {{{phases}}}\n"
    for procedure in ("mine", "build"):
        prepared = planned(tmp_path, procedure, "--ai-cmd=true", workspace=text)
        [problem] = errors(prepared.all_problems())
        assert problem.message == f"the procedure 'mine' lacks {missing}"
        assert (problem.file, problem.line, problem.field) == (FILE, 3, "procedures.mine")
        assert missing in problem.suggestion


def test_all_missing_phases_are_named_together(tmp_path: Path) -> None:
    prepared = planned(tmp_path, "mine", "--ai-cmd=true", workspace="procedures: {mine: }")
    [problem] = errors(prepared.all_problems())
    assert problem.message == "the procedure 'mine' lacks observe, orient, decide, act"


def test_phase_may_come_from_the_other_file_or_a_flag(tmp_path: Path) -> None:
    prepared = planned(
        tmp_path,
        "mine",
        "--ai-cmd=true",
        "--act=do something",
        workspace="procedures: {mine: {observe: [{content: a}], orient: [{content: a}]}}",
        global_="procedures: {mine: {decide: [{content: a}]}}",
    )
    assert errors(prepared.all_problems()) == []


def test_built_in_procedure_may_be_changed_in_part(tmp_path: Path) -> None:
    text = "procedures: {build: {act: [{content: mine}]}, bootstrap: }"
    assert planned(tmp_path, "build", "--ai-cmd=true", workspace=text).valid


@each_row("name", ["list", "run", "config", "version"])
def test_procedure_with_the_name_of_a_command_is_warned_about(name: str, tmp_path: Path) -> None:
    text = f"procedures:\n  {name}: {{{FOUR}}}\n"
    prepared = planned(tmp_path, "build", "--ai-cmd=true", workspace=text)
    [problem] = warnings(prepared.all_problems())
    assert f"'{name}' is also the name of a command" in problem.message
    assert f"rooda run {name}" in problem.suggestion
    assert (problem.file, problem.line, problem.field) == (FILE, 2, f"procedures.{name}")
    assert prepared.valid


@pytest.mark.real
def test_procedure_with_the_name_of_a_command_runs_with_rooda_run(workspace: Workspace) -> None:
    workspace.config(f"procedures: {{list: {{{FOUR}}}}}")
    agent = workspace.agent("echo '<promise>SUCCESS</promise>'")
    done = workspace.rooda("run", "list", "--ai-cmd", agent)
    assert done.code == 0
    assert "Starting procedure: list" in done.err
    assert "is also the name of a command" in done.err


# -- values are checked always, files only if used -----------------------------------------


def test_values_of_other_procedures_are_checked(tmp_path: Path) -> None:
    text = f"procedures:\n  other: {{{FOUR},\n    failure_threshold: 0}}\n"
    prepared = planned(tmp_path, "build", "--ai-cmd=true", workspace=text)
    [problem] = errors(prepared.all_problems())
    assert (problem.line, problem.field) == (3, "procedures.other.failure_threshold")


def test_files_and_commands_of_other_procedures_are_not_checked(tmp_path: Path) -> None:
    text = f"""
procedures:
  files: {{{FOUR}, observe: missing.md}}
  program: {{{FOUR}, ai_cmd: no-such-program-anywhere}}
""".replace("observe: [{content: words}], ", "", 1)
    assert planned(tmp_path, "build", "--ai-cmd=true", workspace=text).valid
    prepared = planned(tmp_path, "files", "--ai-cmd=true", workspace=text)
    [problem] = errors(prepared.all_problems())
    assert "missing.md does not exist" in problem.message
    assert (problem.file, problem.line) == (FILE, 3)
    assert problem.field == "procedures.files.observe"


def test_config_check_checks_the_files_of_all_procedures(tmp_path: Path) -> None:
    (tmp_path / "work" / "folder").mkdir(parents=True)
    (tmp_path / "work" / "empty.md").write_text(" \n")
    (tmp_path / "work" / "latin.md").write_bytes(b"caf\xe9")
    text = """
procedures:
  one:
    observe: missing.md
    orient: folder
    decide: empty.md
    act:
      - latin.md
      - builtin:prompts/nothing.md
      - {content: 'with ${used}', parameters: {used: 1, unused: 2}}
"""
    found = list(inspected(tmp_path, workspace=text).problems)
    assert [(p.line, p.field, p.message) for p in errors(found)] == [
        (4, "procedures.one.observe", "missing.md does not exist"),
        (5, "procedures.one.orient", "folder is a folder, not a file"),
        (6, "procedures.one.decide", "empty.md is empty"),
        (7, "procedures.one.act", "latin.md is not UTF-8 text (byte 3)"),
        (7, "procedures.one.act", "there is no built-in prompt 'builtin:prompts/nothing.md'"),
    ]
    [warning] = warnings(found)
    assert "'unused' is not used" in warning.message


@each_row(
    "line,words,field",
    [
        ("ai_cmd: echo 'never closed", "split into words", "ai_cmd"),
        ("ai_cmd: no-such-program-anywhere", "not found: no-such-program-anywhere", "ai_cmd"),
        ("ai_cmd: ./missing --flag", "not found: ./missing", "ai_cmd"),
        ("ai_cmd: ./rooda-config.yml", "is not an executable file", "ai_cmd"),
        ("ai_cmd_alias: missing", "unknown AI command alias 'missing'", "ai_cmd_alias"),
        ("working_dir: missing", "does not exist", "working_dir"),
    ],
)
@each_row("section", ["loop", "procedures.build"])
def test_wrong_name_in_a_file_is_reported_with_file_line_and_field(
    line: str, words: str, field: str, section: str, tmp_path: Path
) -> None:
    head = "loop:" if section == "loop" else "procedures:\n build:"
    prepared = planned(tmp_path, "build", workspace=f"{head}\n  {line}\n")
    [problem] = [p for p in errors(prepared.all_problems()) if words in p.message]
    assert problem.file == FILE
    assert problem.line == (2 if section == "loop" else 3)
    assert problem.field == f"{section}.{field}"
    assert problem.suggestion


@each_row(
    "arguments,field",
    [
        (["--ai-cmd=echo 'never closed"], "--ai-cmd"),
        (["--ai-cmd=no-such-program-anywhere"], "--ai-cmd"),
        (["--ai-cmd-alias=missing"], "--ai-cmd-alias"),
        (["--ai-cmd=true", "--working-dir=missing"], "--working-dir"),
    ],
)
def test_wrong_name_in_a_flag_is_reported_with_the_flag(
    arguments: list[str], field: str, tmp_path: Path
) -> None:
    [problem] = errors(planned(tmp_path, "build", *arguments).all_problems())
    assert problem.field == field
    assert problem.suggestion


def test_config_check_finds_a_command_that_cannot_be_split(tmp_path: Path) -> None:
    text = "loop:\n  ai_cmd: echo 'never closed\nai_cmd_aliases:\n  bad: echo \"\n"
    found = errors(inspected(tmp_path, workspace=text).problems)
    assert [(p.file, p.line) for p in found] == [(FILE, 2), (FILE, 4)]


def test_config_check_finds_each_use_of_an_unknown_alias(tmp_path: Path) -> None:
    text = "loop:\n  ai_cmd_alias: one\nprocedures:\n  build:\n    ai_cmd_alias: two\n"
    found = errors(inspected(tmp_path, workspace=text).problems)
    assert [(p.file, p.line) for p in found] == [(FILE, 2), (FILE, 5)]
    assert all(p.suggestion for p in found)


@pytest.mark.parametrize(
    "line", ["working_dir: {name}", "ai_cmd: ./{name}", "ai_cmd: /{name}/agent"]
)
def test_impossible_file_name_is_a_problem(line: str, tmp_path: Path) -> None:
    text = f"loop: {{{line.format(name='x' * 300)}}}"
    prepared = planned(tmp_path, "build", workspace=text)
    assert errors(prepared.all_problems())


@pytest.mark.parametrize("value", ["0.5", "0.25"])
def test_advice_for_a_timeout_can_be_followed(value: str) -> None:
    """Half a second is positive, so the advice "must be positive" alone would not help."""
    [problem] = read(f"loop: {{iteration_timeout: {value}}}")[1]
    assert re.search(r"\b1\b|\b1s\b", problem.message + problem.suggestion)


# -- relative paths ------------------------------------------------------------------------


def test_relative_paths_are_relative_to_the_file_that_declares_them(tmp_path: Path) -> None:
    home = tmp_path / "home" / ".config" / "rooda"
    folders = {"global": home, "workspace": tmp_path / "work"}
    for name, folder in folders.items():
        (folder / "prompts").mkdir(parents=True)
        (folder / "prompts" / "look.md").write_text(f"the prompt of {name}")
    prepared = planned(
        tmp_path,
        "build",
        "--ai-cmd=true",
        workspace="loop: {log_file: w.log}\nprocedures: {build: {orient: prompts/look.md}}",
        global_="loop: {working_dir: prompts, log_file: g.log}\n"
        "procedures: {build: {observe: prompts/look.md, act: [{path: prompts/look.md}]}}",
    )
    assert prepared.plan is not None
    prompt = prepared.plan.prompt()
    assert "## OBSERVE\nthe prompt of global" in prompt
    assert "## ORIENT\nthe prompt of workspace" in prompt
    assert "## ACT\nthe prompt of global" in prompt
    assert prepared.values[WORKING_DIR] == str(home / "prompts")
    assert prepared.plan.working_dir == home / "prompts"
    assert prepared.values[LOG_FILE] == str(tmp_path / "work" / "w.log")


def test_paths_in_the_file_of_the_config_flag_are_relative_to_that_file(tmp_path: Path) -> None:
    folder = tmp_path / "work" / "deep" / "down"
    folder.mkdir(parents=True)
    (folder / "look.md").write_text("deep words")
    (folder / "c.yml").write_text("loop: {working_dir: .}\nprocedures: {build: {act: look.md}}")
    prepared = planned(tmp_path, "build", "--ai-cmd=true", "--config=deep/down/c.yml")
    assert prepared.plan is not None
    assert prepared.plan.prompt().endswith("## ACT\ndeep words\n")
    assert prepared.plan.working_dir.resolve() == folder.resolve()


def test_paths_of_flags_and_variables_are_relative_to_the_working_directory(
    tmp_path: Path,
) -> None:
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    (work / "act.md").write_text("words of a file")
    prepared = planned(
        tmp_path,
        "build",
        "--ai-cmd=true",
        "--act=act.md",
        "--working-dir=sub",
        env={"ROODA_LOOP_LOG_FILE": "sub/log"},
    )
    assert prepared.plan is not None
    assert prepared.plan.prompt().endswith("## ACT\nwords of a file\n")
    assert prepared.plan.working_dir == work / "sub"
    assert prepared.values[LOG_FILE] == str(work / "sub" / "log")


@pytest.mark.parametrize("name", ["missing.yml", "", "."])
def test_missing_file_of_the_config_flag_is_an_error(name: str, tmp_path: Path) -> None:
    prepared = planned(tmp_path, "build", "--ai-cmd=true", f"--config={name}")
    [problem] = errors(prepared.all_problems())
    assert problem.suggestion


# -- through the command -------------------------------------------------------------------

TIME = r"\[\d\d:\d\d:\d\d\.\d{3}\]"


def test_invalid_timeout_is_logged_as_in_the_documented_example(workspace: Workspace) -> None:
    workspace.config("# line\n" * 10 + "loop:\n  iteration_timeout: -10\n")
    done = workspace.rooda("build", "--ai-cmd", "true", "--log-format", "logfmt")
    assert done.code == 1
    assert done.out == ""
    assert re.fullmatch(
        TIME
        + re.escape(
            " ERROR Config validation failed file=rooda-config.yml line=12"
            ' field=loop.iteration_timeout error="timeout must be positive, not -10"'
            ' suggestion="Set to a positive number of seconds, or remove to disable timeout"\n'
        ),
        done.err,
    )


def test_missing_ai_command_is_logged_as_in_the_documented_example(workspace: Workspace) -> None:
    done = workspace.rooda("build", "--log-format", "logfmt")
    assert done.code == 1
    assert done.out == ""
    assert re.fullmatch(
        TIME
        + re.escape(
            ' ERROR No AI command configured error="must specify AI command via CLI flag'
            " (--ai-cmd or --ai-cmd-alias), config file (loop.ai_cmd or loop.ai_cmd_alias),"
            " or built-in alias (kiro-cli, claude, copilot, cursor-agent,"
            ' codex, gemini, opencode, qwen)"'
            ' suggestion="Example: rooda build --ai-cmd-alias kiro-cli"\n'
        ),
        done.err,
    )


def test_each_problem_is_one_line_of_the_log(workspace: Workspace) -> None:
    workspace.config(MANY)
    done = workspace.rooda("build", "--log-format", "logfmt")
    assert done.code == 1
    lines = re.findall(rf"(?m)^{TIME} ERROR .* line=(\d+) ", done.err)
    assert lines == sorted(lines, key=int)
    assert {2, 3, 4, 5, 6, 7, 8, 10, 11, 13, 14, 15, 18, 23, 25, 26} <= set(map(int, lines))
    assert "No AI command configured" in done.err


def test_problem_is_printed_with_its_place_and_advice(workspace: Workspace) -> None:
    workspace.config("loop:\n  iteration_timeout: -10\n")
    done = workspace.rooda("build", "--ai-cmd", "true")
    assert done.code == 1
    assert done.err == (
        "Error: rooda-config.yml:2: loop.iteration_timeout: timeout must be positive, not -10\n"
        "  Set to a positive number of seconds, or remove to disable timeout\n"
    )


def test_nothing_is_started_if_there_is_a_problem(workspace: Workspace) -> None:
    workspace.config(PROCEDURE + "\nloop: {failure_threshold: 0}")
    done = workspace.work(workspace.agent("touch started"))
    assert done.code == 1
    assert not (workspace.path / "started").exists()
    assert not (workspace.state).exists()


@pytest.mark.real
def test_warnings_are_logged_and_the_run_continues(workspace: Workspace) -> None:
    workspace.config(PROCEDURE + "  list: {observe: a, orient: a, decide: a, act: a}\n")
    done = workspace.work(workspace.agent("echo '<promise>SUCCESS</promise>'"))
    assert done.code == 0
    assert "WARN: the procedure 'list' is also the name of a command" in done.err
    assert "file=rooda-config.yml line=8 field=procedures.list" in done.err
    assert "Run it with `rooda run list`" in done.err


@pytest.mark.real
def test_control_codes_of_a_config_file_do_not_reach_the_terminal(workspace: Workspace) -> None:
    workspace.config('"\\e[31mred\\x9b": 1\nloop: {log_level: "\\e]0;title\\a"}\n')
    for arguments in (("config", "check"), ("config", "show"), ("build", "--ai-cmd", "true")):
        done = workspace.rooda(*arguments)
        assert done.code == 1
        assert not re.search(r"[\x1b\x9b\x07]", done.out + done.err)
