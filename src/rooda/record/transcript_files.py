"""Read what an agent printed from disk: in order of arrival, in bounded memory."""

import errno
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from rooda.world.files.plain_files import open_plain_file, read_plain_file
from rooda.world.process.capture.buffers import StreamOrder
from rooda.world.state.folder import ORDER, STDERR, STDOUT

_CHUNK = 1024 * 1024
_LONGEST_ORDER = 1024 * 1024
# A file has a hole where its middle was not kept; it would read as zeros.
_HOLE = b"\n[... %d bytes were not kept ...]\n"


def end_of(path: Path, most: int) -> bytes:
    """The last bytes of a file."""
    return b"".join(pieces_of_end(path, most))


def pieces_of_end(path: Path, most: int) -> Iterator[bytes]:
    """The last bytes of a file, piece by piece. Raises OSError when the first one is read."""
    fd = open_plain_file(path)
    try:
        size = os.fstat(fd).st_size
        yield from _read(fd, max(0, size - most), size)
    finally:
        os.close(fd)


def size_of(path: Path) -> int:
    """The size of a file, holes included. Raises OSError."""
    return path.lstat().st_size


def named_streams(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield both streams of an iteration in order of arrival.

    Each piece has the name of its stream, `stdout` or `stderr`. Raises OSError if there is none.
    """
    try:
        order = StreamOrder.load(read_plain_file(folder / ORDER, _LONGEST_ORDER))
    except OSError:
        order = StreamOrder()
    with ExitStack() as closing:
        files = {}
        for stream, name in (("stdout", STDOUT), ("stderr", STDERR)):
            files[stream] = open_plain_file(folder / name)
            closing.callback(os.close, files[stream])
        sizes = {stream: os.fstat(fd).st_size for stream, fd in files.items()}
        at = dict.fromkeys(files, 0)
        for stream, length in order.pieces():
            end = min(sizes[stream], at[stream] + length)
            for piece in _read(files[stream], at[stream], end):
                yield stream, piece
            at[stream] = end
        for stream, fd in files.items():
            for piece in _read(fd, at[stream], sizes[stream]):
                yield stream, piece


def _read(fd: int, start: int, end: int) -> Iterator[bytes]:
    """The bytes from start to end; a hole is named and passed over."""
    while start < end:
        data, hole_end = _next_data(fd, start, end)
        if data > start:
            yield _HOLE % (data - start)
            start = data
            continue
        stop = min(hole_end, end)
        while start < stop:
            piece = os.pread(fd, min(_CHUNK, stop - start), start)
            if not piece:
                return
            yield piece
            start += len(piece)


def _next_data(fd: int, start: int, end: int) -> tuple[int, int]:
    """Where the next data begins and ends; without support for holes, everything is data."""
    try:
        data = os.lseek(fd, start, os.SEEK_DATA)
        return min(data, end), os.lseek(fd, data, os.SEEK_HOLE)
    except OSError as error:
        return (end, end) if error.errno == errno.ENXIO else (start, end)
