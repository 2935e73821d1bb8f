"""rooda's own git folder for a work tree: `.rooda/git`, with an index of its own.

It uses the objects of the user's repository; everything else is separate. rooda never touches the
user's index, branch and stash, and never takes a lock in the user's repository. Git applies no
filter: a blob contains exactly the bytes on disk. An agent can write to this folder, so rooda
checks it before each use and rebuilds what is damaged. An index says which files git need not
read, so rooda uses only the one that this process has written.

Where the user has no repository, the folder also contains the trees of the scans, but no blobs.
"""

import contextlib
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rooda.text.plain_files import read_plain_file
from rooda.workspace.git import Git, GitError, GitStoppedError
from rooda.workspace.old_record import OLD_FOLDER
from rooda.workspace.snapshots.repository import Repository
from rooda.workspace.state_folder import StateFolder, make_state_folder
from rooda.workspace.tools import Tools

_FOLDERS: Mapping[str, frozenset[str]] = {
    "": frozenset({"HEAD", "config", "index", "info", "refs"}),
    "info": frozenset({"attributes", "exclude"}),
    "refs": frozenset(),
}
_OBJECT_FOLDERS = frozenset(f"{number:02x}" for number in range(256))
_NO_BRANCH = "ref: refs/heads/none"
# These rules override every `.gitattributes`, so that git stores and restores the exact bytes.
_ATTRIBUTES = b"* -text -filter -ident -working-tree-encoding -eol\n"
_EXCLUDE = f"\n{OLD_FOLDER}/\n".encode()
_MOST_RULES = 1024 * 1024
_SETTINGS: Mapping[str, str] = {
    "core.bare": "false",
    # A snapshot describes the disk, whatever the user's repository says about these two.
    "core.fileMode": "true",
    "core.symlinks": "true",
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.attributesFile": os.devnull,
    "core.ignoreStat": "false",
    "core.trustctime": "true",
    "core.checkStat": "default",
    "core.protectNTFS": "false",  # a snapshot may contain every name that a disk may contain
    "core.untrackedCache": "false",
    "core.splitIndex": "false",
    "core.sparseCheckout": "false",
    "index.sparse": "false",
    "index.skipHash": "false",
}
_CONFIG = {
    "sha1": b"[core]\n\trepositoryformatversion = 0\n",
    "sha256": b"[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n",
}
# An index of the user's repository may contain submodules: it is of no use without the repository.
_PRIVATE_CONFIG = _CONFIG["sha1"] + b"[rooda]\n\tprivate = true\n"
# Differs between two files, and between two versions of one file.
FileMark = tuple[int, ...]
_MOST_AT_ONCE = 2 * 1024**3  # bytes that one git reads
_UNUSABLE: FileMark = ()  # in place of the mark of an index that must be rebuilt


def mark(found: os.stat_result) -> FileMark:
    """Return a mark that changes with every change of a file: no program can set the ctime."""
    return (found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def mark_of(path: Path) -> FileMark | None:
    """Return the mark of the file at a path; None if there is no file."""
    try:
        return mark(path.lstat())
    except OSError:
        return None


class ShadowRepo:
    """The folder, and the git that works with it. The caller holds the lock of the run."""

    def __init__(
        self,
        repository: Repository,
        state: StateFolder,
        tools: Tools,
        own: Sequence[str] = (),
    ) -> None:
        """`own` are patterns, relative to the top, of files that rooda writes, not the agent."""
        if repository.object_format not in _CONFIG:
            raise GitError(f"objects are named by {repository.object_format}, which is not known")
        self._repository = repository
        self._state = state
        self._own = b"".join(os.fsencode(f"/{pattern}\n") for pattern in own)
        self._folder = state / "git"
        self._index = self._folder / "index"
        self._left_as: FileMark | None = _UNUSABLE
        self._names_are_known = False
        self._is_private = repository.is_private
        self._folders = dict(_FOLDERS)
        if self._is_private:
            self._folders[""] |= {"objects"}
            self._folders["objects"] = frozenset()  # trees of an earlier process
        self.rules = b""  # the user's ignore rules in `.git/info/exclude`
        place = {
            "GIT_DIR": str(self._folder),
            "GIT_WORK_TREE": str(repository.top),
            "GIT_OBJECT_DIRECTORY": str(repository.objects),
            "GIT_OPTIONAL_LOCKS": "1",
        }
        self._settings = repository.settings()
        self.git = Git(repository.top, tools, place, {**self._settings, **_SETTINGS})

    @property
    def hides_untracked(self) -> bool:
        """Return whether the user's git does not list untracked files, as in a home under git."""
        shown = self._settings.get("status.showuntrackedfiles", "normal").lower()
        return not self._is_private and shown in ("no", "false", "off", "0")

    @property
    def rule_files(self) -> tuple[Path, ...]:
        """Return the files with ignore rules that are not in the work tree."""
        environ = self.git.environ
        config = environ.get("XDG_CONFIG_HOME") or f"{environ.get('HOME', '')}/.config"
        chosen = self._settings.get("core.excludesfile", f"{config}/git/ignore")
        if chosen.startswith("~/"):
            chosen = f"{environ.get('HOME', '')}{chosen[1:]}"
        return self._repository.common / "info" / "exclude", self._repository.top / chosen

    @property
    def is_as_left(self) -> bool:
        """Return whether the index is the one that rooda has used last."""
        return self._left_as == mark_of(self._index)

    def prepare(self, head: str | None) -> list[str] | None:
        """Repair the folder. Return the names in the index; None if they are as rooda left them.

        If rooda must rebuild the index, it has the names of `head`, and git reads every file.
        """
        try:
            self._tidy(head)
            left_as, self._left_as = self._left_as, _UNUSABLE  # until `leave` says otherwise
            if left_as != mark_of(self._index):
                return self._renew(head)
            return None if self._names_are_known else self._names()
        except (OSError, RecursionError) as error:
            raise GitError(f"{self._folder}: {error}") from None

    def leave(self) -> None:
        """Remember the index as it is, so that rooda notices when another program changes it."""
        self._left_as = mark_of(self._index)
        self._names_are_known = True

    def trust(self) -> None:
        """Keep the index as it is now, and read its names again before the next use."""
        self._left_as = mark_of(self._index)
        self._names_are_known = False

    def discard(self) -> None:
        """Rebuild the index before the next use."""
        self._left_as = _UNUSABLE

    def unlock(self) -> None:
        """Remove the lock that a killed git has left behind."""
        with contextlib.suppress(OSError):
            (self._folder / "index.lock").unlink(missing_ok=True)

    def _tidy(self, head: str | None) -> None:
        make_state_folder(self._state)
        for name, known in self._folders.items():
            folder = self._folder / name
            if folder.is_symlink() or not folder.is_dir():
                _clear(folder)
                folder.mkdir(mode=0o700)
            for unknown in {*os.listdir(folder)} - known:  # noqa: PTH208 - only names are needed
                _clear(folder / unknown)
        if self._is_private:
            self._folders["objects"] = _OBJECT_FOLDERS
        self.rules = _read(self._repository.common / "info" / "exclude", _MOST_RULES)
        self._keep("HEAD", f"{head or _NO_BRANCH}\n".encode())
        config = _PRIVATE_CONFIG if self._is_private else _CONFIG[self._repository.object_format]
        if not self._keep("config", config):
            _clear(self._index)
        self._keep("info/attributes", _ATTRIBUTES)
        self._keep("info/exclude", self.rules + _EXCLUDE + self._own)

    def _keep(self, name: str, content: bytes) -> bool:
        """Make sure that a regular file has this content. Return whether it had it before."""
        path = self._folder / name
        with contextlib.suppress(OSError):
            if read_plain_file(path, len(content) + 1) == content:
                return True
        _clear(path)
        path.write_bytes(content)
        return False

    def _renew(self, head: str | None) -> list[str]:
        """Start with the names of a commit and without the dates of files; return the names.

        So git reads every file, but lists only those that differ from the commit. Without a
        commit, or if there is too much for one git to read, the index is empty.
        """
        _clear(self._index)
        if head is None:
            return []
        try:
            self.git("read-tree", head)
            names = self._names()
        except GitStoppedError:
            raise
        except GitError:
            names = []
        if names and self._is_readable_at_once(names):
            return names
        _clear(self._index)
        return []

    def _is_readable_at_once(self, names: Iterable[str]) -> bool:
        """Return whether one git can read all these files within its time limit."""
        left = _MOST_AT_ONCE
        for name in self.git.while_wanted(names):
            with contextlib.suppress(OSError):
                left -= os.lstat(f"{self._repository.top}/{name}").st_size
        return left >= 0

    def _names(self) -> list[str]:
        return os.fsdecode(self.git("ls-files", "-z")).split("\0")[:-1]


def listed(names: Iterable[str]) -> bytes:
    """Return names in the form in which git reads them from standard input."""
    return b"".join(os.fsencode(name) + b"\0" for name in names)


def _clear(path: Path) -> None:
    """Remove a file, a folder or a link, but not the target of a link."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _read(path: Path, most: int) -> bytes:
    """Return the start of a file of the user, which may be a link; nothing if it is no file."""
    try:
        return read_plain_file(path, most, follow=True)
    except OSError:
        return b""
