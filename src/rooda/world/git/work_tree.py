"""The work tree that a folder belongs to, and how long ago a file in it changed."""

import contextlib
import os
import shlex
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rooda.world.files.plain_files import read_plain_file

_MOST_SECONDS = 5.0  # for one search
# What git prints if another user owns the files, as in many containers; the second is git 2.35.
_OTHER_OWNER = ("dubious ownership", "owned by someone else")
_SKEW = 2.0  # seconds that the clock of a file server may be ahead


def work_tree(folder: Path) -> Path:
    """Return the top of the git work tree; without one, the folder itself."""
    real = Path(os.path.realpath(folder))  # `resolve` raises an error for links in a circle
    return next((above for above in (real, *real.parents) if _is_top(above)), real)


def has_repository(folder: Path) -> bool:
    """Return whether a folder is in a git work tree."""
    return _is_top(work_tree(folder))


def had_repository(folder: Path, moment: float) -> bool:
    """Return whether the folder had its repository before a moment, in seconds since the epoch.

    No program can set a ctime, and git never changes some of the files that it makes at first.
    """
    git = folder / ".git"
    try:
        entries = [*git.iterdir()] if git.is_dir() else [git]
        return any(one.lstat().st_ctime < moment for one in entries)
    except OSError:
        return False


def folders_to_top(folder: Path, beyond: Path | None = None) -> list[Path]:
    """Return the folder and those above it, up to the top of its work tree, nearest first.

    `beyond`: up to this folder, if it is above the top.
    """
    real = folder.resolve()
    above = [real, *real.parents]
    last = max(above.index(one) for one in (work_tree(real), beyond) if one in above)
    return above[: last + 1]


def is_foreign(path: Path) -> bool:
    """Return whether another user may have put this into a folder of all users, such as /tmp.

    The owner of a folder can replace everything in it, so the files of the owner are not foreign.
    """
    try:
        above = path.parent.stat()
        everyone = above.st_mode & stat.S_IWOTH
        return bool(everyone) and path.lstat().st_uid not in (os.geteuid(), 0, above.st_uid)
    except OSError:
        return False


def _is_top(folder: Path) -> bool:
    """Return whether git takes a folder for the top: it has a repository or points to one."""
    git = folder / ".git"
    try:
        is_top = (git / "HEAD").is_file() or read_plain_file(git, 7, follow=True) == b"gitdir:"
        return is_top and not is_foreign(git)
    except OSError:
        return False


def explain_refusal(folder: Path, refusal: str) -> tuple[str, str]:
    """Return why git does not work in a folder, and what the user can do; `refusal` is git's."""
    if not any(sign in refusal for sign in _OTHER_OWNER):
        return f"git refuses to work here: {refusal}", "Check that `git status` works here"
    top = work_tree(folder)
    command = f"git config --global --add safe.directory {shlex.quote(str(top))}"
    reason = f"git refuses to work here: {top} belongs to another user"
    return reason, f"If you trust this repository, run `{command}`"


OUTSIDE = "a symbolic link leads out of the work tree, or to a folder of git"
_NOT_FOR_AGENTS = {".git"}


def leads_out(path: Path, *trees: Path) -> bool:
    """Return whether a link leads from a path in a tree out of it, or to a folder of git.

    A sandbox keeps agents from writing there, and an agent may have made the link.
    """
    return any(_leads_out_of(tree.resolve(), path) for tree in trees)


def _leads_out_of(top: Path, path: Path) -> bool:
    named = [Path(os.path.abspath(path))]  # noqa: PTH100
    if path.name != "..":  # which names the folder above, and not an entry of the folder
        named.append(path.parent.resolve() / path.name)
    if not any(one.is_relative_to(top) for one in named):
        return False
    real = Path(os.path.realpath(path))
    if not real.is_relative_to(top):
        return True
    reached = _NOT_FOR_AGENTS.intersection(real.relative_to(top).parts)
    return not reached.issubset(named[0].parts)


def changed_within(
    folder: Path, seconds: float, is_hurried: Callable[[], bool] = lambda: False
) -> float | None:
    """Return how many seconds ago a file below the folder changed, if that was within the time.

    The search ends at the first change that is recent enough, and after a few seconds: a tree of
    millions of files must not delay a run.
    """
    now = time.time()
    end = time.monotonic() + _MOST_SECONDS
    for changed in _changes(folder):
        if now - seconds <= changed <= now + _SKEW:
            return max(0.0, now - changed)
        if is_hurried():
            return 0.0  # the caller has something more urgent to do
        if time.monotonic() > end:
            break
    return None


def _changes(folder: Path) -> Iterator[float]:
    """Return the time of the last change of each file and folder.

    The ctime changes with the content and with the attributes, and no program can set it.
    """
    waiting = [str(folder)]
    with contextlib.suppress(OSError):
        yield folder.stat().st_ctime
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    try:
                        found = entry.stat(follow_symlinks=False)
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(entry.path)
                    except OSError:
                        continue
                    yield found.st_ctime
        except OSError:
            continue
