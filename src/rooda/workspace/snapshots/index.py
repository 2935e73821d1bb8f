"""The file that git's index is: whether it is whole, and a copy of it."""

import os
import stat
from pathlib import Path

_LARGEST = 1024**3  # bytes: an index of ten million files


def read_index(path: Path, object_format: str) -> tuple[bytes, os.stat_result] | None:
    """Its bytes and times; None if it is missing, is no file, or is not what git has written.

    Git itself takes a truncated one for good. Without its hash at the end (`index.skipHash`)
    there are zeros in that place.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as file:
            found = os.fstat(fd)
            is_readable = stat.S_ISREG(found.st_mode) and found.st_size <= _LARGEST
            data = file.read() if is_readable else b""
    except OSError:
        return None
    import hashlib  # noqa: PLC0415 - OpenSSL takes megabytes, and this is needed once

    digest = hashlib.new(object_format, usedforsecurity=False)
    content, end = data[: -digest.digest_size], data[-digest.digest_size :]
    digest.update(content)
    is_whole = bool(content) and (end == digest.digest() or not any(end))
    return (data, found) if is_whole else None


def copy_index(source: Path, target: Path, object_format: str) -> bool:
    """The same bytes and the same time, which git takes for the moment of its last look."""
    read = read_index(source, object_format)
    if read is None:
        return False
    data, found = read
    target.write_bytes(data)
    os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))
    return True
