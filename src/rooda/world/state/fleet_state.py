"""The state folder of a fleet on one machine, and the database that version 0.1 had elsewhere."""

import contextlib
import errno
import fcntl
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from rooda.world.state.home import state_folder_at, state_home

DATABASE = "fleet.sqlite"
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
    if (state / _LOOKED).exists() or (state / DATABASE).exists() or old.parent.is_symlink():
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
            _move(old.with_name(old.name + part), state / f"{DATABASE}{part}")
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
