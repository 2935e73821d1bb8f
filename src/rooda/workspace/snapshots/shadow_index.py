"""One scan of the whole work tree: afterwards the shadow index describes the files on disk.

Git finds the files that changed since the last scan, and reads only those.
"""

import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from rooda.workspace.git import GitError, GitInterruptedError, GitStoppedError
from rooda.workspace.git_files import check_rules, pipes_in
from rooda.workspace.old_record import OLD_FOLDER
from rooda.workspace.snapshots.file_modes import FileModes
from rooda.workspace.snapshots.file_selection import FileSelector, SelectedFiles, TrackedFiles
from rooda.workspace.snapshots.quick_look import QuickLook
from rooda.workspace.snapshots.repository import Repository
from rooda.workspace.snapshots.shadow_repo import FileMark, ShadowRepo, listed

_STATUS = (
    "status",
    "--porcelain=v2",
    "-z",
    "--no-renames",
    "--ignore-submodules=dirty",
)
_UPDATE = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
_UPDATE_WITHOUT_BLOBS = ("update-index", "--info-only", *_UPDATE[1:])
_ADD_ENTRIES = ("update-index", "--replace", "-z", "--index-info")
_REMOVE = ("update-index", "--force-remove", "-z", "--stdin")
_BYTES_PER_COMMAND = 256 * 1024 * 1024  # so that each git ends within its time limit
_PLACEHOLDER = f"{OLD_FOLDER}/placeholder"  # a file name that no scan lists
_MOST_NESTED = 16  # repositories, one in another, whose files a scan finds
_EMPTY_BLOB = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
_RECENT = 2.0  # seconds: one for git, and one for the clock of a file server


class IndexedTree(Struct, frozen=True):
    """What a scan has found.

    Files in `left_out` are not in the tree; regular files have a mark. `ignored` are files that
    were in the tree or left out at the scan before, exist, and are ignored now.
    """

    tree: str
    left_out: Mapping[str, FileMark | None]
    ignored: frozenset[str] = frozenset()
    modes: Mapping[str, int] = {}  # unusual permissions of files in the tree


class ShadowIndex:
    """Scans one work tree again and again."""

    def __init__(
        self, repository: Repository, shadow: ShadowRepo, state: Path, largest: int
    ) -> None:
        self._shadow = shadow
        self._is_private = repository.is_private
        self._update_command = _UPDATE_WITHOUT_BLOBS if self._is_private else _UPDATE
        self._top = str(repository.top)
        own = os.path.relpath(state.parent.resolve() / state.name, self._top)
        self._selector = FileSelector(repository, own, largest)
        self._tracked = TrackedFiles(repository, shadow.git)
        self._modes = FileModes()
        self._recent = RecentFiles(self._top, self._modes)
        self._look = QuickLook(self._top, (repository.index, *shadow.rule_files))
        self._pipes: set[Path] = set()
        self._tree: str | None = None
        self._left_out: Mapping[str, FileMark | None] = {}

    def scan(self, head: str | None) -> IndexedTree:
        """Scan the tree. `head` is a commit that is similar to the tree: it only saves time.

        If a named pipe has blocked git, rooda remembers it: the next scan then fails at once.
        """
        try:
            return self._scan(head)
        except GitInterruptedError:
            raise
        except GitStoppedError:
            self._pipes |= pipes_in(Path(self._top))
            check_rules(Path(self._top), self._pipes)
            raise

    def _scan(self, head: str | None) -> IndexedTree:
        check_rules(Path(self._top), self._pipes)
        is_unchanged = self._look.is_unchanged()
        if is_unchanged and self._tree is not None and self._shadow.is_as_left:
            return IndexedTree(self._tree, self._left_out, modes=self._modes.sorted())
        names = self._shadow.prepare(head)
        if names is not None:
            self._learn(names)
        before, self._tree = self._tree, None  # an error below leaves the tree unknown
        changed, unseen = self._changed()
        ignored = self._tracked.ignored(changed, self._shadow.rules)
        if unseen:  # otherwise git would take them for unchanged again
            self._shadow.git(*_REMOVE, given=listed(unseen))
        for name in ignored:
            changed.pop(name, None)
        found = self._selector.select(changed, self._left_out)
        del changed  # these may be many names
        found.remove += ignored
        self._recent.note(self._shadow.git.while_wanted(found.update))
        for some in _portions(found.update):
            self._update(some, found)
        if found.remove:
            self._shadow.git(*_REMOVE, given=listed(found.remove))
            self._recent.forget(found.remove)
        tree = None if found.update or found.remove else before
        self._tree = tree = tree or self._write_tree()
        self._shadow.leave()
        hidden = [name for name in self._left_out if self._is_hidden(name, found)]
        self._left_out = found.left_out
        return IndexedTree(tree, found.left_out, ignored.union(hidden), self._modes.sorted())

    def _is_hidden(self, name: str, found: SelectedFiles) -> bool:
        """Return whether a file that was left out exists, but this scan did not list it."""
        is_listed = name in found.left_out or name in found.update
        return not is_listed and os.path.lexists(f"{self._top}/{name}")

    def add(self, names: Collection[str], before: IndexedTree) -> IndexedTree:
        """Add names to the index that a scan leaves out; return the tree with them."""
        self._shadow.git(*self._update_command, given=listed(names))
        tree = self._write_tree()
        self.settle(names)
        return replace(before, tree=tree, modes=self._modes.sorted())

    def watch_modes(self, names: Collection[str]) -> None:
        """Keep the permissions of these files in the next trees, even if they are usual ones."""
        self._modes.watch(self._top, names)

    def settle(self, names: Iterable[str]) -> None:
        """Note that rooda itself has changed these files and the index."""
        self._look.forget()
        self._recent.note(names)
        self._shadow.trust()

    def discard(self) -> None:
        """Rebuild the index at the next scan, because it may be damaged."""
        self._look.forget()
        self._shadow.discard()

    def _learn(self, known: list[str]) -> None:
        self._tree = None
        wanted = self._shadow.git.while_wanted
        if own := [name for name in wanted(known) if self._selector.is_own(name)]:
            self._shadow.git(*_REMOVE, given=listed(own))  # the user has committed it earlier
        self._tracked.reset(known)
        self._modes.clear()
        self._recent.note(wanted(known))

    def _changed(self) -> tuple[dict[str, bool], list[str]]:
        """Return the names that differ from the index, with whether each is new to the index.

        The second list contains those of them that git has taken for unchanged.
        """
        names = self._status_within_repositories() if self._is_private else self._status()
        unseen = [name for name in self._recent.changed() if name not in names]
        also = (*unseen, *self._tracked.newly_tracked())
        if also:
            names = dict.fromkeys(also, False) | names
        return names, unseen

    def _status(self) -> dict[str, bool]:
        """Return the names that differ from the index, with whether each is new to the index."""
        names: dict[str, bool] = {}

        def take(entry: bytes) -> None:
            found = _parse(os.fsdecode(entry))
            if found is not None:
                names[found[0]] = found[1]

        untracked = "no" if self._shadow.hides_untracked else "all"
        self._shadow.git.each(take, *_STATUS, f"--untracked-files={untracked}")
        return names

    def _status_within_repositories(self) -> dict[str, bool]:
        """Return the status with the files of repositories within the tree.

        Git does not look into such a repository unless the index has an entry below it. So rooda
        adds one for a moment. A repository may contain further ones, hence the loop.
        """
        names = self._status()
        replaced: dict[str, bool] = {}  # files in the index whose place a repository has taken
        placeholders: set[str] = set()
        for _ in range(_MOST_NESTED):
            nested = [name for name in names if name.endswith("/")]
            files = [name for name, is_new in names.items() if not is_new and self._is_nested(name)]
            nested += [f"{name}/" for name in files]
            if not nested:
                break
            replaced.update(dict.fromkeys(files, False))
            new = [f"{name}{_PLACEHOLDER}" for name in nested]
            self._shadow.git(*_ADD_ENTRIES, given=listed(f"100644 {_EMPTY_BLOB}\t{n}" for n in new))
            placeholders.update(new)
            names = self._status()
        if placeholders:
            self._shadow.git(*_REMOVE, given=listed(placeholders))
        found = replaced | names
        return {name: is_new for name, is_new in found.items() if name not in placeholders}

    def _is_nested(self, name: str) -> bool:
        return os.path.lexists(f"{self._top}/{name}/.git")

    def _write_tree(self) -> str:
        return self._shadow.git.line("write-tree", *(["--missing-ok"] if self._is_private else []))

    def _update(self, names: list[str], found: SelectedFiles) -> None:
        """Read files into the index. If git can't read one of them, the others still go in."""
        try:
            self._shadow.git(*self._update_command, given=listed(names))
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
                    found.left_out[names[0]] = None
            else:
                raise

    def _is_at_fault(self, name: str) -> bool:
        """Return whether the file caused the error, and not the repository or the disk."""
        path = f"{self._top}/{name}"
        try:
            kind = os.lstat(path).st_mode
        except OSError:
            return True
        is_readable = stat.S_ISREG(kind) and os.access(path, os.R_OK)
        return not is_readable and not stat.S_ISLNK(kind)


def _parse(entry: str) -> tuple[str, bool] | None:
    """Read an entry of `git status --porcelain=v2 -z`: the name, and whether it is new.

    Differences between HEAD and the index do not count (None), only those between index and disk.
    """
    match entry[:1]:
        case "?":  # `? name`
            return entry[2:], True
        case "1" if entry[3] != ".":  # `1 .M N... 100644 100644 100644 0a1b... 2c3d... name`
            return entry.split(" ", 8)[8], False
        case "u":  # `u UU N... 100644 100644 100644 100644 0a... 0b... 0c... name`
            return entry.split(" ", 10)[10], False
        case _:
            return None


def _portions(sizes: Mapping[str, int]) -> Iterator[list[str]]:
    """Divide names into lists that one git can read within its time limit."""
    some: list[str] = []
    total = 0
    for name, size in sizes.items():
        some.append(name)
        total += size
        if total >= _BYTES_PER_COMMAND:
            yield some
            some, total = [], 0
    if some:
        yield some


class RecentFiles:
    """Files of one work tree that changed so recently that git could miss their next change.

    Git compares times by the second. If a file gets other bytes of the same size and its old date
    within the second of git's scan, git takes it for unchanged. So rooda remembers such files for
    a moment, with their exact ctime, which no program can set. `modes` gets the permissions of
    all files that are noted.
    """

    def __init__(self, top: str, modes: FileModes) -> None:
        self._top = top
        self._modes = modes
        self._known: dict[str, int] = {}

    def note(self, names: Iterable[str]) -> None:
        """Note recent files. Call this before git reads them: `changed` finds later changes."""
        now = time.time()
        for name in names:
            try:
                found = os.lstat(f"{self._top}/{name}")
            except OSError:
                continue
            self._modes.note(name, found)
            if found.st_ctime > now - _RECENT and not stat.S_ISDIR(found.st_mode):
                self._known[name] = _change_of(found)

    def forget(self, names: Collection[str]) -> None:
        """Forget these names."""
        self._modes.forget(names)
        for name in names:
            self._known.pop(name, None)

    def changed(self) -> list[str]:
        """Return the noted files that changed since; forget those that are not recent any more."""
        before, self._known = self._known, {}
        self.note(before)
        return [name for name, known in before.items() if self._differs(name, known)]

    def _differs(self, name: str, known: int) -> bool:
        if name in self._known:
            return self._known[name] != known
        try:
            found = os.lstat(f"{self._top}/{name}")
        except OSError:
            return False  # git notices that the file is gone
        return _change_of(found) != known


def _change_of(found: os.stat_result) -> int:
    """Return ctime and inode as one number, which takes a third of the memory of a pair."""
    return found.st_ctime_ns << 64 | found.st_ino
