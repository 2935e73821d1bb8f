"""What changed in a folder that git doesn't look after: all of its files, looked at twice.

The content decides; a date alone is no change. But nobody has the time to read everything at every
look, so a file is read again only if its inode tells of a change. The inode's time always does, for
nobody can set it. Only if it is so recent that a later change may bear the same time, the file is
read nevertheless.

Where reading is too much (a large file, or gigabytes of small ones) or not allowed, the inode alone
decides. What a `.gitignore` hides is not looked at, nor what is neither a file nor a link. A file
that comes into sight counts as created; one that goes out of sight and is still there is not
deleted.
"""

import errno
import os
import stat
import struct
import time
from _blake2 import blake2b  # hashlib would load all of OpenSSL for it
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct, field

from rooda.workspace.ignore import IGNORE_FILE, MOST_BYTES, Ignore
from rooda.workspace.state_folder import STATE_FOLDER, read_plain_file
from rooda.workspace.tree_changes import Changes, of_marks

LARGE = 50_000_000  # bytes of one file
MOST_READ = 4_000_000_000  # bytes at one look
RECENT = 2_000_000_000  # nanoseconds; there are file systems that count in steps of two seconds

_LEFT_OUT = {b".git", os.fsencode(STATE_FOLDER)}
_CHUNK = 1024 * 1024
_INODE = struct.Struct("<5Q")  # size, time of the content, time of the inode, number, mode
_HASH = 16
_64_BITS = 2**64 - 1
_GONE = (FileNotFoundError, NotADirectoryError)


class Unfinished(Exception):  # noqa: N818 - what was found
    """There was not enough time to look at every file."""


class Folder(Struct, frozen=True):
    """The files of a folder, sorted. There may be millions of them, hence no record for each."""

    names: bytes  # with slashes between them
    inodes: bytes
    hashes: bytes
    newest: int  # of the inodes' times

    def is_like(self, other: "Folder | None") -> bool:
        """Whether there are the same files with the same content."""
        return self is other or (
            other is not None and self.names == other.names and self.hashes == other.hashes
        )

    def files(self) -> Iterator[tuple[bytes, bytes, bytes]]:
        """The name, the inode and the content's hash of every file."""
        for at, name in enumerate(self.names.split(b"/")):
            inode = self.inodes[at * _INODE.size : (at + 1) * _INODE.size]
            yield name, inode, self.hashes[at * _HASH : (at + 1) * _HASH]


class Scan(Struct, frozen=True):
    """All files at one moment. `digest` is the same whenever names, contents and modes are.

    Out of sight is what the look before has seen, and what is still there but can't be seen now.
    """

    started: int = 0
    folders: Mapping[bytes, Folder] = field(default_factory=dict)
    out_of_sight: frozenset[str] = frozenset()
    digest: str = ""


def scan(
    folder: Path,
    before: Scan | None = None,
    *,
    seconds: float = 60.0,
    is_hurried: Callable[[], bool] = lambda: False,
) -> Scan:
    """Look at every file. Raises Unfinished when time is up, or when somebody waits for us."""
    end = time.monotonic() + seconds
    started = time.time_ns()
    look = _Look(folder, before or Scan(), lambda: time.monotonic() > end or is_hurried())
    folders = look.folders()
    return Scan(started, folders, look.out_of_sight(folders), _digest(folders))


def changes(before: Scan, after: Scan) -> Changes:
    """What changed between a look and the next, which must have been told of the one before."""
    old = _differing(before.folders, after.folders)
    new = _differing(after.folders, before.folders)
    for name in after.out_of_sight:
        old.pop(name, None)
    return of_marks(old, new)


def _differing(folders: Mapping[bytes, Folder], others: Mapping[bytes, Folder]) -> dict[str, bytes]:
    """The names and hashes of the files in those folders that are not the same in both."""
    return {
        os.fsdecode(prefix + name): found
        for prefix, folder in folders.items()
        if not folder.is_like(others.get(prefix))
        for name, _, found in folder.files()
    }


def _digest(folders: Mapping[bytes, Folder]) -> str:
    whole = blake2b(digest_size=20)
    for prefix in sorted(folders):
        for part in (prefix, folders[prefix].names, folders[prefix].hashes):
            whole.update(len(part).to_bytes(8) + part)
    return whole.hexdigest()


class _Look:
    """A look at a tree, as it goes on."""

    def __init__(self, top: Path, before: Scan, is_over: Callable[[], bool]) -> None:
        self._top = os.path.realpath(os.fsencode(top)).rstrip(b"/") + b"/"
        self._before = before
        self._settled = before.started - RECENT
        self._is_over = is_over
        self._left_to_read = MOST_READ

    def folders(self) -> dict[bytes, Folder]:
        """Every folder that has files, by its path with a slash behind; the top's is empty."""
        found: dict[bytes, Folder] = {}
        waiting = [(b"", Ignore())]
        while waiting:
            prefix, ignore = waiting.pop()
            ignore = self._rules_within(prefix, ignore)
            try:
                files, below = self._list(prefix, ignore)
            except OSError:  # not for us to read
                continue
            waiting += [(prefix + name + b"/", ignore) for name in below]
            if files and (folder := self._same(prefix, files) or self._read(prefix, files)):
                found[prefix] = folder
        return found

    def out_of_sight(self, folders: Mapping[bytes, Folder]) -> frozenset[str]:
        """Files of the look before that are only hidden now, by a rule or in a locked folder."""
        before = self._before.folders
        if not before:
            return frozenset()
        lost = _differing(before, folders).keys() - _differing(folders, before).keys()
        places = {_place(name) for name in lost}
        real = {place for place in places if self._is_below_us(place)}
        return frozenset(name for name in lost if _place(name) in real and self._is_there(name))

    def _rules_within(self, prefix: bytes, ignore: Ignore) -> Ignore:
        path = Path(os.fsdecode(self._top + prefix), IGNORE_FILE)
        try:
            return ignore.within(prefix, read_plain_file(path, MOST_BYTES + 1))
        except OSError:
            return ignore

    def _list(self, prefix: bytes, ignore: Ignore) -> tuple[list[tuple[bytes, bytes]], list[bytes]]:
        """The files in a folder with their inodes, sorted; and the folders in it."""
        files: list[tuple[bytes, bytes]] = []
        folders: list[bytes] = []
        with os.scandir(self._top + prefix) as entries:
            for entry in entries:
                self._check_time()
                name = entry.name
                try:
                    is_folder = entry.is_dir(follow_symlinks=False)
                    if name in _LEFT_OUT or ignore.hides(prefix + name, is_folder=is_folder):
                        continue
                    if is_folder:
                        folders.append(name)
                    elif inode := _inode(entry.stat(follow_symlinks=False)):
                        files.append((name, inode))
                except OSError:  # it has just been deleted
                    continue
        files.sort()
        return files, folders

    def _same(self, prefix: bytes, files: list[tuple[bytes, bytes]]) -> Folder | None:
        """The very folder that is known from before, if no inode in it tells of a change."""
        known = self._before.folders.get(prefix)
        if known is None or known.newest >= self._settled:
            return None
        names, inodes = zip(*files, strict=True)
        is_same = b"/".join(names) == known.names and b"".join(inodes) == known.inodes
        return known if is_same else None

    def _read(self, prefix: bytes, files: list[tuple[bytes, bytes]]) -> Folder | None:
        """A folder whose files are read where nothing or something else is known of them."""
        old = self._before.folders.get(prefix)
        known = {(name, inode): found for name, inode, found in old.files()} if old else {}
        hashed: list[tuple[bytes, bytes, bytes]] = []
        for name, inode in files:
            found = self._trusted(inode, known.get((name, inode)))
            found = found or self._hash(self._top + prefix + name, inode)
            if found is not None:
                hashed.append((name, inode, found))
        if not hashed:
            return None
        names, inodes, hashes = zip(*hashed, strict=True)
        newest = max(map(_changed, inodes))
        return Folder(b"/".join(names), b"".join(inodes), b"".join(hashes), newest)

    def _trusted(self, inode: bytes, known: bytes | None) -> bytes | None:
        """What is known of a file with this inode, if it must still be true."""
        # What was not read before is not read now either: there is nothing to compare it with.
        is_true = _changed(inode) < self._settled or known == _hash_of(b"inode", [inode])
        return known if is_true else None

    def _hash(self, path: bytes, inode: bytes) -> bytes | None:
        """What stands for the content; None if it has just been deleted."""
        size, _, _, _, mode = _INODE.unpack(inode)
        try:
            if stat.S_ISLNK(mode):
                return _hash_of(b"link", [os.readlink(path)])  # noqa: PTH115 - it is in bytes
            if size <= min(LARGE, self._left_to_read):
                self._left_to_read -= size
                return _hash_of(
                    b"exec" if mode & stat.S_IXUSR else b"file", self._parts(path, size)
                )
        except _GONE:
            return None
        except OSError:
            pass  # not for us to read
        return _hash_of(b"inode", [inode])

    def _parts(self, path: bytes, size: int) -> Iterator[bytes]:
        """The content, but no more of it than there was: somebody may be writing to it."""
        if not size:
            return
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise OSError(errno.EINVAL, "is no longer a file")
            while size > 0 and (part := os.read(fd, min(size, _CHUNK))):
                self._check_time()
                size -= len(part)
                yield part
        finally:
            os.close(fd)

    def _is_below_us(self, folder: str) -> bool:
        """Whether it is the folder that it was; a link in its place leads somewhere else."""
        path = (self._top + os.fsencode(folder)).rstrip(b"/")
        return os.path.realpath(path) == path

    def _is_there(self, name: str) -> bool:
        self._check_time()
        try:
            return _inode(os.lstat(self._top + os.fsencode(name))) is not None
        except _GONE:
            return False
        except OSError:
            return True  # nobody can tell, so nobody says that it was deleted

    def _check_time(self) -> None:
        if self._is_over():
            raise Unfinished


def _inode(found: os.stat_result) -> bytes | None:
    """What tells of a change without a look into the file; None for what is not looked at."""
    mode = found.st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
        return None
    changed, touched = found.st_ctime_ns & _64_BITS, found.st_mtime_ns & _64_BITS
    return _INODE.pack(found.st_size, touched, changed, found.st_ino, mode)


def _changed(inode: bytes) -> int:
    changed: int = _INODE.unpack(inode)[2]
    return changed


def _place(name: str) -> str:
    return name.rpartition("/")[0]


def _hash_of(kind: bytes, parts: Iterable[bytes]) -> bytes:
    found = blake2b(digest_size=_HASH, person=kind)
    for part in parts:
        found.update(part)
    return found.digest()
