"""The private store: a bare repository beside the record, with all snapshots of one work tree.

rooda writes its packs and refs itself; git reads them, compares trees and collects garbage. No
object and no ref of a snapshot is in the user's repository.
"""

import contextlib
import json
import os
import re
import shutil
import stat
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from rooda.world.files.plain_files import read_plain_file
from rooda.world.git.git import Git, GitError, GitStoppedError
from rooda.world.git.snapshots.packs import TEMPORARY, PackWriter
from rooda.world.state.folder import SNAPSHOTS, STORE, StateFolder, make_folders
from rooda.world.tools import Tools

# What a tree of git can't store about a snapshot: it is in the message of its commit, as JSON.


_PROGRAM = 0o100  # the bit by which git tells a program from another file
GIT_MODES = {False: 0o644, True: 0o755}


class Permissions(Struct, frozen=True):
    """The permissions of files: those of most files and most programs, and the exceptions."""

    file: int = GIT_MODES[False]
    program: int = GIT_MODES[True]
    others: Mapping[str, int] = {}

    @classmethod
    def usual(cls, counts: Mapping[int, int]) -> "Permissions":
        """Return the most frequent permissions of both kinds, of which there are this many."""
        some = Counter(counts).most_common()
        file, program = (
            next((mode for mode, _ in some if is_program(mode) is kind), GIT_MODES[kind])
            for kind in (False, True)
        )
        return cls(file, program)

    def mode(self, name: str, git_mode: int) -> int:
        """Return the permissions of a file that has this mode in the tree."""
        usual = self.program if is_program(git_mode) else self.file
        return self.others.get(name, usual)


class SnapshotNotes(Struct, frozen=True):
    """Facts about a snapshot beside its tree.

    `top` is the top of the work tree. `left_out` existed and is not in the tree; `absent` did not
    exist and would be ignored.
    """

    top: str = ""
    left_out: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    permissions: Permissions = Permissions()

    def message(self, title: str) -> bytes:
        """Return the message of a commit."""
        modes = self.permissions
        told = {
            "top": self.top,
            "left_out": self.left_out,
            "absent": self.absent,
            "usual": [modes.file, modes.program],
            "modes": modes.others,
        }
        return f"{title}\n\n{json.dumps(told)}\n".encode()

    @classmethod
    def read(cls, message: str) -> "SnapshotNotes":
        """Return the notes in the message of a commit."""
        told = json.loads(message.partition("\n\n")[2])
        file, program = told["usual"]
        return cls(
            told["top"],
            tuple(told["left_out"]),
            tuple(told["absent"]),
            Permissions(file, program, told["modes"]),
        )


def is_program(mode: int) -> bool:
    """Return whether git takes a file with these permissions for a program."""
    return bool(mode & _PROGRAM)


def permissions(mode: int) -> int:
    """Return the permissions in the mode of a file, without the bits that change its user."""
    return stat.S_IMODE(mode) & 0o777


UNDO = "undo"  # in place of a run: what a restore has replaced, for every restored run
NEWEST = "refs/newest"  # the snapshot that the marks belong to
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*(?<!\.lock)")
_OBJECT = re.compile(rb"([0-9a-f]{40}|[0-9a-f]{64})\n")
_LONGEST_ID = 65
_FOLDERS = ("info", "objects/info", "objects/pack", "refs")
_HEAD = b"ref: refs/heads/none\n"
_CONFIG = {
    "sha1": b"[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
    "sha256": b"[core]\n\trepositoryformatversion = 1\n\tbare = true\n"
    b"[extensions]\n\tobjectFormat = sha256\n",
}
_SETTINGS: Mapping[str, str] = {
    "core.attributesFile": os.devnull,
    "core.bigFileThreshold": "512m",
    "core.protectNTFS": "false",  # a snapshot may contain every name that a disk may contain
    "core.protectHFS": "false",
}
# rooda writes and lists the refs as files; contents above 1 MB stay as they are in a pack.
_GC = ("-c", "gc.packRefs=false", "-c", "core.bigFileThreshold=1m", "-c", "gc.reflogExpire=now")
_MOST_PACKS = 50
_LEFTOVERS = (f"{TEMPORARY}*", ".tmp-*")


class Store:
    """The store in the state folder of a work tree. Who writes to it holds the tree's lock."""

    def __init__(self, state: StateFolder, tools: Tools) -> None:
        self._state = state
        self._folder: Path = state / STORE
        self._packs: Path = self._folder / "objects" / "pack"
        self.git = Git(self._folder, tools, {"GIT_DIR": str(self._folder)}, _SETTINGS)

    @property
    def folder(self) -> Path:
        """The bare repository."""
        return self._folder

    @property
    def algorithm(self) -> str:
        """The hash by which the store names its objects."""
        return "sha256" if self._config() == _CONFIG["sha256"] else "sha1"

    def _config(self) -> bytes:
        try:
            return read_plain_file(self._folder / "config", 4096)
        except OSError:
            return b""

    @property
    def is_sound(self) -> bool:
        """Whether git can work with the store."""
        return self._config() in _CONFIG.values() and _content(self._folder / "HEAD") == _HEAD

    def prepare(self, algorithm: str) -> None:
        """Create the store, or repair it, and delete what a killed rooda or git has left.

        `algorithm` is the hash of a new store. Raises GitError.
        """
        try:
            for name in ("", *_FOLDERS):
                make_folders(self._state, f"{STORE}/{name}".rstrip("/"))
            if self._config() not in _CONFIG.values():
                _write(self._folder / "config", _CONFIG.get(algorithm, _CONFIG["sha1"]))
            if _content(self._folder / "HEAD") != _HEAD:
                _write(self._folder / "HEAD", _HEAD)
            self._tidy()
        except OSError as error:
            raise GitError(f"{self._folder}: {error}") from None

    def _tidy(self) -> None:
        for pattern in _LEFTOVERS:
            for path in self._packs.glob(pattern):
                path.unlink(missing_ok=True)
        for folder, _, names in os.walk(self._folder / "refs"):
            for name in names:
                path = Path(folder, name)
                if name.endswith((".lock", ".tmp")) or _id_in(path) is None:
                    path.unlink(missing_ok=True)
        (self._folder / "gc.pid").unlink(missing_ok=True)

    def pack(self) -> PackWriter:
        """Return what writes new objects."""
        return PackWriter(self._packs, self.algorithm)

    def packs_mark(self) -> tuple[int, int] | None:
        """Return what differs when a pack was added or deleted."""
        try:
            found = self._packs.stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns

    def commit(self, pack: PackWriter, tree: bytes, title: str, notes: SnapshotNotes) -> str:
        """Add a commit of a tree to a pack; return its id."""
        who = f"rooda <rooda@localhost> {int(time.time())} +0000"
        head = f"tree {tree.hex()}\nauthor {who}\ncommitter {who}\n\n".encode()
        return pack.add("commit", head + notes.message(title)).hex()

    def is_whole(self, commit: str) -> bool:
        """Return whether the store has a commit with all its contents."""
        try:
            self.git("rev-list", "--objects", "--quiet", commit)
        except GitStoppedError:
            raise
        except GitError:
            return False
        return True

    def notes(self, commit: str) -> SnapshotNotes:
        """Return the notes of a snapshot. Raises GitError."""
        said = self.git.line("cat-file", "commit", commit)
        return SnapshotNotes.read(said.partition("\n\n")[2])

    def tree(self, run: str, name: str) -> str | None:
        """Return the tree of a snapshot, if there is one."""
        commit = self.snapshot(run, name)
        if commit is None:
            return None
        return self.git.ask("rev-parse", "--quiet", "--verify", f"{commit}^{{tree}}")

    # -- refs ------------------------------------------------------------------------------------

    def write(self, name: str, commit: str) -> None:
        """Point a ref to a commit. Raises OSError."""
        path = self._folder / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _write(path, f"{commit}\n".encode())

    def read(self, name: str) -> str | None:
        """Return the commit of a ref."""
        return _id_in(self._folder / name)

    def snapshot(self, run: str, name: str) -> str | None:
        """Return the commit of a snapshot, if there is one."""
        return self.read(ref(run, name))

    def names(self, run: str) -> tuple[str, ...]:
        """Return the snapshots of a run: numbers in their order, then words."""
        names = _listed(self._folder / SNAPSHOTS / run)
        return tuple(sorted(names, key=lambda name: (not name.isdecimal(), len(name), name)))

    def runs(self) -> tuple[str, ...]:
        """Return the runs that have snapshots."""
        return tuple(sorted(_listed(self._folder / SNAPSHOTS)))

    def forget(self, runs: Iterable[str]) -> None:
        """Delete the snapshots of these runs, and free their space. Raises GitError."""
        gone = [self._folder / SNAPSHOTS / run for run in runs if _WORD.fullmatch(run)]
        gone = [path for path in gone if path.is_dir()]
        for path in gone:
            shutil.rmtree(path, ignore_errors=True)
        if gone:
            self.collect()

    def forget_older(self, run: str, moment: float) -> None:
        """Delete the snapshots of a run that are older than a moment (unix time)."""
        folder = self._folder / SNAPSHOTS / run
        old = [name for name in _listed(folder) if (folder / name).stat().st_mtime < moment]
        for name in old:
            (folder / name).unlink(missing_ok=True)
        if old:
            self.collect()

    def collect(self) -> None:
        """Free the space of what no snapshot has, and join the packs. Raises GitError."""
        self.git(*_GC, "gc", "--quiet", "--prune=now")

    def collect_if_many(self) -> None:
        """Join the packs if there are many; a failure is no error: all packs stay usable."""
        with contextlib.suppress(OSError, GitError):
            if sum(name.endswith(".pack") for name in os.listdir(self._packs)) > _MOST_PACKS:  # noqa: PTH208
                self.collect()


def ref(run: str, name: str) -> str:
    """Return the ref of a snapshot. Raises GitError for words that git does not accept in a ref."""
    if _WORD.fullmatch(run) and _WORD.fullmatch(name):
        return f"{SNAPSHOTS}/{run}/{name}"
    raise GitError(f"there is no snapshot {name} of run {run}")


def _listed(folder: Path) -> Iterator[str]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        yield from (entry.name for entry in entries if _WORD.fullmatch(entry.name))


def _id_in(path: Path) -> str | None:
    content = _content(path)
    return content[:-1].decode() if _OBJECT.fullmatch(content) else None


def _content(path: Path) -> bytes:
    try:
        return read_plain_file(path, _LONGEST_ID + 1)
    except OSError:
        return b""


def _write(path: Path, content: bytes) -> None:
    """Write a file in one step; what is in its place is replaced."""
    draft = path.with_name(f"{path.name}.tmp")
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(content)
    draft.replace(path)
