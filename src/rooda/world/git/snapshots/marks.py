"""What each file of a work tree looked like when rooda read it last: unchanged files stay unread.

rooda keeps this in one file between processes. The lists of a folder are joined into a few strings,
because there may be hundreds of thousands of files.
"""

import os
import stat
import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from rooda.world.files.plain_files import read_plain_file

_MARK = struct.Struct("<IQqqQ")  # mode, size, mtime, ctime, inode
MARK_SIZE = _MARK.size
_END = "\0"
_VERSION = b"rooda marks 1\n"
_COUNT = struct.Struct("<I")


def mark(found: os.stat_result) -> bytes:
    """Return a mark that changes with every change of a file: no program can set the ctime."""
    return _MARK.pack(
        found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino
    )


def unsettled(one: bytes) -> bytes:
    """Return a mark with the same mode that no file has: rooda reads the file again."""
    return one[: _COUNT.size] + bytes(MARK_SIZE - _COUNT.size)


class Seen(NamedTuple):
    """A file or link: its mark, and the id of its content; empty if it is left out."""

    mark: bytes
    content: bytes

    @property
    def mode(self) -> int:
        """The kind and the permissions of the file."""
        mode: int = _COUNT.unpack_from(self.mark)[0]
        return mode

    @property
    def git_mode(self) -> int:
        """The mode in a tree of git."""
        if stat.S_ISLNK(self.mode):
            return 0o120000
        return 0o100755 if self.mode & stat.S_IXUSR else 0o100644


class Folder(Struct):
    """The files and folders of one folder that no rule ignores, and the names that a rule ignores.

    Each name ends in a zero byte; that of a folder in a slash before it, where it is ignored.
    `contents` are ids in the order of the names, zeros for a file that is left out. `tree` is the
    id of the folder's tree; empty if no file is in it.
    """

    names: str = ""
    marks: bytes = b""
    contents: bytes = b""
    folders: str = ""
    ignored: str = ""
    tree: bytes = b""

    def files(self) -> Iterator[tuple[str, Seen]]:
        """Yield each file with its name."""
        names = split(self.names)
        width = len(self.contents) // len(names) if names else 0
        nothing = bytes(width)
        for number, name in enumerate(names):
            content = self.contents[number * width : (number + 1) * width]
            yield (
                name,
                Seen(
                    self.marks[number * MARK_SIZE : (number + 1) * MARK_SIZE],
                    b"" if content == nothing else content,
                ),
            )

    @classmethod
    def of(cls, files: Mapping[str, Seen], folders: str, ignored: str, width: int) -> "Folder":
        """Return the folder with these files; an id has `width` bytes."""
        seen = files.values()
        return cls(
            join(files),
            b"".join([one.mark for one in seen]),
            b"".join([one.content or bytes(width) for one in seen]),
            folders,
            ignored,
        )


def split(names: str) -> list[str]:
    """Return the names in a string of a `Folder`."""
    return names.split(_END)[:-1]


def join(names: Mapping[str, object] | list[str]) -> str:
    """Return names as a string of a `Folder`."""
    return "".join([f"{name}{_END}" for name in names])


class RuleFile(Struct, frozen=True):
    """A `.gitignore`: its mark and its content."""

    mark: bytes
    content: bytes


class Marks(Struct):
    """All that rooda knows of a work tree: `commit` in the store has the same files."""

    top: str = ""
    commit: str = ""
    rules: bytes = b""  # a digest of the rules that are not in the tree
    folders: dict[str, Folder] = {}
    rule_files: dict[str, RuleFile] = {}
    forced: frozenset[str] = frozenset()  # ignored names that count, because the user tracks them
    index: bytes = b""  # the mark of the user's index
    also: frozenset[str] = frozenset()  # names that counted in this scan alone; not in the file

    def save(self, path: Path) -> None:
        """Write the file; a reader sees the old one or the new one. Raises OSError."""
        draft = path.with_name(f"{path.name}.tmp")
        draft.unlink(missing_ok=True)
        checksum = 0
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(draft, flags, 0o600), "wb") as file:
            file.write(_VERSION)
            for field in self._fields():
                piece = _COUNT.pack(len(field)) + field
                checksum = zlib.crc32(piece, checksum)
                file.write(piece)
            file.write(_COUNT.pack(checksum))
        draft.replace(path)

    def _fields(self) -> Iterator[bytes]:
        yield from (os.fsencode(self.top), self.commit.encode(), self.rules, self.index)
        yield os.fsencode(join([*self.forced]))
        yield _COUNT.pack(len(self.rule_files))
        for name, rule in self.rule_files.items():
            yield from (os.fsencode(name), rule.mark, rule.content)
        for name, folder in self.folders.items():
            yield os.fsencode(name)
            yield from (os.fsencode(folder.names), folder.marks, folder.contents)
            yield from (os.fsencode(folder.folders), os.fsencode(folder.ignored), folder.tree)

    @classmethod
    def load(cls, path: Path) -> "Marks | None":
        """Return what an earlier process has kept; None if there is nothing, or it is damaged."""
        try:
            data = read_plain_file(path, None)
        except OSError:
            return None
        end = len(data) - _COUNT.size
        checksum = _COUNT.pack(zlib.crc32(memoryview(data)[len(_VERSION) : end]))
        if not data.startswith(_VERSION) or checksum != data[end:]:
            return None
        return cls._of(_read_fields(data, len(_VERSION), end))

    @classmethod
    def _of(cls, fields: Iterator[bytes]) -> "Marks":
        top, commit, rules, index, forced = (next(fields) for _ in range(5))
        found = cls(os.fsdecode(top), commit.decode(), rules, index=index)
        found.forced = frozenset(split(os.fsdecode(forced)))
        found.folders, found.rule_files = {}, {}
        for _ in range(_COUNT.unpack(next(fields))[0]):
            name = os.fsdecode(next(fields))
            found.rule_files[name] = RuleFile(next(fields), next(fields))
        for path in fields:
            names, marks, contents, folders, ignored, tree = (next(fields) for _ in range(6))
            found.folders[os.fsdecode(path)] = Folder(
                os.fsdecode(names),
                marks,
                contents,
                os.fsdecode(folders),
                os.fsdecode(ignored),
                tree,
            )
        return found


def _read_fields(data: bytes, start: int, end: int) -> Iterator[bytes]:
    while start < end:
        (size,) = _COUNT.unpack_from(data, start)
        start += _COUNT.size
        yield data[start : start + size]
        start += size
