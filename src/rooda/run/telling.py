"""Writes a note for the agent of a run: where the note goes, which notes are refused, and why."""

from msgspec import Struct

from rooda.base.numbers import format_size
from rooda.base.problems import InvalidInput, Problem
from rooda.plan.preflight.state import check_state, record_place
from rooda.plan.world import World
from rooda.run.control import AtWork, NoRunError, UnseenRunError
from rooda.world.state.folder import StateFolder
from rooda.world.state.user_notes import LONGEST, MOST, belongs_to_another, new_note, waiting_notes


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
