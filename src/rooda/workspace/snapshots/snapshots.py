"""Every state of the work tree, kept as a commit in the user's repository, to be restored later.

One pass of git over the tree finds both what changed and what to keep. The commits have refs of
their own (`refs/rooda`): rooda touches neither the user's branch, index and stash, nor the files.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from rooda.workspace.git import GitError, GitStoppedError
from rooda.workspace.snapshots.repository import Repository
from rooda.workspace.snapshots.restore import Restorer, plan_restore
from rooda.workspace.snapshots.shadow_index import IndexedTree, ShadowIndex
from rooda.workspace.snapshots.shadow_repo import ShadowRepo
from rooda.workspace.snapshots.snapshot_refs import (
    MOST_MODES,
    SnapshotNotes,
    SnapshotRefs,
    read_notes,
    ref,
)
from rooda.workspace.state_folder import StateFolder
from rooda.workspace.tools import Tools
from rooda.workspace.tree_changes import (
    Changes,
    Difference,
    DifferenceParser,
    LineCount,
    TreeChanges,
    TreeScan,
    joined,
    of_marks,
    relative,
    seen_from,
)

LARGEST = 50 * 1024 * 1024  # bytes of an untracked file

_DIFF_TREE = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev")
_LINES = ("--numstat", "--no-ext-diff", "--no-textconv")  # runs no program of the repository
_IS_LOST = "the snapshot before is gone from the repository, so what changed is not known"


class Snapshots:
    """The snapshots of one work tree. To take or restore one, the caller holds the tree's lock."""

    def __init__(
        self,
        repository: Repository,
        folder: Path,
        index: ShadowIndex,
        restorer: Restorer,
        program: str,
    ) -> None:
        self._repository = repository
        self._git = repository.git
        self._folder = folder
        self._place = _place(folder, repository.top)
        self._index = index
        self._restorer = restorer
        self._held = repository.hold()
        self._refs = SnapshotRefs(repository.git, repository.common, self._check_place)
        self._program = program
        self._before: IndexedTree | None = None
        self._head_files: tuple[bytes, ...] | None = None
        self._head_commit: str | None = None

    @classmethod
    def open(
        cls,
        folder: Path,
        state: StateFolder,
        tools: Tools,
        largest: int = LARGEST,
        own: Sequence[str] = (),
    ) -> "Snapshots | None":
        """Return the snapshots of a folder's work tree; None without git or without a work tree.

        `state` is the state folder; rooda writes to it at the first `take`. `own` are patterns,
        relative to the top, of files that rooda writes, not the agent. Raises GitError if git
        refuses to work with the repository.
        """
        repository = Repository.find(folder, tools)
        if repository is None:
            return None
        return cls._of(repository, folder, state, tools, largest, own)

    @classmethod
    def without_repository(
        cls,
        folder: Path,
        state: StateFolder,
        tools: Tools,
        largest: int = LARGEST,
        own: Sequence[str] = (),
    ) -> "Snapshots":
        """Return scans of a folder without the user's repository. rooda can't keep or restore them.

        The parameters are those of `open`. Raises GitError if git is not installed.
        """
        repository = Repository.private(folder, state, tools)
        return cls._of(repository, folder, state, tools, largest, own)

    @classmethod
    def _of(
        cls,
        repository: Repository,
        folder: Path,
        state: StateFolder,
        tools: Tools,
        largest: int,
        own: Sequence[str],
    ) -> "Snapshots":
        shadow = ShadowRepo(repository, state, tools, own)
        index = ShadowIndex(repository, shadow, state, largest)
        restorer = Restorer(shadow, repository.top, folder.resolve(), largest)
        return cls(repository, folder, index, restorer, tools.program("git"))

    def take(self, run: str | None, name: str = "") -> TreeScan:
        """Scan the work tree, and keep it under a name of the run.

        Without a run, or without the user's repository, rooda only scans it. Raises GitError; then
        nothing in the user's repository has changed.
        """
        if self._repository.is_private:
            run = None
        if run is not None:
            ref(run, name)
        self._check_place()
        head = self._head()
        try:
            return self._take(run, name, head, self._refs.newest or head)
        except GitStoppedError:
            raise
        except GitError:
            # An agent may have damaged the index or the commits. Retry without them.
            self._index.discard()
            trouble = self._drop_lost()
            return self._take(run, name, head, None, trouble)

    def _take(
        self, run: str | None, name: str, head: str | None, base: str | None, trouble: str = ""
    ) -> TreeScan:
        found = self._index.scan(base)
        changes: Changes | None = None
        lines: tuple[LineCount, ...] | None = None
        if self._before is not None:
            changes, lines = self._changes(self._before, found)
        commit = None
        if run is not None:
            commit, wrong = self._refs.keep(run, name, found.tree, head, _notes(found))
            trouble = trouble or wrong
        self._before = found
        return TreeScan(
            changes=changes,
            tree=found.tree,
            head=head,
            commit=commit,
            left_out=() if self._repository.is_private else self._named(found.left_out),
            trouble=trouble,
            lines=lines,
        )

    def _check_place(self) -> None:
        """Raise OtherRepositoryError before git writes to a repository that is not this one."""
        self._repository.check_place(self._held)
        self._repository.check()

    def _head(self) -> str | None:
        """Return the commit of HEAD. rooda asks git only if the files of HEAD have changed."""
        files = self._repository.head_files()
        if files is None or files != self._head_files:
            self._head_commit = self._repository.head()
        self._head_files = files
        return self._head_commit

    def _drop_lost(self) -> str:
        self._refs.drop_lost()
        if self._before is None:
            return ""
        try:
            self._git("ls-tree", "-r", "-z", self._before.tree)
        except GitError:
            self._before = None
            return _IS_LOST
        return ""

    def _changes(
        self, before: IndexedTree, after: IndexedTree
    ) -> tuple[Changes, tuple[LineCount, ...] | None]:
        """Return what changed, and the changed lines; None if git does not have the contents."""
        seen, is_counted = self._counted(before.tree, after.tree)
        found = joined(seen.sorted(), of_marks(before.left_out, after.left_out))
        # A file that a rule ignores from now on leaves the tree, but it still exists.
        deleted = tuple(name for name in found.deleted if name not in after.ignored)
        lines = tuple(
            replace(one, name=relative(self._place, one.name))
            for one in seen.lines
            if one.name not in after.ignored
        )
        return seen_from(self._place, replace(found, deleted=deleted)), (
            lines if is_counted else None
        )

    def _counted(self, before: str, after: str) -> tuple[TreeChanges, bool]:
        """Return the differences of two trees, and whether their lines are counted."""
        if not self._repository.is_private:  # else git has the names of the contents only
            seen = TreeChanges()
            try:
                self._each_difference(before, after, seen.add, seen.lines.append)
            except GitStoppedError:
                raise
            except GitError:
                pass  # a content is missing; the names need none
            else:
                return seen, True
        seen = TreeChanges()
        self._each_difference(before, after, seen.add)
        return seen, False

    def _changes_of_trees(self, before: str, after: str) -> Changes:
        changes = TreeChanges()
        self._each_difference(before, after, changes.add)
        return changes.sorted()

    def _differences(self, before: str, after: str) -> list[Difference]:
        found: list[Difference] = []
        self._each_difference(before, after, found.append)
        return found

    def _each_difference(
        self,
        before: str,
        after: str,
        take: Callable[[Difference], object],
        count: Callable[[LineCount], object] | None = None,
    ) -> None:
        """Give each difference to `take`, and the changed lines of each file to `count`."""
        if before == after:
            return
        if count is None:
            self._git.each(DifferenceParser(take).feed, *_DIFF_TREE, before, after)
        else:
            parser = DifferenceParser(take, count)
            self._git.each(parser.feed, *_DIFF_TREE, *_LINES, before, after)

    def _named(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(relative(self._place, name) for name in names))

    def restore(self, run: str, name: str, undo_name: str, undo_run: str | None = None) -> TreeScan:
        """Restore a snapshot, after taking one of the present state under `undo_name`.

        `undo_run` replaces the run in the name of that snapshot.

        Returns the new state: `changes` is what the restore did, `left_out` what it could not
        restore, `untouched` what exists and is in no snapshot, so that it stayed as it was.
        Raises GitError; then the work tree may be half restored, if there is an undo.
        """
        commit, tree = self._refs.table.commit(run, name), self.tree_of(run, name)
        if commit is None or tree is None:
            raise GitError(f"there is no snapshot {name} of run {run}")
        notes = read_notes(self._git.line("show", "--no-patch", "--format=%B", commit))
        undo_run = undo_run or run
        modes = dict(notes.modes)
        self._index.watch_modes(modes)
        undo = self.take(undo_run, undo_name)
        self.flush()
        here = self._before
        if here is None:
            raise AssertionError("a snapshot was taken")
        differences = self._differences(here.tree, tree)
        hidden, stuck = self._restorer.hidden(differences)
        absent = self._restorer.ignored_if_there(differences)
        if hidden or absent:
            here = self._keep_also(hidden, absent, undo_run, undo_name, here, undo.head)
            differences = self._differences(here.tree, tree)
        plan = plan_restore(differences, notes.left_out, stuck)
        failed = self._restorer.carry_out(plan, tree, notes.absent, modes)
        self._index.settle((*plan.write, *modes))
        now = self.take(None)
        unkept = {*notes.left_out, *here.left_out}.difference(failed)
        gone = {name for name in unkept if not os.path.lexists(self._repository.top / name)}
        return replace(
            now,
            commit=commit,
            left_out=self._named({*failed, *gone}),
            untouched=self._named(unkept - gone),
            trouble=undo.trouble or now.trouble,
        )

    def _keep_also(
        self,
        hidden: list[str],
        absent: list[str],
        run: str,
        undo_name: str,
        here: IndexedTree,
        head: str | None,
    ) -> IndexedTree:
        """Add to the undo snapshot the ignored files that the restore will overwrite or create."""
        found = self._index.add(hidden, here) if hidden else here
        notes = _notes(found, absent)
        self._refs.keep(run, undo_name, found.tree, head, notes)
        self._before = IndexedTree(found.tree, found.left_out)
        return self._before

    def tree_of(self, run: str, name: str) -> str | None:
        """Return the tree of a snapshot, if there is one."""
        return self._refs.table.tree(run, name)

    def names(self, run: str) -> tuple[str, ...]:
        """Return the snapshots of a run: numbers in their order, then words."""
        return self._refs.table.names(run)

    def has_kept(self, run: str, name: str) -> bool:
        """Return whether this process has kept a snapshot under this name."""
        return self._refs.has_kept(run, name)

    def runs(self) -> tuple[str, ...]:
        """Return the runs that have snapshots."""
        return self._refs.table.runs()

    def learn(self, run: str, commits: Mapping[str, str]) -> None:
        """Take snapshots from the record of a run that was killed before it wrote their refs."""
        self._refs.table.learn(run, commits)

    def flush(self) -> None:
        """Write the refs that wait for the next change. Raises GitError."""
        self._refs.flush()

    def forget(self, runs: Iterable[str]) -> None:
        """Delete the snapshots of these runs; git frees the space when it cleans up."""
        self._refs.forget(runs)

    def forget_older(self, run: str, moment: float) -> None:
        """Delete the snapshots of a run that are older than a moment (unix time)."""
        self._refs.table.forget_older(run, moment)

    def commits_between(self, before: str | None, after: str | None) -> int:
        """Return how many commits one HEAD has that another had not; 0 if git can't tell."""
        if after is None or after == before:
            return 0
        try:
            without = [f"^{before}"] if before is not None else []
            return int(self._git.line("rev-list", "--count", after, *without, "--"))
        except GitError:
            return 0

    def diff(self, run: str, before: str, after: str, *arguments: str) -> tuple[str, ...]:
        """Return the command that shows the difference of two snapshots with the user's git."""
        places = (self._refs.table.place(run, name) for name in (before, after))
        return (self._program, "-C", str(self._folder), "diff", *places, *arguments)


def _notes(found: IndexedTree, absent: Iterable[str] = ()) -> SnapshotNotes:
    """Return what the commit of a tree says beside it."""
    modes = tuple(found.modes.items())[:MOST_MODES]
    return SnapshotNotes(tuple(sorted(found.left_out)), tuple(sorted(absent)), modes)


def _place(folder: Path, top: Path) -> str:
    """Return the path of a folder below the top; empty for the top itself."""
    place = os.path.relpath(folder.resolve(), top)
    return "" if place == os.curdir else place
