"""The commented config file that `rooda init` writes."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from rooda.base.formats import flow_yaml
from rooda.plan.locate import read_builtin
from rooda.plan.project_tests import CheckCommand
from rooda.plan.proposals import Proposals
from rooda.plan.settings.fleet_settings import FLEET_SETTINGS
from rooda.plan.settings.setting import Setting
from rooda.plan.settings.settings import AI_CMD_ALIAS, PROTECT_PATHS, SETTINGS, VERIFY_COMMAND

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
