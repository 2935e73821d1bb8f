"""What a scan has found, as trees of git, as changes, and as what no tree contains."""

import os
import stat
import struct
from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from rooda.world.git.snapshots.marks import MARK_SIZE, Folder
from rooda.world.git.snapshots.packs import PackWriter, object_id
from rooda.world.git.snapshots.store import Permissions, permissions
from rooda.world.git.snapshots.tree_changes import Changes, in_order

_MODES = struct.Struct(f"<I{MARK_SIZE - 4}x")


def write_trees(
    folders: dict[str, Folder], changed: Iterable[str], pack: PackWriter, algorithm: str
) -> None:
    """Write the trees of changed folders, and of those above them."""
    below: dict[str, list[str]] = {}
    for path in filter(None, folders):
        parent, _, name = path.rpartition("/")
        below.setdefault(parent, []).append(name)
    todo = {""}
    for path in changed:
        while path not in todo:
            todo.add(path)
            path = parent_of(path)  # noqa: PLW2901 - the folders above it, too
    for path in sorted(todo, key=depth_of, reverse=True):
        if path in folders:
            _write_tree(folders, path, below.get(path, ()), pack, algorithm)


def _write_tree(
    folders: dict[str, Folder], path: str, below: Iterable[str], pack: PackWriter, algorithm: str
) -> None:
    folder = folders[path]
    entries = [
        (os.fsencode(name), b"%o" % seen.git_mode, seen.content)
        for name, seen in folder.files()
        if seen.content
    ]
    trees = ((name, folders[f"{path}/{name}" if path else name].tree) for name in below)
    entries += [(os.fsencode(name) + b"/", b"40000", tree) for name, tree in trees if tree]
    entries.sort()
    content = b"".join(
        b"%s %s\0%s" % (mode, name.removesuffix(b"/"), one) for name, mode, one in entries
    )
    tree = object_id(algorithm, "tree", content) if content or not path else b""
    if tree != folder.tree:
        if tree:
            pack.add("tree", content)
        folders[path] = replace(folder, tree=tree)


def has_left_out(folder: Folder, width: int) -> bool:
    """Return whether a file of a folder is left out of its tree; an id has `width` bytes."""
    return bytes(width) in folder.contents


def left_out_of(folders: Mapping[str, Folder], width: int) -> dict[str, bytes | None]:
    """Return the files that are left out of the trees, with their marks."""
    return {
        f"{path}/{name}".lstrip("/"): seen.mark
        for path, folder in folders.items()
        if has_left_out(folder, width)
        for name, seen in folder.files()
        if not seen.content
    }


def changes_between(old: Mapping[str, Folder], new: Mapping[str, Folder]) -> Changes:
    """Return the files that differ, by content and by what git keeps of the mode."""
    created: list[str] = []
    modified: list[str] = []
    deleted: list[str] = []
    for path in old.keys() | new.keys():
        if old.get(path) is new.get(path):
            continue
        before, after = _kept(old.get(path)), _kept(new.get(path))
        start = f"{path}/" if path else ""
        for name in before.keys() | after.keys():
            one, other = before.get(name), after.get(name)
            if one == other:
                continue
            some = created if one is None else deleted if other is None else modified
            some.append(start + name)
    return in_order(created, modified, deleted)


def _kept(folder: Folder | None) -> dict[str, tuple[int, bytes]]:
    files = () if folder is None else folder.files()
    return {name: (seen.git_mode, seen.content) for name, seen in files if seen.content}


def permissions_of(folders: Mapping[str, Folder]) -> Permissions:
    """Return the permissions of all files in these folders; links have none."""
    counts: Counter[int] = Counter()
    for folder in folders.values():
        counts.update([mode for (mode,) in _MODES.iter_unpack(folder.marks)])
    usual = Permissions.usual(
        {permissions(mode): number for mode, number in counts.items() if stat.S_ISREG(mode)}
    )
    odd = {
        mode
        for mode in counts
        if stat.S_ISREG(mode) and permissions(mode) not in (usual.file, usual.program)
    }
    others: dict[str, int] = {}
    for path, folder in folders.items() if odd else ():
        if odd.isdisjoint(mode for (mode,) in _MODES.iter_unpack(folder.marks)):
            continue
        for name, seen in folder.files():
            if seen.mode in odd and seen.content:
                others[f"{path}/{name}".lstrip("/")] = permissions(seen.mode)
    return replace(usual, others=others)


def parent_of(path: str) -> str:
    """Return the folder above a folder or file."""
    return path.rpartition("/")[0]


def depth_of(path: str) -> int:
    """Return how many folders are on the way to a folder, itself included."""
    return path.count("/") + 1 if path else 0
