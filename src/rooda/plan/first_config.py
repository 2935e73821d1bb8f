"""Finds the command that tests a project, from the files in its folder. Runs no program."""

import itertools
import os
import re
import shutil
import stat
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from rooda.base.formats import flow_yaml, json_text, parse_json
from rooda.base.paths import file_mode
from rooda.plan.locate import CONFIG_NAME, read_builtin, read_global
from rooda.plan.settings.fleet_settings import FLEET_SETTINGS
from rooda.plan.settings.setting import Setting
from rooda.plan.settings.settings import (
    AI_CMD,
    AI_CMD_ALIAS,
    PROTECT_PATHS,
    SETTINGS,
    VERIFY_COMMAND,
)
from rooda.plan.world import World
from rooda.world.agents.registry import COMMANDS
from rooda.world.files.sight import read_named
from rooda.world.git.work_tree import work_tree
from rooda.world.tools import Tools

_MOST_READ = 1024 * 1024  # bytes of a file
_MOST_LISTED = 1000  # names in a folder of tests

_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")  # the first is the one that make uses
_VARIABLE = r":{0,2}=|[ \t]*[\w.]+[ \t]*(?:[?+!]|:{1,3})?="  # also one of a single target
_RULE = re.compile(rf"^([^\s#:=][^#:=\n]*):(?!{_VARIABLE})", re.MULTILINE)

_PYTEST_FILES = ("pytest.ini", ".pytest.ini", "conftest.py")
_PYTEST_MENTIONS = (
    ("pyproject.toml", re.compile(r"^[^#\n]*\bpytest\b", re.MULTILINE)),
    ("tox.ini", re.compile(r"^\[pytest\]", re.MULTILINE)),
    ("setup.cfg", re.compile(r"^\[tool:pytest\]", re.MULTILINE)),
)
_PYTHON_TESTS = re.compile(r"(test_.*|.*_test)\.py")
_PYTHON_RUNNERS = (("uv.lock", "uv run"), ("poetry.lock", "poetry run"))

_NODE_PLACEHOLDER = "no test specified"  # in the script that `npm init` writes
_NODE_RUNNERS = (
    ("pnpm-lock.yaml", "pnpm test"),
    ("yarn.lock", "yarn test"),
    ("bun.lock", "bun run test"),  # `bun test` is bun's own runner, not the script
    ("bun.lockb", "bun run test"),
)


class CheckCommand(Struct, frozen=True):
    """A command that tests the project, and what it was found by."""

    command: str
    reason: str


def find_tests(folder: Path) -> tuple[CheckCommand, ...]:
    """Return the test command of each kind of project in the folder, the most likely first."""
    found = (kind(folder) for kind in _KINDS)
    return tuple(one for one in found if one is not None)


def _make(folder: Path) -> CheckCommand | None:
    for name in _MAKEFILES:
        text = _text(folder / name)
        if text is not None:
            targets = {target for rule in _RULE.findall(text) for target in rule.split()}
            has_test = "test" in targets
            return CheckCommand("make test", f"{name} has the target test") if has_test else None
    return None


def _python(folder: Path) -> CheckCommand | None:
    reason = _pytest_reason(folder)
    if reason is None:
        return None
    runner = next((f"{words} " for lock, words in _PYTHON_RUNNERS if _is_file(folder / lock)), "")
    return CheckCommand(f"{runner}pytest", reason)


def _pytest_reason(folder: Path) -> str | None:
    for name, mention in _PYTEST_MENTIONS:
        if mention.search(_text(folder / name) or ""):
            return f"{name} names pytest"
    for name in _PYTEST_FILES:
        if _is_file(folder / name):
            return f"there is a {name}"
    for name in ("tests", "test"):
        if any(map(_PYTHON_TESTS.fullmatch, _names(folder / name))):
            return f"{name}/ has tests in Python"
    return None


def _node(folder: Path) -> CheckCommand | None:
    text = _text(folder / "package.json")
    script = json_text(parse_json(text or ""), "scripts", "test").strip()
    if not script or _NODE_PLACEHOLDER in script:
        return None
    locks = (words for lock, words in _NODE_RUNNERS if _is_file(folder / lock))
    return CheckCommand(next(locks, "npm test"), "package.json has the script test")


def _rust(folder: Path) -> CheckCommand | None:
    return _if_there(folder, "Cargo.toml", "cargo test")


def _go(folder: Path) -> CheckCommand | None:
    return _if_there(folder, "go.mod", "go test ./...")


_KINDS: Sequence[Callable[[Path], CheckCommand | None]] = (_make, _python, _node, _rust, _go)


def _if_there(folder: Path, name: str, command: str) -> CheckCommand | None:
    return CheckCommand(command, f"there is a {name}") if _is_file(folder / name) else None


def _is_file(path: Path) -> bool:
    return stat.S_ISREG(file_mode(path))


def _text(path: Path) -> str | None:
    """Return the text of a file; None if there is no such file, or if it can't be read."""
    try:
        return read_named(path, _MOST_READ).decode("utf-8-sig", "replace")
    except OSError:
        return None


def _names(folder: Path) -> list[str]:
    """Return the first names in a folder; none if it can't be read."""
    try:
        with os.scandir(folder) as entries:
            return [entry.name for entry in itertools.islice(entries, _MOST_LISTED)]
    except OSError:
        return []


# What `rooda init` finds on the machine and in the project, to propose it in the config file.


_PROMPTS = ("prompts", "PROMPT.md", "PROMPT_build.md", "PROMPT_plan.md")
_CI = (
    *(".github/workflows", ".gitlab-ci.yml", ".circleci", ".ci", "Jenkinsfile", ".travis.yml"),
    *("azure-pipelines.yml", "bitbucket-pipelines.yml", ".buildkite", ".drone.yml"),
    *(".woodpecker", ".woodpecker.yml", ".forgejo/workflows", ".gitea/workflows"),
)


class Proposals(Struct, frozen=True):
    """The installed agents and the test commands, the most likely first of each.

    `protect` are paths that the agent should not change: the config, the prompts and the CI files.
    `chosen_in` is the user's global config file, if it chooses an agent.
    """

    agents: tuple[str, ...] = ()
    tests: tuple[CheckCommand, ...] = ()
    chosen_in: str = ""
    protect: tuple[str, ...] = (CONFIG_NAME,)

    @property
    def agent(self) -> str | None:
        """The agent that the file chooses; None if there is none, or if the user has chosen one."""
        return None if self.chosen_in else next(iter(self.agents), None)


def find_proposals(world: World) -> Proposals:
    """Look for agents, tests, prompts and CI files. Starts no program."""
    return Proposals(
        _installed_agents(world),
        find_tests(world.folder),
        _chosen_in(world),
        _worth_protecting(world),
    )


def _worth_protecting(world: World) -> tuple[str, ...]:
    """Return the config file, and the prompts and CI files that exist, from the top of the tree."""
    top, here = work_tree(world.folder), world.folder.resolve()
    prompts = [here / name for name in _PROMPTS]
    found = [path for path in (*prompts, *(top / name for name in _CI)) if path.exists()]
    names = [f"{os.path.relpath(path, top)}{'/' if path.is_dir() else ''}" for path in found]
    return (CONFIG_NAME, *dict.fromkeys(names))


def _installed_agents(world: World) -> tuple[str, ...]:
    """Return the agents on the PATH; what is in the work tree may be an agent's own program."""
    tools = Tools(world.environ, [world.folder])
    found = {name: shutil.which(name, path=tools.path) for name in COMMANDS}
    return tuple(name for name, path in found.items() if path and not tools.is_in_work_tree(path))


def _chosen_in(world: World) -> str:
    layer = read_global(world, [])
    chosen = any(layer.loop.get(setting.key) for setting in (AI_CMD, AI_CMD_ALIAS))
    return layer.file if chosen else ""


# The commented config file that `rooda init` writes.


_HEAD = """\
# rooda-config.yml: settings of `rooda` for this folder and those below it.
#
# Every line is optional, and a line with a `#` in front shows the default; the first three
# settings are what `rooda init` has found. Check the file with `rooda config check`, see what holds
# and why with `rooda config show`, and let your editor complete it with `rooda config schema`.
# Flags and ROODA_LOOP_... variables beat this file.
# A key that rooda does not know is an error; keys at the top that begin with `x-` are yours.

loop:
"""

_PROTECT = "protect"
_NOTHING: Mapping[Setting[Any], object] = {}

_FLEET = """
# Many loops at once, for `rooda fleet` and `rooda worker`.
#fleet:
"""

_TAIL = """
# Your own agent commands; the prompt comes on standard input. Use one with `ai_cmd_alias: NAME`.
#ai_cmd_aliases:
#  careful: claude -p --model opus

# Your own procedures, or changes to the built-in ones (`rooda list`). A phase is the path of a
# file, relative to this one, or a list of items with `path` or `content`.
#procedures:
#  build:
#    default_max_iterations: 20
#    done_when: tasks # end when all tasks in PLAN.md are done; an earlier SUCCESS does not count
#  docs:
#    description: Bring the documentation up to date
#    observe: builtin:prompts/observe_plan_specs_impl.md
#    orient:
#      - content: Compare the documentation with what the code does today.
#    decide:
#      - content: Choose the page that would mislead a reader most.
#    act:
#      - path: prompts/docs.md
#        parameters: {tone: plain}
#      - path: builtin:fragments/signals.md
"""


def template(proposals: Proposals) -> str:
    """Return the file, with the proposals first: the agent, and the tests of the project."""
    verify = _section_of(VERIFY_COMMAND)
    sections = dict.fromkeys(_section_of(one) for one in SETTINGS)
    lines = [*_agent(proposals), "", *_verify(proposals.tests)]
    command = proposals.tests[0].command if proposals.tests else None
    found: dict[Setting[Any], object] = {
        VERIFY_COMMAND: command,
        PROTECT_PATHS: [*proposals.protect],
    }
    lines += [*_settings_of(verify, found), "", *_protect(), *_settings_of(_PROTECT, found), ""]
    for setting in _rows_of(""):
        if setting is not AI_CMD_ALIAS:
            lines += [*_comment(f"{setting.help}."), _default(setting)]
    for section in sections:
        if section not in ("", verify, _PROTECT):
            lines += [f"  #{section}:", *_settings_of(section)]
    return _HEAD + "\n".join(lines) + "\n" + _FLEET + _fleet() + _TAIL


def _fleet() -> str:
    lines: list[str] = []
    for setting in FLEET_SETTINGS:
        lines += [*_comment(f"{setting.help}."), _default(setting)]
    return "".join(f"{line}\n" for line in lines)


def _agent(proposals: Proposals) -> list[str]:
    """Return the lines of the agent; the first one that was found is chosen."""
    words = [f"{AI_CMD_ALIAS.help}. Built in: {', '.join(read_builtin().aliases)}."]
    if len(proposals.agents) > 1:
        words.append(f"Found on this machine: {', '.join(proposals.agents)}.")
    if proposals.chosen_in:
        words.append("Your global config file chooses an agent; this line would replace it.")
    name, sign = (proposals.agent, "") if proposals.agent else (_any_agent(proposals), "#")
    return [*_comment(" ".join(words)), f"  {sign}{AI_CMD_ALIAS.key}: {flow_yaml(name)}"]


def _any_agent(proposals: Proposals) -> str:
    return next(iter((*proposals.agents, *read_builtin().aliases)))


def _verify(tests: Sequence[CheckCommand]) -> list[str]:
    """Return the lines above the settings of verify, up to its command."""
    lines: list[str] = []
    if tests:
        found = "; ".join(f"`{one.command}` ({one.reason})" for one in tests)
        lines = _comment(
            f"Found: {found}. To use it, remove the # of `verify` and of `command` below. rooda "
            "then runs it once before the first iteration and after each agent, and an iteration "
            "fails if it fails."
        )
    return [*lines, f"  #{_section_of(VERIFY_COMMAND)}:"]


def _protect() -> list[str]:
    """Return the lines above the settings of protected files."""
    words = (
        "Found: files that decide what an agent does, or what runs elsewhere. To protect them, "
        "remove the # of `protect` and of `paths` below. rooda then restores those that an agent "
        "changes."
    )
    return [*_comment(words), f"  #{_PROTECT}:"]


def _settings_of(section: str, found: Mapping[Setting[Any], object] = _NOTHING) -> list[str]:
    lines: list[str] = []
    for setting in _rows_of(section):
        name = setting.key.removeprefix(f"{section}.")
        value = found.get(setting, setting.default)
        lines += [f"    # {setting.help}.", f"    #{name}: {flow_yaml(value)}"]
    return lines


def _default(setting: Setting[Any]) -> str:
    return f"  #{setting.key}: {flow_yaml(setting.default)}"


def _rows_of(section: str) -> list[Setting[Any]]:
    """Return the settings of a section; those of the section "" are directly below `loop`."""
    return [setting for setting in SETTINGS if _section_of(setting) == section]


def _section_of(setting: Setting[Any]) -> str:
    return setting.key.rpartition(".")[0]


def _comment(words: str) -> list[str]:
    return [f"  # {line}" for line in textwrap.wrap(words, 92, break_on_hyphens=False)]


def line_of(text: str, key: str) -> int:
    """Return the number of the first line of the file that sets this key or shows how."""
    lines = (line.lstrip(" #") for line in text.splitlines())
    return next(number for number, line in enumerate(lines, 1) if line.startswith(f"{key}:"))
