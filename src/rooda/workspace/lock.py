"""One run per work tree: a lock that the kernel releases, and a note of who holds it.

The lock is on the folder itself, so that an agent that deletes `.rooda` can't take it away. The
note is for people, and for the next start: it says what to look for if nobody could clean up.
"""

import contextlib
import errno
import fcntl
import json
import os
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
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
        """Whether this machine can tell anything about the process."""
        return self.host == here()[0]

    @property
    def is_alive(self) -> bool:
        """Whether the process still runs; a process of another host is believed to."""
        if not self.is_on_this_host:
            return True
        return self.boot == here()[1] and start_time(self.pid) == self.started


class Note(Struct, frozen=True):
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


class Taken(Exception):  # noqa: N818 - what was found
    """Another run holds the lock; its note, if there is one, and its pid, if that is known."""

    def __init__(self, top: Path, note: Note | None, pid: int | None) -> None:
        super().__init__(str(top))
        self.top = top
        self.note = note
        self.pid = pid


def here() -> tuple[str, str]:
    """The name of this host, and of the time since it was started."""
    try:
        boot = _BOOT.read_text(encoding="ascii").strip()
    except OSError:
        boot = ""
    return socket.gethostname(), boot


class Lock:
    """Held until it is closed, or the process ends in whatever way."""

    def __init__(self, folder: Path) -> None:
        """Take it. Raises Taken, or OSError where a folder can't be locked."""
        self.top = work_tree(folder)
        self._note: Note | None = None
        self._fd = os.open(self.top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            pid = _holder(os.fstat(self._fd))
            os.close(self._fd)
            if error.errno in _REFUSED:
                raise Taken(self.top, _note_of(self.top, pid), pid) from None
            raise

    def left_behind(self) -> Note | None:
        """The note of a run that could not end in order, on this very boot of this host."""
        note = read_note(self.top)
        if note is None or (note.host, note.boot) != here():
            return None
        # A copy of a work tree has a note too, but that of another one.
        try:
            is_here = work_tree(Path(note.workspace)) == self.top
            return note if is_here or not Path(note.workspace).exists() else None
        except OSError:
            return None

    def write(self, note: Note) -> None:
        """Say who runs here. It is only a note: where it can't be written, the lock still holds."""
        self._note = note
        try:
            with new_file(self.top, _DRAFT) as file:
                file.write(json.dumps(asdict(note)).encode() + b"\n")
            (self.top / STATE_FOLDER / _DRAFT).replace(_path(self.top))
        except OSError:
            with contextlib.suppress(OSError):
                remove_file(self.top, _DRAFT)

    def note_agent(self, pid: int, started: float) -> None:
        """Note the process that was just started, in place of the one before."""
        if self._note is not None:
            self.write(replace(self._note, agents=((pid, started),)))

    def close(self) -> None:
        """The run has ended in order: there is nothing to find. An earlier note is not ours."""
        if self._note is not None:
            with contextlib.suppress(OSError):
                remove_file(self.top, _NOTE)
        os.close(self._fd)


def _note_of(top: Path, holder: int | None) -> Note | None:
    """The note, unless the kernel knows better who holds the lock."""
    note = read_note(top)
    return note if note is not None and holder in (None, note.pid) and note.pid > 0 else None


def who_holds(top: Path) -> tuple[int | None, Note | None]:
    """The pid of the run that is at work in a work tree, and its note; as far as they are known.

    An agent can write a note, but not what the kernel knows of its locks.
    """
    note = read_note(top)
    if _LOCKS.exists():
        pid = _holder(top.stat())
        return pid, note if pid is not None and note is not None and note.pid == pid else None
    return (note.pid, note) if note is not None else (None, None)


def read_note(top: Path) -> Note | None:
    """The note, if there is one that makes sense: an agent may have written anything there."""
    try:
        return _note(json.loads(read_plain_file(_path(top), _LONGEST)))
    except (OSError, ValueError, TypeError, KeyError, ArithmeticError, RecursionError):
        return None


def _path(top: Path) -> Path:
    return top / STATE_FOLDER / _NOTE


def _note(data: Mapping[str, Any]) -> Note:
    if not _RUN.fullmatch(data["run"]):
        raise ValueError("no run of ours")
    if b"\0" in os.fsencode(data["workspace"]):
        raise ValueError("no folder of ours")
    return Note(
        run=data["run"],
        procedure=str(data["procedure"]),
        pid=int(data["pid"]),
        started=float(data["started"]),
        since=str(data["since"]),
        workspace=str(data["workspace"]),
        host=str(data["host"]),
        boot=str(data["boot"]),
        agents=tuple((int(pid), float(started)) for pid, started in data["agents"]),
        keep=tuple(map(str, data["keep"])),
    )


def _holder(found: os.stat_result) -> int | None:
    """The pid of who holds the lock, as the kernel knows it (Linux)."""
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
