"""A quick look at a small work tree, which tells whether git can find anything new in it.

To start git costs as much as a look at a thousand files. So rooda looks at a small tree itself, and
starts git only if a file or a folder differs from the last look.
"""

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rooda.workspace.old_record import OLD_FOLDER
from rooda.workspace.snapshots.shadow_repo import FileMark, mark, mark_of

MOST_ENTRIES = 256

_CTIME = 3  # the place in a mark
_SECOND = 10**9
# Two changes within one tick of a file system's clock can't be told apart: most clocks tick every
# few milliseconds, others every second or two.
_TICK, _SLOW_TICK = _SECOND // 10, 2 * _SECOND

_Marks = dict[str, FileMark | None]


class QuickLook:
    """Compares the marks of every file and folder of a tree with those of the last look."""

    def __init__(self, top: str, rules: Sequence[Path]) -> None:
        """`rules` are files beyond the tree which decide what git finds."""
        self._top = top
        self._rules = rules
        self._is_small = True
        self._seen: _Marks | None = None

    def is_unchanged(self) -> bool:
        """Look, and return whether all is as at the last look. Call this before a scan."""
        before, self._seen = self._seen, None
        now = time.time_ns()
        marks = self._marks() if self._is_small else None
        if marks is not None and are_settled(marks, now):
            self._seen = marks
        return marks is not None and marks == before

    def forget(self) -> None:
        """Find everything changed at the next look."""
        self._seen = None

    def _marks(self) -> _Marks | None:
        """Return all marks; None if the tree is too large, or only git can tell what is in it."""
        found: _Marks = {str(path): mark_of(path) for path in self._rules}
        waiting = [self._top]
        try:
            found[self._top] = mark(os.lstat(self._top))
            while waiting:
                folder = waiting.pop()
                with os.scandir(folder) as entries:
                    for entry in entries:
                        is_folder = entry.is_dir(follow_symlinks=False)
                        if entry.name == OLD_FOLDER and is_folder:
                            continue
                        if entry.name == ".git":
                            if folder == self._top:
                                continue
                            return None  # a submodule, or a repository within the tree
                        found[entry.path] = mark(entry.stat(follow_symlinks=False))
                        if is_folder:
                            waiting.append(entry.path)
                        if len(found) > MOST_ENTRIES:
                            self._is_small = False
                            return None
        except OSError:
            return None
        return found


def are_settled(marks: Mapping[str, FileMark | None], now: int) -> bool:
    """Return whether each later change will have a later time than each of these marks."""
    times = [one[_CTIME] for one in marks.values() if one is not None]
    tick = _TICK if all(time % _SECOND for time in times) else _SLOW_TICK
    return max(times) < now - tick
