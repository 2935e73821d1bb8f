"""Opens regular files only: an agent may put a pipe, a device or a link in place of a file.

A pipe would block rooda, a device has no end, and a link leads to another file.
"""

import errno
import os
import stat
from pathlib import Path

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC  # O_NONBLOCK: opening a pipe would block


class NotPlainFileError(OSError):
    """The path exists, but is not a regular file."""


def open_plain_file(path: Path | str, *, follow: bool = False, dir_fd: int | None = None) -> int:
    """Return a descriptor for reading a regular file; raise OSError for anything else.

    With `follow`, the path may be a link to a regular file. It is relative to `dir_fd`, an open
    folder, if there is one.
    """
    try:
        fd = os.open(path, _FLAGS if follow else _FLAGS | os.O_NOFOLLOW, dir_fd=dir_fd)
    except OSError as error:
        if error.errno == errno.ENXIO:  # a socket
            raise NotPlainFileError(errno.EINVAL, "is not a file", str(path)) from None
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise NotPlainFileError(errno.EINVAL, "is not a file", str(path))
    return fd


def read_plain_file(path: Path, most: int | None, *, follow: bool = False) -> bytes:
    """Return the first `most` bytes of a regular file (None: all bytes). Raises OSError."""
    with os.fdopen(open_plain_file(path, follow=follow), "rb") as file:
        return file.read(most)


def replace_file(path: Path, content: bytes) -> None:
    """Write a private file in one step, which survives a loss of power. Raises OSError.

    A reader sees the old file or the new one. What is in its place is replaced, also a link.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make new names in the folder survive a loss of power. Raises OSError."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
