"""The places in the private HOME that other files are mounted on.

An agent can change everything in the private HOME. bubblewrap follows links while it mounts, also
to the whole disk: with a link in place of a folder, it would make files wherever the link leads.
"""

import contextlib
import io
import stat
from collections.abc import Iterable
from pathlib import Path

from rooda.world.files.beneath import Beneath
from rooda.world.sandbox.sandbox_plan import SandboxError


def clear_places(private: Path, home: Path, mounted: Iterable[tuple[Path, Path]]) -> None:
    """Make plain folders and files for all mounts below HOME. Raises SandboxError.

    `mounted` are the sources and their places. A place within another mount is not in the private
    HOME.
    """
    tops: list[Path] = []
    for source, place in mounted:
        if place == home or not place.is_relative_to(home):
            continue
        if any(place.is_relative_to(top) for top in tops):
            continue
        tops.append(place)
        try:
            _make_place(private, place.relative_to(home), is_folder=source.is_dir())
        except OSError as error:
            raise SandboxError(
                f"the sandbox can't show {place} in its private home folder: {error.strerror}",
                f"Delete the private home folder: {private}",
            ) from None


def forget_place(private: Path, name: str) -> None:
    """Delete the empty file that bubblewrap has left as the place of a file; the file is gone."""
    door = Beneath(private)
    with contextlib.suppress(OSError):
        found = door.status(name)
        if stat.S_ISREG(found.st_mode) and not found.st_size:
            door.remove(name)


def _make_place(private: Path, name: Path, *, is_folder: bool) -> None:
    """Make an empty folder or file, unless there is one. Anything else there is deleted."""
    door, ways = Beneath(private), [str(above) for above in reversed(name.parents)][1:]
    for folder in (*ways, *([str(name)] if is_folder else [])):
        if not _make_room(door, folder, stat.S_IFDIR):
            with door.folder(folder, make=True):
                pass
    if not is_folder and not _make_room(door, str(name), stat.S_IFREG):
        door.write_new(str(name), io.BytesIO(), 0o600)


def _make_room(door: Beneath, name: str, kind: int) -> bool:
    """Return whether a file or folder of this kind is there; delete anything else."""
    try:
        found = stat.S_IFMT(door.status(name).st_mode)
    except FileNotFoundError:
        return False
    if found != kind:
        door.remove(name)
    return found == kind
