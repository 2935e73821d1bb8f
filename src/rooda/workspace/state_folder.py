"""`.rooda`: rooda's own folder in the workspace. It keeps itself private and out of git.

The prompt is a file in it, so that an agent may read it whenever and however it likes: a file
needs no writer, can't deadlock with an agent that prints before it reads, and stays as evidence.
What the agent prints is kept beside it.
"""

import contextlib
import errno
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

from rooda.text.plain_files import open_plain_file

STATE_FOLDER = ".rooda"
DATABASE = "rooda.db"

PROMPT, STDOUT, STDERR = "prompt.md", "stdout.log", "stderr.log"
ORDER, VERIFY = "order.bin", "verify.log"  # which stream spoke when; what the check printed
SESSION = "session.log"  # of a whole run


def place_of(run: str, iteration: int, attempt: int = 1) -> str:
    """The folder within `.rooda` for what belongs to one attempt at an iteration."""
    number = str(iteration) if attempt == 1 else f"{iteration}.{attempt}"
    return f"runs/{run or 'unnamed'}/{number}"


def keep_file(workspace: Path, name: str, content: bytes) -> None:
    """Write a file within `.rooda`, if there is room for it: it is evidence, and nothing more."""
    try:
        with new_file(workspace, name) as file:
            _written(file, content)
    except OSError:
        with contextlib.suppress(OSError):
            remove_file(workspace, name)


def make_state_folder(workspace: Path) -> Path:
    """Create `.rooda`, private, ignoring itself. Raises OSError where that is not possible."""
    return Path(_make_folders(workspace))


def _make_folders(workspace: Path, place: str = "") -> str:
    """The path of a folder within `.rooda`, created with the folders above it.

    Anything else in the place of one of them (a link, a file) is removed and not followed. Each
    iteration does this for each of its files, so a folder that is there costs a single `lstat`.
    """
    folder = f"{workspace}/{STATE_FOLDER}"
    _make_private(folder)
    ignore = f"{folder}/.gitignore"
    kept = _found(ignore)
    is_file = kept is not None and stat.S_ISREG(kept.st_mode) and kept.st_size > 0
    if not is_file and not Path(ignore).is_dir():
        _create(Path(ignore), b"*\n")
    for part in place.split("/") if place else ():
        folder = f"{folder}/{part}"
        found = _found(folder)
        if found is not None and stat.S_ISDIR(found.st_mode):
            continue
        if found is not None:
            Path(folder).unlink()
        Path(folder).mkdir(mode=0o700)  # an error if a link appears now: it would be followed
    return folder


def _make_private(folder: str) -> None:
    found = _found(folder)
    if found is None:
        Path(folder).mkdir(mode=0o700, exist_ok=True)
    elif stat.S_ISLNK(found.st_mode):  # what is behind the link is not rooda's
        raise OSError(errno.ELOOP, "is a symbolic link; move it away", folder)
    elif not stat.S_ISDIR(found.st_mode):
        raise OSError(errno.EEXIST, "is not a folder; move it away", folder)
    elif stat.S_IMODE(found.st_mode) & 0o077:
        Path(folder).chmod(0o700)


def _found(path: str) -> os.stat_result | None:
    """What is at the path, without following a link; None if there is nothing."""
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None


def _create(path: Path, content: bytes) -> None:
    """A file with this content, or none at all. Raises OSError that names it."""
    try:
        with _open_new(path) as file:
            file.write(content)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from None


def open_prompt(
    workspace: Path, place: str, prompt: bytes, on_trouble: Callable[[OSError], None]
) -> IO[bytes]:
    """The prompt, open for reading at its beginning. `place` is a folder within `.rooda`.

    An agent may have deleted the folder or filled the disk since the run began: then it is made
    anew, or the prompt goes to the system's temporary folder, which may fail as well (OSError).
    """
    try:
        name = f"{place}/{PROMPT}"
        return _read_only(_filled(new_file(workspace, name), prompt), _path(workspace, name))
    except OSError as error:
        on_trouble(error)
        try:
            return _filled(tempfile.TemporaryFile(), prompt)
        except OSError:
            raise error from None  # the first reason says more


def _read_only(file: IO[bytes], path: Path) -> IO[bytes]:
    """The same file, so that the agent can't write to its own prompt; as it is if that fails."""
    try:
        fd = open_plain_file(path)
    except OSError:
        return file
    if not os.path.samestat(os.fstat(fd), os.fstat(file.fileno())):
        os.close(fd)
        return file
    file.close()
    os.set_blocking(fd, True)
    return os.fdopen(fd, "rb", buffering=0)


def open_transcript(
    workspace: Path, place: str, on_trouble: Callable[[OSError], None]
) -> tuple[IO[bytes], IO[bytes]] | None:
    """Empty files for both streams; temporary ones, or none at all, where that is not possible."""
    try:
        folder = _make_folders(workspace, place)
        return _both(lambda name: _open_new(f"{folder}/{name}"))
    except OSError as error:
        on_trouble(error)
    try:
        return _both(lambda _: tempfile.TemporaryFile("a+b", buffering=0))
    except OSError:
        return None


def _both(opened: Callable[[str], IO[bytes]]) -> tuple[IO[bytes], IO[bytes]]:
    first = opened(STDOUT)
    try:
        return first, opened(STDERR)
    except OSError:
        first.close()
        raise


def new_file(workspace: Path, name: str) -> IO[bytes]:
    """A file of this name that nobody else has open: an earlier reader or writer keeps its own.

    Whatever an agent put in its place (a link, a pipe) is taken away and not followed. One
    descriptor for reading and writing: by its name it could be another run's by now. It appends,
    so that several writers don't overwrite each other. The name may have folders in front.
    """
    place, _, last = name.rpartition("/")
    return _open_new(f"{_make_folders(workspace, place)}/{last}")


def open_to_append(workspace: Path, name: str) -> int:
    """A descriptor for adding to a file of rooda's; a link or a pipe in its place is removed."""
    place, _, last = name.rpartition("/")
    path = f"{_make_folders(workspace, place)}/{last}"
    found = _found(path)
    if found is not None and not stat.S_ISREG(found.st_mode):
        Path(path).unlink()
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, flags, 0o600)


def _path(workspace: Path, name: str) -> Path:
    return workspace / STATE_FOLDER / name


def remove_file(workspace: Path, name: str) -> None:
    """Take a file of ours away; what is behind a link is not ours."""
    path = _path(workspace, name)
    above = [path.parent, *path.parents][: name.count("/") + 2]
    if not any(folder.is_symlink() for folder in above):
        path.unlink(missing_ok=True)


def _open_new(path: Path | str) -> IO[bytes]:
    """Create the file; what is in its place is removed, and not followed."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
    try:
        fd = os.open(path, flags, 0o600)
    except FileExistsError:
        Path(path).unlink()
        fd = os.open(path, flags, 0o600)
    return os.fdopen(fd, "r+b", buffering=0)


def _written(file: IO[bytes], content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]
    file.flush()


def _filled(file: IO[bytes], prompt: bytes) -> IO[bytes]:
    try:
        _written(file, prompt)
        file.seek(0)
    except OSError:
        file.close()
        raise
    return file
