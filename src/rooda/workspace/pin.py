"""The repository that a run works in, held fast from its start.

An agent can delete `.git`, empty it, or point it elsewhere. Git would then find another repository,
perhaps the one above, with files that the user never meant to publish.
"""

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rooda.workspace.git import Git, GitError, GitStoppedError
from rooda.workspace.snapshots.repository import Repository
from rooda.workspace.tools import Tools


@dataclass(frozen=True, slots=True)
class _Held:
    """A folder that is kept open, so that the system can't give its inode to another one."""

    path: Path
    fd: int

    def is_same(self) -> bool:
        """Whether the path still leads to this folder."""
        try:
            return os.path.samestat(self.path.stat(), os.fstat(self.fd))
        except OSError:
            return False


class Pin:
    """A repository and its work tree, as they were when the run started."""

    def __init__(self, folder: Path, tools: Tools, found: Repository) -> None:
        self.top = found.top
        self.git_dir = found.git_dir
        self._common = found.common
        self._folder = folder
        self._tools = tools
        self._held = [
            _hold(path) for path in dict.fromkeys((found.top, self.git_dir, found.common))
        ]
        self._remotes = _push_addresses(Git(folder, tools))

    @classmethod
    def of(cls, folder: Path, tools: Tools) -> "Pin | None":
        """The repository that a folder is in; None without git or without a work tree."""
        try:
            found = Repository.find(folder, tools)
            return None if found is None else cls(folder, tools, found)
        except (GitError, OSError):
            return None

    def close(self) -> None:
        """The run has ended."""
        for held in self._held:
            os.close(held.fd)
        self._held = []

    def trouble(self) -> str:
        """What is different from the start of the run; empty if nothing is."""
        for held in self._held:
            if not held.is_same():
                return f"{held.path} was deleted or replaced during the run"
        try:
            now = Repository.find(self._folder, self._tools)
        except GitStoppedError:
            raise
        except GitError as error:
            return f"git can't use the repository any more: {error}"
        if now is None:
            return f"{self.git_dir} is not a repository any more"
        places = (now.top, now.git_dir, now.common)
        for then, place in zip((self.top, self.git_dir, self._common), places, strict=True):
            if then != place:
                return f"git now works with {place} instead of {then}"
        return ""

    def remote_trouble(self, remote: str) -> str:
        """Why a remote is none of those at the start of the run; empty if it is one of them.

        Its name may be another one: only the address says who receives a push.
        """
        now = _push_addresses(Git(self._folder, self._tools)).get(remote)
        if now in self._remotes.values():
            return ""
        what = "changed" if remote in self._remotes else "added"
        return f"the remote {remote} was {what} during the run"


def _hold(path: Path) -> _Held:
    return _Held(path, os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))


def _push_addresses(git: Git) -> Mapping[str, tuple[str, ...]]:
    """Where each remote is pushed to, with the user's rewriting rules applied."""
    found: dict[str, tuple[str, ...]] = {}
    with contextlib.suppress(GitError):
        for line in git.line("remote", "-v").splitlines():
            name, _, address = line.partition("\t")
            if address.endswith(" (push)"):
                found[name] = (*found.get(name, ()), address)
    return found
