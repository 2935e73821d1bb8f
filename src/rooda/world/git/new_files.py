"""Files that are new to a repository: untracked, staged, or added by commits.

Git reads only names and trees for this, so no clean filter of the repository runs.
"""

import os
from collections.abc import Callable, Iterable

from msgspec import Struct

from rooda.world.git.git import Git

LIST_UNTRACKED = ("ls-files", "-z", "--others", "--exclude-standard")
_ADDED = ("--raw", "-z", "--no-abbrev", "--no-renames", "--diff-filter=A")
_STAGED = (
    *("diff", "--cached", *_ADDED, "--no-ext-diff", "--no-relative"),
    "--ita-visible-in-index",  # `git add -N`: the name is in the index without its content
)
_CHANGED = (
    *("diff", "--cached", "--name-only", "-z"),
    *("--no-renames", "--no-ext-diff", "--no-relative"),
)
# A merge counts as the source of a file that none of its parents has (`-c`).
_COMMITTED = ("diff-tree", "--stdin", *_ADDED, "-r", "-c", "--root")
_REPOSITORY = b"160000"

Wanted = Callable[[str], bool]


class NewFile(Struct, frozen=True):
    """The path of a file from the top, its content, and the commit that adds it, if there is one.

    The name of a commit or of a content is git's name for it. The content of a repository within
    the work tree is a commit of its own.
    """

    name: str
    content: str
    commit: str = ""
    is_repository: bool = False


def _all(_name: str) -> bool:
    return True


def tracked_files(git: Git) -> list[str]:
    """Return the names in the index. Raises GitError."""
    return _names(git, _all, "ls-files", "-z")


def untracked_files(git: Git, wanted: Wanted = _all) -> list[str]:
    """Return the wanted files that are neither tracked nor ignored. Raises GitError."""
    return _names(git, wanted, *LIST_UNTRACKED)


def changed_in_index(git: Git) -> list[str]:
    """Return the names in the index that differ from HEAD. Raises GitError."""
    return _names(git, _all, *_CHANGED)


def _names(git: Git, wanted: Wanted, *arguments: str) -> list[str]:
    found: list[str] = []

    def take(field: bytes) -> None:
        name = os.fsdecode(field)
        if wanted(name):
            found.append(name)

    git.each(take, *arguments)
    return found


def staged_files(git: Git, wanted: Wanted = _all) -> list[NewFile]:
    """Return the wanted files of the index that HEAD does not have. Raises GitError."""
    reader = _RawReader(wanted)
    git.each(reader.take, *_STAGED)
    return reader.found


def committed_files(git: Git, commit: str, known: Iterable[str], wanted: Wanted) -> list[NewFile]:
    """Return the wanted files that were added up to a commit, since the known commits.

    A known commit may be missing in the repository. Raises GitError.
    """
    asked = "\n".join([commit, *(f"^{one}" for one in known), ""])
    commits = git("rev-list", "--ignore-missing", "--stdin", given=asked.encode())
    reader = _RawReader(wanted)
    git.each(reader.take, *_COMMITTED, given=commits)
    return reader.found


class _RawReader:
    """Reads the fields of git's raw format with `-z`: a commit, or modes and status, then a name.

    A field of a merge has one colon for each parent, and the modes and contents of all of them.
    """

    def __init__(self, wanted: Wanted) -> None:
        self.found: list[NewFile] = []
        self._wanted = wanted
        self._commit = ""
        self._entry = b""

    def take(self, field: bytes) -> None:
        """Take one field."""
        if self._entry:
            self._add(self._entry, os.fsdecode(field))
            self._entry = b""
        elif field.startswith(b":"):
            self._entry = field
        else:
            self._commit = os.fsdecode(field)

    def _add(self, entry: bytes, name: str) -> None:
        words = entry.lstrip(b":").split(b" ")
        parents = len(entry) - len(entry.lstrip(b":"))
        mode, content = words[parents], words[2 * parents + 1]
        if self._wanted(name):
            self.found.append(NewFile(name, content.decode(), self._commit, mode == _REPOSITORY))
