"""What changed between two looks at a tree. Pure."""

import os
import posixpath
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

GITLINK = 0o160000  # the mode of a submodule


class Changes(Struct, frozen=True):
    """Sorted names, relative to the folder that was asked for. A rename is a delete and a create.

    A name that no text can hold has surrogates in it, as everywhere in Python.
    """

    created: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.created or self.modified or self.deleted)


class Difference(Struct, frozen=True):
    """One name in two trees. A mode of 0: it is not there. The object tells contents apart."""

    name: str
    mode_before: int
    mode_after: int
    object_before: str
    object_after: str


def parse_differences(raw: bytes) -> Iterator[Difference]:
    """Read what `git diff-tree -r -z --raw` prints."""
    # `:100644 100755 0a1b... 2c3d... M`, then the name, each with a zero byte behind
    fields = iter(raw.split(b"\0")[:-1])
    for about, name in zip(fields, fields, strict=True):
        before, after, old, new, _ = about.decode("ascii").removeprefix(":").split(" ")
        yield Difference(os.fsdecode(name), int(before, 8), int(after, 8), old, new)


def of_trees(differences: Iterable[Difference]) -> Changes:
    """The same as lists of names; another kind of file under the same name is a modification."""
    created: list[str] = []
    modified: list[str] = []
    deleted: list[str] = []
    for found in differences:
        kind = created if not found.mode_before else modified if found.mode_after else deleted
        kind.append(found.name)
    return _sorted(created, modified, deleted)


def of_marks(before: Mapping[str, object], after: Mapping[str, object]) -> Changes:
    """What changed among files of which only a mark is known; None stands for no mark."""
    old = {name: mark for name, mark in before.items() if mark is not None}
    new = {name: mark for name, mark in after.items() if mark is not None}
    both = old.keys() & new.keys()
    modified = [name for name in both if old[name] != new[name]]
    return _sorted(new.keys() - both, modified, old.keys() - both)


def joined(one: Changes, other: Changes) -> Changes:
    """The changes of two parts of a tree. What went from the one to the other was modified."""
    created = {*one.created, *other.created}
    deleted = {*one.deleted, *other.deleted}
    moved = created & deleted
    return _sorted(created - moved, {*one.modified, *other.modified, *moved}, deleted - moved)


def seen_from(folder: str, changes: Changes) -> Changes:
    """Names relative to the top of a tree as they are called in a folder of it."""
    if not folder:
        return changes
    lists = (changes.created, changes.modified, changes.deleted)
    return _sorted(*([relative(folder, name) for name in names] for names in lists))


def relative(folder: str, name: str) -> str:
    """What a name below the top is called in a folder below the top: `../x` for what is beside."""
    if not folder:
        return name
    end = "/" if name.endswith("/") else ""
    return posixpath.relpath(f"/{name}", f"/{folder}") + end


def _sorted(created: Iterable[str], modified: Iterable[str], deleted: Iterable[str]) -> Changes:
    return Changes(tuple(sorted(created)), tuple(sorted(modified)), tuple(sorted(deleted)))
