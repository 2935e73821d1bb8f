"""What changed between two scans of a work tree. Pure."""

import os
import posixpath
from collections.abc import Callable, Collection, Iterable, Mapping

from msgspec import Struct

GITLINK = 0o160000  # the mode of a submodule
_EDGE = 0.1  # seconds at both ends of a halt in which the agent may still run
_MOST_COUNTED = 100  # files whose lines the record keeps


class Changes(Struct, frozen=True):
    """Sorted names, relative to the requested folder. A rename is a delete and a create.

    A name that is no valid text contains surrogates, as everywhere in Python.
    """

    created: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.created or self.modified or self.deleted)

    def without(self, names: Collection[str]) -> "Changes":
        """Return the changes of the other files."""
        kept = (
            tuple(name for name in some if name not in names)
            for some in (self.created, self.modified, self.deleted)
        )
        return Changes(*kept)


class Halt(Struct, frozen=True):
    """A time in which the agent was halted (Ctrl+Z), in seconds since the epoch."""

    begin: float
    end: float

    @classmethod
    def that_ended(cls, moment: float, seconds: float) -> "Halt":
        """Return a halt of this length without its edges: the agent stops and starts there."""
        return cls(moment - seconds + _EDGE, moment - _EDGE)

    def contains(self, changed_ns: int) -> bool:
        """Return whether a file was changed then, so not by the agent."""
        return self.begin <= changed_ns / 1e9 <= self.end


class LineCount(Struct, frozen=True):
    """The lines that were added to and deleted from a file; None for a file that is not text."""

    name: str
    added: int | None
    deleted: int | None

    @property
    def total(self) -> int:
        """The number of changed lines."""
        return (self.added or 0) + (self.deleted or 0)


class LineCounts(Struct, frozen=True):
    """How many files and lines an iteration changed, and the files with the most changed lines."""

    files: int
    added: int
    deleted: int
    largest: tuple[LineCount, ...] = ()

    @classmethod
    def of(cls, changes: Changes | None, lines: Iterable[LineCount] | None) -> "LineCounts | None":
        """Return the counts of a scan; None if they are unknown."""
        if changes is None or lines is None:
            return None
        files = len(changes.created) + len(changes.modified) + len(changes.deleted)
        counts = sorted(lines, key=lambda one: (-one.total, one.name))
        added = sum(one.added or 0 for one in counts)
        deleted = sum(one.deleted or 0 for one in counts)
        return cls(files, added, deleted, tuple(counts[:_MOST_COUNTED]))


class TreeScan(Struct, frozen=True):
    """One scan of a work tree, compared with the scan before.

    `changes` is None if rooda could not determine them, or if there was no scan before. `tree`
    stands for the content of all files. `commit` is the commit in rooda's store that keeps the
    tree, if one was requested. In a git repository, `head` is the commit of the user's HEAD, and
    `head_before` that of the scan before. `left_out` names the files that exist and are not in the
    tree. After a restore, `left_out` names what it could not bring back, and `untouched` what
    exists and is in no snapshot, so that it stayed as it was.
    `lines` has the changed lines of each changed file that git knows; None if rooda can't tell.
    """

    changes: Changes | None = None
    tree: str | None = None
    commits: int = 0
    head_moved: bool = False
    head: str | None = None
    head_before: str | None = None
    commit: str | None = None
    left_out: tuple[str, ...] = ()
    untouched: tuple[str, ...] = ()
    trouble: str = ""
    lines: tuple[LineCount, ...] | None = None


class Difference(Struct, frozen=True):
    """One name in two trees. Mode 0 means that it is missing. Equal objects have equal content."""

    name: str
    mode_before: int
    mode_after: int
    object_before: str
    object_after: str


class DifferenceParser:
    """Reads what `git diff-tree -r -z --raw --numstat` prints, field by field."""

    def __init__(
        self,
        take: Callable[[Difference], object],
        count: Callable[[LineCount], object] = lambda _: None,
    ) -> None:
        """`take` gets each difference, and `count` the changed lines of each file."""
        self._take = take
        self._count = count
        self._about = ""

    def feed(self, field: bytes) -> None:
        """Read `:100644 100755 0a1b... 2c3d... M`, or the name, which is the field after that.

        After all of them come the fields with changed lines: `12<tab>3<tab>name`.
        """
        if not self._about and not field.startswith(b":"):
            added, deleted, name = field.split(b"\t", 2)
            self._count(LineCount(os.fsdecode(name), _number(added), _number(deleted)))
            return
        if not self._about:
            self._about = field.decode("ascii").removeprefix(":")
            return
        before, after, old, new, _ = self._about.split(" ")
        self._about = ""
        self._take(Difference(os.fsdecode(field), int(before, 8), int(after, 8), old, new))


def _number(digits: bytes) -> int | None:
    return int(digits) if digits.isdigit() else None


def of_marks(before: Mapping[str, object], after: Mapping[str, object]) -> Changes:
    """Return the changes of files that rooda compares by a mark; those without one do not count."""
    old = {name: mark for name, mark in before.items() if mark is not None}
    new = {name: mark for name, mark in after.items() if mark is not None}
    both = old.keys() & new.keys()
    modified = [name for name in both if old[name] != new[name]]
    return in_order(new.keys() - both, modified, old.keys() - both)


def joined(one: Changes, other: Changes) -> Changes:
    """Return the changes of two parts of a tree; a file that moved between them is modified."""
    if not other:
        return one
    created = {*one.created, *other.created}
    deleted = {*one.deleted, *other.deleted}
    moved = created & deleted
    return in_order(created - moved, {*one.modified, *other.modified, *moved}, deleted - moved)


def seen_from(folder: str, changes: Changes) -> Changes:
    """Return the changes with names relative to a folder instead of the top of the tree."""
    if not folder:
        return changes
    lists = (changes.created, changes.modified, changes.deleted)
    return in_order(*([relative(folder, name) for name in names] for names in lists))


def relative(folder: str, name: str) -> str:
    """Return a name relative to a folder, both below the top: `../x` for a file beside it."""
    if not folder:
        return name
    end = "/" if name.endswith("/") else ""
    return posixpath.relpath(f"/{name}", f"/{folder}") + end


def in_order(created: Iterable[str], modified: Iterable[str], deleted: Iterable[str]) -> Changes:
    """Return these changes, each list sorted."""
    return Changes(tuple(sorted(created)), tuple(sorted(modified)), tuple(sorted(deleted)))
