"""The commented config file that `rooda init` writes."""

import shutil
import textwrap
from collections.abc import Mapping
from typing import Any

from rooda.config.locate import read_builtin
from rooda.config.setting import Setting
from rooda.config.settings import AI_CMD_ALIAS, SETTINGS
from rooda.text.formats import flow_yaml

_HEAD = """\
# rooda-config.yml: settings of `rooda` for this folder and those below it.
#
# Every line is optional, and a line with a `#` in front shows the default. Check the file with
# `rooda config check`, see what holds and why with `rooda config show`, and let your editor
# complete it with `rooda config schema`. Flags and ROODA_LOOP_... variables beat this file.
# A key that rooda does not know is an error; keys at the top that begin with `x-` are yours.

loop:
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


def template(environ: Mapping[str, str]) -> str:
    """Return the file; it chooses the first installed agent, if there is one."""
    lines = []
    for setting in SETTINGS:
        if "." in setting.key:
            continue
        lines += [f"  # {line}" for line in textwrap.wrap(f"{setting.help}.", 92)]
        lines += _setting(setting, _installed(environ))
    return _HEAD + "\n".join([*lines, *_sections()]) + "\n" + _TAIL


def _setting(setting: Setting[Any], agent: str | None) -> list[str]:
    if setting is AI_CMD_ALIAS:
        known = ", ".join(read_builtin().aliases)
        lines = [f"  # Built in: {known}."]
        return [*lines, f"  ai_cmd_alias: {agent}" if agent else "  #ai_cmd_alias: claude"]
    return [f"  #{setting.key}: {flow_yaml(setting.default)}"]


def _sections() -> list[str]:
    lines: list[str] = []
    for setting in SETTINGS:
        section, dot, name = setting.key.partition(".")
        if not dot:
            continue
        if f"  #{section}:" not in lines:
            lines.append(f"  #{section}:")
        lines += [f"    # {setting.help}.", f"    #{name}: {flow_yaml(setting.default)}"]
    return lines


def _installed(environ: Mapping[str, str]) -> str | None:
    path = environ.get("PATH")
    for name, held in read_builtin().aliases.items():
        if shutil.which(held.value.command.split()[0], path=path):
            return name
    return None
