"""Restore the bytes, permissions and links of a work tree.

Ignored files, files that are in no snapshot, and submodules stay as they are. If one of them is
in the way of a file, rooda can't restore that file, and names it.
"""

import os
import stat
from collections.abc import Collection, Iterable, Mapping
from itertools import filterfalse
from pathlib import Path

from msgspec import Struct

from rooda.workspace.git import INHERITED
from rooda.workspace.snapshots.file_modes import modes_of, set_modes
from rooda.workspace.snapshots.shadow_repo import ShadowRepo, listed
from rooda.workspace.tree_changes import GITLINK, Difference

_CHECKOUT = ("checkout-index", "--force", "--index", "-z", "--stdin")
_IGNORED = ("check-ignore", "--no-index", "-z", "--stdin")


class RestorePlan(Struct, frozen=True):
    """The names to delete, those to write, and those that must stay as they are."""

    delete: tuple[str, ...]
    write: tuple[str, ...]
    leave: tuple[str, ...]


def plan_restore(
    differences: Iterable[Difference], left_out: Collection[str], stuck: Collection[str]
) -> RestorePlan:
    """Decide for each name.

    `left_out` existed at the time of the snapshot and is not in it. `stuck` exists now, and rooda
    could not keep it.
    """
    delete: list[str] = []
    write: list[str] = []
    leave: list[str] = []
    folders = tuple(name for name in left_out if name.endswith("/"))
    for found in differences:
        name = found.name
        if GITLINK in (found.mode_before, found.mode_after) or name in stuck:
            leave.append(name)
        elif found.mode_after:
            write.append(name)
        elif name in left_out or name.startswith(folders):
            leave.append(name)
        else:
            delete.append(name)
    return RestorePlan(tuple(delete), tuple(write), tuple(leave))


class Restorer:
    """Writes to one work tree."""

    def __init__(self, shadow: ShadowRepo, top: Path, folder: Path, largest: int) -> None:
        """Rooda does not delete `folder`; `largest` is the size of a file that rooda keeps."""
        self._shadow = shadow
        self._top = top
        self._largest = largest
        self._stay = {folder, *folder.parents}  # even if they are empty

    def hidden(self, differences: Iterable[Difference]) -> tuple[list[str], list[str]]:
        """Return files that a restore would overwrite and that no tree contains: they are ignored.

        The first list contains those that rooda can keep before, the second those that it can't.
        """
        savable: list[str] = []
        stuck: list[str] = []
        for found in differences:
            if found.mode_before or not self._is_in_place(found.name):
                continue
            path = self._top / found.name
            kind = _kind(path)
            if kind == stat.S_IFLNK or (kind == stat.S_IFREG and self._can_be_kept(path)):
                savable.append(found.name)
            elif kind == stat.S_IFREG:
                stuck.append(found.name)
        return savable, stuck

    def _can_be_kept(self, path: Path) -> bool:
        try:
            return path.lstat().st_size <= self._largest and os.access(path, os.R_OK)
        except OSError:
            return False

    def carry_out(
        self, what: RestorePlan, tree: str, absent: Collection[str], modes: Mapping[str, int]
    ) -> tuple[str, ...]:
        """Restore the tree, and these permissions. Return the names that could not be restored.

        The ignore rules come first: rooda deletes no file that they ignore, unless it is known
        that the file did not exist.
        """
        self._shadow.git("read-tree", "--reset", tree)
        done = set(self._write(filter(_is_rule, what.write), modes))
        for group in (filter(_is_rule, what.delete), filterfalse(_is_rule, what.delete)):
            names = list(group)
            spared = [name for name in self._ignored(names) if name not in absent]
            done.update(spared)
            done.update([name for name in names if name not in done and self._delete(name)])
        done.update(self._write(filterfalse(_is_rule, what.write), modes))
        failed = [name for name in (*what.delete, *what.write) if name not in done]
        return (*what.leave, *failed, *self._set_modes(modes, {*what.leave, *failed}))

    def _set_modes(self, modes: Mapping[str, int], spared: Collection[str]) -> list[str]:
        """Set permissions that differ; return the names for which that failed."""
        names = [name for name in modes if name not in spared and self._is_in_place(name)]
        now = modes_of(str(self._top), names)
        wrong = {name: modes[name] for name, mode in now.items() if mode != modes[name]}
        return set_modes(str(self._top), wrong)

    def ignored_if_there(self, differences: Iterable[Difference]) -> list[str]:
        """Return names that the restore creates and that today's rules ignore."""
        new = [found.name for found in differences if not found.mode_before]
        files = (stat.S_IFREG, stat.S_IFLNK)
        return self._ignored(name for name in new if _kind(self._top / name) not in files)

    def _ignored(self, names: Iterable[str]) -> list[str]:
        # `./` in front keeps git from reading a name as an option or a pattern.
        within = [f"./{name}" for name in names if not self._is_behind_link(name)]
        said = self._shadow.git.ask(*_IGNORED, given=listed(within)) if within else None
        return [name.removeprefix("./") for name in (said or "").split("\0")[:-1]]

    def _write(self, names: Iterable[str], modes: Mapping[str, int]) -> list[str]:
        """Write files, and return their names. `modes` are the permissions that they will get.

        The others get the permissions of the files that they replace.
        """
        umasks = {
            name: _umask_for(modes[name]) if name in modes else _umask_of(self._top / name)
            for name in names
        }
        free = [name for name in umasks if self._make_room(name)]
        for name in free:
            if name in modes:  # git would create the folders with the umask for the file
                (self._top / name).parent.mkdir(parents=True, exist_ok=True)
        for umask in sorted({umasks[name] for name in free}):
            some = [name for name in free if umasks[name] == umask]
            self._shadow.git(*_CHECKOUT, given=listed(some), umask=umask)
        return free

    def _delete(self, name: str) -> bool:
        if not self._is_in_place(name):
            return True  # there is no file of this name
        path = self._top / name
        if not _unlink(path):
            return False
        self._prune(path.parent)
        return True

    def _prune(self, folder: Path) -> None:
        """Remove folders that have become empty, as git does."""
        while folder not in self._stay:
            try:
                folder.rmdir()
            except OSError:
                return
            folder = folder.parent

    def _above(self, name: str) -> Iterable[Path]:
        """Return the folders above a name, from the top down."""
        folder = self._top
        for part in name.split("/")[:-1]:
            folder /= part
            yield folder

    def _is_in_place(self, name: str) -> bool:
        """Return whether all folders above a name are real: a link leads out of the tree."""
        return all(_kind(folder) == stat.S_IFDIR for folder in self._above(name))

    def _is_behind_link(self, name: str) -> bool:
        return any(_kind(folder) == stat.S_IFLNK for folder in self._above(name))

    def _make_room(self, name: str) -> bool:
        """Return whether a file can be written without a loss; remove pipes and empty folders."""
        for folder in self._above(name):
            kind = _kind(folder)
            if kind is None:
                return True
            if kind != stat.S_IFDIR:
                return False
        path = self._top / name
        kind = _kind(path)
        if kind == stat.S_IFDIR:
            return _remove_hollow(path)
        return kind not in (stat.S_IFIFO, stat.S_IFSOCK) or _unlink(path)  # they contain nothing


def _is_rule(name: str) -> bool:
    return name.rpartition("/")[2] == ".gitignore"


def _kind(path: Path) -> int | None:
    try:
        return stat.S_IFMT(path.lstat().st_mode)
    except OSError:
        return None


def _unlink(path: Path) -> bool:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return False
    return True


def _umask_of(path: Path) -> int:
    """Return the umask with which a new version gets the permissions of the existing file."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return INHERITED
    if not stat.S_ISREG(mode):
        return INHERITED
    return _umask_for(mode)


def _umask_for(mode: int) -> int:
    """Return the umask for a file with these permissions: it is private from the first moment on.

    If the file is executable, every user with read permission may execute it.
    """
    allowed = mode & 0o666
    return 0o777 & ~(allowed | (allowed & 0o444) >> 2)


def _remove_hollow(folder: Path) -> bool:
    """Remove a folder that contains only folders."""
    below = [(place, files) for place, _, files in os.walk(folder, topdown=False)]
    if any(files for _, files in below):
        return False
    try:
        for place, _ in below:
            Path(place).rmdir()
    except OSError:  # `os.walk` lists a link to a folder as a folder
        return False
    return True
