"""Checks a work tree after programs ran in the sandbox, and makes it safe for programs outside."""

import contextlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from rooda.world.files.beneath import FOLDER, Above, Beneath, set_mode
from rooda.world.files.put_back import move_aside
from rooda.world.git.git import Git, GitError, GitStoppedError
from rooda.world.git.pin import Pin
from rooda.world.git.work_tree import work_tree
from rooda.world.sandbox.private_git import GitNotice, PrivateGit
from rooda.world.sandbox.tree_findings import Action, Finding, Found, compare
from rooda.world.sandbox.tree_walk import Places, look, worktrees_of
from rooda.world.state.folder import StateFolder, make_folders
from rooda.world.tools import Tools

# Whether git still has the commits that branches, tags and the stash named when a run started.
#
# A program in the sandbox commits to the user's repository, so it can also delete what is in there.


_REFS = ("for-each-ref", "--format=%(objectname) %(refname)")
_OF_USER = ("refs/heads", "refs/tags", "refs/stash")
_MISSING = b" missing"
_REPOSITORY = ".git"


class LostCommits:
    """The commits of one repository at the start of a run."""

    def __init__(self, pin: Pin, tools: Tools) -> None:
        # rooda names the repository: without it, git would look for another one further up.
        place = {"GIT_DIR": str(pin.git_dir), "GIT_WORK_TREE": str(pin.top)}
        self._git = Git(pin.top, tools, place)
        self._names: dict[str, str] = {}  # content of a commit -> the first ref that names it
        self._can_tell = False
        with contextlib.suppress(GitError):
            for line in self._git.line(*_REFS, *_OF_USER).splitlines():
                commit, _, name = line.partition(" ")
                self._names.setdefault(f"{commit}^{{tree}}", name)
            for missing in self._missing():
                del self._names[missing]
            self._can_tell = True

    def names(self) -> tuple[str, ...]:
        """Return the refs of the start whose commits are gone; `.git` if git can't work with it."""
        if not self._can_tell:
            return ()
        try:
            return tuple(sorted(self._names[one] for one in self._missing()))
        except GitStoppedError:
            return ()  # a signal came; or something holds git up, and the next stages say so
        except GitError:
            return (_REPOSITORY,)

    def _missing(self) -> list[str]:
        """Return the contents that git does not have. Raises GitError."""
        asked = "".join(f"{one}\n" for one in self._names).encode()
        answers = self._git("cat-file", "--batch-check=%(objecttype)", given=asked).splitlines()
        return [
            answer.removesuffix(_MISSING).decode()
            for answer in answers
            if answer.endswith(_MISSING)
        ]


REMOVED = "removed"  # the folder for what was removed, in the folder of the iteration
_HUSKY = ".husky"
_SET_ID = stat.S_ISUID | stat.S_ISGID


class Handled(Struct, frozen=True):
    """What rooda found and what it did. Names are relative to the work tree where they can be.

    `place` is the folder with what was removed, ; empty if there is none.
    """

    finding: Finding
    action: Action
    names: tuple[str, ...]
    place: str = ""


class TreeCheck:
    """The checks of one work tree during a run.

    `is_due` says that a program ran in the sandbox since the last check.
    """

    def __init__(
        self,
        state: StateFolder,
        places: Places,
        is_over: Callable[[], bool] = lambda: False,
        commits: LostCommits | None = None,
        writable: Callable[[], Iterable[Path]] = tuple,
        private_git: PrivateGit | None = None,
        notices: Sequence[GitNotice] = (),
    ) -> None:
        """Remember the tree as it is now. Everything that differs later is a finding.

        `writable` returns the other folders and files that a program in the sandbox can change.
        `notices` are about commits of an earlier run.
        """
        self._private_git = private_git
        self._notices = [*notices]
        self._commits = commits
        self._state = state
        self._places = places
        self._is_over = is_over
        self._writable = writable
        seen = look(places, writable=map(str, writable()))
        self._before = seen.facts
        self._worktrees = worktrees_of(places)
        self._closed = seen.closed  # folders that the user has closed stay so
        self._close_again(seen.closed)
        self._told: set[str] = set()
        self.is_due = False
        self.hard_links = tuple(map(self._name, self._before.hard_links))
        self.hard_link_count = self._before.hard_link_count
        self.excluded: frozenset[str] = frozenset()  # repositories, relative to the top

    @classmethod
    def of(
        cls,
        state: StateFolder,
        folder: Path,
        tools: Tools,
        pin: Pin | None,
        *,
        protects_git: bool,
        writable: Callable[[], Iterable[Path]] = tuple,
        private_git: PrivateGit | None = None,
        notices: Sequence[GitNotice] = (),
    ) -> "TreeCheck":
        """Return the checks for a run in a folder.

        `protects_git`: the sandbox lets no program change the settings and hooks of git. With a
        `private_git`, no program inside reaches the user's git folder at all.
        `writable`, `notices`: as above.
        """
        top = pin.top if pin is not None else work_tree(folder)
        places = Places(str(top), writes_git_settings=not protects_git)
        commits = None
        if pin is not None:
            commits = None if private_git is not None else LostCommits(pin, tools)
            git_folder, shared = str(pin.git_dir), str(pin.common)
            places = Places(
                top=str(top),
                git_folder=git_folder,
                shared=shared if shared != git_folder else "",
                hooks=tuple(_hook_folders(top, tools)),
                has_private_git=private_git is not None,
                writes_git_settings=not protects_git,
            )
        return cls(state, places, lambda: tools.is_over, commits, writable, private_git, notices)

    def run(self, place: str) -> list[Handled]:
        """Look at the tree, act on what is new, and return that.

        `place` is the folder of the iteration in the state folder. The same excluded repository is
        returned once. What could not be removed is refused.
        """
        self.is_due, self.excluded = False, frozenset()
        others = map(str, self._writable())
        after = look(self._places, self._is_over, self._worktrees, others)
        handled: list[Handled] = []
        for found in compare(self._before, after.facts):
            handled += self._act(found, place)
        if self._commits is not None and (lost := self._commits.names()):
            handled.append(Handled(Finding.LOST_COMMITS, Action.REFUSED, lost))
        self._close_again(after.closed)
        if self._private_git is not None:
            self._notices += self._private_git.take_notices()
        handled += map(_of_git, self._notices)
        self._notices.clear()
        return handled

    def _close_again(self, folders: Mapping[str, int]) -> None:
        for path, mode in folders.items():
            if path in self._closed:
                with contextlib.suppress(OSError), self._above(path) as (parent, name):
                    set_mode(parent, name, mode)

    def _act(self, found: Found, place: str) -> list[Handled]:
        match found.action:
            case Action.REMOVED:
                return self._remove(found, f"{place}/{REMOVED}")
            case Action.CLEARED:
                return self._settle(found, self._clear_bits)
            case Action.EXCLUDED:
                self.excluded = frozenset(map(self._name, found.paths))
                new = [path for path in found.paths if path not in self._told]
                self._told.update(new)
                return [self._handled(found, Action.EXCLUDED, new)] if new else []
            case Action.REFUSED | Action.KEPT:
                return [self._handled(found, found.action, found.paths)]

    def _remove(self, found: Found, place: str) -> list[Handled]:
        return self._settle(found, lambda path: self._move(path, place), f"{self._state}/{place}")

    def _settle(self, found: Found, act: Callable[[str], None], place: str = "") -> list[Handled]:
        """Act on each path; refuse the iteration for those with which that is not possible."""
        done, failed = [], []
        for path in found.paths:
            try:
                act(path)
                done.append(path)
            except OSError:
                failed.append(path)
        handled = [self._handled(found, found.action, done, place)] if done else []
        return handled + ([self._handled(found, Action.REFUSED, failed)] if failed else [])

    def _move(self, path: str, place: str) -> None:
        """Move a file, a link or a folder into the record, under a number and its last name."""
        with self._above(path) as (parent, name):
            target = os.open(make_folders(self._state, place), FOLDER)
            try:
                move_aside(parent, name, target)
            finally:
                os.close(target)

    def _clear_bits(self, path: str) -> None:
        with self._above(path) as (parent, name):
            set_mode(parent, name, stat.S_IMODE(os.lstat(name, dir_fd=parent).st_mode) & ~_SET_ID)

    @contextlib.contextmanager
    def _above(self, path: str) -> Iterator[Above]:
        """Yield the open folder above a path, reached without links, and the last name."""
        places = self._places
        others = (str(one.parent) for one in self._writable())
        tops = (places.git_folder, places.shared, places.top, *others)
        starts = (f"{one.rstrip('/')}/" for one in tops if one)
        start = next(one for one in starts if path.startswith(one))
        with Beneath(start).above(path.removeprefix(start)) as found:
            yield found

    def _handled(
        self, found: Found, action: Action, paths: Sequence[str], place: str = ""
    ) -> Handled:
        return Handled(found.finding, action, tuple(map(self._name, paths)), place)

    def _name(self, path: str) -> str:
        """Return the name of a path, relative to the top if it is below it."""
        return path.removeprefix(f"{self._places.top}/")


def _of_git(notice: GitNotice) -> Handled:
    if notice.refused:
        names = (notice.refused, notice.folder)
        return Handled(Finding.REFUSED_COMMITS, Action.REFUSED, names)
    if notice.unfinished:
        return Handled(Finding.UNFINISHED, Action.KEPT, (notice.unfinished,))
    return Handled(Finding.KEPT_COMMITS, Action.KEPT, notice.kept)


def _hook_folders(top: Path, tools: Tools) -> Iterator[str]:
    """Yield the folders of the work tree in which git looks for hooks (core.hooksPath).

    The scripts of husky are in the folder above the one that git knows.
    """
    values: list[str] = []
    with contextlib.suppress(GitError):
        asked = Git(top, tools).ask("config", "--type=path", "--get-all", "core.hooksPath") or ""
        values = asked.splitlines()[:-1]  # the last one is rooda's own
    if not values:
        return
    path = os.path.normpath(top / values[-1])
    below = path.removeprefix(f"{top}/")
    if below != path:
        yield f"{top}/{_HUSKY}" if below.split("/")[0] == _HUSKY else path
