"""Flags of an agent's command line, and the rules by which `rooda doctor` checks them.

The rules state what a CLI needs to run unattended: it has to read its prompt from standard input
and use its tools without asking.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

_SHORT_FLAG = re.compile(r"-[A-Za-z]")
_SHORT_FLAGS = re.compile(r"-[A-Za-z]+")
_ON_STDIN = "the prompt comes on standard input"
ASKS_FIRST = "it asks before it uses a tool, and in a run no user can answer: the tool is denied"
OPENS_SCREEN = "opens its interactive screen, which needs a user at a terminal"


def flag_value(words: Sequence[str], *names: str) -> str | None:
    """Return the last value of a flag, given as `--flag value` or `--flag=value`, or None."""
    found = None
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in names and equals:
            found = value
        elif word in names and place + 1 < len(words):
            found = words[place + 1]
    return found


def has_flag(words: Sequence[str], *names: str) -> bool:
    """Return whether a command line has one of these flags."""
    return any(word.partition("=")[0] in names for word in words)


def without_flags(
    words: Sequence[str], *names: str, switches: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return a command line without flags that have a value, and without switches."""
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        name, equals, _ = word.partition("=")
        if word == "--":
            return (*kept, word, *rest)
        if name in names and not equals:
            next(rest, None)
        elif name not in (*names, *switches):
            kept.append(word)
    return tuple(kept)


def matches(words: Sequence[str], pattern: str) -> bool:
    """Return whether a command line has a flag.

    The pattern is `--flag`, `--flag=value`, `-f` (which also matches `-pf`), or `*text` for text
    anywhere in a word.
    """
    if pattern.startswith("*"):
        return any(pattern[1:] in word for word in words)
    name, equals, value = pattern.partition("=")
    if equals:
        return flag_value(words, name) == value
    if has_flag(words, name):
        return True
    is_short = _SHORT_FLAG.fullmatch(name) is not None
    return is_short and any(_SHORT_FLAGS.fullmatch(word) and name[1] in word for word in words)


class ToolPermissions(Struct, frozen=True):
    """Patterns of the flags that let a CLI use all or some of its tools without asking.

    `otherwise` describes the effect without these flags.
    """

    all_tools: tuple[str, ...] = ()
    some_tools: tuple[str, ...] = ()
    otherwise: str = ASKS_FIRST

    def missing_flag(self, words: Sequence[str]) -> str:
        """Return the flag to add so that the CLI may use all its tools, or "" if it already may."""
        if not self.all_tools or any(matches(words, flag) for flag in self.all_tools):
            return ""
        return self.all_tools[0]


class CommandLine(Struct, frozen=True):
    """A command line from the agent's program on, its environment, and whether it runs as root."""

    words: Sequence[str]
    environ: Mapping[str, str]
    is_root: bool = False


class FlagRule(Struct, frozen=True):
    """A mistake in a command line: how to detect it, its effect, and how to correct it.

    `is_fatal`: the CLI refuses to start.
    """

    topic: str
    is_broken: Callable[[CommandLine], bool]
    text: str
    advice: str
    is_fatal: bool = False


def needs_flag(*flags: str, write: str) -> FlagRule:
    """Return the rule that requires one of these words, so that the CLI opens no screen."""

    def is_missing(line: CommandLine) -> bool:
        return not any(matches(line.words, flag) for flag in flags)

    return FlagRule(
        "prompt", is_missing, f"without {flags[0]} it {OPENS_SCREEN}", f"Write `{write}`"
    )


def rejects_flags(*flags: str, because: str = OPENS_SCREEN) -> tuple[FlagRule, ...]:
    """Return the rules that forbid these flags; `because` describes the effect of a flag."""
    return tuple(_rejects(flag, because) for flag in flags)


def _rejects(flag: str, because: str) -> FlagRule:
    def is_there(line: CommandLine) -> bool:
        return has_flag(line.words, flag)

    return FlagRule("prompt", is_there, f"{flag} {because}", f"Leave {flag} out: {_ON_STDIN}")


def _adds_words(line: CommandLine) -> bool:
    return bool(flag_value(line.words, "-p", "--prompt"))


# For CLIs that join the value of -p and the prompt from standard input.
ADDS_WORDS = FlagRule(
    "prompt",
    _adds_words,
    "-p adds its words to every prompt",
    f"Leave -p out: {_ON_STDIN}",
)
