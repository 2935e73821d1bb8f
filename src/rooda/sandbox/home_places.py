"""The places in the private HOME that other files are mounted on.

An agent can change everything in the private HOME. bubblewrap follows links while it mounts, also
to the whole disk: with a link in place of a folder, it would make files wherever the link leads.
"""

import contextlib
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path

from rooda.sandbox.sandbox_plan import SandboxError


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


def forget_place(path: Path) -> None:
    """Delete the empty file that bubblewrap has left as the place of a file; the file is gone."""
    with contextlib.suppress(OSError):
        found = path.lstat()
        if stat.S_ISREG(found.st_mode) and not found.st_size:
            path.unlink()


def _make_place(private: Path, name: Path, *, is_folder: bool) -> None:
    place = private
    for part in name.parts[:-1]:
        place /= part
        _make_plain(place, is_folder=True)
    _make_plain(place / name.name, is_folder=is_folder)


def _make_plain(path: Path, *, is_folder: bool) -> None:
    """Make an empty folder or file, unless there is one. Anything else there is deleted."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        mode = 0
    if stat.S_ISDIR(mode) if is_folder else stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        shutil.rmtree(path)
    elif mode:
        path.unlink()
    if is_folder:
        path.mkdir(mode=0o700)
    else:
        path.touch(mode=0o600, exist_ok=False)
