"""Restore the bytes, permissions and links of a work tree, by descriptors.

Ignored files and files that are in no snapshot stay as they are. If one of them is in the way of a
file, rooda can't restore that file, and names it.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import filterfalse
from pathlib import Path
from typing import IO

from msgspec import Struct

from rooda.world.files.beneath import NEW, Beneath, copy_bytes, set_mode
from rooda.world.git.git_contents import contents
from rooda.world.git.snapshots.marks import RuleFile
from rooda.world.git.snapshots.rules import MOST_RULES, RULES, IgnoreRules
from rooda.world.git.snapshots.store import Permissions, Store, permissions
from rooda.world.git.snapshots.tree_changes import GITLINK, Difference

_LINK = 0o120000


class RestorePlan(Struct, frozen=True):
    """The names to delete, those to write, and those that must stay as they are."""

    delete: tuple[str, ...]
    write: tuple[Difference, ...]
    leave: tuple[str, ...]


def plan_restore(
    differences: Sequence[Difference], left_out: Collection[str], stuck: Collection[str]
) -> RestorePlan:
    """Decide for each name.

    `left_out` existed at the time of the snapshot and is not in it. `stuck` exists now, and rooda
    could not keep it. Snapshots of version 0.1 have submodules as one entry, without their files.
    """
    delete: list[str] = []
    write: list[Difference] = []
    leave: list[str] = []
    submodules = [one.name for one in differences if one.mode_after == GITLINK]
    folders = tuple(name for name in left_out if name.endswith("/"))
    below = tuple(f"{name}/" for name in submodules)
    for found in differences:
        name = found.name
        if name.startswith(below):
            continue
        if GITLINK in (found.mode_before, found.mode_after) or name in stuck:
            leave.append(name)
        elif found.mode_after:
            write.append(found)
        elif name in left_out or name.startswith(folders):
            leave.append(name)
        else:
            delete.append(name)
    return RestorePlan(tuple(delete), tuple(write), tuple(leave))


class Restorer:
    """Writes to one work tree."""

    def __init__(
        self, store: Store, rules: IgnoreRules, top: Path, folder: Path, largest: int
    ) -> None:
        """Rooda does not delete `folder`; `largest` is the size of a file that rooda keeps."""
        self._store = store
        self._rules = rules
        self._tree = Beneath(top)
        self._largest = largest
        stay = [folder, *folder.parents]
        self._stay = {str(one.relative_to(top)) for one in stay if one.is_relative_to(top)}

    def hidden(self, differences: Iterable[Difference]) -> tuple[list[str], list[str]]:
        """Return files that a restore would overwrite and that no tree contains: they are ignored.

        The first list contains those that rooda can keep before, the second those that it can't.
        """
        savable: list[str] = []
        stuck: list[str] = []
        for found in differences:
            if found.mode_before:
                continue
            kind = self._kind(found.name)
            if kind == stat.S_IFLNK or (kind == stat.S_IFREG and self._can_be_kept(found.name)):
                savable.append(found.name)
            elif kind == stat.S_IFREG:
                stuck.append(found.name)
        return savable, stuck

    def _can_be_kept(self, name: str) -> bool:
        try:
            with self._tree.open(name) as file:
                return os.fstat(file.fileno()).st_size <= self._largest
        except OSError:
            return False

    def ignored_if_there(self, differences: Iterable[Difference]) -> list[str]:
        """Return names that the restore creates and that today's rules ignore."""
        new = [found.name for found in differences if not found.mode_before]
        files = (stat.S_IFREG, stat.S_IFLNK)
        return self._ignored(name for name in new if self._kind(name) not in files)

    def carry_out(
        self, what: RestorePlan, absent: Collection[str], modes: Permissions
    ) -> tuple[str, ...]:
        """Restore the files with these permissions. Return the names that could not be restored.

        The ignore rules come first: rooda deletes no file that they ignore, unless it is known
        that the file did not exist.
        """
        written = [one for one in what.write if _is_rule(one.name)]
        done = set(self._write(written, modes))
        self._read_rules(one.name for one in written)
        for group in (filter(_is_rule, what.delete), filterfalse(_is_rule, what.delete)):
            some = list(group)
            spared = {name for name in self._ignored(some) if name not in absent}
            done.update(spared)
            done.update(name for name in some if name not in spared and self._delete(name))
            self._read_rules(filter(_is_rule, some))
        done.update(self._write([one for one in what.write if not _is_rule(one.name)], modes))
        names = (*what.delete, *(one.name for one in what.write))
        return (*what.leave, *(name for name in names if name not in done))

    def set_modes(self, wanted: Mapping[str, int]) -> list[str]:
        """Set the permissions of regular files; return the names for which that failed."""
        failed: list[str] = []
        for name, mode in wanted.items():
            try:
                with self._tree.above(name) as (parent, last):
                    status = os.lstat(last, dir_fd=parent)
                    if stat.S_ISREG(status.st_mode) and permissions(status.st_mode) != mode:
                        set_mode(parent, last, mode)
            except OSError as error:
                failed += [] if error.errno == errno.ENOENT else [name]
        return failed

    # -- rules -----------------------------------------------------------------------------------

    def _read_rules(self, names: Iterable[str]) -> None:
        """Read the rules that the restore has changed: the next question is about them."""
        for name in names:
            folder = name.rpartition("/")[0]
            try:
                content = self._tree.read(name, MOST_RULES)
            except OSError:
                self._rules.files.pop(folder, None)
            else:
                self._rules.files[folder] = RuleFile(b"", content)

    def _ignored(self, names: Iterable[str]) -> list[str]:
        asked: dict[str, list[str]] = {}
        for name in names:
            folder, _, last = name.rpartition("/")
            asked.setdefault(folder, []).append(last)
        found = self._rules.ignored(asked) if asked else {}
        return [f"{folder}/{name}".lstrip("/") for folder, some in found.items() for name in some]

    # -- writing ---------------------------------------------------------------------------------

    def _write(self, wanted: Sequence[Difference], modes: Permissions) -> list[str]:
        """Write files, and return their names."""
        done: list[str] = []
        free = [one for one in wanted if self._make_room(one.name)]
        named = [(one, one.object_after) for one in free]
        for one, content, size in contents(self._store.git, named, self._store.folder):
            try:
                self._write_one(one, content, size, modes.mode(one.name, one.mode_after))
            except OSError as error:
                if error.errno in (errno.ENOSPC, errno.EDQUOT):
                    raise
                continue
            done.append(one.name)
        return done

    def _write_one(self, one: Difference, content: IO[bytes], size: int, mode: int) -> None:
        draft = f".rooda-{os.urandom(8).hex()}"
        with self._tree.above(one.name, make=True) as (parent, last):
            try:
                if one.mode_after == _LINK:
                    os.symlink(content.read(size), os.fsencode(draft), dir_fd=parent)
                else:
                    with os.fdopen(os.open(draft, NEW, 0o600, dir_fd=parent), "wb") as file:
                        copy_bytes(content, file, size)
                        os.fchmod(file.fileno(), mode)
                os.rename(draft, last, src_dir_fd=parent, dst_dir_fd=parent)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(draft, dir_fd=parent)
                raise

    def _make_room(self, name: str) -> bool:
        """Return whether a file can be written without a loss; remove pipes and empty folders."""
        for end in (place for place, sign in enumerate(name) if sign == "/"):
            kind = self._kind(name[:end])
            if kind is None:
                return True
            if kind != stat.S_IFDIR:
                return False
        kind = self._kind(name)
        if kind == stat.S_IFDIR:
            return self._remove_hollow(name)
        if kind in (stat.S_IFIFO, stat.S_IFSOCK):  # they contain nothing
            return self._try(self._tree.remove, name)
        return True

    def _remove_hollow(self, name: str) -> bool:
        """Remove a folder that contains only folders."""
        folders: list[str] = []
        for listing in self._tree.walk(name=name):
            if len(listing.enter) != len(listing.entries) or listing.error is not None:
                return False
            folders.append(f"{name}/{listing.path}".rstrip("/"))
        return all(self._try(self._tree.remove_empty, one) for one in reversed(folders))

    def _delete(self, name: str) -> bool:
        try:
            with self._tree.above(name) as (parent, last):
                os.unlink(last, dir_fd=parent)
        except OSError as error:
            # There is no file of this name, or it is behind a link.
            return error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
        self._prune(name.rpartition("/")[0])
        return True

    def _prune(self, folder: str) -> None:
        """Remove folders that have become empty, as git does."""
        while folder and folder not in self._stay and self._try(self._tree.remove_empty, folder):
            folder = folder.rpartition("/")[0]

    def _try(self, remove: Callable[[str], None], name: str) -> bool:
        try:
            remove(name)
        except OSError:
            return False
        return True

    def _kind(self, name: str) -> int | None:
        try:
            return stat.S_IFMT(self._tree.status(name).st_mode)
        except OSError:
            return None


def _is_rule(name: str) -> bool:
    return name.rpartition("/")[2] == RULES
