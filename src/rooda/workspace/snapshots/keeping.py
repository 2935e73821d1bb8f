"""Keep trees as commits under refs of ours, and the refs as they were, whoever deletes them."""

from collections.abc import Iterable

from msgspec import Struct

from rooda.workspace.git import Git, GitError
from rooda.workspace.snapshots.notes import Notes, message
from rooda.workspace.snapshots.refs import Refs, ref

_WERE_GONE = "refs of earlier snapshots had been deleted or changed; they are as they were again"


class Kept(Struct, frozen=True):
    """A tree with a commit and a ref."""

    run: str
    ref: str
    commit: str
    tree: str
    head: str | None
    notes: Notes


class Keeper:
    """What one run has kept so far."""

    def __init__(self, git: Git) -> None:
        """`git` works in the user's repository."""
        self.refs = Refs(git)
        self._git = git
        self._last: Kept | None = None
        self._commits: dict[str, str] = {}

    @property
    def newest(self) -> str | None:
        """The commit that was kept last."""
        return self._last.commit if self._last is not None else None

    def keep(
        self, run: str, name: str, tree: str, head: str | None, notes: Notes
    ) -> tuple[str, str]:
        """Keep a tree; its commit, and what was found wrong with the refs, if anything."""
        target = ref(run, name)
        commit = self._commit(run, name, tree, head, notes)
        trouble = self._point(target, commit)
        self._commits[target] = commit
        self._last = Kept(run, target, commit, tree, head, notes)
        return commit, trouble

    def forget(self, runs: Iterable[str]) -> None:
        """Delete the refs of these runs."""
        gone = set(runs)
        self.refs.forget(gone)
        kept = self._commits.items()
        self._commits = {name: commit for name, commit in kept if name.split("/")[2] not in gone}
        if self._last is not None and self._last.run in gone:
            self._last = None

    def drop_lost(self) -> None:
        """Don't build upon a commit that is gone."""
        if self._last is not None and self._last.commit not in self._there([self._last.commit]):
            self._last = None

    def _commit(self, run: str, name: str, tree: str, head: str | None, notes: Notes) -> str:
        """A commit upon the one before, and upon the user's HEAD if that has moved.

        So what an agent commits and throws away can still be found.
        """
        last = self._last if self._last is not None and self._last.run == run else None
        if last is not None and (last.tree, last.head, last.notes) == (tree, head, notes):
            return last.commit
        parents = [last.commit] if last is not None else []
        if head is not None and (last is None or last.head != head):
            parents.append(head)
        options = [word for parent in parents for word in ("-p", parent)]
        said = message(f"rooda {run} {name}", notes)
        return self._git("commit-tree", *options, tree, given=said).decode().strip()

    def _point(self, target: str, commit: str) -> str:
        """Write the ref; the one before shows whether somebody deleted what we had written."""
        last = self._last
        expected = {last.ref: last.commit} if last is not None else {}
        try:
            self.refs.write({target: commit}, expected)
        except GitError:
            there = self._there(self._commits.values())
            again = {name: old for name, old in self._commits.items() if old in there}
            self.refs.write(again | {target: commit}, {})
            return _WERE_GONE
        return ""

    def _there(self, commits: Iterable[str]) -> set[str]:
        """Those of the commits that are in the repository."""
        given = "".join(f"{commit}\n" for commit in commits)
        said = self._git("cat-file", "--batch-check", given=given.encode()).decode()
        # `0a1b... commit 231`, or `0a1b... missing`
        return {words[0] for words in map(str.split, said.splitlines()) if words[1] == "commit"}
