"""Checks the place of the state folder: each problem names the variable that chooses another."""

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from rooda.base.paths import is_folder
from rooda.base.problems import InvalidInput, Problem, Severity
from rooda.plan.world import World
from rooda.world.files.file_systems import file_system, network_file_system
from rooda.world.git.work_tree import work_tree
from rooda.world.state.folder import make_state_folder, nearest_folder
from rooda.world.state.home import VARIABLE, NoStateHomeError, state_home
from rooda.world.state.record_place import RecordPlace

TITLE = "No place for the record"
_PASSING = ("overlay", "tmpfs", "ramfs")  # file systems that end with a container or the machine
_FIX = f"Set {VARIABLE} to a folder of your own, outside of the work tree"


def record_place(world: World, root: Path | None = None) -> RecordPlace:
    """Return the place for the record of a run that starts here. Raises InvalidInput."""
    try:
        return world.record_place(root)
    except NoStateHomeError as error:
        raise InvalidInput([problem(str(error))]) from None


def readable_home(world: World) -> Path:
    """Return the state home, which may not exist yet. Raises InvalidInput if it can't be read."""
    try:
        home = state_home(world.environ)
        is_there = stat.S_ISDIR(home.stat().st_mode)
    except NoStateHomeError as error:
        raise InvalidInput([problem(str(error))]) from None
    except FileNotFoundError:
        return home
    except OSError as error:
        raise InvalidInput([unreadable(home, error.strerror)]) from None
    if not is_there:
        raise InvalidInput([unreadable(home, "it is not a folder")])
    if not os.access(home, os.R_OK | os.X_OK):
        raise InvalidInput([unreadable(home, os.strerror(errno.EACCES))])
    return home


def writable_place(world: World) -> RecordPlace:
    """Return the place for the record, and create the state folder. Raises InvalidInput."""
    place = record_place(world)
    if found := [*check_state(world, place)]:
        raise InvalidInput(found)
    try:
        make_state_folder(place.state)
    except OSError as error:
        raise InvalidInput([unwritable(place.state, error)]) from None
    return place


def problem(message: str) -> Problem:
    """Return the error that there is no place for the record."""
    return Problem(message, _FIX, title=TITLE)


def unwritable(state: Path, error: OSError) -> Problem:
    """Return the error that the state folder can't be created or written to."""
    return problem(f"the record can't be written to {error.filename or state}: {error.strerror}")


def unreadable(home: Path, why: str | None) -> Problem:
    """Return the error that no record can be read."""
    return problem(f"the records in {home} can't be read: {why}")


def check_state(world: World, place: RecordPlace, shown: Iterable[Path] = ()) -> Iterator[Problem]:
    """Yield what is wrong with the place of the record, at most one problem.

    `shown` are the folders that the agent works in, or that a sandbox shows it.
    """
    if world.is_apart:
        base, owned = Path(place.state), Path(place.state)
    else:
        try:
            base = state_home(world.environ)
        except NoStateHomeError as error:
            yield problem(str(error))
            return
        owned = base
    there = nearest_folder(place.state)
    around = set(map(_real, (place.tree, work_tree(world.folder))))
    inside = next((one for one in around if _real(base).is_relative_to(one)), None)
    in_sight = next((one for one in map(_real, shown) if _real(base).is_relative_to(one)), None)
    if inside is not None:
        yield problem(f"the record can't be in {base}, which is a part of the work tree {inside}")
    elif in_sight is not None:
        yield problem(f"the record can't be in {base}: the agent would see it in {in_sight}")
    elif _is_of_another(owned):
        yield problem(f"the record can't be in {owned}, which belongs to another user")
    elif kind := network_file_system(there):
        yield problem(f"the record can't be in {base}, which is on a network file system ({kind})")
    elif not is_folder(there) or not os.access(there, os.W_OK | os.X_OK):
        what = "is not a folder" if there.exists() and not is_folder(there) else ""
        yield problem(f"the record can't be written to {there}{what and f', which {what}'}")


def warn_of_passing(place: RecordPlace) -> Iterator[Problem]:
    """Warn if the record ends with the container, and the work tree does not."""
    kind, of_tree = file_system(nearest_folder(place.state)), file_system(place.tree)
    if kind in _PASSING and of_tree not in ("", *_PASSING):
        yield Problem(
            f"the record in {place.state} is on {kind}: it is lost when the container ends",
            f"Set {VARIABLE} to a folder that stays",
            severity=Severity.WARNING,
        )


def _is_of_another(path: Path) -> bool:
    """Return whether a folder is there, and belongs to another user."""
    try:
        return path.stat().st_uid != os.geteuid()
    except OSError:  # the user may not look: it can't be written to either
        return False


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
