"""One run per work tree and per state folder: a lock that the kernel releases.

The lock is on the folders themselves: it holds although an agent changes what is in them.
"""

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from rooda.world.git.work_tree import folders_to_top, has_repository
from rooda.world.process.leftovers import start_time
from rooda.world.state.folder import StateFolder
from rooda.world.state.home import NoStateHomeError, state_folder_at, state_home
from rooda.world.state.lock_note import LockNote, NoteFile, here, proc_is_ours, read_note
from rooda.world.state.record_place import note_tree_again

_LOCKS = Path("/proc/locks")
_PAUSES = (0.01, 0.03, 0.06)  # seconds: a command that asks for the lock holds it for a moment
_REFUSED = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)


class LockHeldError(Exception):
    """Another run holds the lock. `note` and `pid` are about that run, if they are known.

    `is_state`: it holds the lock of the state folder, and works in another tree.
    """

    def __init__(
        self, top: Path, note: LockNote | None, pid: int | None, *, is_state: bool = False
    ) -> None:
        super().__init__(str(top))
        self.top = top
        self.is_state = is_state
        self.note = note
        self.pid = pid


class LockHolder(Struct, frozen=True):
    """A process that holds the lock of a folder, and the note of its run, if it is known.

    The pid is None for a run in a PID namespace that this process can't see into.
    """

    pid: int | None
    folder: Path
    note: LockNote | None


class Lock:
    """A lock that rooda holds until `close`, or until the process ends in any way.

    It covers every folder from the given ones up to the top of their work trees: an agent can make
    any of them a repository of its own, where a second run must be refused as well. It covers the
    state folder too: two containers that share one may see different work trees at one path.
    """

    def __init__(self, *folders: Path, state: StateFolder, workspace: Path | None = None) -> None:
        """Take the lock. Raises LockHeldError, or OSError if no folder can be locked.

        `state` gets the note of the run. The lock goes up to the `workspace`, if that is above the
        top of a work tree. `trouble` is the error if only some of the work trees can be locked.
        """
        chains = [folders_to_top(folder, workspace) for folder in folders]
        self._first = chains[0][0]
        self.workspace = workspace or chains[0][-1]
        self.state = state
        self._note: LockNote | None = None
        self._file = NoteFile(state)
        self._fds: dict[Path, int] = {}
        tops = [chain[-1] for chain in chains]
        wanted = dict.fromkeys(one for chain in chains for one in reversed(chain))
        wanted[state] = None
        try:
            failed = [(one, error) for one in wanted if (error := self._take(one)) is not None]
            for top in tops:
                _refuse_broken_up(top)
        except LockHeldError:
            self.close()
            raise
        self.trouble = next((error for one, error in failed if one in tops), None)
        if self.trouble is not None and not self._fds:
            raise self.trouble

    def _take(self, folder: Path) -> OSError | None:
        """Lock one folder, or return why that is not possible. Raises LockHeldError."""
        fd = None
        try:
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            _take(fd)
        except OSError as error:
            if fd is not None:
                pid = _holder(os.fstat(fd))
                os.close(fd)
                if error.errno in _REFUSED:
                    raise self._held(folder, pid) from None
            return error
        self._fds[folder] = fd
        return None

    def _held(self, folder: Path, pid: int | None) -> LockHeldError:
        if folder == self.state:
            return LockHeldError(folder, read_note(self.state), pid, is_state=True)
        return LockHeldError(folder, _note_of(folder, pid), pid)

    def left_behind(self) -> list[LockNote]:
        """Return the notes of runs that were killed here since this host was booted.

        A note can be of a tree above this one, if the agent made this a repository of its own. A
        state home that two machines share has notes of both.
        """
        trees = dict.fromkeys([*self._fds, self.workspace, *self._first.parents])
        found = [read_note(self.state), *map(note_of_tree, trees)]
        notes = {note.state: note for note in found if note is not None}
        return [note for note in notes.values() if (note.host, note.boot) == here()]

    def write(self, note: LockNote) -> None:
        """Write the note."""
        self._note = note
        self._file.write(note)
        note_tree_again(self.state, self.workspace)

    def note_agent(self, pid: int, started: float) -> None:
        """Replace the agent in the note by the one that was just started."""
        if self._note is not None:
            self.write(replace(self._note, agents=((pid, started),)))

    def close(self) -> None:
        """Release the lock, and delete the note if this run has written it."""
        if self._note is not None:
            self._file.remove()
        for fd in self._fds.values():
            os.close(fd)
        self._fds.clear()


def _take(fd: int) -> None:
    """Take the lock of an open folder. Raises OSError if another process holds it."""
    for pause in _PAUSES:
        with contextlib.suppress(BlockingIOError):
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        time.sleep(pause)
    return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_locked(folder: Path) -> bool:
    """Return whether a process holds the lock of a folder, in whatever PID namespace it is."""
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in _REFUSED
    finally:
        os.close(fd)
    return False


def is_locked_by(state: StateFolder, run: str) -> bool:
    """Return whether the run holds the lock of its state folder, as far as its note says so."""
    note = read_note(state)
    return (note is None or note.run == run) and is_locked(state)


def is_locked_by_pid(folder: Path, pid: int) -> bool:
    """Return whether a process holds the lock of a folder; true where the system has no list."""
    try:
        return not _LOCKS.exists() or _holder(folder.stat()) == pid
    except (OSError, ValueError):
        return False


def _refuse_broken_up(top: Path) -> None:
    """Raise LockHeldError if this is a part of a work tree that an agent has broken up.

    The lock of a folder that the agent has deleted and made again does not hold any more, and the
    lock of the top is above this work tree.
    """
    for holder in lock_holders(top.parent) if top != top.parent else ():
        note = holder.note
        if note is None or holder.pid == os.getpid() or not note.process.is_alive(lambda: True):
            continue
        is_without_git = note.repository and not has_repository(top)
        if is_without_git or Path(note.folder).is_relative_to(top):
            raise LockHeldError(holder.folder, note, holder.pid)


def note_of_tree(tree: Path) -> LockNote | None:
    """Return the note of the run in the work tree at this real path, if the user has one there."""
    try:
        return read_note(state_folder_at(state_home(os.environ), tree))
    except NoStateHomeError:
        return None


def lock_holders(folder: Path) -> Iterator[LockHolder]:
    """Yield the processes that hold the lock of this folder or of one above it, nearest first.

    An agent can write a note, but it can't change the kernel's list of locks. A holder in a PID
    namespace that this process can't see into is not in that list; its note tells of it.
    """
    real = folder.resolve()
    places = (real, *real.parents)
    notes = [note_of_tree(place) for place in places]
    is_listed = _LOCKS.exists()
    for number, place in enumerate(places):
        if not is_listed:
            note = notes[number]
            is_seen = note is not None and note.process.can_be_seen
            if note is not None and not (is_seen and not _is_of(note, note.pid)):
                yield LockHolder(note.pid if is_seen else None, place, note)
            continue
        pid = _holder(place.stat())
        note = _nearest(notes[number:], pid) or _note_apart(pid)
        if pid is not None or (note is not None and _is_held_unseen(place, note)):
            yield LockHolder(pid, place, note)


def _is_held_unseen(folder: Path, note: LockNote) -> bool:
    return not note.process.can_be_seen and is_locked(folder)


def _note_of(folder: Path, holder: int | None) -> LockNote | None:
    """Return the nearest note, from a folder upward, of the process that holds its lock."""
    near = _nearest(map(note_of_tree, (folder, *folder.parents)), holder)
    return near or _note_apart(holder)


def _note_apart(holder: int | None) -> LockNote | None:
    """Return the note of a process with the record in another place; None if unknown.

    The process holds its state folder open, for the lock.
    """
    if holder is None:
        return None
    try:
        links = [link.readlink() for link in Path(f"/proc/{holder}/fd").iterdir()]
    except OSError:
        return None
    notes = (read_note(StateFolder(place)) for place in dict.fromkeys(links) if place.is_absolute())
    return next((note for note in notes if note is not None and _is_of(note, holder)), None)


def _nearest(notes: Iterable[LockNote | None], holder: int | None) -> LockNote | None:
    for note in notes:
        if note is not None and note.pid > 0 and _may_be_of(note, holder):
            return note
    return None


def _may_be_of(note: LockNote, holder: int | None) -> bool:
    """Return whether the note may be of this process; its pid is another one elsewhere."""
    return holder is None or not note.process.can_be_seen or _is_of(note, holder)


def _is_of(note: LockNote, pid: int) -> bool:
    """Return whether the note is of this process, and not of an earlier one with the same pid."""
    return note.pid == pid and start_time(pid) == note.started


def _holder(found: os.stat_result) -> int | None:
    """Return the pid of the process that holds the lock, from the kernel's list (Linux)."""
    if not proc_is_ours():
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
