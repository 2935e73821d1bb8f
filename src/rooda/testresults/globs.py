"""Find files by patterns below a folder that an agent may have filled with anything."""

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import translate
from pathlib import Path, PurePath
from stat import S_ISDIR, S_ISREG
from typing import NamedTuple

_WILD = frozenset("*?[")
_ANY_DEPTH = "**"
# Thousands of files that others wrote, some of them reports of their own tests.
_LEFT_OUT = {"node_modules", "__pycache__"}
_MOST_LOOKED_AT = 1_000_000

_Steps = tuple[str, ...]


def matching(patterns: Sequence[str], folder: Path, most: int = _MOST_LOOKED_AT) -> list[Path]:
    """The regular files below the folder that match a pattern, each once, in order of their paths.

    `**` stands for any folders. As in a shell, a wildcard doesn't match a name that begins with a
    dot. Links are neither followed nor found, and nothing outside of the folder is: a pattern that
    leads there finds nothing. The search ends when it has looked at `most` names.
    """
    walk = _Walk(most)
    found = {path for pattern in patterns for path in walk.files(folder, _steps(pattern, folder))}
    return [Path(path) for path in sorted(found)]


def _steps(pattern: str, folder: Path) -> _Steps:
    """The steps of the pattern, below the folder; none if it leads out of it."""
    path = PurePath(pattern)
    if path.is_absolute():
        path = path.relative_to(folder) if path.is_relative_to(folder) else PurePath()
    return () if ".." in path.parts else path.parts


class _There(NamedTuple):
    """What is at a path, links not followed."""

    path: str
    is_folder: bool
    is_file: bool


class _Walk:
    """A search that looks at a bounded number of names, whatever is there."""

    def __init__(self, most: int) -> None:
        self._left = most

    def files(self, folder: Path, steps: _Steps) -> Iterator[str]:
        """The regular files that the steps lead to."""
        ways = [(str(folder), steps)] if steps else []
        seen = set(ways)
        while ways:
            here, (step, *rest) = ways.pop()
            for path, onward in self._onward(here, step, tuple(rest)):
                if not onward:
                    yield path
                elif (path, onward) not in seen:  # `**/**` leads everywhere twice
                    seen.add((path, onward))
                    ways.append((path, onward))

    def _onward(self, here: str, step: str, rest: _Steps) -> Iterator[tuple[str, _Steps]]:
        """Where one step leads, and the steps that are left there; none are left at a file."""
        if step == _ANY_DEPTH:
            yield here, rest or ("*",)
        for there in self._reached(here, step):
            if step == _ANY_DEPTH:
                if there.is_folder:
                    yield there.path, (step, *rest)
            elif there.is_folder if rest else there.is_file:
                yield there.path, rest

    def _reached(self, here: str, step: str) -> Iterator[_There]:
        """What is in a folder by that name."""
        if _WILD.isdisjoint(step):
            yield _there(f"{here}{os.sep}{step}")
            return
        fits = re.compile(translate(step)).fullmatch
        for entry in self._listing(here):
            name = entry.name
            hidden = name.startswith(".") and not step.startswith(".")
            if not hidden and name not in _LEFT_OUT and fits(name):
                is_folder = entry.is_dir(follow_symlinks=False)
                yield _There(entry.path, is_folder, entry.is_file(follow_symlinks=False))

    def _listing(self, here: str) -> Iterator[os.DirEntry[str]]:
        try:
            with os.scandir(here) as entries:
                for entry in entries:
                    self._left -= 1
                    if self._left < 0:
                        return
                    yield entry
        except OSError:
            return  # gone, or closed to us


def _there(path: str) -> _There:
    try:
        mode = os.lstat(path).st_mode
    except (OSError, ValueError):
        mode = 0
    return _There(path, S_ISDIR(mode), S_ISREG(mode))
