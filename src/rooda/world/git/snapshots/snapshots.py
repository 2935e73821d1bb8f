"""Every state of the work tree, kept in a private store, to be compared and restored later.

rooda reads the tree itself and follows no link there. It asks git only for the ignore rules. The
user's repository is only read: for HEAD, and for names that the user tracks. There may be none.
"""

import os
import stat
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from rooda.world.files.beneath import Beneath
from rooda.world.git.git import Git, GitError, GitInterruptedError, GitStoppedError
from rooda.world.git.snapshots.marks import Marks
from rooda.world.git.snapshots.packs import errors_name
from rooda.world.git.snapshots.repository import Repository, settings_of
from rooda.world.git.snapshots.restore import Restorer, plan_restore
from rooda.world.git.snapshots.rules import IgnoreRules
from rooda.world.git.snapshots.scan import Place, Scan, Scanned
from rooda.world.git.snapshots.store import NEWEST, SnapshotNotes, Store, permissions, ref
from rooda.world.git.snapshots.takeover import take_over
from rooda.world.git.snapshots.tree_changes import (
    Changes,
    Difference,
    DifferenceParser,
    LineCount,
    TreeScan,
    joined,
    of_marks,
    relative,
    seen_from,
)
from rooda.world.git.snapshots.trees import permissions_of
from rooda.world.git.work_tree import explain_refusal, work_tree
from rooda.world.state.folder import StateFolder
from rooda.world.tools import Tools

LARGEST = 50 * 1024 * 1024  # bytes of an untracked file

_DIFF_TREE = ("diff-tree", "-r", "-z", "--no-renames", "--no-abbrev")
_LINES = ("--numstat", "--no-ext-diff", "--no-textconv")
_NO_GIT = "git is not installed, and rooda reads ignore rules with it: install git"
_IS_LOST = "the earlier snapshots were deleted or damaged; rooda keeps new ones from now on"
_PRECIOUS = (stat.S_IFREG, stat.S_IFLNK)


class _Taken(Struct, frozen=True):
    """The newest snapshot of this process."""

    commit: str
    tree: str
    notes: SnapshotNotes
    left_out: dict[str, bytes | None]


class Snapshots:
    """The snapshots of one work tree. To take or restore one, the caller holds the tree's lock."""

    def __init__(
        self,
        folder: Path,
        state: StateFolder,
        tools: Tools,
        largest: int,
        own: Sequence[str],
        top: Path,
        repository: Repository | None,
        trouble: str = "",
    ) -> None:
        """See `open`; `trouble` says why rooda does not use the repository of the folder."""
        self._arguments = (folder, state, tools, largest, own)
        self._repository = repository
        self._trouble = trouble
        self._top = top
        self._place_of_folder = _place(folder, top)
        self._tools = tools
        self._store = Store(state, tools)
        self._marks_file = state / "marks"
        settings = _settings(repository, top, tools)
        exclude = None if repository is None else repository.common / "info" / "exclude"
        self._rules = IgnoreRules(state, tools, settings, exclude, own)
        self._place = Place(
            top,
            state,
            repository,
            repository is not None and _hides_untracked(settings),
            largest,
            "sha1" if repository is None else repository.object_format,
            self._tick,
        )
        self._restorer = Restorer(self._store, self._rules, top, folder.resolve(), largest)
        self._marks: Marks | None = None
        self._taken: _Taken | None = None
        self._lost: Marks | None = None  # what the files were like when the store was lost
        self._packs: object = None  # how rooda left the folder of packs
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
    ) -> "Snapshots":
        """Return the snapshots of a folder's work tree; without a repository, of the folder.

        `state` is rooda's private folder for the work tree. `own` are patterns, relative to the
        top, of files that rooda writes, not the agent. Raises GitError without git.
        """
        if tools.git is None:
            raise GitError(_NO_GIT)
        top, trouble = folder.resolve(), ""
        try:
            repository = Repository.find(folder, tools)
        except GitInterruptedError:
            raise
        except GitError as error:
            repository, top = None, work_tree(folder)
            reason, advice = explain_refusal(folder, str(error))
            trouble = f"they know no commits and no index, because {reason}. {advice}"
        if repository is not None:
            top = repository.top
            take_over(repository, Store(state, tools))
        return cls(folder, state, tools, largest, own, top, repository, trouble)

    def _tick(self) -> None:
        if self._tools.is_over:
            raise GitInterruptedError("interrupted")

    # -- taking ----------------------------------------------------------------------------------

    def take(self, run: str | None, name: str = "") -> TreeScan:
        """Scan the work tree, and keep it; under a name of the run, if there is a run.

        Raises GitError; then all earlier snapshots are as they were.
        """
        if run is not None:
            ref(run, name)
        head, trouble = self._head()
        try:
            with errors_name(self._store.folder):
                trouble = self._prepare() or trouble
            return replace(self._take(run, name), head=head, trouble=trouble)
        except OSError as error:
            raise GitError(f"{error.filename or self._top}: {error.strerror or error}") from None

    def _take(
        self, run: str | None, name: str, also: Collection[str] = (), absent: Collection[str] = ()
    ) -> TreeScan:
        marks, before = self._marks or Marks(), self._taken
        pack = self._store.pack()
        try:
            compared = None if self._lost is None else self._lost.folders
            found = Scan(self._place, self._rules, marks, pack, also, compared).run()
            notes = self._notes(found, absent)
            tree = found.tree.hex()
            commit = before.commit if before is not None else ""
            if before is None or (before.tree, before.notes) != (tree, notes):
                commit = self._store.commit(pack, found.tree, f"rooda {run or ''} {name}", notes)
            pack.finish()
        finally:
            pack.discard()
        with errors_name(self._store.folder):
            self._keep(found, commit, run, name)
        self._lost = None
        self._taken = _Taken(commit, tree, notes, dict(found.left_out))
        changes = None if before is None else self._changes(before, found)
        return TreeScan(
            changes=None if changes is None else seen_from(self._place_of_folder, changes),
            tree=tree,
            commit=None if run is None else commit,
            left_out=self._named(found.left_out),
            lines=None if changes is None or before is None else self._lines(before.tree, changes),
        )

    def _keep(self, found: Scanned, commit: str, run: str | None, name: str) -> None:
        """Write the refs and the marks of a snapshot."""
        found.marks.commit = commit
        is_same = found.is_same and self._marks is not None and self._marks.commit == commit
        self._marks = found.marks
        if not is_same:
            self._store.write(NEWEST, commit)
            found.marks.save(self._marks_file)
        if run is not None:
            self._store.write(ref(run, name), commit)
        if not is_same:
            self._store.collect_if_many()
        self._packs = self._store.packs_mark()

    def _prepare(self) -> str:
        """Make sure that the store has what the marks say. Return a message if it has lost it."""
        if self._marks is not None and self._is_whole(self._marks):
            return ""
        self._store.prepare(self._place.algorithm)
        self._place = replace(self._place, algorithm=self._store.algorithm)
        marks = self._marks or Marks.load(self._marks_file)
        if marks is not None and marks.top == str(self._top) and self._is_whole(marks):
            self._marks = marks
            return ""
        if self._marks is None:
            self._marks = Marks()
            return ""
        self._marks, self._lost = Marks(), self._marks
        if self._taken is not None:
            self._taken = replace(self._taken, commit="", tree="")
        return _IS_LOST

    def _is_whole(self, marks: Marks) -> bool:
        if not self._store.is_sound or self._store.read(NEWEST) != marks.commit:
            return False
        return self._packs == self._store.packs_mark() or self._store.is_whole(marks.commit)

    def _notes(self, found: Scanned, absent: Collection[str]) -> SnapshotNotes:
        if self._taken is not None and found.is_same:
            modes = self._taken.notes.permissions
        else:
            modes = permissions_of(found.marks.folders)
        left_out = tuple(sorted(found.left_out))
        return SnapshotNotes(str(self._top), left_out, tuple(sorted(absent)), modes)

    def _head(self) -> tuple[str | None, str]:
        """Return the commit of HEAD, and why rooda can't read it, if so.

        rooda asks git only if the files of HEAD have changed.
        """
        repository = self._repository
        if repository is None:
            return None, self._trouble
        try:
            files = repository.head_files()
            if files is None or files != self._head_files:
                repository.check()
                self._head_commit = repository.head()
        except GitInterruptedError:
            raise
        except GitError as error:
            return self._head_commit, f"rooda can't read HEAD any more: {error}"
        self._head_files = files
        return self._head_commit, ""

    # -- comparing -------------------------------------------------------------------------------

    def _changes(self, before: _Taken, found: Scanned) -> Changes:
        changes = joined(found.changes, of_marks(before.left_out, found.left_out))
        # A file that a rule ignores from now on leaves the tree, but it still exists.
        tree = Beneath(self._top)
        deleted = tuple(name for name in changes.deleted if not _exists(tree, name))
        return replace(changes, deleted=deleted)

    def _lines(self, before: str, changes: Changes) -> tuple[LineCount, ...] | None:
        """Return the changed lines of these files; None if git can't tell."""
        after = self._taken.tree if self._taken is not None else before
        if before == after:
            return ()
        if not before:
            return None
        wanted = {*changes.created, *changes.modified, *changes.deleted}
        found: list[LineCount] = []
        parser = DifferenceParser(lambda _: None, found.append)
        try:
            self._store.git.each(parser.feed, *_DIFF_TREE, *_LINES, before, after)
        except GitStoppedError:
            raise
        except GitError:
            return None
        named = partial(relative, self._place_of_folder)
        return tuple(replace(one, name=named(one.name)) for one in found if one.name in wanted)

    def _differences(self, before: str, after: str) -> list[Difference]:
        found: list[Difference] = []
        if before != after:
            self._store.git.each(
                DifferenceParser(found.append).feed, *_DIFF_TREE, "--raw", before, after
            )
        return found

    def _named(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(relative(self._place_of_folder, name) for name in names))

    def commits_between(self, before: str | None, after: str | None) -> int:
        """Return how many commits one HEAD has that another had not; 0 if git can't tell."""
        if after is None or after == before or self._repository is None:
            return 0
        try:
            without = [f"^{before}"] if before is not None else []
            count = self._repository.git.line("rev-list", "--count", after, *without, "--")
            return int(count)
        except GitError:
            return 0

    def diff(self, run: str, before: str, after: str, *arguments: str) -> tuple[str, ...]:
        """Return the command that shows the difference of two snapshots with the user's git."""
        program, store = self._tools.program("git"), str(self._store.folder)
        commits = [self._store.snapshot(run, name) or "" for name in (before, after)]
        return (program, f"--git-dir={store}", "diff", *commits, *arguments)

    # -- restoring -------------------------------------------------------------------------------

    def restore(self, run: str, name: str, undo_name: str, undo_run: str | None = None) -> TreeScan:
        """Restore a snapshot, after taking one of the present state under `undo_name`.

        `undo_run` replaces the run in the name of that snapshot.

        Returns the new state: `changes` is what the restore did, `left_out` what it could not
        restore, `untouched` what exists and is in no snapshot, so that it stayed as it was.
        Raises GitError; then the work tree may be half restored, if there is an undo.
        """
        commit, tree = self._store.snapshot(run, name), self.tree_of(run, name)
        if commit is None or tree is None:
            raise GitError(f"there is no snapshot {name} of run {run}")
        notes = self._store.notes(commit)
        if (top := self._other_top(notes)) is not None:
            other = Snapshots(*self._arguments, top, None, self._trouble)
            return other.restore(run, name, undo_name, undo_run)
        undo = self.take(undo_run or run, undo_name)
        try:
            return self._restore(notes, tree, undo_run or run, undo_name, undo, commit)
        except OSError as error:
            raise GitError(f"{error.filename or self._top}: {error.strerror or error}") from None

    def _other_top(self, notes: SnapshotNotes) -> Path | None:
        """Return the top of a snapshot's work tree if it is another one than now.

        If the repository is gone, or there is a new one, another folder is the top.
        """
        then, here = Path(notes.top), self._top
        if not notes.top or then == here:
            return None
        folder = self._arguments[0].resolve()
        is_related = folder.is_relative_to(then) or then.is_relative_to(folder)
        return then if is_related and then.is_dir() else None

    def _restore(
        self,
        notes: SnapshotNotes,
        tree: str,
        undo_run: str,
        undo_name: str,
        undo: TreeScan,
        commit: str,
    ) -> TreeScan:
        here = self._newest()
        differences = self._differences(here.tree, tree)
        hidden, stuck = self._restorer.hidden(differences)
        absent = self._restorer.ignored_if_there(differences)
        if hidden or absent:
            self._take(undo_run, undo_name, hidden, absent)
            here = self._newest()
            differences = self._differences(here.tree, tree)
        plan = plan_restore(differences, notes.left_out, stuck)
        failed = [*self._restorer.carry_out(plan, notes.absent, notes.permissions)]
        done = {one.name for one in differences}
        failed += self._restorer.set_modes(self._other_modes(here, notes, done))
        now = self.take(None)
        unkept = {*notes.left_out, *here.left_out}.difference(failed)
        door = Beneath(self._top)
        gone = {name for name in unkept if not _is_there(door, name)}
        return replace(
            now,
            commit=commit,
            left_out=self._named({*failed, *gone}),
            untouched=self._named(unkept - gone),
            trouble=undo.trouble or now.trouble,
        )

    def _newest(self) -> _Taken:
        if self._taken is None:
            raise AssertionError("a snapshot was taken")
        return self._taken

    def _other_modes(
        self, here: _Taken, notes: SnapshotNotes, done: Collection[str]
    ) -> dict[str, int]:
        """Return the permissions to restore of files whose content is the same."""
        if here.notes.permissions == notes.permissions or self._marks is None:
            return {}
        found: dict[str, int] = {}
        for path, folder in self._marks.folders.items():
            for last, seen in folder.files():
                name = f"{path}/{last}" if path else last
                if seen.content and stat.S_ISREG(seen.mode) and name not in done:
                    mode = notes.permissions.mode(name, seen.git_mode)
                    if mode != permissions(seen.mode):
                        found[name] = mode
        return found

    # -- names -----------------------------------------------------------------------------------

    def tree_of(self, run: str, name: str) -> str | None:
        """Return the tree of a snapshot, if there is one."""
        return self._store.tree(run, name)

    def names(self, run: str) -> tuple[str, ...]:
        """Return the snapshots of a run: numbers in their order, then words."""
        return self._store.names(run)

    def has_kept(self, run: str, name: str) -> bool:
        """Return whether there is a snapshot of this name."""
        return self._store.snapshot(run, name) is not None

    def runs(self) -> tuple[str, ...]:
        """Return the runs that have snapshots."""
        return self._store.runs()

    def forget(self, runs: Iterable[str]) -> None:
        """Delete the snapshots of these runs, and free their space. Raises GitError."""
        self._store.forget(runs)

    def forget_older(self, run: str, moment: float) -> None:
        """Delete the snapshots of a run that are older than a moment (unix time)."""
        self._store.forget_older(run, moment)


def _exists(tree: Beneath, name: str) -> bool:
    """Return whether there is a file or a link that may have contents to lose."""
    try:
        return stat.S_IFMT(tree.status(name).st_mode) in _PRECIOUS
    except PermissionError:
        return True
    except OSError:
        return False


def _is_there(tree: Beneath, name: str) -> bool:
    try:
        tree.status(name.rstrip("/"))
    except OSError:
        return False
    return True


def _settings(repository: Repository | None, top: Path, tools: Tools) -> dict[str, str]:
    """Return the user's settings about files; without a repository, those of user and system."""
    git = Git(top, tools, {"GIT_DIR": os.devnull}) if repository is None else repository.git
    try:
        return settings_of(git)
    except GitInterruptedError:
        raise
    except GitError:
        return {}


def _hides_untracked(settings: dict[str, str]) -> bool:
    """Return whether the user's git does not list untracked files, as in a home under git."""
    shown = settings.get("status.showuntrackedfiles", "normal").lower()
    return shown in ("no", "false", "off", "0")


def _place(folder: Path, top: Path) -> str:
    """Return the path of a folder below the top; empty for the top itself."""
    place = os.path.relpath(folder.resolve(), top)
    return "" if place == os.curdir else place
