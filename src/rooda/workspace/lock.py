"""One run per work tree: a lock that the kernel releases, and a note about the run that holds it.

The lock is on the folder itself, so an agent that deletes `.rooda` does not remove it. The note
is for users, and for the next start: after a crash it says which processes may be left.
"""

import contextlib
import errno
import fcntl
import json
import os
import re
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from msgspec import Struct, convert
from msgspec.structs import asdict, replace

from rooda.process.leftovers import start_time
from rooda.text.plain_files import read_plain_file
from rooda.workspace.state_folder import STATE_FOLDER, new_file, remove_file
from rooda.workspace.work_tree import work_tree

_RUN = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{6}")
_NOTE, _DRAFT = "run.json", "run.new"
_LONGEST = 64 * 1024  # a note has some hundred bytes
_ROOM = 64  # bytes at the end of the note, for the numbers of the agent's process
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_SELF, _NAMESPACE = Path("/proc/self"), Path("/proc/self/ns/pid")
_LOCKS = Path("/proc/locks")
_PAUSES = (0.01, 0.03, 0.06)  # seconds: a command that asks for the lock holds it for a moment
_REFUSED = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)


class ProcessIdentity(Struct, frozen=True):
    """A process: a pid can be used again, so its start time, boot and host belong to it.

    A pid means something in its PID namespace only: a container has one of its own. The namespace
    is empty where there is none, and in what version 0.1 wrote.
    """

    pid: int
    started: float
    host: str
    boot: str
    namespace: str = ""

    @classmethod
    def own(cls) -> "ProcessIdentity":
        """The identity of this process."""
        pid = os.getpid()
        return cls(pid, start_time(pid) or 0.0, *here(), pid_namespace())

    @property
    def can_be_seen(self) -> bool:
        """Whether this process would see the other one under its pid, if it still runs."""
        is_ours = self.namespace in ("", pid_namespace()) and _proc_is_ours()
        return is_ours and (self.host, self.boot) == here()

    def is_alive(self, is_locked: Callable[[], bool]) -> bool:
        """Whether the process still runs; true for a process of another host.

        `is_locked` answers for one in another PID namespace of this host: whether the lock of its
        work tree is held. The kernel has one list of locks for all namespaces.
        """
        if self.can_be_seen:
            return start_time(self.pid) == self.started
        host, boot = here()
        if self.boot != boot or not boot:
            return self.host != host
        return is_locked()


class LockNote(Struct, frozen=True):
    """The run that holds the lock, and the processes that it has started."""

    run: str
    procedure: str
    pid: int
    started: float
    since: str
    workspace: str
    host: str = ""
    boot: str = ""
    agents: tuple[tuple[int, float], ...] = ()
    keep: tuple[str, ...] = ()
    namespace: str = ""

    @property
    def process(self) -> ProcessIdentity:
        """The process of the run."""
        return ProcessIdentity(self.pid, self.started, self.host, self.boot, self.namespace)


class LockHeldError(Exception):
    """Another run holds the lock. `note` and `pid` are about that run, if they are known."""

    def __init__(self, top: Path, note: LockNote | None, pid: int | None) -> None:
        super().__init__(str(top))
        self.top = top
        self.note = note
        self.pid = pid


def here() -> tuple[str, str]:
    """Return the name of this host, and the id of its present boot."""
    try:
        boot = _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        boot = ""
    return socket.gethostname(), boot


def pid_namespace() -> str:
    """Return the PID namespace of this process; empty where the system has none."""
    try:
        return str(_NAMESPACE.readlink())
    except OSError:
        return ""


def _proc_is_ours() -> bool:
    """Return whether `/proc` has the pids of this process's namespace; true without `/proc`."""
    try:
        return str(_SELF.readlink()) == str(os.getpid())
    except OSError:
        return True


class Lock:
    """A lock that rooda holds until `close`, or until the process ends in any way."""

    def __init__(self, folder: Path) -> None:
        """Take the lock. Raises LockHeldError, or OSError if the folder can't be locked."""
        self.top = work_tree(folder)
        self._note: LockNote | None = None
        self._file: IO[bytes] | None = None  # what the note was written to
        self._size = 0
        self._fd = os.open(self.top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _take(self._fd)
        except OSError as error:
            pid = _holder(os.fstat(self._fd))
            os.close(self._fd)
            if error.errno in _REFUSED:
                raise LockHeldError(self.top, _note_of(self.top, pid), pid) from None
            raise

    def left_behind(self) -> LockNote | None:
        """Return the note of a run that was killed since this host was booted."""
        note = read_note(self.top)
        if note is None or (note.host, note.boot) != here():
            return None
        # A copy of a work tree contains the note of the original.
        try:
            is_here = work_tree(Path(note.workspace)) == self.top
            return note if is_here or not Path(note.workspace).exists() else None
        except OSError:
            return None

    def write(self, note: LockNote) -> None:
        """Write the note. If that fails, the lock still holds."""
        self._note = note
        content = json.dumps(asdict(note)).encode()
        try:
            if self._is_there() and len(content) < self._size:
                self._overwrite(content)
            else:
                self._create(content)
        except OSError:
            with contextlib.suppress(OSError):
                remove_file(self.top, _DRAFT)

    def _is_there(self) -> bool:
        """Return whether the file of the note is the one that rooda wrote, and has its size."""
        if self._file is None:
            return False
        try:
            found = os.lstat(_path(self.top))
        except OSError:
            return False
        return found.st_size == self._size and os.path.samestat(
            found, os.fstat(self._file.fileno())
        )

    def _overwrite(self, content: bytes) -> None:
        """Write the note in place: file systems flush a new file that replaces another one.

        SIGKILL can't interrupt a write of less than a page.
        """
        if self._file is not None:
            self._file.seek(0)
            self._file.write(content.ljust(self._size - 1) + b"\n")

    def _create(self, content: bytes) -> None:
        """Write the note to a new file, and put that in the place of what is there."""
        self._forget_file()
        self._size = len(content) + _ROOM
        self._file = new_file(self.top, _DRAFT)
        fcntl.fcntl(self._file, fcntl.F_SETFL, 0)  # it was opened for appending
        self._overwrite(content)
        (self.top / STATE_FOLDER / _DRAFT).replace(_path(self.top))

    def _forget_file(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def note_agent(self, pid: int, started: float) -> None:
        """Replace the agent in the note by the one that was just started."""
        if self._note is not None:
            self.write(replace(self._note, agents=((pid, started),)))

    def close(self) -> None:
        """Release the lock, and delete the note if this run has written it."""
        if self._note is not None:
            with contextlib.suppress(OSError):
                remove_file(self.top, _NOTE)
        self._forget_file()
        os.close(self._fd)


def _take(fd: int) -> None:
    """Take the lock of an open folder. Raises OSError if another process holds it."""
    for pause in _PAUSES:
        with contextlib.suppress(BlockingIOError):
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        time.sleep(pause)
    return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_locked(top: Path) -> bool:
    """Return whether a process holds the lock of a work tree, in whatever PID namespace it is."""
    try:
        fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in _REFUSED
    finally:
        os.close(fd)
    return False


def is_locked_by(workspace: Path, run: str) -> bool:
    """Return whether the run holds the lock of its work tree, as far as its note says so."""
    top = work_tree(workspace)
    note = read_note(top)
    return (note is None or note.run == run) and is_locked(top)


def _note_of(top: Path, holder: int | None) -> LockNote | None:
    """Return the note, unless the kernel says that another process holds the lock."""
    note = read_note(top)
    return note if note is not None and _may_be_of(note, holder) and note.pid > 0 else None


def _may_be_of(note: LockNote, holder: int | None) -> bool:
    """Return whether the note may be of this process; its pid is another one elsewhere."""
    return holder in (None, note.pid) or not note.process.can_be_seen


def lock_holder(top: Path) -> tuple[int | None, LockNote | None]:
    """Return the pid of the run that holds the lock of a work tree, and its note, if known.

    An agent can write a note, but it can't change the kernel's list of locks. The pid is None for
    a run in a PID namespace that this process can't see into; then there is a note alone.
    """
    note = read_note(top)
    if not _LOCKS.exists():
        return (note.pid, note) if note is not None else (None, None)
    pid = _holder(top.stat())
    if note is None or (pid is None and (note.process.can_be_seen or not is_locked(top))):
        return pid, None
    return pid, note if _may_be_of(note, pid) else None


def read_note(top: Path) -> LockNote | None:
    """Return the note, if there is a valid one: an agent may have written anything there."""
    try:
        note = convert(json.loads(read_plain_file(_path(top), _LONGEST)), LockNote)
        is_valid = _RUN.fullmatch(note.run) and b"\0" not in os.fsencode(note.workspace)
    except (OSError, ValueError, RecursionError):
        return None
    return note if is_valid else None


def _path(top: Path) -> Path:
    return top / STATE_FOLDER / _NOTE


def _holder(found: os.stat_result) -> int | None:
    """Return the pid of the process that holds the lock, from the kernel's list (Linux)."""
    if not _proc_is_ours():
        return None
    device = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    try:
        lines = _LOCKS.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    # `1: FLOCK  ADVISORY  WRITE 4711 fd:01:131 0 EOF`
    for words in map(str.split, lines):
        if "FLOCK" in words and device in words:
            return int(words[words.index(device) - 1])
    return None
