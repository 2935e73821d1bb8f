"""Paths as users write them and messages show them, and glob patterns for file names."""

import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from rooda.base.controls import one_line

_SPECIAL = re.compile(r"([*?[])")
_DIGIT = re.compile(r"[0-9]")
_MOST_NAMED = 5


def anchored(folder: Path, text: str, home: Path | None = None) -> Path:
    """Return the path for `text` relative to `folder`; `~` is the home folder."""
    if home is not None and (text == "~" or text.startswith("~/")):
        return home / text[2:]
    return folder / with_home(text)


def with_home(text: str) -> str:
    """Return the path with `~` replaced; `~name` of an unknown user is an ordinary file name."""
    return os.path.expanduser(text)  # noqa: PTH111 - Path.expanduser raises for an unknown user


def state_home(environ: Mapping[str, str]) -> Path | None:
    """Return the user's folder for the state of programs; None if it is not known."""
    text, home = environ.get("XDG_STATE_HOME", ""), environ.get("HOME", "")
    if Path(text).is_absolute():
        return Path(text)
    return Path(home) / ".local" / "state" if Path(home).is_absolute() else None


def shown_from(folder: Path, path: Path, home: Path | None = None) -> str:
    """Return the shortest form of `path` for a user in `folder`: relative, `~/...` or absolute."""
    if path.is_relative_to(folder):
        return str(path.relative_to(folder))
    if home is not None and path.is_relative_to(home):
        return f"~/{path.relative_to(home)}"
    return str(path)


def file_mode(path: Path) -> int:
    """Return the mode of the file at `path`, or 0 if it is missing or the name is invalid."""
    try:
        return path.stat().st_mode
    except (OSError, ValueError):
        return 0


def is_folder(path: Path) -> bool:
    """Return whether `path` is a folder; False for an unreadable or invalid path."""
    return stat.S_ISDIR(file_mode(path))


def first_names(names: Sequence[str], total: int | None = None, most: int = _MOST_NAMED) -> str:
    """Return the first names for a message, and how many more there are of `total`."""
    shown = [one_line(name) for name in names[:most]]
    more = (len(names) if total is None else total) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def glob_of_name(name: str) -> str:
    """Return a glob pattern that matches only this name, for git and for `fnmatch`."""
    return _SPECIAL.sub(r"[\1]", name)


def glob_of_series(name: str) -> str:
    """Return a glob pattern for a numbered or dated file, such as `session-20261115.log`.

    Each digit in the file name matches any digit. The folder has to be the same.
    """
    folder, slash, file = name.rpartition("/")
    return glob_of_name(folder + slash) + _DIGIT.sub("[0-9]", glob_of_name(file))


# Patterns of paths below a folder, as users write them: with `*`, `?` and `**`. Pure.
#
# A pattern without a slash stands for a file or a folder of that name anywhere; another one for a
# path from the folder. A folder stands for everything in it. Brackets are part of a name.


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
