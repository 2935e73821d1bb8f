"""The process table of Linux: /proc, read with as few system calls as possible."""

import os
import time

from rooda.world.process.tree.processes import Process, ProcessTable

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = 4096  # /proc may give out a file page by page; a piece of less than a page is its end
_PIECE = 64 * 1024
_LONGEST = 8 << 20  # no environment or command line is read further than this
_FIELDS = 20  # of /proc/PID/stat behind the name; the last one is the start time


class LinuxProcessTable(ProcessTable):
    """Reads /proc. A process that ends while it is read counts as gone."""

    def __init__(self) -> None:
        # In a container /proc may be missing, or belong to another PID namespace.
        self._is_ours = _is_ours()

    def now(self) -> float:
        """The start time that a process gets now; it is coarse, and rounded down."""
        return int(time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS)

    def all_processes(self) -> list[Process]:
        """All processes that can be seen; none where /proc can't be trusted."""
        if not self._is_ours:
            return []
        try:
            names = os.listdir("/proc")  # noqa: PTH208 - this needs only names, and speed
        except OSError:
            return []
        found = (self.find(int(name)) for name in names if name.isdigit())
        return [process for process in found if process is not None]

    def find(self, pid: int) -> Process | None:
        """One process, or None if it is gone."""
        if not self._is_ours:
            return None
        line = _read(f"/proc/{pid}/stat", _PAGE)
        # The name in parentheses may contain anything, parentheses too: split behind the last one.
        start, end = line.find(b"("), line.rfind(b")")
        fields = line[end + 1 :].split()
        if len(fields) < _FIELDS:
            return None
        return Process(
            pid=pid,
            parent=int(fields[1]),
            group=int(fields[2]),
            session=int(fields[3]),
            started=int(fields[19]),
            ended=fields[0] in (b"Z", b"X"),
            cpu=sum(map(int, fields[11:15])) / _TICKS,
            name=line[start + 1 : end].decode("utf-8", "replace"),
            halted=fields[0] == b"T",
        )

    def command_line(self, pid: int) -> list[str]:
        """The words of its command line; empty where it can't be read."""
        line = _read(f"/proc/{pid}/cmdline", 65536).decode("utf-8", "replace")
        return line.rstrip("\0").split("\0") if line.strip("\0") else []

    def has_mark(self, pid: int, mark: str) -> bool:
        """Whether `NAME=value` was in the environment that it was started with."""
        variables = _read(f"/proc/{pid}/environ", _LONGEST).split(b"\0")
        return bool(mark) and os.fsencode(mark) in variables

    def folder(self, pid: int) -> str | None:
        """Its current folder, where that can be read."""
        return _link(f"/proc/{pid}/cwd")

    def writes_to(self, pid: int, files: frozenset[tuple[int, int]]) -> bool:
        """Whether it has one of these files (device, inode) open for writing."""
        try:
            numbers = os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208 - as above
        except OSError:
            return False
        inodes = {inode for _, inode in files}
        for fd in numbers:
            # Compare the inode's number first: `stat` of a file on a dead mount never returns.
            info = _info(_read(f"/proc/{pid}/fdinfo/{fd}", _PAGE))
            if int(info.get(b"flags:", b"0"), 8) & os.O_ACCMODE == os.O_RDONLY:
                continue
            may_be = b"ino:" not in info or int(info[b"ino:"]) in inodes
            if may_be and _identity(f"/proc/{pid}/fd/{fd}") in files:
                return True
        return False


class OwnChildren:
    """The children of this process: much faster to read than a process table, and without open."""

    def __init__(self) -> None:
        pid = os.getpid()
        self._fd = -1
        if not _is_ours():
            return
        try:
            self._fd = os.open(f"/proc/{pid}/task/{pid}/children", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # a kernel without this file
            return

    @property
    def is_readable(self) -> bool:
        """Whether the system tells which children there are."""
        return self._fd >= 0

    def close(self) -> None:
        """Close the file of the system."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def pids(self) -> list[int]:
        """The children that there are now, zombies included."""
        try:
            return [int(number) for number in os.pread(self._fd, _PIECE, 0).split()]
        except OSError:
            return []


def _read(path: str, most: int) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        found = piece = os.read(fd, min(most, _PIECE))
        while piece and len(piece) % _PAGE == 0 and len(found) < most:
            piece = os.read(fd, _PIECE)
            found += piece
    except OSError:
        return b""
    finally:
        os.close(fd)
    return found


def _is_ours() -> bool:
    return _link("/proc/self") == str(os.getpid())


def _link(path: str) -> str | None:
    try:
        return os.readlink(path)  # noqa: PTH115 - a string is enough
    except OSError:
        return None


def _info(text: bytes) -> dict[bytes, bytes]:
    """The fields of a file in /proc/PID/fdinfo: `flags:`, `ino:` (new kernels) and more."""
    words = [line.split() for line in text.splitlines()]
    return {pair[0]: pair[1] for pair in words if len(pair) == 2}  # noqa: PLR2004 - a pair


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 - once for each descriptor of a process
    except OSError:
        return None
    return (found.st_dev, found.st_ino)
