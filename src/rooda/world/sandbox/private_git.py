"""A git folder of its own for the agent, which programs in the sandbox see as `.git`.

It has refs, an index and settings of its own, and reads the user's objects. A program can't reach
the user's repository. `settle` copies into it the commits that git has checked, on branches that
the user has not moved meanwhile, and the staged files.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import msgspec
from msgspec import Struct

from rooda.world.files.beneath import Beneath
from rooda.world.git.git import GitError, GitStoppedError, unfinished
from rooda.world.git.snapshots.repository import Repository
from rooda.world.sandbox.git_import import (
    DAMAGED,
    GitImport,
    ImportRefusedError,
    ImportStoppedError,
    Inside,
    Reported,
    files_of_refs,
    kept_names,
)
from rooda.world.sandbox.git_mounts import alternates_of, has_objects
from rooda.world.sandbox.git_moves import GitState, moves, moves_beside_head, moves_that_keep
from rooda.world.sandbox.home import make_private
from rooda.world.sandbox.mounts import Mounts, ProtectedMounts
from rooda.world.sandbox.sandbox_plan import SandboxError
from rooda.world.state.folder import (
    AGENT_GIT,
    AGENT_GIT_BASE,
    AGENT_GIT_NOW,
    StateFolder,
)
from rooda.world.tools import Tools

_OBJECTS = "user-objects"  # where the user's objects are mounted
_READ_ONLY = ("hooks", "info")
_EMPTY = ("objects/info", "objects/pack", "refs/heads", "refs/tags", *_READ_ONLY, _OBJECTS)
# Files that decide what git runs or where it looks: they are made again before each program.
_SETTINGS = ("config", "config.worktree")
_FOREIGN = ("commondir", "gitdir")
_COPIED = ("HEAD", "index", "shallow", "logs/HEAD", "logs/refs/stash", *_SETTINGS)
_WATCHED = ("HEAD", "index", "packed-refs", "shallow", *_SETTINGS)
_MOST_MARKS = 100_000
_LARGEST = 256 * 1024  # bytes of a config file
_NEXT, _REFUSED = "next", "refused"  # folders: half made, not taken over
_SHARED_INDEX = "sharedindex."  # parts of a split index
_GIT, _INDEX = "git", "index"  # in these

Marks = frozenset[tuple[object, ...]]


class GitNotice(Struct, frozen=True):
    """What the user and the agent should know.

    Either the agent's commits are `kept` under other names, or rooda could not take them over
    (`refused`: why), and they are in a `folder`, or an operation is `unfinished`.
    """

    kept: tuple[str, ...] = ()
    refused: str = ""
    folder: str = ""
    unfinished: str = ""


def why_shared(top: Path) -> str:
    """Return why programs work in the user's own git folder; empty if they get another one."""
    git = top / ".git"
    if git.is_symlink() or not git.is_dir() or (git / "commondir").exists():
        return "it is not a folder of the work tree alone"
    config = _read(git, "config").lower()
    reasons = {
        "there are submodules": _has_files(git, "modules"),
        "it has files of git-lfs": (git / "lfs").exists() or _uses_lfs(top),
        "it has files of git-annex": (git / "annex").exists(),
        "it is a partial clone": b"promisor" in config or b"partialclone" in config,
        "its settings include other files": b"[include" in config,
        "it has another format for branches": b"refstorage" in config,
        unfinished(git) or "": unfinished(git) is not None,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def about_git(top: Path) -> str:
    """Return for a dry run where programs in the sandbox work with git; empty without it."""
    if not os.path.lexists(top / ".git"):
        return ""
    reason = why_shared(top)
    if not reason:
        return "programs have a git folder of their own, and rooda takes their commits over"
    return f"programs work in .git itself, in which settings and hooks are read-only: {reason}"


class PrivateGit:
    """The agent's git folder for one run."""

    def __init__(
        self, repository: Repository, state: StateFolder, tools: Tools, inside: Inside
    ) -> None:
        self._repository = repository
        self._user = repository.git_dir
        self._state = state
        self._place: Path = state / AGENT_GIT
        self._import = GitImport(repository, tools, inside)
        self._base = GitState("", "", {})
        self._user_marks: Marks = frozenset()
        self._marks: Marks = frozenset()
        self._is_settling = False
        self._full_disk = ""  # the error of a disk that had no room for the agent's commits
        self._notices: list[GitNotice] = []
        self._reported = ""  # the unfinished operation

    @property
    def folder(self) -> Path:
        """The folder that programs see as `.git`."""
        return self._place / AGENT_GIT_NOW / _GIT

    def prepare(self) -> None:
        """Take over what a killed run has left, and make the folder. Raises SandboxError."""
        make_private(self._state, AGENT_GIT)
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            text = Beneath(self._place).read(f"{AGENT_GIT_NOW}/{AGENT_GIT_BASE}", None)
            self._base = msgspec.json.decode(text, type=GitState)
            self._finish()
        if self._full_disk:
            reason = f"rooda can't take over the commits of an earlier run: {self._full_disk}"
            raise SandboxError(reason, "Free some disk space")
        if self._marks_have_changed():
            self._refuse("rooda could not read the git folder of an earlier run in time")
        else:
            self._make()

    def close(self) -> None:
        """Take over the rest, and delete the folder; what rooda has no time for waits in it."""
        self._finish()
        if not self._marks_have_changed():
            with contextlib.suppress(OSError):
                Beneath(self._place).remove(AGENT_GIT_NOW)

    def _finish(self) -> None:
        """Take over the rest; the commits of an unfinished rebase get a name of their own."""
        self.settle()
        if self.unfinished and not self._marks_have_changed():
            with self._settling():
                self._settle(gives_up=True)

    def take_notices(self) -> list[GitNotice]:
        """Return what to report since the last call."""
        found, self._notices = self._notices, []
        return found

    @property
    def unfinished(self) -> str:
        """Which operation the agent has left unfinished, in words; empty if there is none."""
        return unfinished(self.folder) or ""

    # --- before a program

    def show(self, mounts: Mounts, tree: ProtectedMounts, index: str = "") -> None:
        """Mount the folder as `.git`. Raises SandboxError.

        A program that uses another `index` than the usual one gets a copy of it.
        """
        if not self._is_settling:
            self.settle()
            self._renew()
            if index:
                _delete(Beneath(self.folder), index)
                _copy(Beneath(self._user), index, Beneath(self.folder), index)
        self._reset()
        git = self._user
        mounts.writable(self.folder, git)
        mounts.read_only(git / "objects", git / _OBJECTS)
        if tree.exists(git / "objects/info"):
            mounts.hide(git / _OBJECTS / "info")  # it may name other objects by relative paths
        for name in _READ_ONLY:
            if tree.exists(git / name):
                mounts.read_only(git / name)
            else:
                mounts.hide(git / name)
        for place in self._other_objects:
            mounts.read_only(place)

    @property
    def _other_objects(self) -> list[Path]:
        """The folders of other repositories that the user's repository borrows objects from."""
        found = alternates_of([self._repository.objects])
        return [one for one in found if has_objects(one)]

    def _renew(self) -> None:
        """Make the folder again if the user has changed the repository, or the agent broke it."""
        is_new = _marks(self._user) != self._user_marks
        is_old = is_new and not (self.unfinished or self._marks_have_changed())
        try:
            self._reset()
        except OSError:
            is_old = True
        if is_old:
            self._make()

    def _reset(self) -> None:
        """Write the files again that decide what git runs. Raises OSError."""
        door = Beneath(self.folder)
        for name in _EMPTY:
            with door.folder(name, make=True):
                pass
        for name in _SETTINGS:
            _put(door, name, _read(self._user, name))
        objects = [self._user / _OBJECTS, *self._other_objects]
        _put(door, "objects/info/alternates", b"".join(os.fsencode(one) + b"\n" for one in objects))
        for name in _FOREIGN:
            _put(door, name, b"")

    def _make(self) -> None:
        """Make the folder from the user's repository as it is now. Raises SandboxError."""
        before = self._user_marks, self._base
        try:
            self._user_marks = _marks(self._user)
            self._base = self._import.user()
            self._build()
            self._reset()
            self._marks = _marks(self.folder)
        except (OSError, GitError) as error:
            self._user_marks, self._base = before
            text = f"rooda can't make a git folder for the agent: {error}"
            raise SandboxError(text, "Check that `git status` works here") from None

    def _build(self) -> None:
        """Copy the user's files without following a link: an archive can bring a forged `.git`."""
        door, user = Beneath(self._place), Beneath(self._user)
        _delete(door, _NEXT)
        for name in (*_EMPTY, "logs/refs"):
            with door.folder(f"{_NEXT}/{_GIT}/{name}", make=True):
                pass
        shared = (one.name for one in user.scan() if one.name.startswith(_SHARED_INDEX))
        for name in (*_COPIED, *shared):
            _copy(user, name, door, f"{_NEXT}/{_GIT}/{name}")
        _copy(user, "index", door, f"{_NEXT}/{_INDEX}")
        for name, text in files_of_refs(self._base):
            door.write_new(f"{_NEXT}/{_GIT}/{name}", BytesIO(text.encode()), 0o600)
        self._write_base(_NEXT)
        _delete(door, AGENT_GIT_NOW)
        (self._place / _NEXT).rename(self._place / AGENT_GIT_NOW)

    def _write_base(self, folder: str) -> None:
        door = Beneath(self._place)
        _put(door, f"{folder}/part", msgspec.json.encode(self._base))
        (self._place / folder / "part").rename(self._place / folder / AGENT_GIT_BASE)

    # --- after a program

    def settle(self, index: str = "") -> None:
        """Take over what the agent did with git since the last time.

        A command that used another `index` than the usual one changes only that one.
        """
        if self._is_settling or not (index or self._marks_have_changed()):
            return
        with self._settling():
            if index:
                self._settle_other(index)
            else:
                self._settle()

    @contextlib.contextmanager
    def _settling(self) -> Iterator[None]:
        self._is_settling, self._full_disk = True, ""
        try:
            yield
        except (ImportStoppedError, GitStoppedError):
            pass  # later, or at the start of the next run
        except (ImportRefusedError, GitError, OSError) as error:
            if _is_full_disk(error):
                self._full_disk = str(error)  # later, as above
            else:
                self._refuse(str(error))
        finally:
            self._is_settling = False

    def _settle(self, *, gives_up: bool = False) -> None:
        marks = _marks(self.folder)
        _check_files(self.folder)
        self._take_over(self._import.report(), gives_up=gives_up)
        self._marks = marks

    def _settle_other(self, index: str) -> None:
        path = self._user / index
        reported = self._import.report(str(path))
        self._import.take_objects(reported.state, self._import.user(), self._place, str(path))
        now = self._import.index(path)
        self._import.take_index(path, now, reported.index, now)
        _delete(Beneath(self.folder), index)

    def _take_over(self, reported: Reported, *, gives_up: bool) -> None:
        agent, user = reported.state, self._import.user()
        operation = self.unfinished
        self._import.take_objects(agent, user, self._place)
        choose = moves_that_keep if gives_up else moves_beside_head if operation else moves
        found = choose(self._base, agent, user)
        if found.checked_out is not None and not self._import.allows(found.checked_out):
            found = moves_that_keep(self._base, agent, user)
        if operation and operation != self._reported:
            self._notices.append(GitNotice(unfinished=operation))
        self._reported = operation
        if found.takes_index:
            self._take_index(reported.index)
        kept = self._import.apply(found)
        if kept:
            self._notices.append(GitNotice(kept=kept_names(kept)))
        if not operation:
            self._note(agent)

    def _take_index(self, agent: bytes) -> None:
        path, copy = self._repository.index, self._place / AGENT_GIT_NOW / _INDEX
        base = self._import.index(copy)
        self._import.take_index(path, base, agent, self._import.index(path))

    def _note(self, agent: GitState) -> None:
        """Note where both stand now. If that differs, the folder is made again."""
        user = self._import.user()
        is_same = (user.head, user.commit, user.refs) == (agent.head, agent.commit, agent.refs)
        self._base = user
        door = Beneath(self._place)
        _delete(door, f"{AGENT_GIT_NOW}/{_INDEX}")
        _copy(Beneath(self._user), "index", door, f"{AGENT_GIT_NOW}/{_INDEX}")
        self._write_base(AGENT_GIT_NOW)
        self._user_marks = _marks(self._user) if is_same else frozenset()

    def _refuse(self, reason: str) -> None:
        """Move the folder aside, and give the agent a new one."""
        with contextlib.suppress(OSError):
            _delete(Beneath(self._place), _REFUSED)
            (self._place / AGENT_GIT_NOW).rename(self._place / _REFUSED)
        self._notices.append(GitNotice(refused=reason, folder=str(self._place / _REFUSED / _GIT)))
        with contextlib.suppress(SandboxError):  # else the next program can't start
            self._make()

    def _marks_have_changed(self) -> bool:
        return _marks(self.folder) != self._marks


def _is_full_disk(error: Exception) -> bool:
    """Return whether there was no room; git says so in words."""
    full = (errno.ENOSPC, errno.EDQUOT)
    words = any(os.strerror(one) in str(error) for one in full)
    return words or (isinstance(error, OSError) and error.errno in full)


def _marks(git: Path) -> Marks:
    """Return marks that change with HEAD, the index, the settings and the refs of the agent."""
    door = Beneath(git)
    found: set[tuple[object, ...]] = set()
    for name in _WATCHED:
        with contextlib.suppress(OSError):
            found.add(_mark(name, door.status(name)))
    with contextlib.suppress(OSError):
        for listing in Beneath(git / "refs").walk():
            if not listing.path:
                listing.enter = [one for one in listing.enter if one != "rooda"]
            for name, status in listing.entries:
                found.add(_mark(listing.name(name), status))
            if len(found) > _MOST_MARKS:
                break
    return frozenset(found)


def _check_files(git: Path) -> None:
    """Raise ImportRefusedError for a pipe or a link in the place of a file that git reads."""
    door = Beneath(git)
    found = []
    for name in _WATCHED:
        with contextlib.suppress(FileNotFoundError):
            found.append((name, door.status(name)))
    try:
        for listing in Beneath(git / "refs").walk():
            found += [(f"refs/{listing.name(name)}", status) for name, status in listing.entries]
    except OSError:
        raise ImportRefusedError(DAMAGED) from None
    for name, status in found:
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            raise ImportRefusedError(f"the agent put a link or a pipe in the place of .git/{name}")


def _mark(name: str, status: os.stat_result) -> tuple[object, ...]:
    if name == "rooda":
        return (name,)
    return (name, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _put(door: Beneath, name: str, content: bytes) -> None:
    """Write a file, unless it has this content already; without content there is none."""
    with contextlib.suppress(OSError):
        if content and door.read(name, len(content) + 1) == content:
            return
    _delete(door, name)
    if content:
        door.write_new(name, BytesIO(content), 0o600)


def _copy(source: Beneath, name: str, target: Beneath, new: str) -> None:
    """Copy a regular file, if it exists."""
    with contextlib.suppress(FileNotFoundError), source.open(name) as file:
        target.write_new(new, file, 0o600)


def _delete(door: Beneath, name: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        door.remove(name)


def _read(folder: Path, name: str) -> bytes:
    try:
        return Beneath(folder).read(name, _LARGEST)
    except OSError:
        return b""


def _has_files(folder: Path, name: str) -> bool:
    try:
        return bool(Beneath(folder).list(name))
    except OSError:
        return False


def _uses_lfs(top: Path) -> bool:
    return b"filter=lfs" in _read(top, ".gitattributes")
