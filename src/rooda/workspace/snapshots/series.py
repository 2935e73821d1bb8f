"""Every state of the work tree, kept as a commit in the user's repository and brought back at will.

One pass of git over the tree finds what changed and what to keep. The commits have refs of their
own (`refs/rooda`), so branch, index, stash and work tree of the user stay untouched.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from rooda.workspace.changes import (
    Changes,
    Difference,
    joined,
    of_marks,
    of_trees,
    parse_differences,
    relative,
    seen_from,
)
from rooda.workspace.git import GitError, GitStoppedError
from rooda.workspace.snapshots.keeping import Keeper
from rooda.workspace.snapshots.notes import Notes, read_notes
from rooda.workspace.snapshots.refs import ref
from rooda.workspace.snapshots.repository import Repository
from rooda.workspace.snapshots.shadow.folder import Shadow
from rooda.workspace.snapshots.shadow.look import Lookout, Sight
from rooda.workspace.snapshots.shadow.restore import Restorer, plan
from rooda.workspace.tools import Tools

LARGEST = 50 * 1024 * 1024  # of an untracked file

_IS_LOST = "the snapshot before is gone from the repository, so what changed is not known"


class Snapshot(Struct, frozen=True):
    """The work tree at one moment. Names are relative to the folder that was asked for.

    `changes` are those since the snapshot before; None where there is none to compare with.
    `left_out` is there and not in the tree. `head` is where the user's HEAD stands. `commit` is
    None where none was asked for.
    """

    tree: str
    commit: str | None
    changes: Changes | None
    left_out: tuple[str, ...]
    head: str | None
    trouble: str = ""


class Snapshots:
    """The snapshots of one work tree. Whoever takes or restores one holds the lock of the tree."""

    def __init__(
        self,
        repository: Repository,
        folder: Path,
        lookout: Lookout,
        restorer: Restorer,
        program: str,
    ) -> None:
        self._repository = repository
        self._git = repository.git
        self._folder = folder
        self._place = _place(folder, repository.top)
        self._lookout = lookout
        self._restorer = restorer
        self._keeper = Keeper(repository.git)
        self._program = program
        self._before: Sight | None = None

    @classmethod
    def open(
        cls,
        folder: Path,
        state: Path,
        tools: Tools,
        largest: int = LARGEST,
        own: Sequence[str] = (),
    ) -> "Snapshots | None":
        """Of the work tree that a folder is in; None without git or without a work tree.

        `state` is the `.rooda` that is written to when a snapshot is taken, and not before. Raises
        GitError where git has something against the repository. `own` are patterns, from the top,
        of files that are rooda's and not the agent's.
        """
        repository = Repository.find(folder, tools)
        if repository is None:
            return None
        shadow = Shadow(repository, state, tools, own)
        lookout = Lookout(repository, shadow, state, largest)
        restorer = Restorer(shadow, repository.top, folder.resolve(), largest)
        return cls(repository, folder, lookout, restorer, tools.program("git"))

    def take(self, run: str | None, name: str = "") -> Snapshot:
        """Look at the work tree, and keep it under a name of the run; without a run only look.

        Raises GitError, and then nothing of the user's has changed.
        """
        if run is not None:
            ref(run, name)
        self._repository.check()
        head = self._repository.head()
        try:
            return self._take(run, name, head, self._keeper.newest or head)
        except GitStoppedError:
            raise
        except GitError:
            # An agent may have damaged what we build upon. Without all of that it must work.
            self._lookout.begin_anew()
            trouble = self._drop_lost()
            return self._take(run, name, head, None, trouble)

    def _take(
        self, run: str | None, name: str, head: str | None, base: str | None, trouble: str = ""
    ) -> Snapshot:
        sight = self._lookout.look(base)
        changes = None if self._before is None else self._changes(self._before, sight)
        commit = None
        if run is not None:
            notes = Notes(tuple(sorted(sight.apart)))
            commit, wrong = self._keeper.keep(run, name, sight.tree, head, notes)
            trouble = trouble or wrong
        self._before = sight
        left_out = self._named(sight.apart)
        return Snapshot(sight.tree, commit, changes, left_out, head, trouble)

    def _drop_lost(self) -> str:
        self._keeper.drop_lost()
        if self._before is None:
            return ""
        try:
            self._git("ls-tree", "-r", "-z", self._before.tree)
        except GitError:
            self._before = None
            return _IS_LOST
        return ""

    def _changes(self, before: Sight, after: Sight) -> Changes:
        in_tree = of_trees(self._differences(before.tree, after.tree))
        found = joined(in_tree, of_marks(before.apart, after.apart))
        # What is ignored from now on is gone from the tree, but not from the disk.
        deleted = tuple(name for name in found.deleted if name not in after.ignored)
        return seen_from(self._place, replace(found, deleted=deleted))

    def _differences(self, before: str, after: str) -> list[Difference]:
        if before == after:
            return []
        options = ("-r", "-z", "--raw", "--no-renames", "--no-abbrev")
        return list(parse_differences(self._git("diff-tree", *options, before, after)))

    def _named(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(relative(self._place, name) for name in names))

    def restore(self, run: str, name: str, undo_name: str, undo_run: str | None = None) -> Snapshot:
        """Make the work tree what it was, after a snapshot of what is there under `undo_name`.

        `undo_run` takes the place of the run in the name of that snapshot.

        Returns what is there now: `changes` is what was done, `left_out` what could not be brought
        back. Raises GitError; then the work tree may be half restored, if there is an undo.
        """
        commit, tree = self._keeper.refs.commit(run, name), self.tree_of(run, name)
        if commit is None or tree is None:
            raise GitError(f"there is no snapshot {name} of run {run}")
        notes = read_notes(self._git.line("show", "--no-patch", "--format=%B", commit))
        undo_run = undo_run or run
        undo = self.take(undo_run, undo_name)
        differences = self._differences(undo.tree, tree)
        hidden, stuck = self._restorer.hidden(differences)
        absent = self._restorer.ignored_if_there(differences)
        if hidden or absent:
            here = self._keep_also(hidden, absent, undo_run, undo_name, undo)
            differences = self._differences(here, tree)
        what = plan(differences, notes.left_out, stuck)
        failed = self._restorer.carry_out(what, tree, notes.absent)
        self._lookout.settle(what.write)
        now = self.take(None)
        trouble = undo.trouble or now.trouble
        return replace(now, commit=commit, left_out=self._named(failed), trouble=trouble)

    def _keep_also(
        self, hidden: list[str], absent: list[str], run: str, undo_name: str, undo: Snapshot
    ) -> str:
        """Take into the snapshot what could not be undone by it else; its tree."""
        tree = self._lookout.add(hidden) if hidden else undo.tree
        apart = self._before.apart if self._before is not None else {}
        notes = Notes(tuple(sorted(apart)), tuple(sorted(absent)))
        self._keeper.keep(run, undo_name, tree, undo.head, notes)
        self._before = Sight(tree, apart)
        return tree

    def tree_of(self, run: str, name: str) -> str | None:
        """The tree of a snapshot, if there is one."""
        return self._keeper.refs.tree(run, name)

    def names(self, run: str) -> tuple[str, ...]:
        """The snapshots of a run: numbers in their order, then words."""
        return self._keeper.refs.names(run)

    def runs(self) -> tuple[str, ...]:
        """The runs that have snapshots."""
        return self._keeper.refs.runs()

    def forget(self, runs: Iterable[str]) -> None:
        """Delete the snapshots of these runs; git frees the space when it cleans up."""
        self._keeper.forget(runs)

    def forget_older(self, run: str, moment: float) -> None:
        """Delete the snapshots under a run's name that are older than a moment (unix time)."""
        self._keeper.refs.forget_older(run, moment)

    def commits_between(self, before: str | None, after: str | None) -> int:
        """How many commits one HEAD has that another had not; 0 where nobody can tell."""
        if after is None or after == before:
            return 0
        try:
            without = [f"^{before}"] if before is not None else []
            return int(self._git.line("rev-list", "--count", after, *without, "--"))
        except GitError:
            return 0

    def changes_between(self, before: str, after: str) -> Changes:
        """What changed from one tree or commit to another."""
        return seen_from(self._place, of_trees(self._differences(before, after)))

    def diff(self, run: str, before: str, after: str, *arguments: str) -> tuple[str, ...]:
        """The command that shows what is between two snapshots, with the user's own git."""
        refs = (ref(run, before), ref(run, after))
        return (self._program, "-C", str(self._folder), "diff", *refs, *arguments)


def _place(folder: Path, top: Path) -> str:
    """Where a folder is below the top; nothing for the top itself."""
    place = os.path.relpath(folder.resolve(), top)
    return "" if place == os.curdir else place
