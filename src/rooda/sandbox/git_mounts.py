"""What a sandbox lets programs do with git: commit and branch, but not change what git executes.

Read-only are the files that name programs or other places: config, hooks, info, alternates, the
settings of submodules, the folders of other work trees. An agent can read the objects that a
repository borrows from another one.
"""

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from rooda.sandbox.mounts import Mounts, ProtectedMounts
from rooda.sandbox.sandbox_plan import SandboxError
from rooda.text.paths import is_folder
from rooda.text.plain_files import read_plain_file
from rooda.workspace.snapshots.repository import Repository

_FOLDERS = ("hooks", "info", "objects", "objects/info", "modules", "worktrees")
_READ_ONLY = ("config", "config.worktree", "hooks", "info", "objects/info", "commondir")
# In the folder that all work trees share, only these can be written from a linked work tree.
_SHARED = ("objects", "refs", "logs")
# What rooda keeps in the folder that all work trees share: the database of a fleet, its records.
_DATABASE, _RECORDS = "rooda", "refs/rooda/fleet"
_OF_LINKED_TREE = ("commondir", "gitdir", "config.worktree", "hooks", "info")
_COMMONDIR, _ITSELF = "commondir", b".\n"
_LARGEST = 256 * 1024  # bytes of a config file, and of a list of alternates
_MOST_MODULES = 300
_DEEPEST = 5  # alternates of alternates; git's own limit
_WORKTREE = re.compile(r"^\s*worktree\s*=\s*(.+?)\s*$", re.MULTILINE)


class GitMounts:
    """The git folders of one repository."""

    def __init__(self, repository: Repository) -> None:
        self._top = repository.top
        self._git = repository.git_dir
        self._common = repository.common
        self._made: set[Path] = set()  # files `commondir` that rooda has made
        self._place: Path | None = None  # the empty folder that rooda has made for a mount

    @property
    def _is_linked(self) -> bool:
        """Whether the work tree is a linked one (`git worktree add`)."""
        return self._git != self._common

    def prepare(self) -> None:
        """Make what a mount needs. Raises SandboxError.

        Git reads `commondir` in every git folder: an agent could name another repository there. A
        file that names the folder itself, and that can't be changed, changes nothing.
        """
        for folder in self._own_folders():
            _check_folder(folder)
            for name in _FOLDERS:
                _check_folder(folder / name, make=True)
            if b"worktreeconfig" in _read(folder / "config").lower():
                with contextlib.suppress(FileExistsError):
                    (folder / "config.worktree").touch(exist_ok=False)
            self._make_commondir(folder / _COMMONDIR)
        if not self._is_linked:
            self._make_place(self._common / _DATABASE)

    def tidy(self) -> None:
        """Delete the files that only the sandbox needs."""
        for path in self._made:
            if _read(path) == _ITSELF:
                with contextlib.suppress(OSError):
                    path.unlink()
        self._made.clear()
        if self._place is not None:
            with contextlib.suppress(OSError):  # meanwhile the user has made a fleet
                self._place.rmdir()

    def _make_place(self, folder: Path) -> None:
        """Make the folder of a fleet's database: else a program could make it, with a database."""
        if not os.path.lexists(folder):
            folder.mkdir(mode=0o700)
            self._place = folder
        _check_folder(folder)

    def _make_commondir(self, path: Path) -> None:
        if os.path.lexists(path) and _read(path) != _ITSELF:  # rooda was killed, if it is the same
            raise SandboxError(
                f"{path} makes git use another folder as its own",
                "Look at this file, and delete it if you did not make it",
            )
        if path not in self._made:
            path.write_bytes(_ITSELF)
            self._made.add(path)

    def show(self, mounts: Mounts, tree: ProtectedMounts) -> None:
        """Mount the repository over the work tree. Raises SandboxError."""
        self.prepare()  # there may be new submodules
        if self._is_linked:
            self._show_linked(mounts)
        for folder in self._own_folders():
            within = tree
            if not folder.is_relative_to(tree.top):
                within = ProtectedMounts(folder, mounts)
                mounts.writable(folder)
            self._show_folder(folder, within)
            if folder == self._common:
                self._hide_fleet(within)
        pointers = [self._top / ".git", *self._pointers()]
        for pointer in pointers:
            if pointer.is_relative_to(tree.top) and not pointer.is_dir():
                tree.protect(pointer)
        for place in self._alternates():
            if not place.is_relative_to(tree.top) and is_folder(place):
                mounts.read_only(place)

    def _show_linked(self, mounts: Mounts) -> None:
        """Show the shared folder read-only: the main work tree and other runs use it as well."""
        _check_folder(self._common)
        mounts.read_only(self._common)
        for name in _SHARED:
            _check_folder(self._common / name, make=True)
            mounts.writable(self._common / name)
        _check_folder(self._common / "objects" / "info", make=True)
        mounts.read_only(self._common / "objects" / "info")
        self._hide_fleet(ProtectedMounts(self._common, mounts))
        mounts.writable(self._git)
        within = ProtectedMounts(self._git, mounts)
        for name in _OF_LINKED_TREE:
            within.protect(self._git / name)

    def _hide_fleet(self, within: ProtectedMounts) -> None:
        """Hide the database, which decides which commands workers run; protect the records."""
        within.hide(self._common / _DATABASE)
        within.protect(self._common / _RECORDS)

    def _show_folder(self, folder: Path, within: ProtectedMounts) -> None:
        within.open(folder)
        within.open(folder / "objects")
        for name in _READ_ONLY:
            within.protect(folder / name)
        within.open(folder / "modules")
        within.open(folder / "worktrees")
        for other in sorted((folder / "worktrees").iterdir()):
            within.protect(other)

    def _own_folders(self) -> list[Path]:
        """Return the git folders that belong to this work tree alone, submodules included."""
        modules = _modules(self._git / "modules", _MOST_MODULES)
        return modules if self._is_linked else [self._git, *modules]

    def _pointers(self) -> Iterator[Path]:
        """Yield the files `.git` of the submodules' work trees."""
        for folder in self._own_folders():
            match = _WORKTREE.search(_read(folder / "config").decode("utf-8", "replace"))
            if match is not None and folder != self._git:
                yield Path(os.path.normpath(folder / match[1].strip('"'))) / ".git"

    def _alternates(self) -> list[Path]:
        """Return the folders of objects that the repositories borrow from."""
        found: list[Path] = []
        folders = [self._common, *self._own_folders()]
        waiting = [(folder / "objects", 0) for folder in folders]
        while waiting:
            objects, depth = waiting.pop()
            for line in _read(objects / "info" / "alternates").splitlines():
                text = os.fsdecode(line).strip()
                if not text or text.startswith("#"):
                    continue
                place = Path(os.path.realpath(objects / text))
                if place not in found and depth < _DEEPEST:
                    found.append(place)
                    waiting.append((place, depth + 1))
        return found


def _modules(folder: Path, most: int) -> list[Path]:
    """Return the git folders of submodules, also of nested ones and of names with a slash."""
    found: list[Path] = []
    waiting = [folder]
    while waiting and len(found) < most:
        for entry in sorted(_folders(waiting.pop())):
            if (entry / "HEAD").is_file():
                found.append(entry)
                waiting.append(entry / "modules")
            else:
                waiting.append(entry)
    return found


def _folders(folder: Path) -> list[Path]:
    try:
        return [Path(one.path) for one in os.scandir(folder) if one.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _check_folder(path: Path, *, make: bool = False) -> None:
    """Raise SandboxError unless there is a folder, and no link, at the path."""
    if make:
        with contextlib.suppress(FileExistsError):
            path.mkdir()
    if path.is_symlink() or not path.is_dir():
        raise SandboxError(
            f"{path} is no plain folder, so the sandbox can't protect it",
            "Put the folder itself there instead of a link",
        )


def _read(path: Path) -> bytes:
    try:
        return read_plain_file(path, _LARGEST)
    except OSError:
        return b""
