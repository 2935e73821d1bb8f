"""Look at the words of a command line."""

from collections.abc import Sequence


def flag_value(words: Sequence[str], *names: str) -> str | None:
    """The value of a flag, the last one given: `--flag value`, `--flag=value`; None without it."""
    found = None
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in names and equals:
            found = value
        elif word in names and place + 1 < len(words):
            found = words[place + 1]
    return found


def has_flag(words: Sequence[str], *names: str) -> bool:
    """Whether one of these flags is given."""
    return any(word.partition("=")[0] in names for word in words)
