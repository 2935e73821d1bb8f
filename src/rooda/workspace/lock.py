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
from pathlib import Path

from msgspec import Struct, convert
from msgspec.structs import asdict, replace

from rooda.process.leftovers import start_time
from rooda.text.plain_files import read_plain_file
from rooda.workspace.state_folder import STATE_FOLDER, new_file, remove_file
from rooda.workspace.work_tree import work_tree

_RUN = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{6}")
_NOTE, _DRAFT = "run.json", "run.new"
_LONGEST = 64 * 1024  # a note has some hundred bytes
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_LOCKS = Path("/proc/locks")
_REFUSED = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)


class ProcessIdentity(Struct, frozen=True):
    """A process: a pid can be used again, so its start time, boot and host belong to it."""

    pid: int
    started: float
    host: str
    boot: str

    @classmethod
    def own(cls) -> "ProcessIdentity":
        """The identity of this process."""
        pid = os.getpid()
        return cls(pid, start_time(pid) or 0.0, *here())

    @property
    def is_on_this_host(self) -> bool:
        """Whether the process runs on this machine, so that rooda can check it."""
        return self.host == here()[0]

    @property
    def is_alive(self) -> bool:
        """Whether the process still runs; true for a process of another host."""
        if not self.is_on_this_host:
            return True
        return self.boot == here()[1] and start_time(self.pid) == self.started


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

    @property
    def process(self) -> ProcessIdentity:
        """The process of the run."""
        return ProcessIdentity(self.pid, self.started, self.host, self.boot)


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


class Lock:
    """A lock that rooda holds until `close`, or until the process ends in any way."""

    def __init__(self, folder: Path) -> None:
        """Take the lock. Raises LockHeldError, or OSError if the folder can't be locked."""
        self.top = work_tree(folder)
        self._note: LockNote | None = None
        self._fd = os.open(self.top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
        try:
            with new_file(self.top, _DRAFT) as file:
                file.write(json.dumps(asdict(note)).encode() + b"\n")
            (self.top / STATE_FOLDER / _DRAFT).replace(_path(self.top))
        except OSError:
            with contextlib.suppress(OSError):
                remove_file(self.top, _DRAFT)

    def note_agent(self, pid: int, started: float) -> None:
        """Replace the agent in the note by the one that was just started."""
        if self._note is not None:
            self.write(replace(self._note, agents=((pid, started),)))

    def close(self) -> None:
        """Release the lock, and delete the note if this run has written it."""
        if self._note is not None:
            with contextlib.suppress(OSError):
                remove_file(self.top, _NOTE)
        os.close(self._fd)


def _note_of(top: Path, holder: int | None) -> LockNote | None:
    """Return the note, unless the kernel says that another process holds the lock."""
    note = read_note(top)
    return note if note is not None and holder in (None, note.pid) and note.pid > 0 else None


def lock_holder(top: Path) -> tuple[int | None, LockNote | None]:
    """Return the pid of the run that holds the lock of a work tree, and its note, if known.

    An agent can write a note, but it can't change the kernel's list of locks.
    """
    note = read_note(top)
    if _LOCKS.exists():
        pid = _holder(top.stat())
        return pid, note if pid is not None and note is not None and note.pid == pid else None
    return (note.pid, note) if note is not None else (None, None)


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
