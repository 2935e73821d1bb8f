"""Files that an agent can turn against git: named pipes, devices, links, files without end.

Git opens a file before it looks at its kind: it waits for the other end of a named pipe, and reads
a device for ever. Through a link in its own folder git writes to another repository. So rooda looks
at these files before it starts git.
"""

import contextlib
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from rooda.workspace.git import GitStoppedError

LARGEST_FILE = 2 * 1024**3  # bytes; git reads about 30 MB a second

_RULES = (".gitignore", ".gitattributes", ".gitmodules")
_LOOKED_INTO = {"": ("refs", "logs", "info", "objects"), "objects": ("info", "pack")}
_MAY_BE_LINKED = ("HEAD", "hooks")  # by old versions of git, and by users
_INDEX = "index"
_SEARCH = 2.0  # seconds for the search for named pipes in the work tree


def links_in(folders: Iterable[Path], *, index: bool = False) -> dict[str, str]:
    """The links in git's own folders. Raises GitStoppedError for a file that would stop git.

    Without `index` the user's index may be anything: snapshots have an index of their own.
    """
    found: dict[str, str] = {}
    for folder in dict.fromkeys(folders):
        for entry in _entries(str(folder), ""):
            if entry.name == _INDEX and not index and not entry.is_symlink():
                continue
            is_plain = entry.is_file(follow_symlinks=False)
            if entry.is_symlink() and entry.name not in _MAY_BE_LINKED:
                found[entry.path] = str(Path(entry.path).readlink())
            # The kind of a file is known without a look at it; its size matters at the top.
            if not is_plain or entry.path == f"{folder}/{entry.name}":
                _check(entry.path)
    return found


def changed_link(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """The link that leads elsewhere than before; empty if there is none."""
    changed = sorted(name for name, target in now.items() if before.get(name) != target)
    return changed[0] if changed else ""


def check_git_folder(folder: Path) -> None:
    """Check the `.git` that git would find from a folder, before git reads it."""
    real = folder.resolve()
    for above in (real, *real.parents):
        path = above / ".git"
        if path.is_dir():
            links_in([path])
            return
        if os.path.lexists(path):
            _check(str(path))
            return


def check_rules(top: Path, known: Iterable[Path] = ()) -> None:
    """Check the files with rules at the top, and others that are known to be named pipes."""
    for path in (*(top / name for name in _RULES), *known):
        if path.is_fifo() and not path.is_symlink():
            raise _refusal(str(path), "a named pipe")


def pipes_in(top: Path) -> set[Path]:
    """Named pipes in a work tree that have the name of a file with rules; perhaps not all."""
    found: set[Path] = set()
    end = time.monotonic() + _SEARCH
    for folder, _, names in os.walk(top):
        found.update(Path(folder, name) for name in _RULES if name in names)
        if time.monotonic() > end:
            break
    return {path for path in found if path.is_fifo()}


def _entries(folder: str, name: str) -> Iterator[os.DirEntry[str]]:
    """What is in a folder of git's; of the objects only what git reads by name."""
    below = _LOOKED_INTO.get(name)
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            yield entry
            wanted = below is None or entry.name in below
            if wanted and entry.is_dir(follow_symlinks=False):
                yield from _entries(entry.path, f"{name}/{entry.name}".removeprefix("/"))


def _check(path: str) -> None:
    try:
        found = os.stat(path)  # noqa: PTH116 - text is faster here
    except OSError:
        return
    kind = stat.S_IFMT(found.st_mode)
    if kind in (stat.S_IFIFO, stat.S_IFSOCK):
        raise _refusal(path, "a named pipe")
    if kind in (stat.S_IFCHR, stat.S_IFBLK):
        raise _refusal(path, "a device")
    if found.st_size > LARGEST_FILE:
        raise _refusal(path, f"larger than {LARGEST_FILE // 1024**3} GB")


def _refusal(path: str, what: str) -> GitStoppedError:
    return GitStoppedError(f"{path} is {what}, and git would wait for it: delete it")
