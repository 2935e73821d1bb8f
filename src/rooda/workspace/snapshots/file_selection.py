"""Which files go into the shadow index, and which rooda leaves out and names."""

import os
import stat
from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct, field

from rooda.workspace.git import Git
from rooda.workspace.git_files import LARGEST_FILE
from rooda.workspace.git_names import is_path_in_tree
from rooda.workspace.snapshots.repository import Repository
from rooda.workspace.snapshots.shadow_repo import FileMark, mark, mark_of

_LIST_IGNORED = ("ls-files", "-z", "--cached", "--ignored", "--exclude-standard")
_RULES = ".gitignore"
_NAMES_PER_COMMAND = 200
MOST_READ = 4_000_000_000  # bytes in one scan of a folder without a repository


class SelectedFiles(Struct):
    """What to do with each name. Files in `left_out` are in no tree; regular files have a mark."""

    update: dict[str, int] = field(default_factory=dict)  # name and size
    remove: list[str] = field(default_factory=list)
    left_out: dict[str, FileMark | None] = field(default_factory=dict)


class FileSelector:
    """Decides about the names that git has found changed in one work tree."""

    def __init__(self, repository: Repository, own: str, largest: int) -> None:
        """`own` is rooda's folder, relative to the top; `largest` the size of a file to keep."""
        self._repository = repository
        self._top = str(repository.top)
        self._own = own
        self._largest = largest

    def select(
        self, names: Mapping[str, bool], left_out: Mapping[str, FileMark | None]
    ) -> SelectedFiles:
        """Decide about names; the value says whether the name is new to the index.

        A name that ends in `/` is a repository within the work tree. `left_out` are the files that
        the scan before has left out.
        """
        found = SelectedFiles()
        left_to_read = MOST_READ
        behind_link: dict[str, bool] = {"": False}
        large: dict[str, os.stat_result] = {}
        nested: list[str] = []
        for name in self._repository.git.while_wanted(names):
            is_new = names[name]
            if self.is_own(name):
                continue
            if name.endswith("/"):
                nested.append(name.removesuffix("/"))
                continue
            status = self._status(name, behind_link)
            if status is None:
                found.remove += [] if is_new else [name]
            elif self._is_large(status):
                large[name] = status
            elif self._is_too_much(name, status, left_to_read, left_out):
                _leave_out(name, status, found, is_new=is_new)
            elif self._can_be_kept(name, status):
                found.update[name] = status.st_size
                left_to_read -= status.st_size
            else:
                _leave_out(name, status, found, is_new=is_new)
        self._select_nested(nested, found)
        self._select_large(large, names, found)
        return found

    def is_own(self, name: str) -> bool:
        """Return whether a name is rooda's state folder or is in it."""
        return name.startswith(f"{self._own}/") or name == self._own

    def _status(self, name: str, behind_link: dict[str, bool]) -> os.stat_result | None:
        """Return the status of a file; None for a missing one, a folder, and one behind a link."""
        path = f"{self._top}/{name}"
        if self._is_behind_link(name.rpartition("/")[0], behind_link):
            return None
        try:
            status = os.lstat(path)
        except OSError:
            return None
        if stat.S_ISDIR(status.st_mode) and not self._is_nested_repository(path):
            return None
        return status

    def _is_nested_repository(self, path: str) -> bool:
        """Return whether a folder counts as a submodule; its files count without a repository."""
        return not self._repository.is_private and os.path.lexists(f"{path}/.git")

    def _is_behind_link(self, folder: str, known: dict[str, bool]) -> bool:
        """Return whether a folder or one above it is a link; `known` collects the answers."""
        if folder not in known:
            above = self._is_behind_link(folder.rpartition("/")[0], known)
            known[folder] = above or os.path.islink(f"{self._top}/{folder}")  # noqa: PTH114 - fast
        return known[folder]

    def _is_large(self, status: os.stat_result) -> bool:
        return stat.S_ISREG(status.st_mode) and status.st_size > self._largest

    def _is_too_much(
        self,
        name: str,
        status: os.stat_result,
        left_to_read: int,
        left_out: Mapping[str, FileMark | None],
    ) -> bool:
        """Return whether git should not read a file: a folder of data may contain terabytes.

        A file that the scan before did not read stays unread: there is no content to compare with.
        """
        if not self._repository.is_private or not stat.S_ISREG(status.st_mode):
            return False
        return status.st_size > left_to_read or left_out.get(name) == mark(status)

    def _can_be_kept(self, name: str, status: os.stat_result) -> bool:
        """Return whether it is a link, a submodule or a readable file; no pipe, no device."""
        if _is_refused(name, status):
            return False
        if stat.S_ISREG(status.st_mode):
            return os.access(f"{self._top}/{name}", os.R_OK)
        return stat.S_ISLNK(status.st_mode) or stat.S_ISDIR(status.st_mode)

    def _select_nested(self, names: Collection[str], found: SelectedFiles) -> None:
        """Keep a repository within the tree if it is a submodule in the user's index."""
        submodules = self._repository.submodules(names)
        for name in names:
            if name in submodules:
                found.update[name] = 0
            else:
                found.left_out[f"{name}/"] = None

    def _select_large(
        self, large: Mapping[str, os.stat_result], names: Mapping[str, bool], found: SelectedFiles
    ) -> None:
        """Keep a large file if the user tracks it and git can read it in time."""
        tracked = self._repository.tracked(large)
        for name, status in large.items():
            if name in tracked and status.st_size <= LARGEST_FILE:
                found.update[name] = status.st_size
            else:
                _leave_out(name, status, found, is_new=names[name])


def _is_refused(name: str, status: os.stat_result) -> bool:
    """Return whether git silently refuses to add such a name to an index."""
    parts = name.lower().split("/")
    return ".git" in parts or (parts[-1] == ".gitmodules" and stat.S_ISLNK(status.st_mode))


def _leave_out(name: str, status: os.stat_result, found: SelectedFiles, *, is_new: bool) -> None:
    """Leave a file out; its older version leaves the index too."""
    found.left_out[name] = mark(status) if stat.S_ISREG(status.st_mode) else None
    if not is_new:
        found.remove.append(name)


class TrackedFiles:
    """Follows the user's index and ignore rules: a tracked file counts even if a rule ignores it.

    To ask git about every file takes as long as a whole scan. So rooda asks only when the user's
    index or a rule has changed. `git` is that of the shadow repository.
    """

    def __init__(self, repository: Repository, git: Git) -> None:
        self._repository = repository
        self._git = git
        self._index: FileMark | None = None
        self._names: frozenset[str] = frozenset()
        self._lost: frozenset[str] = frozenset()
        self._rules: tuple[bytes, FileMark | None] | None = None

    def reset(self, known: Iterable[str]) -> None:
        """Forget everything except names that are known to be tracked."""
        self._index = self._rules = None
        self._names, self._lost = frozenset(known), frozenset()

    def newly_tracked(self) -> frozenset[str]:
        """Return the names that the user tracks since the last call; `git status` may omit them."""
        now = mark_of(self._repository.index)
        if now == self._index:
            self._lost = frozenset()
            return frozenset()
        self._index = now
        before, self._names = self._names, frozenset(self._repository.names())
        self._lost = _allowed(before - self._names)
        return _allowed(self._names - before)

    def ignored(self, changed: Collection[str], rules: bytes) -> frozenset[str]:
        """Return files in the shadow index that a rule ignores now and the user does not track."""
        # The rules at the top may ignore their own file; then it is not among the changed names.
        now = (rules, mark_of(self._repository.top / _RULES))
        before, self._rules = self._rules, now
        if before != now or any(name.rpartition("/")[2] == _RULES for name in changed):
            found = self._list_ignored()
        elif self._lost:
            few = len(self._lost) <= _NAMES_PER_COMMAND
            found = self._list_ignored(*self._lost) if few else self._list_ignored()
        else:
            return frozenset()
        there = (name for name in found if os.path.lexists(self._repository.top / name))
        return frozenset(there) - self._names

    def _list_ignored(self, *names: str) -> list[str]:
        raw = self._git("--literal-pathspecs", *_LIST_IGNORED, "--", *names)
        return os.fsdecode(raw).split("\0")[:-1]


def _allowed(names: Iterable[str]) -> frozenset[str]:
    """Return the names that git allows: an agent can forge an index with others."""
    return frozenset(filter(is_path_in_tree, names))
