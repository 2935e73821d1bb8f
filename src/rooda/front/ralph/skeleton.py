"""What `ralph init` writes: the first config, prompts and notes, wherever there are none yet."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import NamedTuple

HOME = ".ralph"

_IN_HOME = {
    "config": "config",
    "prompts/plan.md": "prompts/plan.md",
    "prompts/build.md": "prompts/build.md",
    ".gitignore": "gitignore",  # under its own name it would speak of this package
}
_IN_PROJECT = {"specs/README.md": "specs/README.md", "AGENTS.md": "AGENTS.md"}
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Written(NamedTuple):
    """Paths from the project's root: what is new, and what was in its place and stays."""

    created: tuple[str, ...]
    kept: tuple[str, ...]


def files(home: str = HOME) -> dict[str, bytes]:
    """Return all files by their paths from the project's root; a home of "" is the root itself."""
    in_home = {f"{home}/{path}" if home else path: name for path, name in _IN_HOME.items()}
    return {path: _resource(name) for path, name in (in_home | _IN_PROJECT).items()}


def write(root: Path, home: str = HOME) -> Written:
    """Write what is missing. Whatever is there stays as it is, and no link is followed.

    Raises OSError where that is not possible, and where a link or a file is in the place of the
    home or a folder in it. In the project, where `specs` may well be a link, it is kept.
    """
    created: list[str] = []
    kept: list[str] = []
    for path, data in files(home).items():
        try:
            made = _write_new(root, path, data)
        except _InTheWay as error:
            if home and error.path.split("/")[0] == home:
                raise OSError(error.errno, error.strerror, str(root / error.path)) from None
            kept.append(error.path)
        else:
            (created if made else kept).append(path)
    return Written(tuple(created), tuple(kept))


class _InTheWay(OSError):
    """Something that is no folder stands where one is needed."""

    def __init__(self, number: int, path: str) -> None:
        words = "is a symbolic link" if number == errno.ELOOP else "is not a folder"
        super().__init__(number, f"{words}; move it away")
        self.path = path


def _write_new(root: Path, path: str, data: bytes) -> bool:
    """Write a new file, with its folders; return whether it is new."""
    *folders, name = path.split("/")
    with _opened(root, folders) as folder:
        try:
            fd = os.open(name, _NEW_FILE, 0o666, dir_fd=folder)
        except FileExistsError:
            return False
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(root / path)) from None
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
        except OSError as error:
            os.unlink(name, dir_fd=folder)  # half a file would be kept the next time
            raise OSError(error.errno, error.strerror, str(root / path)) from None
    return True


@contextmanager
def _opened(root: Path, folders: list[str]) -> Iterator[int]:
    """Open the innermost of these folders; create missing ones, and follow no link."""
    current = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for depth, name in enumerate(folders, 1):
            try:
                below = _folder(current, name)
            except OSError as error:
                shown = "/".join(folders[:depth])
                if error.errno in (errno.ELOOP, errno.ENOTDIR):
                    raise _InTheWay(_reason(current, name), shown) from None
                raise OSError(error.errno, error.strerror, str(root / shown)) from None
            os.close(current)
            current = below
        yield current
    finally:
        os.close(current)


def _folder(above: int, name: str) -> int:
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=above)
    return os.open(name, _FOLDER, dir_fd=above)


def _reason(above: int, name: str) -> int:
    """Systems disagree on what they say of a link that is no folder."""
    try:
        os.readlink(name, dir_fd=above)
    except OSError:
        return errno.ENOTDIR
    return errno.ELOOP


def _resource(name: str) -> bytes:
    return (resources.files(__package__) / "skeleton" / name).read_bytes()
