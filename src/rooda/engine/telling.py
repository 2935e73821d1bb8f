"""Writes a note for the agent of a run: which notes are refused, and why."""

from pathlib import Path

from rooda.config.problems import InvalidInput, Problem
from rooda.text.numbers import format_size
from rooda.workspace.state_folder import STATE_FOLDER
from rooda.workspace.user_notes import LONGEST, MOST, belongs_to_another, new_note, waiting_notes


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


def add_note(workspace: Path, text: str, *, keep: bool = False) -> None:
    """Write a note for the next prompt of the runs of a folder. Raises InvalidInput."""
    if len(waiting_notes(workspace)) >= MOST:
        problem = Problem(f"{MOST} notes wait already", "Delete them with `rooda tell --clear`")
        raise InvalidInput([problem])
    if belongs_to_another(workspace):
        message = f"{workspace / STATE_FOLDER} belongs to another user"
        raise InvalidInput([Problem(message, "Write the note as that user")])
    try:
        new_note(workspace, text, keep=keep)
    except OSError as error:
        message = f"the note can't be written: {error.filename or workspace}: {error.strerror}"
        raise InvalidInput([Problem(message, "Correct that, then write the note again")]) from None
