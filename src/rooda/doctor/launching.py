"""Where in a command the agent's own words begin: `env A=b timeout 1h claude -p`."""

from collections.abc import Sequence
from pathlib import PurePath

from rooda.agents.program import program_name


def own_words(words: Sequence[str]) -> tuple[str, ...]:
    """The words from the program on that does the work; without the launchers before it."""
    return tuple(words[_start(words) :])


def assignments(words: Sequence[str]) -> dict[str, str]:
    """The variables that the command line itself sets, in front of the program."""
    pairs = (word.partition("=") for word in words[: _start(words)])
    return {name: value for name, equals, value in pairs if equals and not name.startswith("-")}


def _start(words: Sequence[str]) -> int:
    name = program_name(words)
    return next((at for at, word in enumerate(words) if PurePath(word).name == name), 0)
