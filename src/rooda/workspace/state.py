"""`.rooda`: rooda's own folder in the workspace. It keeps itself private and out of git.

The prompt is a file in it, so that an agent may read it whenever and however it likes: a file
needs no writer, can't deadlock with an agent that prints before it reads, and stays as evidence.
What the agent prints is kept beside it.
"""

import errno
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

STATE_FOLDER = ".rooda"

PROMPT, STDOUT, STDERR = "prompt.md", "stdout.log", "stderr.log"


def make_state_folder(workspace: Path) -> Path:
    """Create `.rooda`, private, ignoring itself. Raises OSError where that is not possible."""
    folder = workspace / STATE_FOLDER
    if folder.is_symlink():  # whatever is behind it is not ours
        raise OSError(errno.ELOOP, "is a symbolic link; move it away", str(folder))
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError:
        raise OSError(errno.EEXIST, "is not a folder; move it away", str(folder)) from None
    if stat.S_IMODE(folder.stat().st_mode) & 0o077:
        folder.chmod(0o700)
    ignore = folder / ".gitignore"
    if not _has_content(ignore) and not ignore.is_dir():
        _create(ignore, b"*\n")
    return folder


def _has_content(path: Path) -> bool:
    try:
        return bool(read_plain_file(path, 1))
    except OSError:
        return False


def _create(path: Path, content: bytes) -> None:
    """A file with this content, or none at all. Raises OSError that names it."""
    path.unlink(missing_ok=True)
    try:
        with _open_new(path) as file:
            file.write(content)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from None


def open_prompt(workspace: Path, prompt: bytes, on_trouble: Callable[[OSError], None]) -> IO[bytes]:
    """The prompt, open for reading at its beginning.

    An agent may have deleted the folder or filled the disk since the run began: then it is made
    anew, or the prompt goes to the system's temporary folder, which may fail as well (OSError).
    """
    try:
        return _read_only(_filled(new_file(workspace, PROMPT), prompt), workspace)
    except OSError as error:
        on_trouble(error)
        try:
            return _filled(tempfile.TemporaryFile(), prompt)
        except OSError:
            raise error from None  # the first reason says more


def _read_only(file: IO[bytes], workspace: Path) -> IO[bytes]:
    """The same file, so that the agent can't write to its own prompt; as it is if that fails."""
    try:
        path = workspace / STATE_FOLDER / PROMPT
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return file
    if not os.path.samestat(os.fstat(fd), os.fstat(file.fileno())):
        os.close(fd)
        return file
    file.close()
    os.set_blocking(fd, True)
    return os.fdopen(fd, "rb", buffering=0)


def open_transcript(
    workspace: Path, on_trouble: Callable[[OSError], None]
) -> tuple[IO[bytes], IO[bytes]] | None:
    """Empty files for both streams; temporary ones, or none at all, where that is not possible."""
    try:
        return _both(lambda name: new_file(workspace, name))
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
    so that several writers don't overwrite each other.
    """
    path = make_state_folder(workspace) / name
    path.unlink(missing_ok=True)
    return _open_new(path)


def remove_file(workspace: Path, name: str) -> None:
    """Take a file of ours away; what is behind a link is not ours."""
    folder = workspace / STATE_FOLDER
    if not folder.is_symlink():
        (folder / name).unlink(missing_ok=True)


def _open_new(path: Path) -> IO[bytes]:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "r+b", buffering=0)


def read_plain_file(path: Path, most: int) -> bytes:
    """The beginning of a file; OSError if it is none. A pipe in its place holds nobody up."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "is not a file", str(path))
        return os.read(fd, most)
    finally:
        os.close(fd)


def _filled(file: IO[bytes], prompt: bytes) -> IO[bytes]:
    try:
        rest = memoryview(prompt)
        while rest:
            rest = rest[file.write(rest) :]
        file.flush()
        file.seek(0)
    except OSError:
        file.close()
        raise
    return file
