"""Files as they were at a moment, so that rooda can tell later which of them have changed."""

import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from rooda.world.files.beneath import Beneath
from rooda.world.git.git import Git, GitError, GitInterruptedError
from rooda.world.git.new_files import untracked_files
from rooda.world.git.snapshots.tree_changes import Halt

# Beyond these, rooda compares a file by its ctime and inode, and not by its content.
_MOST_FILES = 10_000
_MOST_READ = 64 * 1024 * 1024  # bytes in all
_FOLDER = b"folder"  # instead of a hash: a repository within the work tree


class Note(Struct, frozen=True):
    """A file at a moment: a number that changes with every change, and a hash of the content."""

    mark: int  # 0 for a file that does not exist
    content: bytes = b""  # empty if rooda did not read the file


_ABSENT = Note(0)


class NotedFiles:
    """Files and what they contained. Names are relative to the top of the work tree."""

    def __init__(self, top: Path, known: Mapping[str, Note] | None = None) -> None:
        self._top = top
        self._tree = Beneath(top)
        self._known = known or {}

    @classmethod
    def find(cls, top: Path, git: Git, is_hurried: Callable[[], bool]) -> "NotedFiles":
        """Return the untracked files as they are now. Raises GitError."""
        return cls.note(top, untracked_files(git), is_hurried)

    @classmethod
    def note(
        cls,
        top: Path,
        names: Iterable[str],
        is_hurried: Callable[[], bool],
        known: "NotedFiles | None" = None,
    ) -> "NotedFiles":
        """Return these files as they are now.

        rooda reads no more files once `is_hurried` says that the run is to end, and none that is
        still as in `known`.
        """
        found: dict[str, Note] = {}
        left, tree = _MOST_READ, Beneath(top)
        for name in names:
            status = _status(tree, name)
            if status is None:
                found[name] = _ABSENT
                continue
            before = None if known is None else known._known.get(name)  # noqa: SLF001 - same class
            if before is not None and before.mark == _mark(status):
                found[name] = before
                continue
            is_read = status.st_size <= left and len(found) < _MOST_FILES and not is_hurried()
            left -= status.st_size if is_read else 0
            found[name] = Note(_mark(status), _content(tree, name, status) if is_read else b"")
        return cls(top, found)

    def changed(self, later: "NotedFiles") -> list[str]:
        """Return the files of a later moment that are not here, or not the same."""
        mine = self._known
        return [name for name, note in later._known.items() if not _same(mine.get(name), note)]  # noqa: SLF001 - same class

    def changed_during(self, halts: Sequence[Halt]) -> list[str]:
        """Return the files that were last changed during one of the halts."""
        return [
            name
            for name, note in self._known.items()
            if any(halt.contains(note.mark >> 64) for halt in halts)
        ]

    def joined(self, later: "NotedFiles", names: Collection[str]) -> "NotedFiles":
        """Return these files, and those with these names as they are in `later`."""
        added = {name: later._known[name] for name in names}  # noqa: SLF001 - same class
        return NotedFiles(self._top, {**self._known, **added})

    def without(self, names: Collection[str]) -> "NotedFiles":
        """Return these files without those with these names."""
        kept = {name: note for name, note in self._known.items() if name not in names}
        return NotedFiles(self._top, kept)

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __bool__(self) -> bool:
        return bool(self._known)

    def unchanged(self, names: Iterable[str]) -> Iterator[str]:
        """Yield those of the names that are here and still have the same content."""
        for name in names:
            before = self._known.get(name) or self._known.get(f"{name}/")
            if before is not None and self._is_same(name, before):
                yield name

    def _is_same(self, name: str, before: Note) -> bool:
        status = _status(self._tree, name)
        if status is None or not before.mark:
            return status is None and not before.mark
        # A repository within the work tree stays out as a whole.
        if stat.S_ISDIR(status.st_mode) or _mark(status) == before.mark:
            return True
        return bool(before.content) and _content(self._tree, name, status) == before.content

    def saved(self) -> bytes:
        """Return the files as bytes, for a run that is resumed."""
        fields = (
            f"{one.mark:x} {one.content.hex()}".encode() + b"\0" + os.fsencode(name) + b"\0"
            for name, one in self._known.items()
        )
        return b"".join(fields)

    @classmethod
    def restored(cls, top: Path, saved: bytes) -> "NotedFiles":
        """Return the files that `saved` has returned. Raises ValueError for other bytes."""
        fields = saved.split(b"\0")[:-1]
        known: dict[str, Note] = {}
        for about, name in zip(fields[::2], fields[1::2], strict=True):
            mark, _, content = about.decode("ascii").partition(" ")
            known[os.fsdecode(name)] = Note(int(mark, 16), bytes.fromhex(content))
        return cls(top, known)


def _same(one: Note | None, other: Note) -> bool:
    if one is None:
        return False
    return one.mark == other.mark or bool(one.content and one.content == other.content)


def _status(tree: Beneath, name: str) -> os.stat_result | None:
    try:
        return tree.status(name.removesuffix("/"))  # git names a repository with a slash
    except OSError:
        return None


def _mark(status: os.stat_result) -> int:
    """Return a number that changes with every change of a file: no program can set the ctime."""
    return status.st_ctime_ns << 64 | status.st_ino


def _content(tree: Beneath, name: str, status: os.stat_result) -> bytes:
    """Return a hash of what a commit would keep of a file; empty if rooda can't read it."""
    if stat.S_ISDIR(status.st_mode):
        return _FOLDER
    import hashlib  # noqa: PLC0415 - it loads OpenSSL, which takes megabytes

    try:
        if stat.S_ISLNK(status.st_mode):
            content, kind = tree.link(name) or b"", b"link "
        else:
            content = tree.read(name, _MOST_READ)
            kind = b"program " if status.st_mode & stat.S_IXUSR else b"file "
    except OSError:
        return b""
    return hashlib.blake2b(kind + content, digest_size=16).digest()


def covering(names: Collection[str], others: Iterable[str]) -> list[str]:
    """Return the fewest paths that contain all the names and none of the others. Pure.

    A folder stands for all names in it, so that git compares its files with few paths.
    """
    mixed = {folder for name in others for folder in _above(name)}
    found = (
        next((one for one in _above(name) if one not in mixed), name.removesuffix("/"))
        for name in names
    )
    return list(dict.fromkeys(found))


def _above(name: str) -> Iterator[str]:
    """Yield the folders above a name, from the top down."""
    end = name.find("/")
    while 0 <= end < len(name) - 1:
        yield name[:end]
        end = name.find("/", end + 1)


# Files whose uncommitted changes are the user's: commits leave them out until they change again.
#
# At the start of a run these are the untracked files. The files that change while the run waits,
# and those that appear or change while the run or its agent is paused, join them.


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
