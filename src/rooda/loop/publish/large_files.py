"""Files that are so large that git could not read them within the time for a commit."""

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from msgspec.structs import replace

from rooda.base.numbers import approximate_size
from rooda.base.paths import first_names
from rooda.base.times import format_seconds
from rooda.loop.publish.refusals import Refusal
from rooda.world.git.snapshots.snapshots import LARGEST

_FASTEST = 1024**3  # bytes that git, or a filter such as git-lfs, may read in a second
_ADVICE = (
    "Delete it or add it to .gitignore; if it has to be committed, set git.commit_timeout higher"
)


class LargeFiles:
    """The large ones of the files that are in no snapshot, the largest first."""

    def __init__(self, folder: Path, names: Iterable[str]) -> None:
        """`names` are relative to the folder; rooda leaves out folders and unreadable files."""
        sizes = ((name, _size(folder / name)) for name in names)
        large = ((name, size) for name, size in sizes if size > LARGEST)
        self._sizes = dict(sorted(large, key=lambda one: -one[1]))

    def refusal(self, limit: float) -> Refusal | None:
        """Return why a commit can't end within its time limit, if that is certain."""
        names = [name for name, size in self._sizes.items() if size > limit * _FASTEST]
        if not names:
            return None
        time = format_seconds(limit)
        error = (
            f"too large to be committed within git.commit_timeout ({time}): {self._shown(names)}"
        )
        return Refusal(error, _ADVICE)

    def explain(self, timed_out: Refusal) -> Refusal:
        """Return the refusal of a git that took too long, with the files that may be the cause."""
        if not self._sizes:
            return timed_out
        error = f"{timed_out.error}\nLarge files may be the cause: {self._shown(self._sizes)}"
        return replace(timed_out, error=error, suggestion=_ADVICE)

    def _shown(self, names: Iterable[str]) -> str:
        return first_names([f"{name} ({approximate_size(self._sizes[name])})" for name in names])


def _size(path: Path) -> int:
    """Return the size of a regular file; 0 for anything else."""
    try:
        found = os.lstat(path)
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0
