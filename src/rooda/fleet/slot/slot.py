"""A slot: a folder with a clone of its own, in which one run after the other is at work.

Ignored files, such as dependencies, stay from run to run. Everything else is brought back to what
is on the remote before an iteration, whatever an agent did.
"""

import fcntl
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from rooda.fleet.remote.fence import Remote
from rooda.fleet.remote.record_commits import Record
from rooda.fleet.remote.replay import merged_base, rebase
from rooda.fleet.slot.slot_clone import SlotClone, remove_tree, update_submodules
from rooda.fleet.slot.slot_setup import (
    Setup,
    SetupFailed,
    SetupFiles,
    copy_files,
    files_to_copy,
    run_setup,
)
from rooda.fleet.slot.uncommitted import bring_back, commit_uncommitted
from rooda.world.git.git import Git, GitError
from rooda.world.git.new_files import NewSecrets
from rooda.world.process.leftovers import RunTrace, stop_leftovers
from rooda.world.state.folder import StateFolder
from rooda.world.tools import Tools

_PRIVATE = 0o700
_FIRST_PORT, _PORTS = 20000, 100  # of slot 0, and how many each slot has
_MARK = "ROODA_SLOT_FOLDER"
_LEFTOVER_GRACE = 2.0  # seconds: more than a warden needs that lost its rooda
_UNUSUAL = re.compile(r"[^A-Za-z0-9._-]+")
_REPLACED = "{} was deleted or replaced during the iteration"


class SlotGone(Exception):  # noqa: N818 - what happened
    """The folder of the slot, or its lock, is not the one that this process opened."""


class SlotChanged(Exception):  # noqa: N818 - what happened
    """The work tree, its repository or the record is not the one that rooda made for the run.

    Nothing of the iteration may be published: the files may be anybody's, or gone.
    """


class Snapshot(Struct, frozen=True):
    """The work in a slot: the commit of HEAD, and a commit of the uncommitted work, if any."""

    tip: str
    wip: str | None


def slots_root(environ: Mapping[str, str]) -> Path:
    """Return the folder of all slots of this user."""
    cache = environ.get("XDG_CACHE_HOME", "")
    home = Path(environ.get("HOME") or Path.home())
    base = Path(cache) if cache.startswith("/") else home / ".cache"
    return base / "rooda" / "fleet"


def project_folder(project: str) -> str:
    """Return the name of a project as the name of a folder; two projects never share one."""
    plain = _UNUSUAL.sub("-", project).strip(".-")[:60]
    if plain == project:
        return plain
    return f"{plain or 'project'}-{hashlib.sha256(project.encode()).hexdigest()[:8]}"


class Slot:
    """One slot, held by this process. Use `open`. One thread at a time may use it."""

    def __init__(
        self,
        folder: Path,
        number: int,
        url: str,
        tools: Tools,
        lock: int,
        checkout: Path | None = None,
        fence: Path | None = None,
    ) -> None:
        self.folder = folder
        self.number = number
        self.lock_fd = lock  # give it to a child that works here: the slot is its own until it ends
        self.work = folder / "work"
        self.record_folder = StateFolder(folder / "record")
        self.temporary = folder / "tmp"
        self.tools = tools
        self._clone = SlotClone(url, self.work, tools, checkout)
        self.remote = Remote(url, self._clone.git_dir, tools, fence=fence, get_ready=self.repair)
        self._setup = SetupFiles(folder / "setup-mark", folder / "setup.log")
        self._copied: tuple[str, ...] = ()
        self.empty_submodules: list[str] = []  # that rooda did not fetch for the run
        self._start: str | None = None
        self._made: dict[Path, int] = {}  # folders of the run, and open descriptors of them

    @classmethod
    def open(
        cls,
        root: Path,
        project: str,
        number: int,
        url: str,
        *,
        checkout: Path | None = None,
        fence: Path | None = None,
        environ: Mapping[str, str] | None = None,
        tell: Callable[[str], object] = lambda _: None,
    ) -> "Slot":
        """Return the slot, with a clone in it, when no other process has it.

        `tell` gets what this waits for. Raises Unreachable if the repository can't be cloned,
        OSError if the folder can't be made.
        """
        folder = root / project_folder(project) / str(number)
        root.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        for one in (folder.parent, folder):
            _make_folder(one)
        lock = _take_lock(folder / "lock", f"slot {number}", tell)
        try:
            tools = Tools(environ, [folder / "work"])
            slot = cls(folder, number, url, tools, lock, checkout, fence)
            for one in (slot.record_folder, slot.temporary):
                _make_folder(one)
            slot.stop_leftovers()
            slot.repair()
            slot._clone.keep_house()
        except BaseException:
            os.close(lock)
            raise
        return slot

    def close(self) -> None:
        """Let go of the slot; a child that has the lock keeps it."""
        self._forget_folders()
        os.close(self.lock_fd)

    @property
    def git(self) -> Git:
        """Git in the work tree of the slot."""
        return self._clone.git

    def environment(self) -> dict[str, str]:
        """Return the variables that keep the programs of slots apart."""
        name = _UNUSUAL.sub("-", self.folder.parent.name).lower().replace(".", "-")
        return {
            "ROODA_SLOT": str(self.number),
            "ROODA_PORT_BASE": str(_FIRST_PORT + _PORTS * self.number),
            "COMPOSE_PROJECT_NAME": f"rooda-{name}-{self.number}",
            "TMPDIR": str(self.temporary),
        }

    @property
    def mark(self) -> dict[str, str]:
        """The variable by which the processes of an iteration in this slot are found."""
        return {_MARK: str(self.folder)}

    def stop_leftovers(self) -> None:
        """Stop the processes of an iteration whose rooda was killed: they still write here."""
        trace = RunTrace(mark=f"{_MARK}={self.folder}", folder=str(self.work))
        stop_leftovers(trace, _LEFTOVER_GRACE)

    def repair(self) -> None:
        """Bring git's own folder into a known state; clone again if need be. Raises Unreachable."""
        was_there = self._clone.is_there
        self._clone.repair()
        if not was_there:
            self._note_new_clone()

    def _note_new_clone(self) -> None:
        remove_tree(self._setup.mark)
        self.remote.forget_made()

    # -- is it still the one that rooda made? ----------------------------------------------

    def _note_folders(self) -> None:
        """Note that the folders of the run are ready. Raises SlotChanged.

        A descriptor keeps each of them: a new folder can't get the same inode meanwhile.
        """
        self._forget_folders()
        for path in (self.work, self._clone.git_dir, self.record_folder):
            try:
                self._made[path] = os.open(path, os.O_DIRECTORY | os.O_NOFOLLOW)
            except OSError:
                raise SlotChanged(_REPLACED.format(path)) from None

    def _forget_folders(self) -> None:
        for fd in self._made.values():
            os.close(fd)
        self._made = {}

    def check_folder(self) -> None:
        """Raise SlotGone unless this process holds the slot that is there now."""
        if not _is_same(self.folder / "lock", self.lock_fd):
            raise SlotGone(f"{self.folder} was deleted or replaced")

    def check(self) -> None:
        """Raise SlotGone, or SlotChanged if a folder of the run was deleted or replaced."""
        self.check_folder()
        for path, fd in self._made.items():
            if not _is_same(path, fd):
                raise SlotChanged(_REPLACED.format(path))

    def check_whole(self) -> None:
        """Raise SlotGone or SlotChanged, also if git can't work with the clone any more."""
        self.check()
        if not (self._clone.is_there if self._start is None else self.is_usable):
            raise SlotChanged(f"{self._clone.git_dir} is not a repository of this run any more")

    @property
    def is_usable(self) -> bool:
        """Whether the clone works, and has the commit from which the iteration started."""
        return self._start is not None and self._clone.is_usable(self._start)

    def leave_run(self) -> None:
        """Forget the run that was here: its folders are of no interest any more."""
        self._forget_folders()
        self._start = None

    def discard(self) -> None:
        """Delete the work tree with its repository: the next `repair` clones again."""
        self.leave_run()
        remove_tree(self.work)

    def prepare(self, record: Record, base: str, run: str, own: str | None = None) -> str:
        """Reset the slot to where the run is, with its uncommitted work; return that commit.

        A new run starts at `base`. The user's `own` commit says which submodules are fetched; None:
        that is `base`. The record of the slot is empty then. From now on, `check` fails if somebody
        replaces a folder of the run. Raises Unreachable; SlotChanged; Conflict if a
        person moved the branch and the uncommitted work does not fit there; SetupFailed if a
        submodule does not come.
        """
        start = record.start or base
        self._reset_anyhow(start, run)
        for folder in (self.record_folder, self.temporary):
            remove_tree(folder)
            _make_folder(folder)
        self._note_folders()
        try:
            self.remote.ensure(own or base)
            self.empty_submodules = update_submodules(self._clone, start, own or base)
        except GitError as error:
            raise SetupFailed(f"the submodules are not there: {error}") from None
        if record.wip is not None:
            bring_back(self.git, record.wip, start)
        return start

    def _reset_anyhow(self, start: str, run: str) -> None:
        """Reset the slot to the commit from which the work starts, in a new clone if need be."""
        self._start = start
        try:
            self._reset(start, run)
        except (GitError, OSError):
            self._clone.make()  # nothing is lost: all that counts is on the remote
            self._note_new_clone()
            self.remote.fetch(run)
            self._reset(start, run)

    def _reset(self, start: str, run: str) -> None:
        self.repair()
        self.remote.ensure(start)
        kept = (f"refs/rooda/{kind}/{run}" for kind in ("new", "seen/record", "seen/branch"))
        self._clone.reset_to(start, f"rooda/{run}", kept)

    def replay(self, work: Snapshot, start: str, onto: str, run: str) -> Snapshot:
        """Put work that was published, all since `start`, on top of another commit.

        Raises Conflict, Unreachable or GitError.
        """
        self._reset_anyhow(work.tip, run)
        self._note_folders()
        for commit in (start, onto):
            self.remote.ensure(commit)
        self._start = start
        return self.rebase(work, onto, run)

    def snapshot(self, allowed_secrets: tuple[str, ...] = ()) -> Snapshot:
        """Return the work as commits, without secret files and copied files.

        If an agent broke HEAD, its work is uncommitted work on the commit where it started. Raises
        GitError; SlotGone or SlotChanged if this is not the work tree that `prepare` made.
        """
        self.check()
        try:
            found = self._snapshot(allowed_secrets)
        except (GitError, OSError):
            self.check_whole()
            raise
        self.check()  # if the folder was deleted meanwhile, git reported all files as deleted
        if self._is_emptied(found):
            raise SlotChanged(f"all files of {self.work} are gone, and no commit deleted them")
        return found

    def _is_emptied(self, work: Snapshot) -> bool:
        """Return whether uncommitted work deletes every file that the commit below it has."""
        if work.wip is None:
            return False
        listed = (self.git.line("ls-tree", "--name-only", one) for one in (work.wip, work.tip))
        now, before = listed
        return not now and bool(before)

    def _snapshot(self, allowed_secrets: tuple[str, ...]) -> Snapshot:
        if not self._clone.is_plain:  # a link may lead into the repository of the user
            raise GitError(f"{self._clone.git_dir} is not the repository of the slot any more")
        self._clone.forget_changes()
        head = self.git.ask("rev-parse", "--quiet", "--verify", "HEAD^{commit}") or self._start
        if head is None:
            raise GitError(f"{self.work} has no commit")
        if self._start is not None:  # else this is another repository, which the agent made
            self.git("rev-parse", "--quiet", "--verify", f"{self._start}^{{commit}}")
        wip = commit_uncommitted(
            self._clone,
            head,
            self.folder / "snapshot-index",
            allowed=allowed_secrets,
            left_out=self._copied,
        )
        self._clone.check(head, wip)
        return Snapshot(head, wip)

    def note_published(self, work: Snapshot) -> None:
        """Take note of work that is on the remote: a later `rebase` replays only what follows."""
        self._start = work.tip

    def committed_secrets(
        self, tip: str, allowed_secrets: tuple[str, ...] = (), since: str | None = None
    ) -> list[str]:
        """Return the names of secret files in new commits. Raises GitError.

        New are those since a commit; None: since `prepare`, or since the last publication.
        """
        start = since or self._start
        known = [] if start is None else [start]
        found = NewSecrets(self.git, allowed_secrets).committed(tip, known)
        return [one.name for one in found]

    def keep(self, work: Snapshot, run: str) -> Path:
        """Keep work that is not published in a file beside the slots; return it. Raises GitError.

        `git fetch FILE rooda/RUN` brings the commits, and `rooda/RUN-uncommitted` the rest.
        """
        folder = self.folder.parent / "kept"
        folder.mkdir(mode=_PRIVATE, exist_ok=True)
        path = folder / f"{run}-{work.tip[:12]}.bundle"
        branch = f"refs/heads/rooda/{run}"
        found = {branch: work.tip, **({f"{branch}-uncommitted": work.wip} if work.wip else {})}
        for ref, commit in found.items():
            self.git("update-ref", ref, commit)
        known = [] if self._start is None else [f"^{self._start}"]
        self.git("bundle", "create", "--quiet", str(path), *found, *known)
        return path

    def rebase(self, work: Snapshot, onto: str, run: str) -> Snapshot:
        """Put the work since `prepare` on top of another commit, which a person pushed.

        The slot has the result afterwards. Raises Conflict, and leaves the slot without uncommitted
        work then; the given snapshot has it. Raises GitError.
        """
        start = self._start or onto
        self._clone.reset_to(work.tip, f"rooda/{run}", [f"refs/rooda/seen/branch/{run}"])
        last = rebase(self.git, start, work.wip or work.tip, onto)
        tip = last if work.wip is None else self.git.line("rev-parse", f"{last}^")
        wip = None if work.wip is None else last
        self._clone.reset_to(tip, f"rooda/{run}", [f"refs/rooda/seen/branch/{run}"])
        if wip is not None:
            bring_back(self.git, wip, tip)
        self._start = onto
        return Snapshot(tip, wip)

    def merged_base(self, base: str, tips: Sequence[tuple[str, str]]) -> str:
        """Return a commit with the work of other runs: each with its name and its commit.

        Raises Conflict, TooOldGit, Unreachable or GitError.
        """
        for commit in (base, *(tip for _, tip in tips)):
            self.remote.ensure(commit)
        return merged_base(self.git, base, tips)

    def copy_from(self, checkout: Path, names: Iterable[str]) -> None:
        """Copy ignored files of the user's checkout into the slot. Raises SetupFailed."""
        found = files_to_copy(checkout, list(names), self.tools)
        copy_files(checkout, found, self.work)
        self._copied = tuple(found)

    def set_up(self, setup: Setup, tell: Callable[[str], object] = lambda _: None) -> bool:
        """Run the setup command, if it is due; return whether it ran. Raises SetupFailed."""
        environ = {**self.tools.environ, **self.environment(), **self.mark}
        return run_setup(setup, self.work, self._setup, self.tools, environ, tell)


def _make_folder(path: Path) -> None:
    """Make a private folder where there is none. rooda makes no link here, so it follows none."""
    if path.is_symlink() or not path.is_dir():
        remove_tree(path)
    path.mkdir(mode=_PRIVATE, exist_ok=True)
    path.chmod(_PRIVATE)


def _is_same(path: Path, fd: int) -> bool:
    """Return whether a path leads to the file or folder that is open, and to no link."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(fd))
    except OSError:
        return False


def _take_lock(path: Path, what: str, tell: Callable[[str], object]) -> int:
    """Return a descriptor that holds the lock. Raises OSError."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        tell(f"{what} waits for another process that still works in {path.parent}")
        fcntl.flock(fd, fcntl.LOCK_EX)
    return fd
