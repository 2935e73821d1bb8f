"""Open, read and write files below a folder whose content an agent controls.

rooda opens each folder from the one above it and follows no link, so that it reads and writes
nothing outside of that folder.
"""

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from rooda.text.plain_files import NotPlainFileError

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_LINKS = 40  # as the system allows in one path
# Characters that macOS ignores in a name, such as a joiner of zero width.
_IGNORED = dict.fromkeys(
    (*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF)
)


def is_path_in_tree(name: str) -> bool:
    """Return whether git can have a file of this name. An agent can forge an index or a message.

    Names that some file system takes for `.git` count as `.git`.
    """
    try:
        parts = os.fsencode(name).split(b"/")
    except UnicodeEncodeError:
        return False
    if any(part in (b"", b".", b"..") or b"\0" in part for part in parts):
        return False
    return not any(_is_git(part) for part in name.split("/"))


def _is_git(part: str) -> bool:
    plain = part.translate(_IGNORED).lower().partition(":")[0].rstrip(" .")
    return plain in (".git", "git~1")


def leads_out(path: Path, inside: Sequence[Path], visible: Sequence[Path]) -> Path | None:
    """Return where a path leads if that is a place that an agent can't see; None if it is not.

    Only links below the folders `inside` are judged, which the agent can change. `visible` are
    other places that it can read. All of them have to be free of links themselves.
    """
    waiting, at, links, is_judged = [*reversed(path.absolute().parts[1:])], Path("/"), 0, False
    while waiting:
        part = waiting.pop()
        if part == os.pardir:
            at = at.parent
            continue
        is_judged = is_judged or any(at.is_relative_to(folder) for folder in inside)
        try:
            target = (at / part).readlink()
        except (OSError, ValueError):  # it is not a link, or does not exist
            at /= part
            continue
        links += 1
        if links > _MOST_LINKS:
            return None  # opening the path reports the error
        at = Path("/") if target.is_absolute() else at
        waiting += reversed([one for one in target.parts if one != "/"])
    return at if is_judged and not any(map(at.is_relative_to, (*inside, *visible))) else None


@contextlib.contextmanager
def real_folder(top: Path, folder: str, *, make: bool = False) -> Iterator[int]:
    """Yield a descriptor of a folder below the top, whose own path has to be free of links.

    Raises OSError if the folder, or one above it, is a link or a file. `make`: create what is
    missing.
    """
    with contextlib.ExitStack() as closing:
        parent = os.open(top, FOLDER)
        closing.callback(os.close, parent)
        for part in folder.split("/") if folder else ():
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, dir_fd=parent)
            parent = os.open(part, FOLDER, dir_fd=parent)
            closing.callback(os.close, parent)
        yield parent


def open_real_file(top: Path, name: str) -> IO[bytes]:
    """Return a regular file below the top, open for reading. Raises OSError for anything else."""
    folder, _, last = name.rpartition("/")
    with real_folder(top, folder) as parent:
        fd = os.open(last, _FILE, dir_fd=parent)
    file = os.fdopen(fd, "rb")
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        file.close()
        raise NotPlainFileError(errno.EINVAL, "is not a file", name)
    return file


def read_real_link(top: Path, name: str) -> bytes | None:
    """Return the target of a link below the top; None if something else is there."""
    folder, _, last = name.rpartition("/")
    with real_folder(top, folder) as parent:
        if not stat.S_ISLNK(os.lstat(last, dir_fd=parent).st_mode):
            return None
        return os.readlink(os.fsencode(last), dir_fd=parent)


def write_new_file(top: Path, name: str, content: IO[bytes], mode: int) -> None:
    """Write a file that does not exist yet below the top. Raises OSError."""
    folder, _, last = name.rpartition("/")
    with real_folder(top, folder, make=True) as parent:
        fd = os.open(last, NEW, 0o600, dir_fd=parent)
        with os.fdopen(fd, "wb") as file:
            shutil.copyfileobj(content, file)
            os.fchmod(fd, mode)


def make_new_link(top: Path, name: str, target: bytes) -> None:
    """Make a link that does not exist yet below the top. Raises OSError."""
    folder, _, last = name.rpartition("/")
    with real_folder(top, folder, make=True) as parent:
        os.symlink(target, os.fsencode(last), dir_fd=parent)
