"""Finds the record of a work tree: by the path of the tree, and by its identity after a move."""

import contextlib
import errno
import fcntl
import json
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct, convert
from msgspec.structs import asdict

from rooda.world.files.plain_files import read_plain_file, replace_file
from rooda.world.git.work_tree import folders_to_top
from rooda.world.process.libc import birth_time
from rooda.world.state.folder import DATABASE, StateFolder, make_state_folder
from rooda.world.state.home import (
    NoStateHomeError,
    key_of,
    state_folder_at,
    state_folders,
    state_home,
)

# Tell a work tree that was moved from a copy: `tree.json` in its state folder.
#
# The key of a record is the path of the work tree. The inode with its time of birth is the same
# after a move, and another one in a copy. The kernel uses the inode of a deleted folder again, but
# never with the same time of birth.


FILE = "tree.json"
_LONGEST = 64 * 1024


class TreeIdentity(Struct, frozen=True):
    """A work tree as rooda last saw it. The path need not be UTF-8."""

    path: str
    device: int
    inode: int
    birth: int | None = None  # nanoseconds since the epoch; None: the file system keeps none

    @property
    def tree(self) -> Path:
        """The path of the top."""
        return Path(self.path)

    def is_same_folder(self, other: "TreeIdentity | None") -> bool:
        """Return whether both are one folder, whatever its path; False without a time of birth."""
        return (
            other is not None
            and self.birth is not None
            and (self.device, self.inode, self.birth) == (other.device, other.inode, other.birth)
        )


def identity_of(tree: Path) -> TreeIdentity | None:
    """Return the identity of a folder; None if it is gone."""
    try:
        found = tree.stat()
    except OSError:
        return None
    return TreeIdentity(str(tree), found.st_dev, found.st_ino, birth_time(tree))


def recorded_identity(state: StateFolder) -> TreeIdentity | None:
    """Return what a state folder says about its work tree; None if it says nothing readable."""
    try:
        found = json.loads(read_plain_file(state / FILE, _LONGEST))
        identity = convert(found, TreeIdentity)
    except (OSError, ValueError, RecursionError):  # ValueError: also of msgspec
        return None
    return identity if Path(identity.path).is_absolute() else None


def note_tree(state: StateFolder, tree: Path) -> None:
    """Write down which work tree a state folder belongs to. Raises OSError.

    A bind mount shows the same folder at a second path: then the first path stays.
    """
    known, now = recorded_identity(state), identity_of(tree)
    if now is None or known == now:
        return
    if known is not None and known.path != now.path:
        is_mounted_twice = known.is_same_folder(now) and known.is_same_folder(
            identity_of(known.tree)
        )
        if is_mounted_twice:
            return
    make_state_folder(state)
    replace_file(state / FILE, json.dumps(asdict(now)).encode() + b"\n")


def note_tree_again(state: StateFolder, tree: Path) -> None:
    """Write `tree.json` again if an agent without a sandbox has deleted the state folder."""
    if not os.path.lexists(state / FILE):
        with contextlib.suppress(OSError):
            note_tree(state, tree)


# The state folder of a fleet on one machine, and the database that version 0.1 had elsewhere.


FLEET_DATABASE = "fleet.sqlite"
_OLD = "rooda/fleet.sqlite"  # in the git folder; version 0.1
_PARTS = ("-wal", "-shm", "")  # of a SQLite file; the file itself is the last one
_IN_USE = "fleet-in-use"  # each worker, slot process and command of a fleet has a shared lock on it
_LOOKED = "fleet-0.1-looked"  # from now on, a database in the git folder is the work of an agent


def fleet_state(git_dir: Path, environ: Mapping[str, str]) -> Path:
    """Return the state folder of a repository: that of its main work tree.

    All linked work trees share it, as they share the branches. Raises NoStateHomeError.
    """
    return state_folder_at(state_home(environ), main_tree(git_dir))


def main_tree(git_dir: Path) -> Path:
    """Return the main work tree of a repository; a bare one is its own."""
    return git_dir.parent if git_dir.name == ".git" else git_dir


@contextlib.contextmanager
def fleet_in(state: Path | None) -> Iterator[None]:
    """Show other processes that this one needs the state folder of a fleet, if there is one."""
    if state is None:
        yield
        return
    with (state / _IN_USE).open("a") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


@contextlib.contextmanager
def alone_in(state: Path) -> Iterator[bool]:
    """Yield whether no other process needs the state folder of a fleet; others wait meanwhile."""
    with (state / _IN_USE).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise
            yield False
        else:
            yield True


def is_fleet_in(state: Path) -> bool:
    """Return whether a process of a fleet needs this state folder."""
    if not (state / _IN_USE).exists():
        return False
    with alone_in(state) as is_alone:
        return not is_alone


def old_database(git_dir: Path, state: Path) -> Path | None:
    """Return the database of version 0.1, if there is one to take over."""
    old = git_dir / _OLD
    if (state / _LOOKED).exists() or (state / FLEET_DATABASE).exists() or old.parent.is_symlink():
        return None
    return old if _is_own_file(old) else None


def take_over_database(git_dir: Path, state: Path) -> Path | None:
    """Move the database of version 0.1 into the state folder; return where it was, if it was there.

    The database names the commands of workers, and an agent can write to the git folder. So rooda
    looks there once: at the first command of a fleet, or before the first agent in a sandbox.
    Raises OSError.
    """
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    old = old_database(git_dir, state)
    if old is not None:
        parts = [part for part in _PARTS if _is_own_file(old.with_name(old.name + part))]
        for part in parts:
            _move(old.with_name(old.name + part), state / f"{FLEET_DATABASE}{part}")
        with contextlib.suppress(OSError):
            old.parent.rmdir()
    (state / _LOOKED).touch(mode=0o600)
    return old


def _is_own_file(path: Path) -> bool:
    """Return whether there is a file of the user, and not a link."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()


def _move(old: Path, new: Path) -> None:
    """Move a file, also to another disk, so that it is never there in part."""
    try:
        old.rename(new)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        copy = new.with_name(f"{new.name}.new")
        shutil.copyfile(old, copy, follow_symlinks=False)
        copy.chmod(0o600)
        copy.rename(new)
        old.unlink()


class RecordPlace(Struct, frozen=True):
    """A work tree, and the folder with its record, which may not exist yet.

    `moved_from` is the former path of a tree whose record is still under that path.
    """

    tree: Path
    state: StateFolder
    moved_from: Path | None = None


def place_for(folder: Path, environ: Mapping[str, str]) -> RecordPlace:
    """Return the place for the record of a new run: the top of the work tree of a folder.

    If a folder from this one up to the top has a record already, the run is added to that one.
    Without a repository, the tree is the folder itself. Raises NoStateHomeError.
    """
    home = state_home(environ)
    within = folders_to_top(folder)
    return _first_with_record(within, home) or place_at(within[-1], home)


def find_place(folder: Path, environ: Mapping[str, str]) -> RecordPlace | None:
    """Return the nearest folder with a record, from this one upward; None if there is none.

    The search goes on above the work tree: during a run, an agent can make any folder a repository
    of its own, or delete the repository.
    """
    try:
        home = state_home(environ)
    except NoStateHomeError:
        return None
    real = Path(os.path.realpath(folder))
    return _first_with_record((real, *real.parents), home)


def place_at(tree: Path, home: Path) -> RecordPlace:
    """Return the place for the record of the work tree at this path."""
    real = Path(os.path.realpath(tree))
    return RecordPlace(real, state_folder_at(home, real))


def known_places(environ: Mapping[str, str]) -> list[RecordPlace]:
    """Return all work trees of this user that have a record, also those that are gone."""
    try:
        home = state_home(environ)
    except NoStateHomeError:
        return []
    return [RecordPlace(one.tree, state) for state, one in _identities(home)]


def place_with_key(key: str, environ: Mapping[str, str]) -> RecordPlace | None:
    """Return the place whose state folder has this key; None if no record has it."""
    return next((one for one in known_places(environ) if key_of(one.state) == key), None)


def has_record(state: StateFolder) -> bool:
    """Return whether a state folder has runs or a fleet, also if the user may not read them."""
    try:
        return any((state / name).exists() for name in (DATABASE, FLEET_DATABASE))
    except PermissionError:
        return True  # the reader says why it can't be read


def _first_with_record(folders: Iterable[Path], home: Path) -> RecordPlace | None:
    known: list[tuple[StateFolder, TreeIdentity]] | None = None
    for tree in folders:
        here = place_at(tree, home)
        if has_record(here.state):
            return here
        if known is None:  # most commands start at the top, and need no search
            known = _identities(home)
        if (moved := _known_elsewhere(tree, known)) is not None:
            return moved
    return None


def _known_elsewhere(
    tree: Path, known: Iterable[tuple[StateFolder, TreeIdentity]]
) -> RecordPlace | None:
    """Return the record of this folder under another path: it was moved, or is mounted twice."""
    now = identity_of(tree)
    for state, then in known:
        if now is not None and then.is_same_folder(now):
            is_mounted_twice = then.is_same_folder(identity_of(then.tree))
            return RecordPlace(tree, state, None if is_mounted_twice else then.tree)
    return None


def _identities(home: Path) -> list[tuple[StateFolder, TreeIdentity]]:
    return [
        (state, identity)
        for state in state_folders(home)
        if has_record(state) and (identity := recorded_identity(state)) is not None
    ]
