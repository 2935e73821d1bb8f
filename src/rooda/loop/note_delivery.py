"""The user's notes (`rooda tell`) during a run: which wait, fit into a prompt, and are done.

A note is done when an agent that got it has worked to its end. A note in an iteration that is tried
again, or whose agent could not work, waits for the next prompt.
"""

import contextlib
import os
import time
from collections.abc import Sequence

from rooda.loop.outcome import Outcome, Verdict
from rooda.plan.plan import Plan
from rooda.plan.prompts.compose import notes_section
from rooda.plan.prompts.parts import PromptTooLargeError, size_of
from rooda.plan.settings.settings import MAX_PROMPT_SIZE
from rooda.world.agents.failure_kinds import FailureKind, Reaction
from rooda.world.state.folder import StateFolder
from rooda.world.state.user_notes import (
    UserNote,
    notes_folder,
    remove_note,
    waiting_notes,
    write_note,
)

_TICK = 100_000_000  # nanoseconds: a file system may give two changes the same time


class NoteBox:
    """The notes that wait for a prompt of this run.

    An agent without a sandbox may delete the state folder with the notes in it, so the run keeps
    them in memory, too. If the folder is gone or another one, rooda puts them back. A note that is
    missing in the same folder is one that the user has cleared.
    """

    def __init__(self, state: StateFolder) -> None:
        self._state = state
        self._path = notes_folder(state)
        self._known: dict[str, UserNote] = {}
        self._done: set[str] = set()  # notes that can't be deleted, too
        self._announced: set[str] = set()
        self._seen: tuple[int, int, int] | None = None
        self._fd: int | None = None  # the folder: its inode is not used again while it is open

    def look(self) -> None:
        """Take new notes into memory. It is cheap: rooda looks while an agent works."""
        try:
            found = os.lstat(self._path)
        except OSError:
            return
        seen = (found.st_dev, found.st_ino, found.st_mtime_ns)
        if seen == self._seen and time.time_ns() - found.st_mtime_ns > _TICK:
            return
        self._seen = seen
        self._read()

    def waiting(self) -> list[UserNote]:
        """Return the notes that wait, in their order."""
        self._read()
        return [note for name, note in sorted(self._known.items()) if name not in self._done]

    def unheard(self) -> list[UserNote]:
        """Return those that no agent of this run has got."""
        return [note for note in self.waiting() if note.name not in self._announced]

    def announce(self, notes: Sequence[UserNote]) -> bool:
        """Note that an agent gets these notes; return whether one of them is new."""
        is_new = any(note.name not in self._announced for note in notes)
        self._announced.update(note.name for note in notes)
        return is_new

    def finish(self, notes: Sequence[UserNote]) -> str:
        """Delete the notes that the user does not keep; return why that failed, if it did."""
        trouble = ""
        for note in notes:
            if note.is_kept:
                continue
            self._done.add(note.name)
            self._known.pop(note.name, None)
            try:
                remove_note(self._state, note)
            except OSError as error:
                trouble = error.strerror or str(error)
        return trouble

    def close(self) -> None:
        """Close the folder."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _read(self) -> None:
        on_disk = {note.name: note for note in waiting_notes(self._state)}
        if self._fd is not None and not self._is_same_folder():
            for name in self._known.keys() - on_disk.keys():
                with contextlib.suppress(OSError):
                    write_note(self._state, self._known[name])
            on_disk |= self._known
        self._known = on_disk
        self._hold_folder()

    def _is_same_folder(self) -> bool:
        try:
            return self._fd is not None and os.path.samestat(
                os.fstat(self._fd), os.lstat(self._path)
            )
        except OSError:
            return False

    def _hold_folder(self) -> None:
        if self._is_same_folder():
            return
        try:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            fd = os.open(self._path, flags)
        except OSError:
            return
        self.close()
        self._fd = fd


def was_received(outcome: Outcome) -> bool:
    """Return whether an agent that was started has worked with its prompt, as far as rooda knows.

    It has not if the user interrupted it, or if it could not work at all.
    """
    if outcome.verdict in (Verdict.LIMITED, Verdict.INTERRUPTED):
        return False
    kind = outcome.kind
    worked = (Reaction.COUNT, Reaction.FAST_BACKOFF)
    return kind is None or (kind.row.reaction in worked and kind is not FailureKind.EMPTY)


def prompt_with_notes(
    plan: Plan, notes: Sequence[UserNote], feedback: str = "", iteration: int = 1
) -> tuple[str, tuple[UserNote, ...]]:
    """Return the prompt with the first of the notes that fit into it, and those notes.

    Raises PromptError if there can be no prompt at all, also without notes.
    """
    bare = plan.prompt(feedback, iteration)
    chosen = _fitting(notes, plan.values[MAX_PROMPT_SIZE] - size_of(bare))
    if chosen:
        with contextlib.suppress(PromptTooLargeError):  # a file has grown in the meantime
            return plan.prompt(feedback, iteration, [note.text for note in chosen]), chosen
    return bare, ()


def _fitting(notes: Sequence[UserNote], room: int) -> tuple[UserNote, ...]:
    """Return the first notes that fit into so many bytes; an empty line is before each of them."""
    room -= size_of(notes_section([])) + 2
    for count, note in enumerate(notes):
        room -= size_of(note.text) + 2
        if room < 0:
            return tuple(notes[:count])
    return tuple(notes)
