"""Which of the files that changed go into a snapshot, and which are left out and named."""

import os
import stat
from collections.abc import Collection, Mapping

from msgspec import Struct, field

from rooda.workspace.git_files import LARGEST_FILE
from rooda.workspace.snapshots.repository import Repository
from rooda.workspace.snapshots.shadow.folder import Mark, mark


class Sorted(Struct):
    """What is to be done about each name. What is apart is in no tree; a file has a mark."""

    update: dict[str, int] = field(default_factory=dict)  # with the size
    remove: list[str] = field(default_factory=list)
    apart: dict[str, Mark | None] = field(default_factory=dict)


class Sorter:
    """Sorts the names that git found changed in one work tree."""

    def __init__(self, repository: Repository, own: str, largest: int) -> None:
        """`own` is rooda's folder, relative to the top; `largest` the size of a file to keep."""
        self._repository = repository
        self._top = str(repository.top)
        self._own = own
        self._largest = largest

    def sort(self, names: Mapping[str, bool]) -> Sorted:
        """Names, and whether they are new to the index; a repository in the tree ends in `/`."""
        found = Sorted()
        away: dict[str, bool] = {"": False}
        large: dict[str, os.stat_result] = {}
        nested: list[str] = []
        for name, is_new in names.items():
            if self.is_own(name):
                continue
            if name.endswith("/"):
                nested.append(name.removesuffix("/"))
                continue
            status = self._status(name, away)
            if status is None:
                found.remove += [] if is_new else [name]
            elif self._is_large(status):
                large[name] = status
            elif self._can_be_kept(name, status):
                found.update[name] = status.st_size
            else:
                _leave_out(name, status, found, is_new=is_new)
        self._sort_nested(nested, found)
        self._sort_large(large, names, found)
        return found

    def is_own(self, name: str) -> bool:
        """Whether it is rooda's."""
        return name.startswith(f"{self._own}/") or name == self._own

    def _status(self, name: str, away: dict[str, bool]) -> os.stat_result | None:
        """What is there; None for nothing, a mere folder, and what is behind a link."""
        path = f"{self._top}/{name}"
        if self._is_away(name.rpartition("/")[0], away):
            return None
        try:
            status = os.lstat(path)
        except OSError:
            return None
        is_folder = stat.S_ISDIR(status.st_mode) and not os.path.lexists(f"{path}/.git")
        return None if is_folder else status

    def _is_away(self, folder: str, known: dict[str, bool]) -> bool:
        """Whether a folder is a link, or below one; `known` is remembered for the next one."""
        if folder not in known:
            above = self._is_away(folder.rpartition("/")[0], known)
            known[folder] = above or os.path.islink(f"{self._top}/{folder}")  # noqa: PTH114 - fast
        return known[folder]

    def _is_large(self, status: os.stat_result) -> bool:
        return stat.S_ISREG(status.st_mode) and status.st_size > self._largest

    def _can_be_kept(self, name: str, status: os.stat_result) -> bool:
        """Links, submodules, and files that we may read; no pipes."""
        if _is_refused(name, status):
            return False
        if stat.S_ISREG(status.st_mode):
            return os.access(f"{self._top}/{name}", os.R_OK)
        return stat.S_ISLNK(status.st_mode) or stat.S_ISDIR(status.st_mode)

    def _sort_nested(self, names: Collection[str], found: Sorted) -> None:
        """A repository within the tree is kept as a submodule if the user did so."""
        submodules = self._repository.submodules(names)
        for name in names:
            if name in submodules:
                found.update[name] = 0
            else:
                found.apart[f"{name}/"] = None

    def _sort_large(
        self, large: Mapping[str, os.stat_result], names: Mapping[str, bool], found: Sorted
    ) -> None:
        """A large file is kept if the user has it in git anyway, and git can read it in time."""
        tracked = self._repository.tracked(large)
        for name, status in large.items():
            if name in tracked and status.st_size <= LARGEST_FILE:
                found.update[name] = status.st_size
            else:
                _leave_out(name, status, found, is_new=names[name])


def _is_refused(name: str, status: os.stat_result) -> bool:
    """Whether git silently takes no such name into an index."""
    parts = name.lower().split("/")
    return ".git" in parts or (parts[-1] == ".gitmodules" and stat.S_ISLNK(status.st_mode))


def _leave_out(name: str, status: os.stat_result, found: Sorted, *, is_new: bool) -> None:
    """A snapshot never holds an older version of what could not be kept."""
    found.apart[name] = mark(status) if stat.S_ISREG(status.st_mode) else None
    if not is_new:
        found.remove.append(name)
