"""`rooda config show|check|schema` and `rooda init`, through the installed command."""

import json
import os
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from rooda.plan.document import parse, plain
from rooda.plan.settings.fleet_settings import FLEET_KEYS
from rooda.plan.settings.json_schema import schema
from rooda.plan.settings.settings import AI_CMD_ALIAS, PROTECT_PATHS, SETTINGS
from support.config import FOUR, in_section, planned, read, sample
from support.recorded import versioned, within
from support.workspace import PROCEDURE, ROODA, Workspace

NAME = "rooda-config.yml"


@cache
def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(schema())


def values_of(text: str) -> Any:
    root, problems = parse(text.encode(), NAME)
    assert problems == []
    return {} if root is None else plain(root)


def files_of(workspace: Workspace) -> list[str]:
    return sorted(str(path.relative_to(workspace.path)) for path in workspace.path.rglob("*"))


# -- from a subfolder ----------------------------------------------------------------------


@pytest.mark.real
def test_config_and_record_of_the_work_tree_hold_in_a_subfolder(workspace: Workspace) -> None:
    versioned(workspace)
    workspace.config(f"loop: {{ai_cmd: pwd, log_file: run.log}}\n{PROCEDURE}")
    below = within(workspace, "deep/down")
    assert below.rooda("config", "check").out == f"OK: ../../{NAME}\n"
    shown = below.rooda("work", "--dry-run").out
    assert f"AI Command: pwd (workspace: ../../{NAME})" in shown
    assert f"✓ Config file: ../../{NAME}" in shown
    assert below.rooda("work", "-n", "1").code == 2
    assert "Iteration 1/1" in (workspace.path / "run.log").read_text()
    assert list(below.path.iterdir()) == []
    beside = within(workspace, "beside")
    assert beside.rooda("show", "1", "--output").out == f"{below.path}\n"


@pytest.mark.real
def test_init_in_a_subfolder_names_the_file_that_it_replaces_there(workspace: Workspace) -> None:
    versioned(workspace)
    written = within(workspace, "below").rooda("init").out
    assert written.startswith(f"Wrote {NAME}. In this folder it replaces ../{NAME}.\n")


# -- show ----------------------------------------------------------------------------------


def test_show_prints_the_origin_of_each_value(workspace: Workspace) -> None:
    workspace.config("loop:\n  failure_threshold: 7\n  preset: ralph\n")
    workspace.global_config("loop:\n\n  kill_grace: 2\n")
    done = workspace.rooda("config", "show", env={"ROODA_LOG_LEVEL": "warn"})
    assert (done.code, done.err) == (0, "")
    origins = dict(re.findall(r"(?m)^ +(\w+): .*?  # (.+)$", done.out))
    assert origins["failure_threshold"] == "workspace: ./rooda-config.yml:2"
    assert origins["kill_grace"] == "global: ~/.config/rooda/rooda-config.yml:3"
    assert origins["log_level"] == "env: ROODA_LOG_LEVEL"
    assert origins["success"] == "preset: ralph"
    assert origins["env"] == "built-in"
    assert origins["default_max_iterations"] == "preset: ralph"
    assert files_of(workspace) == [NAME]


def test_show_of_a_procedure_prints_its_effective_values(workspace: Workspace) -> None:
    workspace.config("procedures:\n  bootstrap:\n    failure_threshold: 9\n")
    done = workspace.rooda("config", "show", "bootstrap")
    assert done.code == 0
    assert re.search(r"failure_threshold: 9 +# workspace: \./rooda-config\.yml:3\n", done.out)
    assert re.search(r"default_max_iterations: 1 +# built-in\n", done.out)
    assert "failure_threshold: 3 " in workspace.rooda("config", "show").out


def test_show_prints_json(workspace: Workspace) -> None:
    workspace.config("loop:\n  failure_threshold: 7\n  iteration_mode: unlimited\n")
    done = workspace.rooda("config", "show", "--json")
    assert done.code == 0
    shown = json.loads(done.out)
    assert set(shown["loop"]) == {setting.key for setting in SETTINGS}
    assert shown["loop"]["failure_threshold"] == {
        "value": 7,
        "tier": "workspace",
        "source": "rooda-config.yml",
        "line": 2,
    }
    assert shown["loop"]["kill_grace"] == {
        "value": 5.0,
        "tier": "built-in",
        "source": None,
        "line": None,
    }
    assert shown["loop"]["iteration_mode"]["value"] == "unlimited"
    assert shown["loop"]["iteration_mode"]["line"] == 3


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_show_hides_secrets(workspace: Workspace, form: list[str]) -> None:
    workspace.config("loop: {env: {TOKEN: hunter2}}")
    done = workspace.rooda("config", "show", *form)
    assert "TOKEN" in done.out
    assert "hunter2" not in done.out + done.err


def test_output_of_show_is_a_valid_config_file(workspace: Workspace) -> None:
    workspace.config(
        "loop: {ai_cmd: \"sh -c 'a: b # c'\", iteration_timeout: 5m, log_file: x y.log, preset: v1}"
    )
    shown = workspace.rooda("config", "show").out
    _, problems = read(shown)
    assert problems == []
    assert list(validator().iter_errors(values_of(shown))) == []
    workspace.config(shown)
    again = workspace.rooda("config", "show")
    assert again.code == 0
    assert values_of(again.out) == values_of(shown)


def test_show_with_problems_prints_the_valid_values_and_exits_1(workspace: Workspace) -> None:
    workspace.config("loop: {failure_threshold: 0, kill_grace: 3, colour: red}")
    done = workspace.rooda("config", "show")
    assert done.code == 1
    assert "failure_threshold: 3 " in done.out
    assert "kill_grace: 3.0 " in done.out
    assert "Error: rooda-config.yml:1: loop.failure_threshold: must be 1 or more" in done.err
    assert "Error: rooda-config.yml:1: loop.colour: unknown key 'colour'" in done.err


def test_show_of_an_unknown_procedure_suggests_a_name(workspace: Workspace) -> None:
    done = workspace.rooda("config", "show", "bild")
    assert done.code == 1
    assert "there is no procedure named 'bild'\n  Did you mean 'build'?" in done.err


# -- check ---------------------------------------------------------------------------------


def test_check_without_any_file_is_ok(workspace: Workspace) -> None:
    done = workspace.rooda("config", "check")
    assert (done.code, done.err) == (0, "")
    assert done.out == "OK: no config file, so the built-in defaults\n"
    assert files_of(workspace) == []


def test_check_names_the_files_that_it_read(workspace: Workspace) -> None:
    workspace.config("loop: {}")
    path = workspace.global_config("loop: {}")
    done = workspace.rooda("config", "check")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("OK: ")
    assert NAME in done.out
    assert str(path) in done.out.replace("~", str(workspace.home))


def test_check_reports_all_problems_at_once(workspace: Workspace) -> None:
    workspace.config(
        "loop:\n  failure_threshold: 0\n  ai_cmd_alias: missing\n  colour: red\n"
        "procedures:\n  mine:\n    observe: missing.md\n  list: {}\n"
    )
    workspace.global_config("loop:\n  log_level: loud\n")
    done = workspace.rooda("config", "check", env={"ROODA_LOOP_KILL_GRACE": "soon"})
    assert done.code == 1
    assert done.out == ""
    heads = re.findall(r"(?m)^(Error|Warning): ([^ ]+?):? ", done.err)
    assert sorted(heads) == sorted(
        [
            ("Error", "rooda-config.yml:2"),
            ("Error", "rooda-config.yml:3"),
            ("Error", "rooda-config.yml:4"),
            ("Error", "rooda-config.yml:6"),
            ("Error", "rooda-config.yml:7"),
            ("Error", "rooda-config.yml:8"),
            ("Warning", "rooda-config.yml:8"),
            ("Error", "~/.config/rooda/rooda-config.yml:2"),
            ("Error", "ROODA_LOOP_KILL_GRACE"),
        ]
    )
    assert done.err.endswith("\n8 errors found.\n")
    assert len(re.findall(r"(?m)^  \S", done.err)) == len(heads)  # each has advice on the next line


def test_check_passes_with_warnings_only(workspace: Workspace) -> None:
    workspace.config("loop: {ai_cmd: missing-agent}")
    done = workspace.rooda("config", "check")
    assert done.code == 0
    assert done.out == "OK: rooda-config.yml\n"
    assert "Warning: rooda-config.yml:1: loop.ai_cmd: AI command binary not found" in done.err


def test_top_level_keys_that_start_with_x_dash_are_free_for_anchors(workspace: Workspace) -> None:
    text = (
        "x-mine: [1, {anything: {at: all}}]\n"
        "x-lint: &lint {command: make lint, timeout: 2m}\n"
        "loop:\n  hooks:\n    pre_iteration: *lint\n    post_iteration: *lint\n"
    )
    workspace.config(text)
    done = workspace.rooda("config", "check")
    assert (done.code, done.out, done.err) == (0, "OK: rooda-config.yml\n", "")
    assert list(validator().iter_errors(values_of(text))) == []
    shown = workspace.rooda("config", "show").out
    assert shown.count("make lint") == 2


def test_check_reads_the_file_of_the_config_flag(workspace: Workspace) -> None:
    workspace.config("loop: {failure_threshold: 0}")
    workspace.write("sub/other.yml", "procedures: {build: {act: act.md}}")
    workspace.write("sub/act.md", "words")
    done = workspace.rooda("config", "check", "--config", "sub/other.yml")
    assert (done.code, done.out, done.err) == (0, "OK: sub/other.yml\n", "")
    done = workspace.rooda("config", "check", "--config", "sub/missing.yml")
    assert done.code == 1
    assert "Error: sub/missing.yml: the file does not exist" in done.err


@pytest.mark.real
def test_unreadable_config_file_is_an_error(workspace: Workspace) -> None:
    (workspace.path / NAME).mkdir()
    for arguments in (["config", "check"], ["config", "show"], ["build", "--ai-cmd", "true"]):
        done = workspace.rooda(*arguments)
        assert done.code == 1
        assert f"Error: {NAME}: can't be read" in done.err


@pytest.mark.parametrize(
    "arguments", [["config"], ["config", "chek"], ["config", "check", "x"], ["init", "--force"]]
)
def test_wrong_usage_exits_1(workspace: Workspace, arguments: list[str]) -> None:
    done = workspace.rooda(*arguments)
    assert done.code == 1
    assert done.out == ""
    assert "Error: " in done.err
    assert files_of(workspace) == []


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("arguments", [["config", "show"], ["config", "check"], ["init"]])
def test_deleted_working_directory_gives_one_clear_error(
    workspace: Workspace, arguments: list[str]
) -> None:
    leave = 'rmdir "$PWD" && exec "$@"'
    done = subprocess.run(
        ["sh", "-c", leave, "sh", str(ROODA), *arguments],
        cwd=workspace.path,
        env=workspace.environ(),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert "Internal error" not in done.stderr


# -- schema --------------------------------------------------------------------------------


def test_schema_is_valid_json_schema(workspace: Workspace) -> None:
    done = workspace.rooda("config", "schema")
    assert (done.code, done.err) == (0, "")
    printed = json.loads(done.out)
    assert printed["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(printed)
    assert printed == schema()


PHASE = "procedures: {build: {act: %s}}"
ACCEPTED = [
    "",
    "loop:",
    "loop: {}",
    "procedures:",
    "procedures: {build: }",
    "ai_cmd_aliases:",
    *(f"loop: {{{in_section(row, sample(row).yaml)}}}" for row in SETTINGS),
    *(f"loop: {{{in_section(row, 'null')}}}" for row in SETTINGS if row.nullable),
    *(
        f"procedures: {{build: {{{in_section(row, sample(row).yaml)}}}}}"
        for row in SETTINGS
        if row.per_procedure
    ),
    "loop: {default_iterations: 4}",
    "procedures: {build: {default_iterations: 4}}",
    "loop: {iteration_timeout: 90}",
    "loop: {iteration_timeout: 1.5}",
    "loop: {iteration_timeout: '90'}",
    "loop: {iteration_timeout: 45s}",
    "loop: {iteration_timeout: 1h30m}",
    "loop: {iteration_timeout: 1h 30m}",
    "loop: {iteration_timeout: 1.5h}",
    "loop: {iteration_timeout: 2d}",
    "loop: {max_output_buffer: 2048}",
    "loop: {max_output_buffer: '2048'}",
    "loop: {max_output_buffer: 64k}",
    "loop: {max_output_buffer: 10 MB}",
    "loop: {max_output_buffer: 1.5 GiB}",
    "loop: {failure_threshold: 5.0}",
    "loop: {env: {A: text, B: 5, C: 1.5, D: true, E: null, F: ''}}",
    "loop: {env: }",
    "loop: {signals: }",
    "loop: {signals: {}}",
    "ai_cmd_aliases: {x: cmd --flag}",
    "ai_cmd_aliases: {x: null}",
    "ai_cmd_aliases: {x: {command: cmd}}",
    "ai_cmd_aliases: {x: {command: cmd, adapter: claude}}",
    "ai_cmd_aliases: {x: true}",
    f"procedures: {{mine: {{description: Words, {FOUR}}}}}",
    "procedures: {build: {description: 5}}",
    PHASE % "prompts/act.md",
    PHASE % "builtin:prompts/act_build.md",
    PHASE % "[a.md, b.md]",
    PHASE % "[{path: a.md}, {content: words}, b.md]",
    PHASE % "[{content: words, parameters: {a: b, c: 5, d: true}}]",
    PHASE % "[{content: 5}]",
]
REJECTED = [
    "words",
    "[]",
    "lop: {}",
    "loop: []",
    "loop: words",
    "loop: {iteration_timout: 5}",
    "loop: {signals: {sucess: A}}",
    "loop: {signals: SUCCESS}",
    *(f"loop: {{{in_section(row, '[1]')}}}" for row in SETTINGS),
    *(
        f"loop: {{{in_section(row, 'null')}}}"
        for row in SETTINGS
        if row.default and not row.nullable
    ),
    *(
        f"procedures: {{build: {{{in_section(row, sample(row).yaml)}}}}}"
        for row in SETTINGS
        if not row.per_procedure
    ),
    "loop: {show_ai_output: yes}",
    "loop: {show_ai_output: 1}",
    "loop: {failure_threshold: 0}",
    "loop: {failure_threshold: 1.5}",
    "loop: {failure_threshold: true}",
    "loop: {failure_threshold: '3'}",
    "loop: {max_iters_exit_code: 256}",
    "loop: {iteration_timeout: 0}",
    "loop: {iteration_timeout: -10}",
    "loop: {iteration_timeout: soon}",
    "loop: {iteration_timeout: ''}",
    "loop: {iteration_timeout: m5}",
    "loop: {iteration_timeout: 30m1h}",
    "loop: {max_output_buffer: 1023}",
    "loop: {max_output_buffer: 2048.5}",
    "loop: {max_output_buffer: big}",
    "loop: {max_output_buffer: 10 parsecs}",
    "loop: {ai_cmd: ''}",
    "loop: {ai_cmd: ' '}",
    "loop: {ai_cmd: 5}",
    "loop: {signals: {success: two words}}",
    "loop: {env: {A: [b]}}",
    "loop: {env: {'A=B': c}}",
    "procedures: []",
    "procedures: {build: words}",
    "procedures: {build: {description: []}}",
    "procedures: {build: {description: ''}}",
    "procedures: {build: {observ: a.md}}",
    "procedures: {'-x': {}}",
    "ai_cmd_aliases: []",
    "ai_cmd_aliases: {x: []}",
    "ai_cmd_aliases: {x: ''}",
    "ai_cmd_aliases: {x: {}}",
    "ai_cmd_aliases: {x: {adapter: claude}}",
    "ai_cmd_aliases: {x: {command: ''}}",
    "ai_cmd_aliases: {x: {command: a, comand: b}}",
    PHASE % "5",
    PHASE % "''",
    PHASE % "null",
    PHASE % "[]",
    PHASE % "[5]",
    PHASE % "['']",
    PHASE % "[[a.md]]",
    PHASE % "{content: words}",
    PHASE % "[{}]",
    PHASE % "[{content: '' }]",
    PHASE % "[{path: a, content: b}]",
    PHASE % "[{content: a, parameter: {}}]",
    PHASE % "[{content: a, parameters: [b]}]",
    PHASE % "[{content: a, parameters: {b: [c]}}]",
]


@pytest.mark.parametrize("text", ACCEPTED)
def test_schema_accepts_what_the_loader_accepts(text: str) -> None:
    assert read(text)[1] == []
    assert [error.message for error in validator().iter_errors(values_of(text))] == []


@pytest.mark.parametrize("text", REJECTED)
def test_schema_rejects_what_the_loader_rejects(text: str) -> None:
    assert read(text)[1] != []
    assert list(validator().iter_errors(values_of(text))) != []


# -- init ----------------------------------------------------------------------------------


@pytest.mark.long
def test_init_writes_a_file_that_passes_the_check(workspace: Workspace) -> None:
    done = workspace.rooda("init", env={"PATH": "/nowhere"})
    assert (done.code, done.err) == (0, "")
    assert NAME in done.out
    assert files_of(workspace) == [NAME]
    text = (workspace.path / NAME).read_text()
    assert list(validator().iter_errors(values_of(text))) == []
    check = workspace.rooda("config", "check")
    assert (check.code, check.err) == (0, "")
    # Each line of the file is a comment, so the values are the defaults.
    assert "workspace:" not in workspace.rooda("config", "show").out


def installed(folder: Path, *names: str) -> dict[str, str]:
    """Make programs of these names; return the environment that finds them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("#!/bin/sh\necho started > started\n")
        (folder / name).chmod(0o755)
    return {"PATH": str(folder)}


def test_init_chooses_the_first_installed_agent_and_proposes_the_tests(
    workspace: Workspace,
) -> None:
    workspace.write("Cargo.toml", "[package]\n")
    workspace.write("Makefile", "test:\n\ttouch started\n")
    env = installed(workspace.home / "bin", "kiro-cli", "codex", "make", "cargo")
    done = workspace.rooda("init", env=env)
    assert (done.code, done.err) == (0, "")
    text = (workspace.path / NAME).read_text()
    assert yaml.safe_load(text) == {"loop": {"ai_cmd_alias": "codex"}}
    assert "`make test` (Makefile has the target test); `cargo test`" in " ".join(text.split())

    lines = text.splitlines()
    said = done.out.splitlines()
    assert said[1].startswith("Agent: codex, the first that was found (codex, kiro-cli). Change")
    assert lines[int(said[1].split()[-1]) - 1] == "  ai_cmd_alias: codex"
    assert said[2] == "Tests: `make test` (Makefile has the target test), not in use yet"
    first, second = map(int, re.findall(r"\d+", said[3]))
    assert "  rooda loop PROMPT.md --dry-run " in done.out
    assert not (workspace.path / "started").exists(), "init has started a program"

    for number in (first, second):
        lines[number - 1] = lines[number - 1].replace("#", "", 1)
    workspace.config("\n".join(lines))
    check = workspace.rooda("config", "check")
    assert (check.code, check.err) == (0, "")
    assert "command: make test" in workspace.rooda("config", "show").out


def test_init_takes_no_agent_from_the_work_tree(workspace: Workspace) -> None:
    """An agent could have put it there."""
    done = workspace.rooda("init", env=installed(workspace.path / "bin", "codex"))
    assert done.code == 0
    assert "Agent: none found." in done.out
    assert yaml.safe_load((workspace.path / NAME).read_text()) == {"loop": None}


def test_init_leaves_the_agent_of_the_global_config_in_force(workspace: Workspace) -> None:
    workspace.global_config("loop: {ai_cmd: my-agent}\n")
    done = workspace.rooda("init", env=installed(workspace.home / "bin", "codex"))
    assert "Agent: as ~/.config/rooda/rooda-config.yml says." in done.out
    assert yaml.safe_load((workspace.path / NAME).read_text()) == {"loop": None}
    assert "ai_cmd: my-agent" in workspace.rooda("config", "show").out


def uncommented(text: str) -> str:
    """Return the file with its examples enabled: `#key: value`, but not `# words`."""
    return re.sub(r"(?m)^( *)#(?! \S)", r"\1", text)


def test_each_line_of_the_init_file_is_valid_without_its_comment_sign(
    workspace: Workspace,
) -> None:
    assert workspace.rooda("init", env={"PATH": "/nowhere"}).code == 0
    text = uncommented((workspace.path / NAME).read_text())
    workspace.config(text)
    workspace.write("prompts/docs.md", "Write in a ${tone} tone.")
    values = values_of(text)
    assert set(values) == {"loop", "procedures", "ai_cmd_aliases", "fleet"}
    assert set(values["fleet"]) == set(FLEET_KEYS)
    assert len(values["loop"]) == len({row.key.partition(".")[0] for row in SETTINGS})
    assert [error.message for error in validator().iter_errors(values)] == []
    check = workspace.rooda("config", "check")
    assert (check.code, check.err) == (0, "")
    run = workspace.rooda("docs", "--dry-run", "--ai-cmd", "true")
    assert run.code == 0
    assert "Write in a plain tone." in run.out


def test_values_of_the_init_file_are_the_defaults(workspace: Workspace, tmp_path: Path) -> None:
    assert workspace.rooda("init", env={"PATH": "/nowhere"}).code == 0
    text = uncommented((workspace.path / NAME).read_text())
    values = planned(tmp_path, "audit-spec", workspace=text).values
    for setting in SETTINGS:
        if setting not in (AI_CMD_ALIAS, PROTECT_PATHS):  # what `rooda init` proposes
            assert values[setting] == setting.default, setting.key


@pytest.mark.parametrize("kind", ["file", "folder", "dangling link"])
def test_init_never_overwrites(workspace: Workspace, kind: str) -> None:
    path = workspace.path / NAME
    match kind:
        case "file":
            path.write_text("loop: {failure_threshold: 7}\n")
        case "folder":
            path.mkdir()
        case _:
            path.symlink_to("nowhere.yml")
    before = os.lstat(path)
    done = workspace.rooda("init")
    assert done.code == 1
    assert done.out == ""
    assert f"{NAME} exists already and is left as it is" in done.err
    after = os.lstat(path)
    assert (before.st_ino, before.st_mtime_ns, before.st_size) == (
        after.st_ino,
        after.st_mtime_ns,
        after.st_size,
    )
    assert files_of(workspace) == [NAME]


def test_init_in_a_read_only_folder_is_an_error(workspace: Workspace) -> None:
    if os.geteuid() == 0:  # root can write anywhere except here
        workspace.path = Path("/proc")
    else:
        workspace.path.chmod(0o555)
    done = workspace.rooda("init")
    assert done.code == 1
    assert done.out == ""
    assert f"Error: {NAME} can't be written" in done.err
    assert "Traceback" not in done.err


@pytest.mark.real
def test_advice_of_config_check_and_doctor_names_keys_instead_of_flags(
    workspace: Workspace,
) -> None:
    workspace.config("loop: {ai_cmd: no-such-agent, log_file: no/such/folder}")
    checked = workspace.rooda("config", "check")
    assert "  Install it, or choose another with loop.ai_cmd or loop.ai_cmd_alias\n" in checked.err
    examined = workspace.rooda("doctor")
    assert " Choose another with loop.log_file\n" in examined.out
