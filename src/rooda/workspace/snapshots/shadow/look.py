"""One look at the whole work tree: afterwards the shadow's index is what is on disk.

Git tells which files are not as they were the last time; only those are read.
"""

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from rooda.workspace.git import GitError, GitInterruptedError, GitStoppedError
from rooda.workspace.git_files import check_rules, pipes_in
from rooda.workspace.snapshots.repository import Repository
from rooda.workspace.snapshots.shadow.folder import Mark, Shadow, listed
from rooda.workspace.snapshots.shadow.sorting import Sorted, Sorter
from rooda.workspace.snapshots.shadow.tracking import Tracking
from rooda.workspace.snapshots.shadow.young import Young

_STATUS = (
    "status",
    "--porcelain=v2",
    "-z",
    "--untracked-files=all",
    "--no-renames",
    "--ignore-submodules=dirty",
)
_UPDATE = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
_REMOVE = ("update-index", "--force-remove", "-z", "--stdin")
_AT_ONCE = 256 * 1024 * 1024  # bytes for one git to read, so that it ends within its time


class Sight(Struct, frozen=True):
    """What a look has found.

    What is apart is not in the tree; a file of these has a mark. What is ignored was in the tree
    or apart the last time, and is still there.
    """

    tree: str
    apart: Mapping[str, Mark | None]
    ignored: frozenset[str] = frozenset()


class Lookout:
    """Looks at one work tree again and again."""

    def __init__(self, repository: Repository, shadow: Shadow, state: Path, largest: int) -> None:
        self._shadow = shadow
        self._top = str(repository.top)
        own = os.path.relpath(state.parent.resolve() / state.name, self._top)
        self._sorter = Sorter(repository, own, largest)
        self._tracking = Tracking(repository, shadow.git)
        self._young = Young(self._top)
        self._pipes: set[Path] = set()
        self._tree: str | None = None
        self._apart: Mapping[str, Mark | None] = {}

    def look(self, head: str | None) -> Sight:
        """Look, with a commit that should be close to what is there: it only saves time.

        A named pipe that made git wait is remembered, so that the next look fails at once.
        """
        try:
            return self._look(head)
        except GitInterruptedError:
            raise
        except GitStoppedError:
            self._pipes |= pipes_in(Path(self._top))
            check_rules(Path(self._top), self._pipes)
            raise

    def _look(self, head: str | None) -> Sight:
        check_rules(Path(self._top), self._pipes)
        names = self._shadow.prepare(head)
        if names is not None:
            self._learn(names)
        before, self._tree = self._tree, None  # unless all goes well
        changed, unseen = self._changed()
        ignored = self._tracking.ignored(changed, self._shadow.rules)
        if unseen:  # else git would find them unchanged again
            self._shadow.git(*_REMOVE, given=listed(unseen))
        found = self._sorter.sort({n: new for n, new in changed.items() if n not in ignored})
        found.remove += ignored
        self._young.note(found.update)
        for some in _portions(found.update):
            self._update(some, found)
        if found.remove:
            self._shadow.git(*_REMOVE, given=listed(found.remove))
            self._young.forget(found.remove)
        tree = None if found.update or found.remove else before
        self._tree = tree = tree or self._shadow.git.line("write-tree")
        self._shadow.leave()
        hidden = [name for name in self._apart if self._is_hidden(name, found)]
        self._apart = found.apart
        return Sight(tree, found.apart, ignored.union(hidden))

    def _is_hidden(self, name: str, found: Sorted) -> bool:
        """Whether a file that was apart is nowhere by now, and yet there."""
        is_somewhere = name in found.apart or name in found.update
        return not is_somewhere and os.path.lexists(f"{self._top}/{name}")

    def add(self, names: Collection[str]) -> str:
        """Take names into the index that a look leaves out; the tree with them."""
        self._shadow.git(*_UPDATE, given=listed(names))
        tree = self._shadow.git.line("write-tree")
        self.settle(names)
        return tree

    def settle(self, names: Iterable[str]) -> None:
        """We ourselves have changed these files, and the index: look at all of it anew."""
        self._young.note(names)
        self._shadow.trust()

    def begin_anew(self) -> None:
        """Something is wrong with what we know: learn everything again."""
        self._shadow.discard()

    def _learn(self, known: list[str]) -> None:
        self._tree = None
        if own := [name for name in known if self._sorter.is_own(name)]:
            self._shadow.git(*_REMOVE, given=listed(own))  # the user has committed it some day
        self._tracking.begin(known)
        self._young.note(known)

    def _changed(self) -> tuple[dict[str, bool], list[str]]:
        """Names that are not as they are in the index; whether they are new to it.

        And those of them that git has not seen.
        """
        names = dict(_parse(self._shadow.git(*_STATUS)))
        unseen = [name for name in self._young.changed() if name not in names]
        also = (*unseen, *self._tracking.newly_tracked())
        return dict.fromkeys(also, False) | names, unseen

    def _update(self, names: list[str], found: Sorted) -> None:
        """Read files into the index. One that can't be read must not spoil it for the others."""
        try:
            self._shadow.git(*_UPDATE, given=listed(names))
        except GitStoppedError:
            raise
        except GitError:
            self._shadow.unlock()
            if len(names) > 1:
                middle = len(names) // 2
                self._update(names[:middle], found)
                self._update(names[middle:], found)
            elif self._is_at_fault(names[0]):
                found.remove.append(names[0])
                if os.path.lexists(f"{self._top}/{names[0]}"):
                    found.apart[names[0]] = None
            else:
                raise

    def _is_at_fault(self, name: str) -> bool:
        """Whether it is due to the file, and not to the repository or the disk."""
        path = f"{self._top}/{name}"
        try:
            kind = os.lstat(path).st_mode
        except OSError:
            return True
        is_readable = stat.S_ISREG(kind) and os.access(path, os.R_OK)
        return not is_readable and not stat.S_ISLNK(kind)


def _parse(raw: bytes) -> Iterator[tuple[str, bool]]:
    """Read what `git status --porcelain=v2 -z` prints: names, and whether they are new.

    What differs between HEAD and the index alone is of no interest: the index is what counts.
    """
    for entry in os.fsdecode(raw).split("\0"):
        match entry[:1]:
            case "?":  # `? name`
                yield entry[2:], True
            case "1" if entry[3] != ".":  # `1 .M N... 100644 100644 100644 0a1b... 2c3d... name`
                yield entry.split(" ", 8)[8], False
            case "u":  # `u UU N... 100644 100644 100644 100644 0a... 0b... 0c... name`
                yield entry.split(" ", 10)[10], False
            case _:
                pass


def _portions(sizes: Mapping[str, int]) -> Iterator[list[str]]:
    """Names in lists that one git can read within its time."""
    some: list[str] = []
    total = 0
    for name, size in sizes.items():
        some.append(name)
        total += size
        if total >= _AT_ONCE:
            yield some
            some, total = [], 0
    if some:
        yield some
