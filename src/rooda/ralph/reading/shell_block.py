"""The first command of a block of code."""

import re
from collections.abc import Iterator, Sequence

from rooda.ralph.reading.assignment import read_value

# What a fence may say of its language when its lines are commands.
TEXTS = frozenset({"", "text", "txt", "plain", "plaintext"})
SHELLS = TEXTS | {
    *("sh", "bash", "shell", "zsh", "console", "terminal"),
    *("shell-session", "shellsession", "sh-session", "bash-session"),
}

_PROMPT = re.compile(r"[$%][ \t]+")
_GOES_ON = re.compile(r"(?:\\|&&|\|\|?)$")
_HALF = re.compile(r"(?:\b(?:do|then|else)|[{(\\&|])$|<<")  # the rest stands in later lines
_PREPARES = re.compile(
    r"(?:cd|pushd|export|set|unset|source|\.)[ \t][^;&|]*"
    r"|[A-Za-z_]\w*=(?:[^;&|\s]*|\"[^\"]*\"|'[^']*')"
)
_SOURCE = re.compile(r"source(?=[ \t])")


def first_command(rows: Sequence[str], language: str) -> str | None:
    """The first command, with what prepares for it: a `cd` alone would pass every time."""
    if language not in SHELLS:
        return None
    prepared: list[str] = []
    for command in _commands(rows):
        # `source` is a word of bash; a command is run by `sh`.
        prepared.append(_SOURCE.sub(".", command, count=1) if command[:6] == "source" else command)
        if not _PREPARES.fullmatch(command):
            return None if _HALF.search(command) else " && ".join(prepared)
    return None


def _commands(rows: Sequence[str]) -> Iterator[str]:
    """Each command without prompt and comment; beside prompts, other lines are output."""
    with_prompts = any(_PROMPT.match(row.strip()) for row in rows)
    begun = ""
    for row in rows:
        text = row.strip()
        prompt = _PROMPT.match(text)
        if with_prompts and not prompt and not begun:
            continue
        text = _without_comment(f"{begun}{text[prompt.end() :] if prompt else text}")
        begun = f"{text.removesuffix(chr(92)).rstrip()} " if _GOES_ON.search(text) else ""
        if text and not begun and not text.startswith("#"):
            yield text
    if begun:
        yield begun.rstrip()


def _without_comment(command: str) -> str:
    value = read_value(command)
    return command if value.trouble else value.written
