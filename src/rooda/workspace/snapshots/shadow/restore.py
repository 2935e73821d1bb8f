"""Make the work tree what it was: bytes, executable bits and links; nothing else is touched.

Ignored files, files that are in no snapshot, and submodules stay as they are. Where one of them
is in the way of a file, that file can't be brought back, and is named.
"""

import os
import stat
from collections.abc import Collection, Iterable
from itertools import filterfalse
from pathlib import Path

from msgspec import Struct

from rooda.workspace.changes import GITLINK, Difference
from rooda.workspace.snapshots.shadow.folder import Shadow, listed

_CHECKOUT = ("checkout-index", "--force", "--index", "-z", "--stdin")
_IGNORED = ("check-ignore", "--no-index", "-z", "--stdin")
_INHERITED = -1  # the umask that we have ourselves


class Plan(Struct, frozen=True):
    """What to delete, what to write, and what has to stay as it is."""

    delete: tuple[str, ...]
    write: tuple[str, ...]
    leave: tuple[str, ...]


def plan(
    differences: Iterable[Difference], left_out: Collection[str], stuck: Collection[str]
) -> Plan:
    """Decide for each name.

    `left_out` was there at the time, and yet is not in the snapshot. `stuck` is there now, and
    could not be kept.
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
    return Plan(tuple(delete), tuple(write), tuple(leave))


class Restorer:
    """Writes to one work tree."""

    def __init__(self, shadow: Shadow, top: Path, folder: Path, largest: int) -> None:
        """`folder` is where somebody works; `largest` is the size of a file that is kept."""
        self._shadow = shadow
        self._top = top
        self._largest = largest
        self._stay = {folder, *folder.parents}  # even with nothing in them

    def hidden(self, differences: Iterable[Difference]) -> tuple[list[str], list[str]]:
        """Files that would be overwritten although they are in no tree, being ignored by now.

        Those that can be kept before that, and those that can't.
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

    def carry_out(self, what: Plan, tree: str, absent: Collection[str]) -> tuple[str, ...]:
        """Bring back the tree; the names that could not be brought back.

        The rules for ignoring come first: what they ignore is not ours to delete, unless it is
        known to have been absent.
        """
        self._shadow.git("read-tree", "--reset", tree)
        done = set(self._write(filter(_is_rule, what.write)))
        for group in (filter(_is_rule, what.delete), filterfalse(_is_rule, what.delete)):
            names = list(group)
            spared = [name for name in self._ignored(names) if name not in absent]
            done.update(spared)
            done.update([name for name in names if name not in done and self._delete(name)])
        done.update(self._write(filterfalse(_is_rule, what.write)))
        return (*what.leave, *(name for name in (*what.delete, *what.write) if name not in done))

    def ignored_if_there(self, differences: Iterable[Difference]) -> list[str]:
        """What is no file yet, but will be, and is ignored by the rules of now."""
        new = [found.name for found in differences if not found.mode_before]
        files = (stat.S_IFREG, stat.S_IFLNK)
        return self._ignored(name for name in new if _kind(self._top / name) not in files)

    def _ignored(self, names: Iterable[str]) -> list[str]:
        # With a folder in front no name can mean anything but itself.
        within = [f"./{name}" for name in names if not self._is_behind_link(name)]
        said = self._shadow.git.ask(*_IGNORED, given=listed(within)) if within else None
        return [name.removeprefix("./") for name in (said or "").split("\0")[:-1]]

    def _write(self, names: Iterable[str]) -> list[str]:
        """Write files, each with the permissions of the one before; the names that could be."""
        umasks = {name: _umask(self._top / name) for name in names}
        free = [name for name in umasks if self._make_room(name)]
        for umask in sorted({umasks[name] for name in free}):
            some = [name for name in free if umasks[name] == umask]
            self._shadow.git(*_CHECKOUT, given=listed(some), umask=umask)
        return free

    def _delete(self, name: str) -> bool:
        if not self._is_in_place(name):
            return True  # there is nothing of this name
        path = self._top / name
        if not _unlink(path):
            return False
        self._prune(path.parent)
        return True

    def _prune(self, folder: Path) -> None:
        """Remove folders that are empty now, as git does."""
        while folder not in self._stay:
            try:
                folder.rmdir()
            except OSError:
                return
            folder = folder.parent

    def _above(self, name: str) -> Iterable[Path]:
        """The folders of a name, from the top on."""
        folder = self._top
        for part in name.split("/")[:-1]:
            folder /= part
            yield folder

    def _is_in_place(self, name: str) -> bool:
        """Whether everything above it is a real folder: behind a link is not our tree."""
        return all(_kind(folder) == stat.S_IFDIR for folder in self._above(name))

    def _is_behind_link(self, name: str) -> bool:
        return any(_kind(folder) == stat.S_IFLNK for folder in self._above(name))

    def _make_room(self, name: str) -> bool:
        """Whether a file can be written there without a loss."""
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
        return kind not in (stat.S_IFIFO, stat.S_IFSOCK) or _unlink(path)  # these hold nothing


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


def _umask(path: Path) -> int:
    """The one under which a new version gets the permissions of the file that is there.

    So what is private stays so, from the first moment of the new version on. If that is
    executable, whoever may read it may execute it.
    """
    try:
        mode = path.lstat().st_mode
    except OSError:
        return _INHERITED
    if not stat.S_ISREG(mode):
        return _INHERITED
    allowed = mode & 0o666
    return 0o777 & ~(allowed | (allowed & 0o444) >> 2)


def _remove_hollow(folder: Path) -> bool:
    """Remove a folder that has nothing but folders in it."""
    below = [(place, files) for place, _, files in os.walk(folder, topdown=False)]
    if any(files for _, files in below):
        return False
    try:
        for place, _ in below:
            Path(place).rmdir()
    except OSError:  # a link to a folder counts as a folder there
        return False
    return True
