"""What a sandbox lets programs do with git: commit and branch, but not change what git executes.

Read-only are the files that name programs or other places: config and what it includes, hooks,
info, alternates, the settings of submodules, the folders of other work trees. An agent can read the
objects that a repository borrows from another one.

Files of the work tree name that other repository, and the place of a repository that lies elsewhere
(`.git`, `commondir`, alternates). Others than the user may have written them: an archive brings
them, and an agent can make them in a folder without a repository. So rooda shows no folder only
because they name it.
"""

import contextlib
import os
import re
import stat
from collections.abc import Iterable, Iterator
from functools import cached_property
from io import BytesIO
from pathlib import Path

from rooda.base.paths import is_folder
from rooda.world.files.beneath import Beneath
from rooda.world.git.git import GitError
from rooda.world.git.snapshots.repository import Repository
from rooda.world.sandbox.mounts import Mounts, ProtectedMounts
from rooda.world.sandbox.sandbox_plan import SandboxError

_FOLDERS = ("hooks", "info", "objects", "objects/info", "modules", "worktrees")
_READ_ONLY = ("config", "config.worktree", "hooks", "info", "objects/info", "commondir")
# In the folder that all work trees share, only these can be written from a linked work tree.
_SHARED = ("objects", "refs", "logs")
_OF_LINKED_TREE = ("commondir", "gitdir", "config.worktree", "hooks", "info")
_COMMONDIR, _ITSELF = "commondir", b".\n"
_LARGEST = 256 * 1024  # bytes of a config file, and of a list of alternates
_MOST_MODULES = 300
_DEEPEST = 5  # alternates of alternates; git's own limit
_PATHS = (os.path.normpath, os.path.realpath)  # of a file, as it is named and without links
_WORKTREE = re.compile(r"^\s*worktree\s*=\s*(.+?)\s*$", re.MULTILINE)


class GitMounts:
    """The git folders of one repository."""

    def __init__(self, repository: Repository) -> None:
        """Raises SandboxError."""
        self._repository = repository
        self._top = repository.top
        self._git = repository.git_dir
        self._common = repository.common
        self._made: set[Path] = set()  # folders with a `commondir` that rooda has made

    @property
    def common(self) -> Path:
        """The git folder that all work trees share."""
        return self._common

    @property
    def _is_linked(self) -> bool:
        """Whether the work tree is a linked one (`git worktree add`)."""
        return self._git != self._common

    def prepare(self) -> None:
        """Make what a mount needs. Raises SandboxError.

        Git reads `commondir` in every git folder: an agent could name another repository there. A
        file that names the folder itself, and that can't be changed, changes nothing.
        """
        self._check_place()
        for folder in self._own_folders():
            _check_folder(folder)
            for name in _FOLDERS:
                _check_folder(folder, name)
            if b"worktreeconfig" in _read(folder, "config").lower():
                with contextlib.suppress(FileExistsError):
                    Beneath(folder).write_new("config.worktree", BytesIO(), 0o644)
            self._make_commondir(folder)

    def _check_place(self) -> None:
        """Raise SandboxError for a repository elsewhere that does not name this work tree."""
        top, git = self._top, self._git
        if git.is_relative_to(top) and self._common.is_relative_to(top):
            return
        if self._is_linked:
            named = git / os.fsdecode(_read(git, "gitdir")).strip()
            is_ours = git.parent == self._common / "worktrees"
            is_ours = is_ours and Path(os.path.realpath(named)) == top / ".git"
            fix = f"Run `git -C {self._common} worktree repair {top}` if it is a work tree of that"
        else:
            worktree = _worktree_of(git)
            is_ours = worktree is not None and Path(os.path.realpath(worktree)) == top
            fix = f"If it is the repository of this work tree: `git config core.worktree {top}`"
        if not is_ours:
            raise SandboxError(
                f"{top / '.git'} leads to the repository {self._common}, which does not name this "
                "work tree: an agent could read and change it",
                fix,
            )

    def tidy(self) -> None:
        """Delete the files that only the sandbox needs."""
        for folder in self._made:
            if _read(folder, _COMMONDIR) == _ITSELF:
                with contextlib.suppress(OSError):
                    Beneath(folder).remove(_COMMONDIR)
        self._made.clear()

    def _make_commondir(self, folder: Path) -> None:
        if folder in self._made and _read(folder, _COMMONDIR) == _ITSELF:
            return
        try:
            Beneath(folder).write_new(_COMMONDIR, BytesIO(_ITSELF), 0o644)
        except FileExistsError:
            if _read(folder, _COMMONDIR) != _ITSELF:  # rooda was killed, if it is the same
                raise SandboxError(
                    f"{folder / _COMMONDIR} makes git use another folder as its own",
                    "Look at this file, and delete it if you did not make it",
                ) from None
        self._made.add(folder)

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
            if within is not tree:
                self._protect_settings(within)
        pointers = [self._top / ".git", *self._pointers()]
        for pointer in pointers:
            if pointer.is_relative_to(tree.top) and not pointer.is_dir():
                tree.protect(pointer)
        self._protect_settings(tree)
        for place in self._alternates():
            if not place.is_relative_to(tree.top) and has_objects(place):
                mounts.read_only(place)

    def _show_linked(self, mounts: Mounts) -> None:
        """Show the shared folder read-only: the main work tree and other runs use it as well."""
        _check_folder(self._common)
        mounts.read_only(self._common)
        for name in _SHARED:
            _check_folder(self._common, name)
            mounts.writable(self._common / name)
        _check_folder(self._common, "objects/info")
        mounts.read_only(self._common / "objects" / "info")
        mounts.writable(self._git)
        within = ProtectedMounts(self._git, mounts)
        for name in _OF_LINKED_TREE:
            within.protect(self._git / name)

    def _protect_settings(self, tree: ProtectedMounts) -> None:
        """Protect the files in a folder in which git reads settings. Raises SandboxError."""
        for path in self._settings:
            if path.is_relative_to(tree.top) and not tree.protect(path):
                raise SandboxError(
                    f"a config file of git includes {path}, which is missing: an agent could write "
                    "settings of git there",
                    f"Make an empty file: touch {path}; or remove the entry `include.path`",
                )

    @cached_property
    def _settings(self) -> list[Path]:
        """Return the files from which git reads settings, and those that they include."""
        try:
            listed = self._repository.git("config", "--null", "--show-origin", "--list")
        except GitError as error:
            text = f"rooda could not ask git where its settings come from: {error}"
            raise SandboxError(text, "Check that `git config --list` works here") from None
        named: list[Path] = []
        fields = os.fsdecode(listed).split("\0")
        for origin, entry in zip(fields[::2], fields[1::2], strict=False):
            kind, _, name = origin.partition(":")
            file = self._top / name
            key, _, value = entry.partition("\n")
            if kind == "file":
                named.append(file)
            if value and key.startswith("include") and key.endswith(".path"):
                named.append(file.parent / os.path.expanduser(value))  # noqa: PTH111 - never fails
        return [*dict.fromkeys(Path(real(one)) for one in named for real in _PATHS)]

    def _show_folder(self, folder: Path, within: ProtectedMounts) -> None:
        within.open(folder)
        within.open(folder / "objects")
        for name in _READ_ONLY:
            within.protect(folder / name)
        within.open(folder / "modules")
        within.open(folder / "worktrees")
        for name in _folders(folder, "worktrees"):
            within.protect(folder / name)

    def _own_folders(self) -> list[Path]:
        """Return the git folders that belong to this work tree alone, submodules included."""
        modules = [self._git / name for name in _modules(self._git, _MOST_MODULES)]
        return modules if self._is_linked else [self._git, *modules]

    def _pointers(self) -> Iterator[Path]:
        """Yield the files `.git` of the submodules' work trees."""
        for folder in self._own_folders():
            worktree = _worktree_of(folder)
            if worktree is not None and folder != self._git:
                yield Path(os.path.normpath(worktree)) / ".git"

    def _alternates(self) -> list[Path]:
        folders = [self._common, *self._own_folders()]
        return alternates_of(folder / "objects" for folder in folders)


def alternates_of(folders: Iterable[Path]) -> list[Path]:
    """Return the folders of objects that repositories borrow from; `folders` are their own."""
    found: list[Path] = []
    waiting = [(objects, 0) for objects in folders]
    while waiting:
        objects, depth = waiting.pop()
        for line in _read(objects, "info/alternates").splitlines():
            text = os.fsdecode(line).strip()
            if not text or text.startswith("#"):
                continue
            place = Path(os.path.realpath(objects / text))
            if place not in found and depth < _DEEPEST:
                found.append(place)
                waiting.append((place, depth + 1))
    return found


def _worktree_of(git: Path) -> Path | None:
    """Return the work tree that the config of a repository names, if it names one."""
    match = _WORKTREE.search(_read(git, "config").decode("utf-8", "replace"))
    return None if match is None else git / match[1].strip('"')


def has_objects(folder: Path) -> bool:
    """Return whether a folder is the one in which a repository keeps its objects."""
    return folder.name == "objects" and all(map(is_folder, (folder / "pack", folder / "info")))


def _modules(git: Path, most: int) -> list[str]:
    """Return the git folders of submodules, also of nested ones and of names with a slash."""
    found: list[str] = []
    waiting = ["modules"]
    while waiting and len(found) < most:
        for name in _folders(git, waiting.pop()):
            if _has_head(git, name):
                found.append(name)
                waiting.append(f"{name}/modules")
            else:
                waiting.append(name)
    return found


def _has_head(git: Path, name: str) -> bool:
    try:
        return stat.S_ISREG(Beneath(git).status(f"{name}/HEAD").st_mode)
    except OSError:
        return False


def _folders(git: Path, name: str) -> list[str]:
    """Return the folders in a folder of git, by their names below git's own."""
    try:
        entries = [*Beneath(git).scan(name)]
    except OSError:
        return []
    return sorted(f"{name}/{one.name}" for one in entries if one.is_dir(follow_symlinks=False))


def _check_folder(git: Path, name: str = "") -> None:
    """Raise SandboxError unless there is a folder, and no link; make one that is missing."""
    try:
        with Beneath(git).folder(name, make=bool(name)):
            pass
    except OSError:
        path = git / name if name else git
        raise SandboxError(
            f"{path} is no plain folder, so the sandbox can't protect it",
            "Put the folder itself there instead of a link",
        ) from None


def _read(folder: Path, name: str) -> bytes:
    try:
        return Beneath(folder).read(name, _LARGEST)
    except OSError:
        return b""
