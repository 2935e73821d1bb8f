"""The branches of a repository, which of them other work trees use, and where git pushes them."""

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from rooda.world.git.git import Git, GitError

_HEADS, _REMOTES = "refs/heads/", "refs/remotes/"
_LIST = ("for-each-ref", "--format=%(refname)%00%(worktreepath)", _HEADS, _REMOTES)

Ask = Callable[..., str]  # asks git, and returns its answer; empty where git has none


class Branches(Struct, frozen=True):
    """Branches by name. `current` is None on a detached HEAD."""

    current: str | None
    used_in: dict[str, str]  # the work tree of a branch; empty if none has checked it out
    of_remotes: frozenset[str]  # the same without the name of the remote

    @classmethod
    def find(cls, git: Git) -> "Branches":
        """Return the branches. Raises GitError."""
        head = git.ask("symbolic-ref", "-q", "HEAD")
        used_in: dict[str, str] = {}
        of_remotes: set[str] = set()
        for line in git.line(*_LIST).split("\n"):
            ref, _, folder = line.partition("\0")
            if ref.startswith(_HEADS):
                used_in[ref.removeprefix(_HEADS)] = folder
            elif ref:
                of_remotes.add(ref.removeprefix(_REMOTES).partition("/")[2])
        current = None if head is None else head.removeprefix(_HEADS)
        return cls(current, used_in, frozenset(of_remotes))

    def rival(self, name: str) -> str:
        """Return a branch beside which a new one can't exist (`a` and `a/b`); empty if none."""
        if name in self.used_in:
            return ""
        rivals = (
            other
            for other in self.used_in
            if other.startswith(f"{name}/") or name.startswith(f"{other}/")
        )
        return next(rivals, "")

    def used_elsewhere(self, name: str, top: Path) -> str:
        """Return the other work tree that has the branch checked out; empty if none has."""
        folder = self.used_in.get(name, "")
        return "" if not folder or Path(folder).resolve() == top.resolve() else folder

    def way_to(self, name: str) -> tuple[str, ...]:
        """Return the arguments of `git switch` for a branch that may exist here or at a remote."""
        if name in self.used_in:
            return ("--no-guess", name)
        return ("--guess", name) if name in self.of_remotes else ("--no-track", "-c", name)


def is_branch_name(git: Git, name: str) -> bool:
    """Return whether git accepts the name for a branch, as it is written."""
    if name.startswith("-") or name == "@":
        return False
    try:
        return git.ask("check-ref-format", "--branch", name) == name
    except GitError:
        return False


def push_remote(ask: Ask, branch: str) -> str:
    """Return where git itself would push to; without any setting the only remote, or `origin`."""
    for key in (f"branch.{branch}.pushRemote", "remote.pushDefault"):
        if chosen := ask("config", key):
            return chosen
    upstream = ask("config", f"branch.{branch}.remote")
    if upstream and upstream != ".":
        return upstream
    remotes = ask("remote").split()
    return remotes[0] if len(remotes) == 1 else "origin" if "origin" in remotes else ""
