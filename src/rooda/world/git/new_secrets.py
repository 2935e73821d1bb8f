"""New files of a work tree that look like secrets. rooda does not commit or push them."""

from collections.abc import Iterable

from rooda.base.secrets.sensitive import (
    TOKEN_HOLDERS,
    holds_a_token,
    is_allowed,
    looks_like_a_secret,
)
from rooda.world.files.beneath import Beneath
from rooda.world.git.git import Git
from rooda.world.git.new_files import NewFile, committed_files, staged_files, untracked_files

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
