"""Notes of the user for the next prompt (`rooda tell`): one small file each, in `notes`.

The name of a file has the time of the note, so that the notes have an order, and says whether the
user wants to keep the note. A file gets its name when it is complete, so two commands at once, or
one that is killed, do no harm.
"""

import contextlib
import os
import re
import time
from pathlib import Path

from msgspec import Struct

from rooda.world.files.plain_files import read_plain_file, replace_file
from rooda.world.state.folder import StateFolder, make_folders, remove_file

LONGEST = 100 * 1024  # bytes of a note
MOST = 1000  # notes
_MOST_BYTES = 10_000_000  # of all notes together
_FOLDER = "notes"
_NAME = re.compile(r"([0-9]{19})-[0-9a-f]{8}(\.keep)?\.md")
_DRAFT = re.compile(r"\.[0-9]{19}-[0-9a-f]{8}(\.keep)?\.md\.[0-9]+")  # of `replace_file`
_TRIES = 3  # an agent may delete the folder at any moment
_SECOND = 1_000_000_000  # nanoseconds


class UserNote(Struct, frozen=True):
    """A note; `name` is the name of its file."""

    name: str
    text: str

    @property
    def is_kept(self) -> bool:
        """Whether the note is for every prompt until the user clears it."""
        return self.name.endswith(".keep.md")

    @property
    def written_at(self) -> float:
        """When the user wrote it, in seconds since the epoch."""
        return int(self.name[:19]) / _SECOND


def is_note_name(name: str) -> bool:
    """Return whether a file of this name can be a note."""
    return _NAME.fullmatch(name) is not None


def notes_folder(state: StateFolder) -> Path:
    """Return the folder of the notes."""
    return state / _FOLDER


def belongs_to_another(state: StateFolder) -> bool:
    """Return whether the state folder is of another user, who could not read a note of this one."""
    try:
        return state.lstat().st_uid != os.geteuid()
    except OSError:
        return False


def new_note(state: StateFolder, text: str, *, keep: bool = False) -> UserNote:
    """Write a note behind those that wait, and return it. Raises OSError."""
    last = max((note.name[:19] for note in waiting_notes(state)), default="0")
    moment = min(max(time.time_ns(), int(last) + 1), 10**19 - 1)
    name = f"{moment:019}-{os.urandom(4).hex()}{'.keep' if keep else ''}.md"
    note = UserNote(name, text)
    for number in range(_TRIES):
        try:
            write_note(state, note)
            break
        except FileNotFoundError:
            if number == _TRIES - 1:
                raise
    return note


def write_note(state: StateFolder, note: UserNote) -> None:
    """Write the file of a note, whole or not at all. Raises OSError."""
    replace_file(Path(make_folders(state, _FOLDER), note.name), note.text.encode())


def waiting_notes(state: StateFolder) -> list[UserNote]:
    """Return the notes in the order in which the user wrote them."""
    found: list[UserNote] = []
    size = 0
    for name in _names(state, _NAME)[:MOST]:
        text = _text(notes_folder(state) / name)
        size += len(text)
        if size > _MOST_BYTES:
            break
        if text:
            found.append(UserNote(name, text))
    return found


def remove_note(state: StateFolder, note: UserNote) -> None:
    """Delete a note. Raises OSError."""
    remove_file(state, f"{_FOLDER}/{note.name}")


def remove_drafts(state: StateFolder) -> None:
    """Delete what commands that were killed have left behind."""
    for name in _names(state, _DRAFT):
        with contextlib.suppress(OSError):
            remove_file(state, f"{_FOLDER}/{name}")


def _names(state: StateFolder, pattern: re.Pattern[str]) -> list[str]:
    try:
        names = os.listdir(notes_folder(state))  # noqa: PTH208 - the names alone
    except OSError:
        return []
    return sorted(filter(pattern.fullmatch, names))


def _text(path: Path) -> str:
    """Return the text of a note; empty for a file that can't be one."""
    try:
        data = read_plain_file(path, LONGEST + 1)
        text = data.decode() if len(data) <= LONGEST else ""
    except (OSError, UnicodeDecodeError):
        return ""
    return text if text.strip() else ""
