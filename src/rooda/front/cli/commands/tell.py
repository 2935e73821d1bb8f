"""`rooda tell`: a note of the user for the next prompt of a run."""

import sys
import time
from collections.abc import Iterator

import click

from rooda.base.controls import clean
from rooda.base.problems import InvalidInput, Problem
from rooda.base.times import format_duration
from rooda.front.masking import masker_here
from rooda.front.pager import print_paged
from rooda.front.recorded import world_of_next_run
from rooda.plan.world import this_world
from rooda.run.telling import NoteTarget, note_text
from rooda.world.state.folder import StateFolder
from rooda.world.state.user_notes import (
    LONGEST,
    UserNote,
    remove_drafts,
    remove_note,
    waiting_notes,
)

_ALL = "all"
_STDIN = "-"


@click.command("tell")
@click.argument("text", nargs=-1, metavar="[TEXT]")
@click.option("--keep", is_flag=True, help="Put the note into every prompt until you clear it.")
@click.option("--list", "is_list", is_flag=True, help="Show the notes that wait.")
@click.option(
    "--clear",
    is_flag=False,
    flag_value=_ALL,
    metavar="[N]",
    help="Delete all notes that wait, or note N of the list.",
)
def tell(*, text: tuple[str, ...], keep: bool, is_list: bool, clear: str | None) -> None:
    """Write a note for the agent into the next prompt. TEXT `-` reads standard input."""
    if (is_list or clear is not None) and (text or keep or (is_list and clear is not None)):
        problem = Problem("--list and --clear take no note", "Give one of them alone")
        raise InvalidInput([problem])
    target = NoteTarget.find(world_of_next_run())
    state = target.state
    if is_list:
        notes = masker_here().tree(waiting_notes(state))
        print_paged(_listed(notes), this_world().workspace())
    elif clear is not None:
        _clear(state, clear)
    else:
        click.echo(target.tell(_given_note(text), keep=keep))


# -- write -----------------------------------------------------------------------------------


def _given_note(words: tuple[str, ...]) -> str:
    """Return the note from the command line or from standard input. Raises InvalidInput."""
    if words and words != (_STDIN,):
        data = " ".join(words).encode("utf-8", "surrogateescape")
    elif words or (sys.stdin is not None and not sys.stdin.isatty()):
        data = _standard_input()
    else:
        problem = Problem("there is no note", "Write `rooda tell TEXT`, or pipe the note into it")
        raise InvalidInput([problem])
    return note_text(data)


def _standard_input() -> bytes:
    try:
        return sys.stdin.buffer.read(LONGEST + 1)
    except (AttributeError, OSError, ValueError) as error:
        problem = Problem(f"standard input can't be read: {error}", "Write `rooda tell TEXT`")
        raise InvalidInput([problem]) from None


# -- list and clear --------------------------------------------------------------------------


def _listed(notes: list[UserNote]) -> Iterator[str]:
    if not notes:
        yield "No note waits.\n"
    now = time.time()
    for number, note in enumerate(notes, 1):
        kept = ", kept" if note.is_kept else ""
        age = format_duration(max(0.0, now - note.written_at))
        yield f"{number}  {age} ago{kept}\n"
        yield from (f"   {line}\n" for line in clean(note.text).splitlines())


def _clear(state: StateFolder, which: str) -> None:
    notes = waiting_notes(state)
    chosen = notes
    if which != _ALL:
        if not which.isascii() or not which.isdigit() or not 1 <= int(which[:6]) <= len(notes):
            known = "no note waits"
            if notes:
                known = "there is 1" if len(notes) == 1 else f"there are {len(notes)}"
            message = f"{which!r} is not the number of a note: {known}"
            raise InvalidInput([Problem(message, "`rooda tell --list` shows the numbers")])
        chosen = [notes[int(which[:6]) - 1]]
    else:
        remove_drafts(state)
    try:
        for note in chosen:
            remove_note(state, note)
    except OSError as error:
        message = f"the note can't be deleted: {error.filename or state}: {error.strerror}"
        raise InvalidInput([Problem(message, "Correct the mode of that folder")]) from None
    if which == _ALL:
        click.echo(f"Deleted {len(chosen)} {'note' if len(chosen) == 1 else 'notes'}.")
    else:
        first = clean(chosen[0].text).splitlines()[0]
        click.echo(f"Deleted note {which}: {first}")
