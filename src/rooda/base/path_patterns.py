"""Patterns of paths below a folder, as users write them: with `*`, `?` and `**`. Pure.

A pattern without a slash stands for a file or a folder of that name anywhere; another one for a
path from the folder. A folder stands for everything in it. Brackets are part of a name.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

ANY_FOLDERS = "**"


def parts_of(pattern: str) -> tuple[str, ...]:
    """Return the names in a pattern; the first is `**` if the pattern stands for any folder."""
    names = tuple(part for part in pattern.split("/") if part not in ("", "."))
    is_anywhere = "/" not in pattern.removeprefix("./").rstrip("/")
    return (ANY_FOLDERS, *names) if is_anywhere and names else names


class PathPatterns:
    """Says which paths match one of the patterns."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._patterns = [parts for one in patterns if (parts := parts_of(one))]

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def match(self, name: str) -> bool:
        """Return whether a path matches, or is in a folder that matches."""
        names = name.split("/")
        return any(_match(pattern, names) for pattern in self._patterns)

    def may_match_below(self, folder: str) -> bool:
        """Return whether a path in this folder could match."""
        names = folder.split("/")
        return any(_may_match_below(pattern, names) for pattern in self._patterns)


def _match(pattern: tuple[str, ...], names: list[str]) -> bool:
    """Return whether the pattern matches the names, or the first of them."""
    if not pattern:
        return True
    if pattern[0] == ANY_FOLDERS:
        # At the end of a pattern it stands for everything in the folder.
        rest = pattern[1:]
        return any(_match(rest, names[start:]) for start in range(len(names)))
    return bool(names) and _is_name(pattern[0], names[0]) and _match(pattern[1:], names[1:])


def _may_match_below(pattern: tuple[str, ...], names: list[str]) -> bool:
    for wanted, name in zip(pattern, names, strict=False):
        if wanted == ANY_FOLDERS:
            return True
        if not _is_name(wanted, name):
            return False
    return True


def _is_name(wanted: str, name: str) -> bool:
    return wanted == name or _compiled(wanted).fullmatch(name) is not None


@lru_cache(maxsize=512)
def _compiled(wanted: str) -> re.Pattern[str]:
    signs = {"*": ".*", "?": "."}
    words = re.split(r"(\*+|\?)", wanted)
    return re.compile("".join(signs.get(one[:1], re.escape(one)) for one in words), re.DOTALL)
