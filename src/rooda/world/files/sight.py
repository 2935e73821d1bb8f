"""Files that a user has named, in folders where an agent may have put links in their place."""

import contextlib
import errno
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from rooda.world.files.beneath import ON_THE_WAY
from rooda.world.files.plain_files import open_plain_file, read_plain_file

_MOST_LINKS = 40  # as the system allows in one path


class OutOfSightError(OSError):
    """A link that an agent may have made leads to a place that it can't see: `target`."""

    def __init__(self, path: Path, target: Path, sight: "Sight") -> None:
        where = "which the sandbox does not show" if sight.of_sandbox else "out of the work tree"
        super().__init__(errno.EACCES, f"leads to {target}, {where}")
        self.path = path
        self.target = target


class Sight(Struct, frozen=True):
    """What an agent in a sandbox can change and read of the user's files. No path has links.

    `hidden` are folders within the others that it can't see. Before there is a sandbox, what the
    agent will read is out of its sight if it is not in the work tree (not `of_sandbox`).
    """

    changes: tuple[Path, ...]
    reads: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()
    of_sandbox: bool = True

    def can_change(self, path: Path) -> bool:
        """Return whether the agent can put a link at a path."""
        return any(map(path.is_relative_to, self.changes))

    def can_see(self, path: Path) -> bool:
        """Return whether the agent could read a file at a path."""
        is_shown = any(map(path.is_relative_to, (*self.changes, *self.reads)))
        return is_shown and not any(map(path.is_relative_to, self.hidden))


def read_named(path: Path, most: int | None, sight: Sight | None = None) -> bytes:
    """Return the first `most` bytes of a regular file that the user named. Raises OSError.

    Links lead wherever the user wants. In a sandbox (`sight`), one that the agent may have made
    leads only to what the agent can see: what rooda reads there reaches the agent's prompt.
    """
    if sight is None:
        return read_plain_file(path, most, follow=True)
    with (
        _resolved(path, sight) as (folder, name),
        os.fdopen(open_plain_file(Path(name), dir_fd=folder), "rb") as file,
    ):
        return file.read(most)


def leads_out(path: Path, sight: Sight) -> Path | None:
    """Return where a path leads if that is out of sight by a link that the agent may have made."""
    try:
        with _resolved(path, sight):
            return None
    except OutOfSightError as error:
        return error.target
    except (OSError, ValueError):
        return None  # whoever opens the path reports the error


@contextlib.contextmanager
def _resolved(path: Path, sight: Sight) -> Iterator[tuple[int, str]]:
    """Yield the open folder in which a path ends, links followed, and the last name."""
    waiting = [*reversed(path.absolute().parts[1:])]
    root = Path("/")
    way = [(os.open(root, ON_THE_WAY), root)]  # the folders on the way, each with its path
    links, is_judged, end = 0, False, "."
    try:
        while waiting:
            part, (folder, at) = waiting.pop(), way[-1]
            if part == os.pardir:
                _close(way[1:][-1:])
                way = way[:1] + way[1:-1]
                continue
            is_judged = is_judged or sight.can_change(at)
            target = _target(part, folder)
            if target is not None:
                links += 1
                if links > _MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
                if target.is_absolute():
                    _close(way[1:])
                    way = way[:1]
                waiting += reversed([one for one in target.parts if one != "/"])
            elif waiting:
                way.append((os.open(part, ON_THE_WAY, dir_fd=folder), at / part))
            else:
                end = part
        if is_judged and not sight.can_see(real := way[-1][1] / end):
            raise OutOfSightError(path, real, sight)
        yield way[-1][0], end
    finally:
        _close(way)


def _target(name: str, folder: int) -> Path | None:
    """Return the target of a link in an open folder; None if it is no link."""
    try:
        return Path(os.readlink(name, dir_fd=folder))
    except OSError:
        return None


def _close(way: Sequence[tuple[int, Path]]) -> None:
    for folder, _ in way:
        os.close(folder)
