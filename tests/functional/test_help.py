"""The help of the installed commands: common flags, all flags, defaults, whole summaries."""

import re
import subprocess
from typing import Any

import click
import pytest

from rooda.front.cli.commands.run import run
from rooda.front.command_line import parse
from rooda.front.command_table import COMMANDS
from rooda.front.ralph.config_file import KEYS
from rooda.plan.settings.kinds import Seconds
from rooda.plan.settings.setting import Setting
from rooda.plan.settings.settings import SETTINGS
from rooda.record.given_flags import GivenFlags
from support.ralphs import RALPH
from support.workspace import PROCEDURE, ROODA, Workspace

COMMON = {
    "--max-iterations",
    "--unlimited",
    "--iteration-timeout",
    "--max-duration",
    "--max-cost",
    "--failure-threshold",
    "--tasks",
    "--done-when",
    "--signals-confirm",
    "--ai-cmd",
    "--ai-cmd-alias",
    "--verify",
    "--commit",
    "--push",
    "--context",
    "--verbose",
    "--quiet",
    "--dry-run",
    "--config",
    "--resume",
    "--preset",
    "--help",
    "--help-all",
}
RARE = {"--max-transcript", "--hooks-loop-end", "--exit-codes-git", "--backoff", "--capture"}


def printed(workspace: Workspace, *words: str) -> str:
    """What a command prints on standard output; it must succeed."""
    done = subprocess.run(
        words,
        cwd=workspace.path,
        env=workspace.environ({"COLUMNS": "100"}),
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def flags_of(text: str) -> set[str]:
    """The long flags that have a line of the help."""
    lines = re.findall(r"^ +(?:-\w, )?(--[\w-]+)", text, re.MULTILINE)
    return set(lines)


def line_of(text: str, flag: str) -> str:
    """The entry of a flag, as one line."""
    entries = re.split(r"\n(?=  \S)|\n\n", text)
    found = next(entry for entry in entries if re.match(rf" *(-\w, )?{flag}[ \[]", entry))
    return " ".join(found.split())


@pytest.mark.real
@pytest.mark.parametrize("command", ["build", "run", "resume"])
def test_help_of_a_run_shows_the_common_flags_only(workspace: Workspace, command: str) -> None:
    flags = flags_of(printed(workspace, str(ROODA), command, "--help"))
    assert (COMMON - {"--resume"} if command == "resume" else COMMON) <= flags
    assert not RARE & flags
    assert len(flags) <= 35


@pytest.mark.real
@pytest.mark.parametrize("command", ["build", "run", "resume"])
def test_help_all_of_a_run_shows_every_flag(workspace: Workspace, command: str) -> None:
    flags = flags_of(printed(workspace, str(ROODA), command, "--help-all"))
    assert flags >= {setting.flag_name for setting in SETTINGS if not setting.is_secret}


@pytest.mark.real
def test_help_names_help_all(workspace: Workspace) -> None:
    assert "`--help-all` shows all flags." in printed(workspace, str(ROODA), "build", "--help")


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("command", ["plan", "build", "prompt"])
def test_help_all_of_ralph_describes_the_config(workspace: Workspace, command: str) -> None:
    short = printed(workspace, str(RALPH), command, "--help")
    whole = printed(workspace, str(RALPH), command, "--help-all")
    assert flags_of(whole) == flags_of(short) >= {"--config", "--resume", "--help-all"}
    for key in KEYS:
        assert f"\n  {key} " in whole
        assert f"\n  {key} " not in short


@pytest.mark.real
def test_usage_names_the_procedure_that_the_user_typed(workspace: Workspace) -> None:
    workspace.config(PROCEDURE)
    for name in ("build", "work"):
        text = printed(workspace, str(ROODA), name, "--help")
        assert text.startswith(f"Usage: rooda {name} [OPTIONS]\n")
    assert printed(workspace, str(ROODA), "run", "--help").startswith(
        "Usage: rooda run [OPTIONS] PROCEDURE\n"
    )


def test_a_wrong_flag_points_to_the_help_of_the_procedure(workspace: Workspace) -> None:
    done = workspace.rooda("build", "--no-such-flag")
    assert done.code == 1
    assert done.err.endswith("  Try `rooda build --help`\n")


@pytest.mark.parametrize(
    "setting", [one for one in SETTINGS if isinstance(one.kind, Seconds)], ids=lambda one: one.key
)
def test_a_flag_that_takes_45m_says_duration(setting: Setting[Any]) -> None:
    assert setting.metavar == "DURATION"
    assert setting.from_text("45m") == 45 * 60


@pytest.mark.real
def test_every_setting_shows_its_default(workspace: Workspace) -> None:
    text = printed(workspace, str(ROODA), "build", "--help-all")
    for setting in SETTINGS:
        if not setting.is_secret:
            assert "default: " in line_of(text, setting.flag_name), setting.key
    for flag, words in {
        "--max-iterations": "[default: the procedure's own, else 5]",
        "--iteration-timeout": "DURATION Stop an iteration that takes longer [default: none]",
        "--verify-timeout": "[default: 30m]",
        "--max-limit-wait": "[default: 24h]",
        "--result-grace": "[default: 30s]",
        "--commit": "[default: off]",
        "--git-snapshots": "[default: on]",
        "--max-output-buffer": "[default: 10MB]",
        "--log-level": "[default: info]",
    }.items():
        assert words in line_of(text, flag)


@pytest.mark.real
def test_ralph_shows_its_defaults(workspace: Workspace) -> None:
    text = printed(workspace, str(RALPH), "build", "--help")
    assert "else 10]" in line_of(text, "--max-iterations")
    assert "[default: .ralph/config, else ./config]" in line_of(text, "--config")


@pytest.mark.real
def test_fallbacks_take_aliases(workspace: Workspace) -> None:
    text = printed(workspace, str(ROODA), "build", "--help-all")
    assert line_of(text, "--ai-cmd-fallbacks").startswith("--ai-cmd-fallbacks ALIAS-or-CMD ")
    workspace.config(f"ai_cmd_aliases: {{second: no-such-program --flag}}\n{PROCEDURE}")
    flags = ("--ai-cmd", "true", "--ai-cmd-fallbacks", "second", "--dry-run")
    assert "AI command binary not found: no-such-program" in workspace.rooda("work", *flags).out


@pytest.mark.real
def test_the_help_of_env_says_where_a_variable_can_be_removed(workspace: Workspace) -> None:
    """`--env` only adds variables; in a config file, null removes one."""
    text = line_of(printed(workspace, str(ROODA), "build", "--help-all"), "--env")
    assert "in a config file, `NAME: null` removes one" in text
    workspace.config(f"loop: {{env: {{GONE: null}}}}\n{PROCEDURE}")
    agent = workspace.agent("env > seen")
    workspace.rooda("work", "--ai-cmd", agent, "-n", "1", "--env", "NEW=1", env={"GONE": "here"})
    seen = (workspace.path / "seen").read_text().splitlines()
    assert "NEW=1" in seen
    assert not [line for line in seen if line.startswith("GONE=")]


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "words",
    [
        (str(ROODA), "--help"),
        (str(ROODA), "config", "--help"),
        *((str(ROODA), name, "--help") for name in COMMANDS),
        (str(RALPH), "--help"),
        *((str(RALPH), name, "--help") for name in ("init", "plan", "build", "prompt")),
    ],
    ids=lambda words: " ".join([words[0].rpartition("/")[2], *words[1:]]),
)
def test_no_summary_is_cut(workspace: Workspace, words: tuple[str, ...]) -> None:
    text = printed(workspace, *words)
    cut = [line for line in text.splitlines() if line.endswith("...") and "ARGS" not in line]
    assert cut == []


def test_a_help_flag_in_the_record_of_a_run_is_an_error() -> None:
    """An agent can write to the record: help in it would end `rooda resume` with exit code 0."""
    recorded = GivenFlags(flags=(("--help-all",),), arguments=(), folder=".")
    with pytest.raises(click.UsageError, match="No such option"):
        parse(run, recorded, ["build"])
