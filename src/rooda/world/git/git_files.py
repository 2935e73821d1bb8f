"""Files with which an agent can block or misdirect git: named pipes, devices, links, huge files.

Git opens a file without checking its kind: it waits for the other end of a named pipe, and reads a
device forever. Through a link in its own folder, git writes to another repository. So rooda checks
these files before it starts git.
"""

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from rooda.world.git.git import GitStoppedError

# Names of files that git allows in a tree.


# Characters that macOS ignores in a name, such as a joiner of zero width.
_IGNORED = dict.fromkeys(
    (*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF)
)


def is_path_in_tree(name: str) -> bool:
    """Return whether git can have a file of this name. An agent can forge an index or a message.

    Names that some file system takes for `.git` count as `.git`.
    """
    try:
        parts = os.fsencode(name).split(b"/")
    except UnicodeEncodeError:
        return False
    if any(part in (b"", b".", b"..") or b"\0" in part for part in parts):
        return False
    return not any(_is_git(part) for part in name.split("/"))


def _is_git(part: str) -> bool:
    plain = part.translate(_IGNORED).lower().partition(":")[0].rstrip(" .")
    return plain in (".git", "git~1")


LARGEST_FILE = 2 * 1024**3  # bytes; git reads about 30 MB a second

_RULES = (".gitignore", ".gitattributes", ".gitmodules")
_CHECKED_FOLDERS = {"": ("refs", "logs", "info", "objects"), "objects": ("info", "pack")}
_MAY_BE_LINKED = ("HEAD", "hooks")  # by old versions of git, and by users
_INDEX = "index"


def links_in(folders: Iterable[Path], *, index: bool = False) -> dict[str, str]:
    """Return the links in git's own folders. Raises GitStoppedError for a file that blocks git.

    Without `index`, the user's index may be any kind of file: snapshots have their own index.
    """
    found: dict[str, str] = {}
    for folder in dict.fromkeys(folders):
        for entry in _entries(str(folder)):
            if entry.name == _INDEX and not index and not entry.is_symlink():
                continue
            # `scandir` tells the kind of a file without a call; the size matters at the top only.
            is_plain = entry.is_file(follow_symlinks=False)
            if is_plain and entry.path != f"{folder}/{entry.name}":
                continue
            if not is_plain and entry.is_symlink() and entry.name not in _MAY_BE_LINKED:
                found[entry.path] = str(Path(entry.path).readlink())
            _check(entry.path)
    return found


def changed_link(before: Mapping[str, str], now: Mapping[str, str]) -> str:
    """Return the first link that is new or leads elsewhere; empty if there is none."""
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


def check_rules(top: Path) -> None:
    """Raise GitStoppedError if a file with rules at the top is a named pipe."""
    for path in (top / name for name in _RULES):
        if path.is_fifo() and not path.is_symlink():
            raise _refusal(str(path), "a named pipe")


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    """Return what is in a folder of git, except folders; of the objects only what git names."""
    waiting = [(folder, "")]
    while waiting:
        path, name = waiting.pop()
        below = _CHECKED_FOLDERS.get(name)
        with contextlib.suppress(OSError), os.scandir(path) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    yield entry
                elif below is None or entry.name in below:
                    waiting.append((entry.path, f"{name}/{entry.name}".removeprefix("/")))


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
