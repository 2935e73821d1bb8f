"""Which files count: those that git does not ignore, and those that the user tracks anyway.

To ask git about every file takes as long as a look at all of them, so it is asked only when the
user's index or the rules for ignoring have changed.
"""

import os
from collections.abc import Collection, Iterable

from rooda.workspace.git import Git
from rooda.workspace.snapshots.repository import Repository
from rooda.workspace.snapshots.shadow.folder import Mark, mark_of

_IGNORED = ("ls-files", "-z", "--cached", "--ignored", "--exclude-standard")
_NAME = ".gitignore"
_FEW = 200  # names on one command line


class Tracking:
    """Follows the user's index and rules. `git` is that of the shadow."""

    def __init__(self, repository: Repository, git: Git) -> None:
        self._repository = repository
        self._git = git
        self._index: Mark | None = None
        self._names: frozenset[str] = frozenset()
        self._lost: frozenset[str] = frozenset()
        self._rules: tuple[bytes, Mark | None] | None = None

    def begin(self, known: Iterable[str]) -> None:
        """Begin anew, with names that are known to be tracked."""
        self._index = self._rules = None
        self._names, self._lost = frozenset(known), frozenset()

    def newly_tracked(self) -> frozenset[str]:
        """What the user tracks since the last time; git may ignore it, so it is easily missed."""
        now = mark_of(self._repository.index)
        if now == self._index:
            self._lost = frozenset()
            return frozenset()
        self._index = now
        before, self._names = self._names, frozenset(self._repository.names())
        self._lost = before - self._names
        return self._names - before

    def ignored(self, changed: Collection[str], rules: bytes) -> frozenset[str]:
        """What is in the shadow's index and is ignored by now, and not tracked by the user."""
        # The one at the top may well ignore itself, and so is not among what changed.
        now = (rules, mark_of(self._repository.top / _NAME))
        before, self._rules = self._rules, now
        if before != now or any(name.rpartition("/")[2] == _NAME for name in changed):
            found = self._ask()
        elif self._lost:
            found = self._ask(*self._lost) if len(self._lost) <= _FEW else self._ask()
        else:
            return frozenset()
        there = (name for name in found if os.path.lexists(self._repository.top / name))
        return frozenset(there) - self._names

    def _ask(self, *names: str) -> list[str]:
        raw = self._git("--literal-pathspecs", *_IGNORED, "--", *names)
        return os.fsdecode(raw).split("\0")[:-1]
