"""The note about the run that holds the lock of a work tree, and the process of that run.

The note is for users, and for the next start: after a crash it says which processes may be left.
"""

import contextlib
import fcntl
import json
import os
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import IO

from msgspec import Struct, convert
from msgspec.structs import asdict

from rooda.world.files.plain_files import read_plain_file
from rooda.world.process.leftovers import start_time
from rooda.world.state.folder import StateFolder, is_run, new_file, remove_file

_UNIQUE_RUN = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{6}")  # a name that rooda has chosen
_TOKEN = re.compile(r"[0-9a-f]{32}")
_NOTE, _DRAFT = "run.json", "run.new"
_LONGEST = 64 * 1024  # a note has some hundred bytes
_ROOM = 64  # bytes at the end of the note, for the numbers of the agent's process
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_SELF, _NAMESPACE = Path("/proc/self"), Path("/proc/self/ns/pid")


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
        is_ours = self.namespace in ("", pid_namespace()) and proc_is_ours()
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
    folder: str = ""  # where the user started the run
    repository: bool = False  # whether the run started in a git work tree
    began: float = 0.0  # seconds since the epoch
    state: str = ""  # the state folder, with the record of the run
    token: str = ""  # the mark of its processes, if other runs may have the same name

    @property
    def process(self) -> ProcessIdentity:
        """The process of the run."""
        return ProcessIdentity(self.pid, self.started, self.host, self.boot, self.namespace)


def is_unique_run(name: str) -> bool:
    """Return whether rooda has chosen this name of a run, so that no other run has it."""
    return _UNIQUE_RUN.fullmatch(name) is not None


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


def proc_is_ours() -> bool:
    """Return whether `/proc` has the pids of this process's namespace; true without `/proc`."""
    try:
        return str(_SELF.readlink()) == str(os.getpid())
    except OSError:
        return True


def read_note(state: StateFolder) -> LockNote | None:
    """Return the note, if there is one that tells its run from every other run."""
    try:
        note = convert(json.loads(read_plain_file(state / _NOTE, _LONGEST)), LockNote)
    except (OSError, ValueError, RecursionError):
        return None
    return note if _names_one_run(note) else None


def _names_one_run(note: LockNote) -> bool:
    """Return whether the note tells the processes of its run from those of every other run."""
    return is_unique_run(note.run) or (
        is_run(note.run) and _TOKEN.fullmatch(note.token) is not None
    )


class NoteFile:
    """The file of a note in a state folder. If rooda can't write it, the lock still holds."""

    def __init__(self, state: StateFolder) -> None:
        self._state = state
        self._file: IO[bytes] | None = None  # what the note was written to
        self._size = 0

    def write(self, note: LockNote) -> None:
        """Write the note, or replace it."""
        content = json.dumps(asdict(note)).encode()
        try:
            if self._is_there() and len(content) < self._size:
                self._overwrite(content)
            else:
                self._create(content)
        except OSError:
            with contextlib.suppress(OSError):
                remove_file(self._state, _DRAFT)

    def remove(self) -> None:
        """Delete the note."""
        with contextlib.suppress(OSError):
            remove_file(self._state, _NOTE)
        self._forget_file()

    def _is_there(self) -> bool:
        """Return whether the file of the note is the one that rooda wrote, and has its size."""
        if self._file is None:
            return False
        try:
            found = os.lstat(self._state / _NOTE)
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
        self._file = new_file(self._state, _DRAFT)
        fcntl.fcntl(self._file, fcntl.F_SETFL, 0)  # it was opened for appending
        self._overwrite(content)
        (self._state / _DRAFT).replace(self._state / _NOTE)

    def _forget_file(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()
