"""The work tree that a folder belongs to, and whether anything in it changes."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rooda.text.plain_files import read_plain_file
from rooda.workspace.state_folder import STATE_FOLDER

_MOST_SECONDS = 5.0  # for one look at all files
_SKEW = 2.0  # of a file server's clock against ours


def work_tree(folder: Path) -> Path:
    """The top of the git work tree, else the folder itself."""
    real = folder.resolve()
    return next((above for above in (real, *real.parents) if _is_top(above)), real)


def _is_top(folder: Path) -> bool:
    """Whether git would take it for the top: a repository, or a file that points to one."""
    git = folder / ".git"
    try:
        return (git / "HEAD").is_file() or read_plain_file(git, 7, follow=True) == b"gitdir:"
    except OSError:
        return False


def changed_within(
    folder: Path, seconds: float, is_hurried: Callable[[], bool] = lambda: False
) -> float | None:
    """How many seconds ago something below the folder was changed, if that was within the time.

    That something changed is enough to know, so it stops at the first change that is recent
    enough, and after a few seconds: a tree of millions of files must not hold up a run.
    """
    now = time.time()
    end = time.monotonic() + _MOST_SECONDS
    for changed in _changes(folder):
        if now - seconds <= changed <= now + _SKEW:
            return max(0.0, now - changed)
        if is_hurried():
            return 0.0  # somebody waits for us, and this can wait
        if time.monotonic() > end:
            break
    return None


def _changes(folder: Path) -> Iterator[float]:
    """When each file and folder was changed last; rooda's own are left out.

    The time of the inode tells of content and attributes alike, and nobody can set it.
    """
    waiting = [str(folder)]
    with contextlib.suppress(OSError):
        yield folder.stat().st_ctime
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.name == STATE_FOLDER:
                        continue
                    try:
                        found = entry.stat(follow_symlinks=False)
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(entry.path)
                    except OSError:
                        continue
                    yield found.st_ctime
        except OSError:
            continue
