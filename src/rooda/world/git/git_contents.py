"""Contents of a repository, as git prints them: many at once, and few of them in memory."""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, TypeVar

from rooda.world.git.git import Git, GitError

_BYTES_AT_ONCE = 64 * 1024 * 1024

_Key = TypeVar("_Key")


def contents(
    git: Git, wanted: Sequence[tuple[_Key, str]], folder: Path | None = None
) -> Iterator[tuple[_Key, IO[bytes], int]]:
    """Yield each key with a file, in which the content of that name begins now, and its size.

    `folder` is for a temporary file. Raises GitError, also if a content is missing.
    """
    for some in _portions(git, wanted):
        with tempfile.TemporaryFile(dir=folder) as printed:
            git.pieces(printed.write, "cat-file", "--batch", given=_names(some))
            printed.seek(0)
            for key, _ in some:
                size = int(printed.readline().split(b" ")[2])  # `0a1b... blob 12`
                start = printed.tell()
                yield key, printed, size
                printed.seek(start + size + 1)


def _portions(git: Git, wanted: Sequence[tuple[_Key, str]]) -> Iterator[Sequence[tuple[_Key, str]]]:
    """Divide the contents into lists of limited size."""
    if not wanted:
        return
    sizes = git("cat-file", "--batch-check=%(objectsize)", given=_names(wanted)).splitlines()
    start = total = 0
    for number, size in enumerate(sizes, start=1):
        if not size.isdigit():
            raise GitError(f"git cat-file: {wanted[number - 1][1]} is missing in the repository")
        total += int(size)
        if total > _BYTES_AT_ONCE or number == len(wanted):
            yield wanted[start:number]
            start, total = number, 0


def _names(wanted: Iterable[tuple[object, str]]) -> bytes:
    return "".join(f"{name}\n" for _, name in wanted).encode()
