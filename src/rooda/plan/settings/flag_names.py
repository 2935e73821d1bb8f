"""Advice names the flags of a run of rooda. Other commands name the variables or keys instead."""

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from rooda.base.problems import Problem
from rooda.plan.settings.kinds import Boolean
from rooda.plan.settings.setting import Setting
from rooda.plan.settings.settings import ITERATION_MODE, LOG_LEVEL, SETTINGS
from rooda.plan.settings.text_kinds import OneOf

_FLAG = re.compile(r"(?<![\w-])(?P<flag>--[a-z][a-z-]*[a-z])(?P<value> (?!-)[\w-]+)?")
_TWICE = re.compile(r"\b(\w+)(?:,| or) \1\b")
_SHORT_CUTS = {
    "--unlimited": f"{ITERATION_MODE.variable}=unlimited",
    "--quiet": f"{LOG_LEVEL.variable}=warn",
}


class FlagNames(Struct, frozen=True):
    """The flags of a command that has not all flags of rooda; None: it has all of them.

    `own` are its other names for some flags: `{"--ai-cmd": "AGENT_CLI"}`. `as_keys`: advice names
    the keys of the config file, and not the variables.
    """

    known: frozenset[str] | None = None
    own: Mapping[str, str] = field(default_factory=dict)
    as_keys: bool = False

    def advice(self, text: str) -> str:
        """Return the text with each unknown flag replaced by what the user can set instead."""
        if self.known is None:
            return text
        return _TWICE.sub(r"\1", _FLAG.sub(self._instead, text))

    def problems(self, found: Iterable[Problem]) -> list[Problem]:
        """Return the problems with advice that the user can follow."""
        return [replace(one, suggestion=self.advice(one.suggestion)) for one in found]

    def _instead(self, match: re.Match[str]) -> str:
        flag, value = match["flag"], match["value"] or ""
        if self.known is None or flag in self.known:
            return match[0]
        if flag in self.own:
            return self.own[flag] + value
        if flag in _SHORT_CUTS:
            return _SHORT_CUTS[flag] + value
        for setting in SETTINGS:
            words = self._assignment(setting, flag, value)
            if words is not None:
                return words
        return match[0]  # a flag of another program

    def _assignment(self, setting: Setting[object], flag: str, value: str) -> str | None:
        """Return what to set instead of a flag; None if the flag is not that of the setting."""
        name, kind = setting.flag_name, setting.kind
        place, to = (setting.field, ": ") if self.as_keys else (setting.variable, "=")
        if isinstance(kind, Boolean) and flag == f"--no-{name.removeprefix('--')}":
            return f"{place}{to}false{value}"
        if flag != name:
            return None
        if isinstance(kind, Boolean):
            return f"{place}{to}true{value}"
        if isinstance(kind, OneOf) and value.strip() in kind.options:
            return f"{place}{to}{value.strip()}"
        return place + value


# For commands that read config files and have no flags of a run. Advice with `--unlimited` also
# names its key.
IN_FILES = FlagNames(frozenset({"--config", "--unlimited"}), as_keys=True)
