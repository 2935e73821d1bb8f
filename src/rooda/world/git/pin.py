"""The repository that a run started in: rooda commits to no other one, and pushes no other one.

An agent can delete `.git`, empty it, or point it elsewhere. Git would then find another repository,
perhaps in a folder above, with files that the user does not want to publish.
"""

import contextlib
import os
import weakref
from collections.abc import Iterable, Mapping
from pathlib import Path

from rooda.world.git.git import Git, GitError, GitInterruptedError
from rooda.world.git.git_files import changed_link, check_rules, links_in
from rooda.world.git.snapshots.repository import Repository
from rooda.world.tools import Tools

# Folders that rooda keeps open, to notice when something else takes the place of one of them.


class HeldFolders:
    """Open folders and their paths. While a folder is open, the system can't reuse its inode."""

    def __init__(self, paths: Iterable[Path]) -> None:
        """Open the folders. Raises OSError."""
        self._held: dict[Path, int] = {}
        self.close = weakref.finalize(self, _close, self._held)
        for path in dict.fromkeys(paths):
            self._held[path] = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def replaced(self) -> Path | None:
        """Return the first path that does not lead to its folder any more; None if all do."""
        return next((path for path, fd in self._held.items() if not _is_same(path, fd)), None)


def _is_same(path: Path, fd: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(fd))
    except OSError:
        return False


def _close(held: Mapping[Path, int]) -> None:
    for fd in held.values():
        os.close(fd)


_WATCHED = (
    r"^(gpg\..*|commit\.gpgsign|core\.(sshcommand|gitproxy|askpass|alternaterefscommand)"
    r"|credential\..*|http\..*|remote\..*\.(receivepack|vcs|proxy)|push\.recursesubmodules"
    r"|url\..*)$"
)


class Pin:
    """A repository and its work tree at the start of the run."""

    def __init__(self, folder: Path, tools: Tools, found: Repository) -> None:
        self.top = found.top
        self.git_dir = found.git_dir
        self.common = found.common
        self._folder = folder
        self._tools = tools
        self._held = HeldFolders((found.top, self.git_dir, found.common))
        self._links = found.links
        self.named_links = found.named_links()
        self.head = found.head() or ""
        self._remotes = _push_addresses(Git(folder, tools))
        self.settings = _watched_settings(Git(folder, tools))
        self._published = _remote_branches(Git(folder, tools))
        self._checked: dict[str, str] = {}
        self.branch = Git(folder, tools).ask("symbolic-ref", "-q", "--short", "HEAD") or ""

    @classmethod
    def of(cls, folder: Path, tools: Tools) -> "Pin | None":
        """Return the repository of a folder; None without git or without a work tree."""
        try:
            found = Repository.find(folder, tools)
            return None if found is None else cls(folder, tools, found)
        except (GitError, OSError):
            return None

    def close(self) -> None:
        """Close the folders at the end of the run."""
        self._held.close()

    def trouble(self) -> str:
        """Return what changed since the start of the run, in words; empty if nothing did."""
        if (gone := self._held.replaced()) is not None:
            return f"{gone} was deleted or replaced during the run"
        try:
            now = Repository.find(self._folder, self._tools)
        except GitInterruptedError:
            raise
        except GitError as error:
            return f"git can't use the repository any more: {error}"
        if now is None:
            return f"{self.git_dir} is not a repository any more"
        places = (now.top, now.git_dir, now.common)
        for then, place in zip((self.top, self.git_dir, self.common), places, strict=True):
            if then != place:
                return f"git now works with {place} instead of {then}"
        try:
            links = links_in([self.git_dir, self.common], index=True)
            check_rules(self.top)
        except GitError as error:
            return str(error)
        if moved := changed_link(self._links, links):
            return f"{moved} is a link now that leads elsewhere"
        return self._changed_setting()

    def _changed_setting(self) -> str:
        """Return a message about a changed setting that names a program or an address."""
        now = _watched_settings(Git(self._folder, self._tools))
        changed = sorted(
            key for key in {*now, *self.settings} if now.get(key) != self.settings.get(key)
        )
        return f"the setting {changed[0]} of git was changed" if changed else ""

    def remote_trouble(self, remote: str) -> str:
        """Return why a remote is none of those at the start of the run; empty if it is one.

        Its name may have changed: only the address decides where a push goes.
        """
        now = _push_addresses(Git(self._folder, self._tools)).get(remote)
        if now in self._remotes.values():
            return ""
        what = "changed" if remote in self._remotes else "added"
        return f"the remote {remote} was {what} during the run"

    def known_commits(self, remote: str) -> list[str]:
        """Return commits that are fit for a push: the last checked one, and those of the remote.

        The latter are as git knew them at the start of the run: an agent can change these refs.
        """
        start = f"refs/remotes/{remote}/"
        known = [commit for name, commit in self._published if name.startswith(start)]
        return [*known, self._checked[remote]] if remote in self._checked else known

    def note_checked(self, remote: str, commit: str) -> None:
        """Note that a commit, with all before it, is fit for a push to a remote."""
        self._checked[remote] = commit


def _push_addresses(git: Git) -> Mapping[str, str]:
    """Return the push address of each remote, with the user's rewriting rules applied."""
    found: dict[str, str] = {}
    for name in (git.ask("remote") or "").splitlines():
        if not name.startswith("-"):  # git would take it for an option
            with contextlib.suppress(GitError):
                found[name] = git.line("remote", "get-url", "--push", "--all", name)
    return found


def _remote_branches(git: Git) -> list[tuple[str, str]]:
    """Return the name and the commit of each branch that git knows of the remotes."""
    raw = git.ask("for-each-ref", "--format=%(refname) %(objectname)", "refs/remotes/") or ""
    pairs = (line.rpartition(" ") for line in raw.splitlines())
    return [(name, commit) for name, _, commit in pairs]


def _watched_settings(git: Git) -> Mapping[str, tuple[str, ...]]:
    """Return the settings that make git run a program or send data elsewhere."""
    found: dict[str, tuple[str, ...]] = {}
    raw = git.ask("config", "--null", "--get-regexp", _WATCHED) or ""
    for entry in raw.split("\0"):
        if entry:
            key, _, value = entry.partition("\n")
            found[key] = (*found.get(key, ()), value)
    return found
