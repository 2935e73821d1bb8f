"""Takes over the snapshots of version 0.1, which are commits in the user's repository.

This module is temporary: delete it when no user has records of version 0.1 any more.
"""

import contextlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from rooda.world.files.plain_files import read_plain_file
from rooda.world.git.git import INHERITED, GitError, GitInterruptedError
from rooda.world.git.git_files import is_path_in_tree
from rooda.world.git.snapshots.packs import TEMPORARY
from rooda.world.git.snapshots.repository import Repository
from rooda.world.git.snapshots.store import Permissions, SnapshotNotes, Store, ref
from rooda.world.state.folder import StateFolder
from rooda.world.state.home import key_of
from rooda.world.tools import Tools

_ROOT = "refs/rooda/"
_OF_THE_FLEET = ("fleet", "adopt", "new", "seen")
_NAME = re.compile(r"[0-9]{1,6}|u[0-9]{1,6}")
_FORMAT = "%(refname)%00%(objectname)%00%(tree)%00%(contents)%00"
_LARGEST = 256 * 1024 * 1024  # bytes of the file with packed refs
_MODE_LINE = re.compile(r"^Mode ([0-7]{3}): ", re.MULTILINE)


class _Old(Struct, frozen=True):
    run: str
    name: str
    commit: str
    tree: str
    message: str


def store_to_read(tree: Path, state: StateFolder, tools: Tools) -> Store:
    """Return the store of a work tree, with what version 0.1 left in the user's repository."""
    store = Store(state, tools)
    with contextlib.suppress(GitError):
        repository = Repository.find(tree, tools)
        if repository is not None:
            take_over(repository, store)
    return store


def take_over(repository: Repository, store: Store) -> None:
    """Copy old snapshots to the store, and delete their refs; without success, all stays.

    They belong to the record of the work tree. A folder that the user chose for the record of a
    run (`--record`) gets none: `rooda restore` would not find them there.
    """
    if not key_of(store.folder.parent) or not _may_have_refs(repository):
        return
    try:
        if old := list(_old_snapshots(repository)):
            _copy(repository, store, old)
    except GitInterruptedError:
        raise
    except (GitError, OSError):
        return


def _may_have_refs(repository: Repository) -> bool:
    if (repository.common / "refs" / "rooda").is_dir():
        return True
    try:
        return f" {_ROOT}".encode() in read_plain_file(repository.common / "packed-refs", _LARGEST)
    except OSError:
        return False


def _old_snapshots(repository: Repository) -> Iterator[_Old]:
    raw = repository.git("for-each-ref", f"--format={_FORMAT}", _ROOT)
    fields = os.fsdecode(raw).split("\0")
    for place in range(0, len(fields) - 4, 4):
        name, commit, tree, message = fields[place : place + 4]
        words = name.strip("\n").removeprefix(_ROOT).split("/")
        if len(words) == 2 and words[0] not in _OF_THE_FLEET and _NAME.fullmatch(words[1]) and tree:  # noqa: PLR2004
            yield _Old(words[0], words[1], commit, tree, message)


def _copy(repository: Repository, store: Store, old: list[_Old]) -> None:
    store.prepare(repository.object_format)
    if store.algorithm != repository.object_format:
        return
    repository.check()
    _copy_trees(repository, store, {one.tree for one in old})
    pack = store.pack()
    commits = {
        one: store.commit(
            pack,
            bytes.fromhex(one.tree),
            f"rooda {one.run} {one.name}",
            _notes(one.message, repository.top),
        )
        for one in old
    }
    pack.finish()
    for one, commit in commits.items():
        if store.snapshot(one.run, one.name) is None:
            store.write(ref(one.run, one.name), commit)
    lines = "".join(f"delete {_ROOT}{one.run}/{one.name} {one.commit}\n" for one in old)
    # Git may write `packed-refs` again, which has the refs of the user too.
    repository.git("update-ref", "--stdin", given=lines.encode(), umask=INHERITED)


def _copy_trees(repository: Repository, store: Store, trees: set[str]) -> None:
    place = store.folder / "objects" / "pack"
    pack, index = place / f"{TEMPORARY}old.pack", place / f"{TEMPORARY}old.idx"
    given = "".join(f"{tree}\n" for tree in trees).encode()
    with pack.open("wb") as file:
        repository.git.pieces(file.write, "pack-objects", "--revs", "--stdout", "-q", given=given)
    name = store.git.line("index-pack", "--strict", "-o", str(index), str(pack)).split()[-1]
    pack.replace(place / f"pack-{name}.pack")
    index.replace(place / f"pack-{name}.idx")


def _notes(message: str, top: Path) -> SnapshotNotes:
    modes = {
        name: int(one, 8)
        for one in set(_MODE_LINE.findall(message))
        for name in _names(message, f"Mode {one}: ")
        if is_path_in_tree(name)
    }
    left_out, absent = (tuple(_names(message, kind)) for kind in ("Left out: ", "Absent: "))
    return SnapshotNotes(str(top), left_out, absent, Permissions(others=modes))


def _names(message: str, kind: str) -> Iterator[str]:
    for line in message.split("\n"):
        if line.startswith(kind):
            try:
                name = json.loads(line.removeprefix(kind))
            except (ValueError, RecursionError):
                continue
            if isinstance(name, str):
                yield name
