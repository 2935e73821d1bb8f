"""Files whose uncommitted changes are the user's: commits leave them out until they change again.

At the start of a run these are the untracked files. The files that change while the run waits, and
those that appear or change while the run or its agent is paused, join them.
"""

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from rooda.world.git.git import GitError, GitInterruptedError
from rooda.world.git.noted_files import NotedFiles
from rooda.world.git.snapshots.tree_changes import Halt


class Uncommitted(Struct, frozen=True):
    """All files with uncommitted changes, and the names of those that git tracks."""

    files: NotedFiles
    tracked: frozenset[str] = frozenset()


class UserFiles:
    """The user's files of one run. `find` returns the files that have uncommitted changes now."""

    def __init__(
        self,
        find: Callable[[], Uncommitted],
        known: NotedFiles,
        *,
        leaves_tracked: bool = True,
        leaves_untracked: bool = True,
    ) -> None:
        self._find = find
        self._leaves_tracked = leaves_tracked
        self._leaves_untracked = leaves_untracked
        self._before: NotedFiles | None = None  # as the wait began
        self._named: set[str] = set()
        self.known = known
        self.tracked: set[str] = set()

    def begin_wait(self) -> None:
        """Note the files as they are: the user may change them while the run waits."""
        try:
            self._before = self._find().files
        except GitError:
            self._before = None

    def end_wait(self) -> list[str]:
        """Take what changed since `begin_wait` as the user's; return the names that are new.

        If a signal keeps git from its work, the next call does it.
        """
        if self._before is None:
            return []
        try:
            now = self._find()
        except GitInterruptedError:
            return []
        except GitError:
            self._before = None
            return []
        before, self._before = self._before, None
        return self._take(now, before.changed(now.files))

    def end_halts(self, halts: Sequence[Halt]) -> list[str]:
        """Take what was last changed during a halt as the user's; as `end_wait`."""
        if not halts:
            return []
        try:
            now = self._find()
        except GitError:
            return []
        return self._take(now, now.files.changed_during(halts))

    def _take(self, now: Uncommitted, changed: Iterable[str]) -> list[str]:
        found = [
            name
            for name in changed
            if (self._leaves_tracked if name in now.tracked else self._leaves_untracked)
        ]
        self.known = self.known.joined(now.files, found)
        self.tracked.update(now.tracked.intersection(found))
        new = [name for name in found if name not in self._named]
        self._named.update(new)
        return new

    def left_by_run(self) -> NotedFiles:
        """Return the files with uncommitted changes that are not the user's. Raises GitError."""
        now = self._find().files
        return now.without(set(self.known.unchanged(now)))
