"""Packs of git: rooda writes contents, trees and commits itself, without a process of git.

A pack gets its name when it is complete, and its index after that, as with git. So a killed rooda
leaves only a file whose name begins with `tmp_`, which the next one deletes.
"""

import contextlib
import hashlib
import itertools
import mmap
import os
import struct
import weakref
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, NamedTuple, Protocol

_TYPES = {"commit": 1, "tree": 2, "blob": 3}
_PLAIN_ABOVE = 1024 * 1024  # bytes of a content that rooda does not compress
_FAST = 1  # the level of zlib: `git gc` compresses better, later
_PIECE = 1024 * 1024
_MOST_BYTES = 256 * 1024 * 1024  # of one pack: an offset of an object in it has 31 bits
_MOST_OBJECTS = 50_000  # of one pack: rooda has their names in memory until it is complete
_PACK_HEAD, _INDEX_HEAD = b"PACK\0\0\0\2", b"\xfftOc\0\0\0\2"
TEMPORARY = "tmp_"


class ShorterFileError(OSError):
    """A file had fewer bytes than its size when rooda read it: a program is writing it."""


def object_id(algorithm: str, kind: str, content: bytes) -> bytes:
    """Return git's name for a content."""
    head = f"{kind} {len(content)}\0".encode()
    return hashlib.new(algorithm, head + content, usedforsecurity=False).digest()


class PackWriter:
    """Writes objects to packs. Without `finish`, the objects of the last pack are lost."""

    def __init__(self, folder: Path, algorithm: str) -> None:
        self._folder = folder
        self._algorithm = algorithm
        self._indexes: PackIndexes | None = None
        self._pack: _OpenPack | None = None

    def add(self, kind: str, content: bytes) -> bytes:
        """Add an object, unless the store has it; return its id."""
        name = object_id(self._algorithm, kind, content)
        if self._is_new(name):
            level = 0 if len(content) > _PLAIN_ABOVE else _FAST
            pack = self._place()
            pack.keep(name, pack.write(kind, len(content), [zlib.compress(content, level)]))
        return name

    def add_file(self, file: IO[bytes], size: int) -> bytes:
        """Add the first `size` bytes of a file; return their id. Raises ShorterFileError."""
        digest = hashlib.new(self._algorithm, f"blob {size}\0".encode(), usedforsecurity=False)
        pack = self._place()
        place = pack.write("blob", size, _compressed(_hashed(_pieces(file, size), digest)))
        name = digest.digest()
        if self._is_new(name):
            pack.keep(name, place)
        else:
            pack.cut(place)
        return name

    def has(self, name: bytes) -> bool:
        """Return whether the store has an object."""
        return not self._is_new(name)

    def finish(self) -> None:
        """Complete the pack: all objects have a place in the store now."""
        if self._pack is not None:
            pack, self._pack = self._pack, None
            with errors_name(self._folder):
                pack.finish()
            if self._indexes is not None:
                self._indexes.refresh()

    def discard(self) -> None:
        """Forget the objects of the pack that is not complete."""
        if self._pack is not None:
            self._pack.discard()
            self._pack = None
        if self._indexes is not None:
            self._indexes.close()

    def _is_new(self, name: bytes) -> bool:
        if self._pack is not None and name in self._pack.places:
            return False
        if self._indexes is None:
            self._indexes = PackIndexes(self._folder, len(name))
        return name not in self._indexes

    def _place(self) -> "_OpenPack":
        if self._pack is not None and self._pack.is_full:
            self.finish()
        self._pack = self._pack or _OpenPack(self._folder, self._algorithm)
        return self._pack


class _Place(NamedTuple):
    start: int
    checksum: int


class _OpenPack:
    """A pack that rooda is writing."""

    def __init__(self, folder: Path, algorithm: str) -> None:
        self._folder = folder
        self._algorithm = algorithm
        self._path = folder / f"{TEMPORARY}pack_{os.urandom(8).hex()}"
        self._file = _new_file(self._path)
        self._put(_PACK_HEAD + bytes(4))
        self.size = len(_PACK_HEAD) + 4
        self.places: dict[bytes, int] = {}  # checksum and offset in one number

    @property
    def is_full(self) -> bool:
        """Whether the next object belongs in another pack."""
        return self.size > _MOST_BYTES or len(self.places) >= _MOST_OBJECTS

    def write(self, kind: str, size: int, pieces: Iterable[bytes]) -> "_Place":
        """Write an object of this size, compressed in pieces. If one fails, it leaves no trace."""
        start = self.size
        head = _object_head(_TYPES[kind], size)
        checksum = 0
        try:
            for piece in itertools.chain([head], pieces):
                self._put(piece)
                checksum = zlib.crc32(piece, checksum)
                self.size += len(piece)
        except BaseException:
            self.cut(_Place(start, checksum))
            raise
        return _Place(start, checksum)

    def _put(self, piece: bytes) -> None:
        """Write some bytes; an error names the pack, and not the file that is being read."""
        try:
            self._file.write(piece)
        except OSError as error:
            error.filename = error.filename or str(self._folder)
            raise

    def keep(self, name: bytes, place: "_Place") -> None:
        """Give the object that was written last its name."""
        self.places[name] = place.checksum << 32 | place.start

    def cut(self, place: "_Place") -> None:
        """Remove the object that was written last."""
        with errors_name(self._folder):
            self._file.seek(place.start)
            self._file.truncate()
        self.size = place.start

    def finish(self) -> None:
        try:
            self._file.seek(len(_PACK_HEAD))
            self._file.write(struct.pack(">I", len(self.places)))
            self._file.flush()
            trailer = self._digest()
            self._file.seek(0, os.SEEK_END)
            self._file.write(trailer)
            _sync(self._file)
            self._file.close()
            index = self._folder / f"{TEMPORARY}idx_{os.urandom(8).hex()}"
            self._write_index(index, trailer)
            path = self._folder / f"pack-{trailer.hex()}.pack"
            self._path.chmod(0o400)
            self._path.replace(path)
            index.replace(path.with_suffix(".idx"))
        except BaseException:
            self.discard()
            raise

    def discard(self) -> None:
        with contextlib.suppress(OSError):  # what it has not written yet has no room
            self._file.close()
        self._path.unlink(missing_ok=True)

    def _digest(self) -> bytes:
        digest = hashlib.new(self._algorithm, usedforsecurity=False)
        self._file.seek(0)
        while piece := self._file.read(_PIECE):
            digest.update(piece)
        return digest.digest()

    def _write_index(self, path: Path, trailer: bytes) -> None:
        names = sorted(self.places)
        counts = [0] * 256
        for name in names:
            counts[name[0]] += 1
        total = 0
        for byte, number in enumerate(counts):
            total += number
            counts[byte] = total
        places = [self.places[name] for name in names]
        content = b"".join(
            (
                _INDEX_HEAD + struct.pack(">256I", *counts),
                b"".join(names),
                struct.pack(f">{total}I", *(place >> 32 for place in places)),
                struct.pack(f">{total}I", *(place & 0xFFFFFFFF for place in places)),
                trailer,
            )
        )
        digest = hashlib.new(self._algorithm, content, usedforsecurity=False).digest()
        with _new_file(path) as file:
            file.write(content + digest)
            _sync(file)
        path.chmod(0o400)


class PackIndexes:
    """The indexes of the packs in a folder: which objects there are."""

    def __init__(self, folder: Path, width: int) -> None:
        self._folder = folder
        self._width = width
        self._maps: dict[str, mmap.mmap] = {}
        self.close = weakref.finalize(self, _close_maps, self._maps)
        self.refresh()

    def refresh(self) -> None:
        """Read the names of the packs again."""
        with os.scandir(self._folder) as entries:
            names = {one.name for one in entries if one.name.endswith(".idx")}
        for name in names.difference(self._maps):
            if name.startswith("pack-") and (self._folder / name).with_suffix(".pack").exists():
                with (self._folder / name).open("rb") as file:
                    self._maps[name] = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def __contains__(self, name: bytes) -> bool:
        return any(self._has(table, name) for table in self._maps.values())

    def _has(self, table: mmap.mmap, name: bytes) -> bool:
        low = struct.unpack_from(">I", table, 4 + 4 * name[0])[0] if name[0] else 0
        high = struct.unpack_from(">I", table, 8 + 4 * name[0])[0]
        start, width = 8 + 4 * 256, self._width
        while low < high:
            middle = (low + high) // 2
            found = table[start + middle * width : start + (middle + 1) * width]
            if found == name:
                return True
            low, high = (middle + 1, high) if found < name else (low, middle)
        return False


def _close_maps(maps: dict[str, mmap.mmap]) -> None:
    for one in maps.values():
        one.close()
    maps.clear()


def _object_head(kind: int, size: int) -> bytes:
    """Return type and size: four bits of the size in the first byte, then seven in each."""
    byte, size = kind << 4 | size & 0x0F, size >> 4
    head = bytearray()
    while size:
        head.append(byte | 0x80)
        byte, size = size & 0x7F, size >> 7
    head.append(byte)
    return bytes(head)


def _pieces(file: IO[bytes], size: int) -> Iterator[bytes]:
    while size:
        piece = file.read(min(size, _PIECE))
        if not piece:
            raise ShorterFileError("the file got shorter while rooda read it")
        size -= len(piece)
        yield piece


class _Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...


def _hashed(pieces: Iterator[bytes], digest: _Digest) -> Iterator[bytes]:
    for piece in pieces:
        digest.update(piece)
        yield piece


def _compressed(pieces: Iterator[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(0)
    for piece in pieces:
        yield packer.compress(piece)
    yield packer.flush()


@contextlib.contextmanager
def errors_name(path: Path) -> Iterator[None]:
    """Give errors without the name of a file this one: writing to an open file names none."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def _new_file(path: Path) -> IO[bytes]:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "w+b")


def _sync(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())
