"""Finds the agent in a command line: `env A=b -u C timeout 1h claude -p` starts claude."""

import re
from collections.abc import Sequence
from pathlib import PurePath

from msgspec import Struct

from rooda.world.agents.adapter import Adapter
from rooda.world.agents.agent_report import Form
from rooda.world.agents.facts import flag_value
from rooda.world.agents.registry import ADAPTERS, KNOWN, TEXT

_LAUNCHERS = ("env", "timeout", "nice", "ionice", "nohup", "stdbuf", "time", "npx", "bunx", "exec")
# Launcher flags that take the next word as their value.
_WITH_VALUE = ("-u", "--unset", "-C", "--chdir", "-s", "--signal", "-k", "-n", "-c", "-o", "-e")
_LAUNCHER_ARGUMENT = re.compile(r"-.*|\w+=.*|[0-9.]+[smhd]?", re.DOTALL)
_UNSET = re.compile(r"(?:-u|--unset)(?:=?(\w+))?")


class Program(Struct, frozen=True):
    """The adapter for a command line, the form of the output, and the model set by the flags."""

    adapter: Adapter
    form: Form
    model: str | None = None

    @property
    def is_known(self) -> bool:
        """Whether rooda has an adapter for this agent."""
        return self.adapter.name != TEXT

    @property
    def prints_events(self) -> bool:
        """Whether standard output is (or may be) JSON instead of readable text."""
        return self.is_known and self.form is not Form.TEXT


def program_of(words: Sequence[str], adapter: str | None = None) -> Program:
    """Return the program of a command line; `adapter` overrides the adapter of the program."""
    name = program_name(words)
    if adapter is None:
        adapter = name if name in KNOWN else TEXT
    chosen = ADAPTERS[adapter]
    if adapter == TEXT:
        return Program(chosen, Form.TEXT)
    if name != chosen.name:
        # The flags of a wrapper script are unknown, so the first line of output decides the form.
        return Program(chosen, Form.UNKNOWN)
    return Program(chosen, chosen.form(words), flag_value(words, "--model", "-m"))


def program_name(words: Sequence[str]) -> str:
    """Return the name of the agent's program after all launchers, or "" if there is none."""
    start = _start(words)
    return PurePath(words[start]).name if start < len(words) else ""


def own_words(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words from the agent's program on; all words if launchers start no program."""
    return tuple(words[_start(words) :] or words)


def variables(words: Sequence[str]) -> dict[str, str | None]:
    """Return the variables that the command line sets; the value is None if it unsets one."""
    before = words[: _start(words)]
    found: dict[str, str | None] = {}
    for place, word in enumerate(before):
        name, equals, value = word.partition("=")
        if unset := _UNSET.fullmatch(word):
            following = next(iter(before[place + 1 : place + 2]), "")
            found[unset[1] or following] = None
        elif equals and not name.startswith("-"):
            found[name] = value
    return found


def _start(words: Sequence[str]) -> int:
    start = 0
    while start < len(words) and PurePath(words[start]).name in _LAUNCHERS:
        start = _next_program(words, start + 1)
    return start


def _next_program(words: Sequence[str], start: int) -> int:
    """Return the index of the first word that is neither a flag nor a flag's value."""
    while start < len(words):
        if words[start] in _WITH_VALUE:
            start += 1
        elif not _LAUNCHER_ARGUMENT.fullmatch(words[start]):
            break
        start += 1
    return min(start, len(words))
