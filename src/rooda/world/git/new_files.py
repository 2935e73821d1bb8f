"""Files that are new to a repository: untracked, staged, or added by commits.

Git reads only names and trees for this, so no clean filter of the repository runs.
"""

import os
from collections.abc import Callable, Iterable

from msgspec import Struct

from rooda.base.secrets.sensitive import (
    TOKEN_HOLDERS,
    holds_a_token,
    is_allowed,
    looks_like_a_secret,
)
from rooda.world.files.beneath import Beneath
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


# New files of a work tree that look like secrets. rooda does not commit or push them.


_MOST_READ = 64 * 1024


class NewSecrets:
    """Finds new files that look like secrets and that the user has not allowed.

    The folder of `git` has to be the top of the work tree. Every method can raise GitError.
    """

    def __init__(self, git: Git, allowed: tuple[str, ...]) -> None:
        self._git = git
        self._allowed = allowed

    def untracked(self) -> list[str]:
        """Return those that are neither tracked nor ignored."""
        return self.among(untracked_files(self._git, self._may_be_secret))

    def among(self, names: Iterable[str]) -> list[str]:
        """Return those of the names, which are files of the work tree."""
        found = (name for name in names if self._may_be_secret(name))
        return [name for name in found if looks_like_a_secret(name) or self._has_token(name)]

    def staged(self) -> list[str]:
        """Return those in the index that HEAD does not have."""
        found = staged_files(self._git, self._may_be_secret)
        return [one.name for one in found if self._is_secret(one)]

    def committed(self, commit: str, known: Iterable[str]) -> list[NewFile]:
        """Return those that were added up to a commit, since the known commits."""
        found = committed_files(self._git, commit, known, self._may_be_secret)
        return [one for one in found if self._is_secret(one)]

    def _may_be_secret(self, name: str) -> bool:
        is_suspect = looks_like_a_secret(name) or name.rpartition("/")[2] in TOKEN_HOLDERS
        return is_suspect and not is_allowed(name, self._allowed)

    def _is_secret(self, file: NewFile) -> bool:
        if file.is_repository:
            return False
        return looks_like_a_secret(file.name) or self._content_has_token(file.content)

    def _has_token(self, name: str) -> bool:
        try:
            return holds_a_token(Beneath(self._git.folder).read(name, _MOST_READ))
        except OSError:
            return False

    def _content_has_token(self, content: str) -> bool:
        """Return whether a content of git has a token; true for one that is too large to read."""
        size = int(self._git.line("cat-file", "-s", content))
        return size > _MOST_READ or holds_a_token(self._git("cat-file", "blob", content))
