"""Finds files by patterns in a folder whose content an agent controls."""

import os
import re
import stat
from collections.abc import Iterator, Sequence
from fnmatch import translate
from pathlib import Path, PurePath
from typing import NamedTuple

from rooda.world.files.beneath import Beneath

_WILD = frozenset("*?[")
_ANY_DEPTH = "**"
# Folders with thousands of files of other projects, among them reports of their tests.
_IGNORED = {"node_modules", "__pycache__"}
_MOST_NAMES = 1_000_000  # directory entries that one search reads

_Steps = tuple[str, ...]


def matching(patterns: Sequence[str], folder: Path, most: int = _MOST_NAMES) -> list[str]:
    """Return the regular files below the folder that match a pattern, sorted by name, each once.

    `**` matches any number of folders. As in a shell, a wildcard does not match a leading dot.
    Links are neither followed nor returned. A pattern that leaves the folder matches nothing. The
    search stops after `most` names.
    """
    walk = _Walk(Beneath(folder), most)
    return sorted({name for pattern in patterns for name in walk.files(_steps(pattern, folder))})


def _steps(pattern: str, folder: Path) -> _Steps:
    """Return the parts of the pattern relative to the folder, or () if it leaves the folder."""
    path = PurePath(pattern)
    if path.is_absolute():
        path = path.relative_to(folder) if path.is_relative_to(folder) else PurePath()
    return () if ".." in path.parts else path.parts


class _Entry(NamedTuple):
    """A name and its type; a link is neither a folder nor a file."""

    name: str
    is_folder: bool
    is_file: bool


class _Walk:
    """A search through folders that stops after a number of names."""

    def __init__(self, door: Beneath, most: int) -> None:
        self._door = door
        self._left = most

    def files(self, steps: _Steps) -> Iterator[str]:
        """Yield the regular files that the steps lead to."""
        ways = [("", steps)] if steps else []
        seen = set(ways)
        while ways:
            here, (step, *rest) = ways.pop()
            for name, onward in self._onward(here, step, tuple(rest)):
                if not onward:
                    yield name
                elif (name, onward) not in seen:  # `**/**` reaches each folder twice
                    seen.add((name, onward))
                    ways.append((name, onward))

    def _onward(self, here: str, step: str, rest: _Steps) -> Iterator[tuple[str, _Steps]]:
        """Yield the names that match one step, each with the remaining steps (none at a file)."""
        if step == _ANY_DEPTH:
            yield here, rest or ("*",)
        for entry in self._reached(here, step):
            if step == _ANY_DEPTH:
                if entry.is_folder:
                    yield entry.name, (step, *rest)
            elif entry.is_folder if rest else entry.is_file:
                yield entry.name, rest

    def _reached(self, here: str, step: str) -> Iterator[_Entry]:
        """Yield the entries of a folder that match one step."""
        if _WILD.isdisjoint(step):
            yield self._entry(_below(here, step))
            return
        fits = re.compile(translate(step)).fullmatch
        for entry in self._listing(here):
            name = entry.name
            hidden = name.startswith(".") and not step.startswith(".")
            if not hidden and name not in _IGNORED and fits(name):
                is_folder = entry.is_dir(follow_symlinks=False)
                is_file = entry.is_file(follow_symlinks=False)
                yield _Entry(_below(here, name), is_folder, is_file)

    def _listing(self, here: str) -> Iterator[os.DirEntry[str]]:
        try:
            for entry in self._door.scan(here):
                self._left -= 1
                if self._left < 0:
                    return
                yield entry
        except OSError:
            return  # deleted since the search started, or unreadable

    def _entry(self, name: str) -> _Entry:
        try:
            mode = self._door.status(name).st_mode
        except (OSError, ValueError):
            mode = 0
        return _Entry(name, stat.S_ISDIR(mode), stat.S_ISREG(mode))


def _below(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
