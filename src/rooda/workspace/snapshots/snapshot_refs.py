"""Snapshots in the user's repository: commits under `refs/rooda/<run>/<name>`."""

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from rooda.text.plain_files import read_plain_file
from rooda.workspace.git import INHERITED, Git, GitError, GitStoppedError
from rooda.workspace.git_names import is_path_in_tree

UNDO = "undo"  # in place of a run: what a restore has replaced, for every restored run
ROOT = "refs/rooda"  # where snapshots are
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*(?<!\.lock)")
_WERE_GONE = "refs of earlier snapshots had been deleted or changed; they are as they were again"
_OBJECT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_LEFT_OUT, _ABSENT, _MODE = "Left out: ", "Absent: ", "Mode {:03o}: "
_MODE_LINE = re.compile(r"^Mode ([0-7]{3}): ", re.MULTILINE)
_MOST_NAMED = 1000  # names of each kind in one message
MOST_MODES = 5000


class SnapshotNotes(Struct, frozen=True):
    """What a tree can't tell.

    `left_out` existed and is not in the tree; `absent` did not exist and would be ignored. `modes`
    are the permissions of files for which they are not the usual ones.
    """

    left_out: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    modes: tuple[tuple[str, int], ...] = ()


class KeptTree(Struct, frozen=True):
    """A tree with a commit and a ref."""

    run: str
    ref: str
    commit: str
    tree: str
    head: str | None
    notes: SnapshotNotes


class SnapshotRefs:
    """Keeps trees as commits under refs, and repairs refs that an agent has deleted.

    A tree that did not change has a commit and a ref already. A further ref to that commit waits
    until the next tree, or until `flush`: so an iteration without changes needs no git for it. If
    rooda is killed before, the commit is still in the record (`RefTable.learn`).
    """

    def __init__(self, git: Git, common: Path, check: Callable[[], None]) -> None:
        """`git` works in the user's repository, which has its refs in the folder `common`.

        `check` raises GitError if git would write to another repository.
        """
        self._table = RefTable(git, check)
        self._check = check
        self._git = git
        self._common = common
        self._last: KeptTree | None = None
        self._commits: dict[str, str] = {}
        self._waiting: list[str] = []  # refs to the newest commit that are not written yet

    @property
    def table(self) -> "RefTable":
        """All refs of the repository, none of which waits."""
        self.flush()
        return self._table

    @property
    def newest(self) -> str | None:
        """The commit of the newest snapshot of this process."""
        return self._last.commit if self._last is not None else None

    def keep(
        self, run: str, name: str, tree: str, head: str | None, notes: SnapshotNotes
    ) -> tuple[str, str]:
        """Keep a tree. Return its commit, and a message if refs had to be repaired."""
        target = ref(run, name)
        commit = self._commit(run, name, tree, head, notes)
        if self._has_ref(commit):
            self._waiting.append(target)
            return commit, ""
        trouble = self._write({target: commit})
        self._last = KeptTree(run, target, commit, tree, head, notes)
        return commit, trouble

    def flush(self) -> None:
        """Write the refs that wait."""
        if self._waiting:
            self._write({})

    def has_kept(self, run: str, name: str) -> bool:
        """Return whether this process has written the ref of this snapshot."""
        with contextlib.suppress(GitError):
            self.flush()
        return f"{ROOT}/{run}/{name}" in self._commits

    def forget(self, runs: Iterable[str]) -> None:
        """Delete the refs of these runs."""
        gone = set(runs)
        self.table.forget(gone)
        kept = self._commits.items()
        self._commits = {name: commit for name, commit in kept if name.split("/")[2] not in gone}
        if self._last is not None and self._last.run in gone:
            self._last = None

    def drop_lost(self) -> None:
        """Forget the newest commit if it is gone from the repository."""
        if self._last is not None and not self._table.there([self._last.commit]):
            self._last, self._waiting = None, []

    def _commit(
        self, run: str, name: str, tree: str, head: str | None, notes: SnapshotNotes
    ) -> str:
        """Create a commit. Its parents are the one before, and the user's HEAD if that has moved.

        So commits that an agent makes and discards can still be found.
        """
        last = self._last if self._last is not None and self._last.run == run else None
        if last is not None and (last.tree, last.head, last.notes) == (tree, head, notes):
            return last.commit
        parents = [last.commit] if last is not None else []
        if head is not None and (last is None or last.head != head):
            parents.append(head)
        options = [word for parent in parents for word in ("-p", parent)]
        said = message(f"rooda {run} {name}", notes)
        self._check()
        return self._git("commit-tree", *options, tree, given=said).decode().strip()

    def _has_ref(self, commit: str) -> bool:
        """Return whether the file of the last ref has this commit.

        Git may keep refs elsewhere. Then there is no such file, and git itself has to tell.
        """
        if self._last is None or self._last.commit != commit:
            return False
        try:
            found = read_plain_file(self._common / self._last.ref, len(commit) + 1)
        except OSError:
            return False
        return found == f"{commit}\n".encode()

    def _write(self, more: Mapping[str, str]) -> str:
        """Write these refs and those that wait.

        If the ref before them was changed, write all refs of this process again.
        """
        last, new, expected = self._last, dict(more), {}
        if last is not None:
            expected = {last.ref: last.commit}
            new = dict.fromkeys(self._waiting, last.commit) | new
        trouble = ""
        try:
            self._table.write(new, expected)
        except GitStoppedError:
            raise
        except GitError:
            there = self._table.there(self._commits.values())
            again = {name: old for name, old in self._commits.items() if old in there}
            self._table.write(again | new, {})
            trouble = _WERE_GONE
        self._commits |= new
        self._waiting = []
        return trouble


class RefTable:
    """rooda's refs in one repository."""

    def __init__(self, git: Git, check: Callable[[], None]) -> None:
        self._git = git
        self._check = check
        self._learned: dict[tuple[str, str], str] = {}

    def learn(self, run: str, commits: Mapping[str, str]) -> None:
        """Take snapshots from the record of a run that was killed before it wrote their refs."""
        names = {*self.names(run)}
        new = {
            name: commit
            for name, commit in commits.items()
            if name not in names and _OBJECT.fullmatch(commit)
        }
        there = self.there(new.values()) if new else ()
        self._learned |= {(run, name): new[name] for name in new if new[name] in there}

    def place(self, run: str, name: str) -> str:
        """Return the words by which git finds a snapshot: its ref, or its commit."""
        return self._learned.get((run, name)) or ref(run, name)

    def commit(self, run: str, name: str) -> str | None:
        """Return the commit of a snapshot, if there is one."""
        place = f"{self.place(run, name)}^{{commit}}"
        return self._git.ask("rev-parse", "--quiet", "--verify", place)

    def tree(self, run: str, name: str) -> str | None:
        """Return the tree of a snapshot, if there is one."""
        place = f"{self.place(run, name)}^{{tree}}"
        return self._git.ask("rev-parse", "--quiet", "--verify", place)

    def names(self, run: str) -> tuple[str, ...]:
        """Return the snapshots of a run: numbers in their order, then words."""
        known = (*self._words(), *self._learned)
        found = {words[1] for words in known if words[0] == run}
        return tuple(sorted(found, key=lambda name: (not name.isdecimal(), len(name), name)))

    def there(self, commits: Iterable[str]) -> set[str]:
        """Return those of the commits that are in the repository."""
        given = "".join(f"{commit}\n" for commit in commits)
        said = self._git("cat-file", "--batch-check", given=given.encode()).decode()
        # `0a1b... commit 231`, or `0a1b... missing`
        return {words[0] for words in map(str.split, said.splitlines()) if words[1] == "commit"}

    def runs(self) -> tuple[str, ...]:
        """Return the runs that have snapshots."""
        return tuple(sorted({words[0] for words in self._words()}))

    def forget(self, runs: Iterable[str]) -> None:
        """Delete every ref of these runs; git frees the space at its next garbage collection."""
        gone = set(runs)
        found = [words for words in self._words() if words[0] in gone]
        self._change(f"delete {ROOT}/{'/'.join(words)}" for words in found)

    def forget_older(self, run: str, moment: float) -> None:
        """Delete the refs of a run whose commits are older than a moment (unix time)."""
        raw = self._git.line("for-each-ref", "--format=%(refname) %(committerdate:unix)", ROOT)
        pairs = (line.rpartition(" ") for line in raw.splitlines())
        old = [
            name
            for name, _, date in pairs
            if name.startswith(f"{ROOT}/{run}/") and date.isdecimal() and int(date) < moment
        ]
        self._change(f"delete {name}" for name in old)

    def write(self, commits: Mapping[str, str], expected: Mapping[str, str]) -> None:
        """Point refs to commits, all or none, and only if the expected refs are unchanged."""
        lines = [f"update {name} {commit}" for name, commit in commits.items()]
        checks = [f"verify {name} {commit}" for name, commit in expected.items()]
        self._change([*lines, *(line for line in checks if line.split()[1] not in commits)])

    def _change(self, lines: Iterable[str]) -> None:
        given = "".join(f"{line}\n" for line in lines)
        if given:
            self._check()
            # git may write `packed-refs` again, which has the refs of the user too.
            self._git("update-ref", "--stdin", given=given.encode(), umask=INHERITED)

    def _words(self) -> Iterator[tuple[str, str]]:
        """Return run and name of each ref; refs of an agent have another number of parts."""
        raw = self._git.line("for-each-ref", "--format=%(refname:lstrip=2)", f"{ROOT}/")
        for line in raw.splitlines():
            run, _, name = line.partition("/")
            if name and "/" not in name:
                yield run, name


def ref(run: str, name: str) -> str:
    """Return the ref of a snapshot. Raises GitError for words that git does not accept in a ref."""
    for word in (run, name):
        if not _WORD.fullmatch(word):
            raise GitError(f"there is no snapshot {name} of run {run}")
    return f"{ROOT}/{run}/{name}"


def message(title: str, notes: SnapshotNotes) -> bytes:
    """Return the commit message. A name may contain any character, so each one is JSON."""
    lines = [
        f"{kind}{json.dumps(name)}"
        for kind, names in ((_LEFT_OUT, notes.left_out), (_ABSENT, notes.absent))
        for name in names[:_MOST_NAMED]
    ]
    lines += [f"{_MODE.format(mode)}{json.dumps(name)}" for name, mode in notes.modes[:MOST_MODES]]
    return "\n".join([title, *(["", *lines] if lines else []), ""]).encode()


def read_notes(said: str) -> SnapshotNotes:
    """Return the notes in a commit message, without lines that are no notes."""
    octal = sorted(set(_MODE_LINE.findall(said)))
    modes = [
        (name, int(one, 8))
        for one in octal
        for name in _names(said, f"Mode {one}: ")
        if is_path_in_tree(name)
    ]
    return SnapshotNotes(tuple(_names(said, _LEFT_OUT)), tuple(_names(said, _ABSENT)), tuple(modes))


def _names(said: str, kind: str) -> Iterator[str]:
    for line in said.split("\n"):
        if line.startswith(kind):
            try:
                name = json.loads(line.removeprefix(kind))
            except (ValueError, RecursionError):
                continue
            if isinstance(name, str):
                yield name
