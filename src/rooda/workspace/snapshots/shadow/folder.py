"""Rooda's own git folder for the user's work tree: `.rooda/git`, with an index of its own.

Its objects are the user's, and all else is ours: the user's index, branch and stash are never
touched, and no lock of the user's is ever taken. No filter takes part: a blob is exactly what is
on disk. It may be lost at any time: an agent can write here, and then it is made anew.
"""

import contextlib
import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from rooda.workspace.git import Git, GitError, GitStoppedError
from rooda.workspace.snapshots.index import copy_index, read_index
from rooda.workspace.snapshots.repository import Repository
from rooda.workspace.snapshots.shadow.conversions import may_be_converted
from rooda.workspace.state import STATE_FOLDER, make_state_folder, read_plain_file
from rooda.workspace.tools import Tools

_FOLDERS: Mapping[str, frozenset[str]] = {
    "": frozenset({"HEAD", "config", "index", "info", "refs"}),
    "info": frozenset({"attributes", "exclude"}),
    "refs": frozenset(),
}
_NOWHERE = "ref: refs/heads/none"
# Stands above every `.gitattributes`, so that what is kept and brought back are the exact bytes.
_ATTRIBUTES = b"* -text -filter -ident -working-tree-encoding -eol\n"
_EXCLUDE = f"\n{STATE_FOLDER}/\n".encode()
_MOST_RULES = 1024 * 1024
_SETTINGS: Mapping[str, str] = {
    "core.bare": "false",
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.attributesFile": os.devnull,
    "core.ignoreStat": "false",
    "core.trustctime": "true",
    "core.checkStat": "default",
    "core.protectNTFS": "false",  # any name that can be on disk may be in a snapshot
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
# What tells one file from another, and from itself at another time.
Mark = tuple[int, ...]
_LOST: Mark = ()  # the index is of no use


def mark(found: os.stat_result) -> Mark:
    """Changes whenever the file does: nobody can set back the time of the inode."""
    return (found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def mark_of(path: Path) -> Mark | None:
    """The mark of a file by its name; None if there is none."""
    try:
        return mark(path.lstat())
    except OSError:
        return None


class Shadow:
    """The folder and the git that works with it. We hold the run's lock, so nobody else does."""

    def __init__(
        self,
        repository: Repository,
        state: Path,
        tools: Tools,
        own: Sequence[str] = (),
    ) -> None:
        """`own` are patterns, from the top, of files that are rooda's and not the agent's."""
        if repository.object_format not in _CONFIG:
            raise GitError(f"objects are named by {repository.object_format}, which is not known")
        if state.name != STATE_FOLDER:
            raise ValueError(f"{state} is not called {STATE_FOLDER}")
        self._repository = repository
        self._workspace = state.parent
        self._own = b"".join(os.fsencode(f"/{pattern}\n") for pattern in own)
        self._folder = state / "git"
        self._index = self._folder / "index"
        self._left_as: Mark | None = None
        self.rules = b""  # of the user, about what to ignore
        place = {
            "GIT_DIR": str(self._folder),
            "GIT_WORK_TREE": str(repository.top),
            "GIT_OBJECT_DIRECTORY": str(repository.objects),
            "GIT_OPTIONAL_LOCKS": "1",
        }
        self._settings = repository.settings()
        self.git = Git(repository.top, tools, place, {**self._settings, **_SETTINGS})
        self._environ = tools.environ

    def prepare(self, head: str | None) -> list[str] | None:
        """Make it what it should be; the names in the index, unless that is as we left it."""
        try:
            self._tidy(head)
            left_as, self._left_as = self._left_as, _LOST  # unless all goes well
            if left_as is not None and left_as == mark_of(self._index):
                return None
            if left_as is not None or not self._is_of_use():
                self._renew()
            return self._names()
        except (OSError, RecursionError) as error:
            raise GitError(f"{self._folder}: {error}") from None

    def leave(self) -> None:
        """Remember the index as it is, so that nobody else can change it unseen."""
        self._left_as = mark_of(self._index)

    def trust(self) -> None:
        """The index is good, and its names are to be learned."""
        self._left_as = None

    def discard(self) -> None:
        """The index is of no use: the next time it is made anew."""
        self._left_as = _LOST

    def unlock(self) -> None:
        """Take away the lock of a git that was killed."""
        with contextlib.suppress(OSError):
            (self._folder / "index.lock").unlink(missing_ok=True)

    def _tidy(self, head: str | None) -> None:
        make_state_folder(self._workspace)
        for name, known in _FOLDERS.items():
            folder = self._folder / name
            if folder.is_symlink() or not folder.is_dir():
                _clear(folder)
                folder.mkdir(mode=0o700)
            for unknown in {*os.listdir(folder)} - known:  # noqa: PTH208 - names are all we need
                _clear(folder / unknown)
        self.rules = _read(self._repository.common / "info" / "exclude", _MOST_RULES)
        self._keep("HEAD", f"{head or _NOWHERE}\n".encode())
        self._keep("config", _CONFIG[self._repository.object_format])
        self._keep("info/attributes", _ATTRIBUTES)
        self._keep("info/exclude", self.rules + _EXCLUDE + self._own)

    def _is_of_use(self) -> bool:
        """Whether it is an index that git has written, and is not elsewhere."""
        is_link = self._index.is_symlink()
        return not is_link and read_index(self._index, self._repository.object_format) is not None

    def _keep(self, name: str, content: bytes) -> None:
        """See to it that a file has this content and is nothing but a file."""
        path = self._folder / name
        with contextlib.suppress(OSError):
            if read_plain_file(path, len(content) + 1) == content:
                return
        _clear(path)
        path.write_bytes(content)

    def _renew(self) -> None:
        """A new index: the user's, if that tells what is on disk: then no file has to be read.

        Else there is none, and to the next look every file is new.
        """
        _clear(self._index)
        user = self._repository
        if not may_be_converted(user.names(), user, self._settings, self._environ):
            copy_index(user.index, self._index, user.object_format)

    def _names(self) -> list[str]:
        """What is in the index, which is without marks then that keep git from looking at a file.

        One that git can't read, because it is split or worse, is as good as none.
        """
        try:
            entries = os.fsdecode(self.git("ls-files", "-z", "-v")).split("\0")[:-1]
        except GitStoppedError:
            raise
        except GitError:
            _clear(self._index)
            return []
        unwatched = [entry[2:] for entry in entries if entry[0].islower()]
        skipped = [entry[2:] for entry in entries if entry[0] in "Ss"]
        for kind, names in (("assume-unchanged", unwatched), ("skip-worktree", skipped)):
            if names:
                self.git("update-index", f"--no-{kind}", "-z", "--stdin", given=listed(names))
        return [entry[2:] for entry in entries]


def listed(names: Iterable[str]) -> bytes:
    """Names as git takes them from its standard input."""
    return b"".join(os.fsencode(name) + b"\0" for name in names)


def _clear(path: Path) -> None:
    """Take away whatever is there, and nothing that it points to."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _read(path: Path, most: int) -> bytes:
    """The user's file, which may well be a link; nothing if it is no file."""
    try:
        return read_plain_file(path.resolve(), most)
    except (OSError, RuntimeError):  # the latter for links that go in circles
        return b""
