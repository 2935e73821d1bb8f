"""Finds the run that is at work in a work tree, signals it, and waits for its end."""

import contextlib
import os
import re
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from rooda import PROGRAMS
from rooda.base.controls import one_line, shown_words
from rooda.base.numbers import format_size
from rooda.base.problems import InvalidInput, Problem
from rooda.plan.preflight.state import check_state, record_place
from rooda.plan.world import World
from rooda.record.rows import StoreError
from rooda.world.git.work_tree import folders_to_top, had_repository
from rooda.world.process.interrupts import END
from rooda.world.process.leftovers import start_time
from rooda.world.state.folder import StateFolder
from rooda.world.state.lock import is_locked, is_locked_by_pid, lock_holders
from rooda.world.state.lock_note import LockNote, here
from rooda.world.state.record_place import find_place
from rooda.world.state.user_notes import LONGEST, MOST, belongs_to_another, new_note, waiting_notes

_PACE = 0.05  # seconds between two looks at the process


class NoRunError(InvalidInput):
    """No run of rooda is at work here."""


class UnseenRunError(InvalidInput):
    """A run is at work here, but on another machine or in a container."""


class AtWork(Struct, frozen=True):
    """The process of a run. Its start time tells it from a later process with the same pid."""

    pid: int
    started: float
    note: LockNote | None  # None when the agent has deleted it
    elsewhere: str = ""  # its folder, if the work tree of the user is a part of it

    @classmethod
    def find(cls, folder: Path) -> "AtWork":
        """Return the run that holds the lock of the work tree of a folder, or of one around it.

        The agent may have made the folder a repository of its own, but a repository that was
        there before the run has runs of its own. Raises InvalidInput.
        """
        within = folders_to_top(folder)
        others, around = [], None
        for holder in lock_holders(folder):
            note = holder.note
            if holder.pid is None and note is not None and note.host != here()[0]:
                where = one_line(note.host)
                message = f"the run of {one_line(note.procedure)} is at work on {where}"
                raise UnseenRunError([Problem(message, "Stop it there")])
            if holder.pid is None:
                raise _unseen(note)
            started = start_time(holder.pid)
            if started is None:
                continue
            is_within = holder.folder in within
            if _is_rooda(holder.pid, is_noted=note is not None):
                if not is_within and note is not None and had_repository(within[-1], note.began):
                    around = holder.folder
                    break
                elsewhere = "" if is_within else str(holder.folder)
                return cls(holder.pid, started, note, elsewhere)
            if is_within:
                others.append(holder.pid)
        if not others:
            raise _none_seen(within, around)
        pid = others[0]
        message = f"pid {pid} holds the lock of this work tree and is not rooda: {_command(pid)}"
        raise NoRunError([Problem(message, f"End it yourself, with `kill {pid}`")])

    def __str__(self) -> str:
        """Return the run's name in messages."""
        where = f" in {self.elsewhere}" if self.elsewhere else ""
        if self.note is None:
            return f"The run of pid {self.pid}{where}"
        # The agent can write the note.
        return f"{one_line(self.note.procedure)} (run {self.note.run}, pid {self.pid}){where}"

    @property
    def is_there(self) -> bool:
        """Whether the process still runs; a zombie does not."""
        return start_time(self.pid) == self.started

    @property
    def is_of_another_user(self) -> bool:
        """Whether another user has started the run; False where the system does not tell."""
        try:
            return Path(f"/proc/{self.pid}").stat().st_uid != os.geteuid()
        except OSError:
            return False

    def state(self) -> StateFolder | None:
        """Return the state folder of the run; None if it can't be found."""
        if self.note is not None and self.note.state:
            return StateFolder(Path(self.note.state))
        try:
            start = Path(f"/proc/{self.pid}/cwd").readlink()
        except OSError:
            return None
        found = find_place(start, os.environ)
        is_locked_there = found is not None and is_locked_by_pid(found.state, self.pid)
        return found.state if found is not None and is_locked_there else None

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the run. Raises InvalidInput when that is impossible."""
        if not self.is_there:
            raise _no_run()
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            raise _no_run() from None
        except PermissionError:
            problem = Problem(f"{self} belongs to another user", "Ask that user to stop it")
            raise InvalidInput([problem]) from None

    def nudge(self) -> None:
        """Make the run look for notes now. SIGCHLD wakes a run and does nothing else to it."""
        with contextlib.suppress(OSError):
            if self.is_there:
                os.kill(self.pid, signal.SIGCHLD)

    def wake(self) -> None:
        """Continue a run that is stopped (Ctrl+Z): a stopped process receives no other signal."""
        if self.is_there:
            os.kill(self.pid, signal.SIGCONT)

    def has_ended(self, seconds: float, progress: Callable[[float], None]) -> bool:
        """Wait until the run has ended, `seconds` at most; `progress` learns how long it takes."""
        began = time.monotonic()
        while self.is_there:
            waited = time.monotonic() - began
            if waited >= seconds:
                return False
            progress(waited)
            time.sleep(_PACE)
        return True

    def outcome(self) -> str:
        """Return the status of the run in its record; empty if there is none."""
        # Completion loads this module too, and needs no database.
        from rooda.record.reader import RecordReader  # noqa: PLC0415

        if self.note is None:
            return ""
        try:
            reader = RecordReader(StateFolder(Path(self.note.state)))
            return one_line(reader.run(self.note.run).status)
        except StoreError:
            return ""


def _is_rooda(pid: int, *, is_noted: bool) -> bool:
    """Return whether a process is rooda; another program may hold the lock (`flock . make`).

    It must handle the signal of `rooda stop`, which would end other programs, and either its
    command line or the note of the run says that it is rooda. True where there is no `/proc`.
    """
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True
    masks = re.findall(r"(?m)^Sig(?:Cgt|Ign):\s*([0-9a-f]+)$", status)
    is_handled = any(int(mask, 16) >> (END - 1) & 1 for mask in masks)
    return is_handled and (is_noted or _names_rooda(_words(pid)))


def _names_rooda(words: list[str]) -> bool:
    """Return whether a command line starts rooda: as a program, as a script, or with `-m`."""
    if "-m" in words[:-1]:
        return words[words.index("-m") + 1].partition(".")[0] == "rooda"
    return any(Path(word).name in PROGRAMS for word in words[:2])


def _words(pid: int) -> list[str]:
    try:
        line = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return []
    return os.fsdecode(line).rstrip("\0").split("\0")


def _command(pid: int) -> str:
    return f"`{shown_words(_words(pid))}`"


def _none_seen(within: Sequence[Path], around: Path | None) -> NoRunError | UnseenRunError:
    """Return the error that this process sees no run, and whether there is one nevertheless."""
    if is_locked(within[-1]):
        return _unseen(None)
    if around is not None:
        return _run_around(within[-1], around)
    # Another container may have another work tree at this path, and the same state home.
    place = find_place(within[0], os.environ)
    is_shared = place is not None and place.tree in within and is_locked(place.state)
    return _unseen(None) if is_shared else _no_run()


def _unseen(note: LockNote | None) -> UnseenRunError:
    run = "a run" if note is None else f"the run of {one_line(note.procedure)}"
    message = f"{run} is at work here in another PID namespace, such as a container"
    return UnseenRunError([Problem(message, "Stop it there with `rooda stop`")])


def _run_around(top: Path, around: Path) -> NoRunError:
    message = f"no run is at work in {top}; one is at work in {around}, the work tree around it"
    return NoRunError([Problem(message, f"To end that one, run `rooda stop` in {around}")])


def _no_run() -> NoRunError:
    return NoRunError([Problem("no run is at work here", "`rooda history` lists earlier runs")])


# Writes a note for the agent of a run: where the note goes, which notes are refused, and why.


class NoteTarget(Struct, frozen=True):
    """The run at work, its name (empty: there is none), and the state folder with its notes."""

    run: AtWork | None
    name: str
    state: StateFolder
    problems: tuple[Problem, ...] = ()  # why a note for it can't be written here

    @classmethod
    def find(cls, world: World) -> "NoteTarget":
        """Return where a note goes that the user writes in the current folder.

        Raises InvalidInput if there is no place for the record.
        """
        here = record_place(world)
        try:
            run = AtWork.find(world.folder)
        except NoRunError:
            return cls(None, "", here.state, (*check_state(world, here),))
        except UnseenRunError:
            name = "The run at work here, on another machine or in a container,"
            return cls(None, name, here.state)
        if run.note is None and run.is_of_another_user:
            problem = Problem(f"{run} belongs to another user", "Ask that user to write the note")
            return cls(run, "", here.state, (problem,))
        name = f"The run of pid {run.pid}" if run.note is None else f"Run {run.note.run}"
        return cls(run, name, run.state() or here.state)

    def tell(self, text: str, *, keep: bool = False) -> str:
        """Write the note, and return a sentence that says which run reads it when.

        Raises InvalidInput.
        """
        if self.problems:
            raise InvalidInput(self.problems)
        _add(self.state, text, keep=keep)
        if self.run is not None:
            self.run.nudge()
        if not self.name:
            every = " in every iteration" if keep else ""
            return f"No run is at work here; the next run reads it{every}."
        when = "in every iteration from the next one on" if keep else "in its next iteration"
        return f"{self.name} reads it {when}."


def note_text(data: bytes) -> str:
    """Return what the user wrote as the text of a note. Raises InvalidInput."""
    if len(data) > LONGEST:
        advice = "Write the text into a file of the work tree, and name that file in the note"
        message = f"the note is longer than {format_size(LONGEST)}"
        raise InvalidInput([Problem(message, advice)])
    try:
        text = data.decode("utf-8-sig").strip("\r\n")
    except UnicodeDecodeError as error:
        problem = Problem(f"the note is not UTF-8 text (byte {error.start})", "Write it as UTF-8")
        raise InvalidInput([problem]) from None
    if not text.strip() or "\0" in text:
        what = "contains a zero byte" if text.strip() else "is empty"
        raise InvalidInput([Problem(f"the note {what}", "Write `rooda tell TEXT`")])
    return text


def _add(state: StateFolder, text: str, *, keep: bool) -> None:
    if len(waiting_notes(state)) >= MOST:
        problem = Problem(f"{MOST} notes wait already", "Delete them with `rooda tell --clear`")
        raise InvalidInput([problem])
    if belongs_to_another(state):
        message = f"{state} belongs to another user"
        raise InvalidInput([Problem(message, "Write the note as that user")])
    try:
        new_note(state, text, keep=keep)
    except OSError as error:
        message = f"the note can't be written: {error.filename or state}: {error.strerror}"
        raise InvalidInput([Problem(message, "Correct that, then write the note again")]) from None
