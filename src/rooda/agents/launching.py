"""Where in a command the agent's own words begin: `env A=b -u C timeout 1h claude -p`."""

import re
from collections.abc import Sequence
from pathlib import PurePath

_LAUNCHERS = ("env", "timeout", "nice", "ionice", "nohup", "stdbuf", "time", "npx", "bunx", "exec")
# Flags of launchers whose value is a word of its own.
_TAKING = ("-u", "--unset", "-C", "--chdir", "-s", "--signal", "-k", "-n", "-c", "-o", "-e")
_ARGUMENT = re.compile(r"-.*|\w+=.*|[0-9.]+[smhd]?", re.DOTALL)  # of a launcher
_UNSET = re.compile(r"(?:-u|--unset)(?:=?(\w+))?")


def program_name(words: Sequence[str]) -> str:
    """The name of the program that does the work; empty where there is none."""
    start = _start(words)
    return PurePath(words[start]).name if start < len(words) else ""


def own_words(words: Sequence[str]) -> tuple[str, ...]:
    """The words from the program on that does the work; all where launchers launch nothing."""
    return tuple(words[_start(words) :] or words)


def variables(words: Sequence[str]) -> dict[str, str | None]:
    """The variables that the command line itself sets, or takes away (None)."""
    before = words[: _start(words)]
    found: dict[str, str | None] = {}
    for place, word in enumerate(before):
        name, equals, value = word.partition("=")
        if unset := _UNSET.fullmatch(word):
            taken = unset[1] or next(iter(before[place + 1 : place + 2]), "")
            found[taken] = None
        elif equals and not name.startswith("-"):
            found[name] = value
    return found


def _start(words: Sequence[str]) -> int:
    start = 0
    while start < len(words) and PurePath(words[start]).name in _LAUNCHERS:
        start = _next_program(words, start + 1)
    return start


def _next_program(words: Sequence[str], start: int) -> int:
    """The place of the first word that can be a program: neither a flag nor its value."""
    while start < len(words):
        if words[start] in _TAKING:
            start += 1
        elif not _ARGUMENT.fullmatch(words[start]):
            break
        start += 1
    return min(start, len(words))
