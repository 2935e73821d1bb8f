"""`rooda follow`, `rooda stop` and `rooda tell`: a run that is at work in another terminal."""

import os
import signal
import sys
import time
from collections.abc import Iterator

import click

from rooda.base.controls import clean
from rooda.base.problems import InvalidInput, Problem
from rooda.base.secrets.masking import SafeStream
from rooda.base.times import format_duration
from rooda.front.completion import complete_runs
from rooda.front.masking import masker_here
from rooda.front.options import RunNamesCommand
from rooda.front.pager import print_paged
from rooda.front.recorded import Recorded, readable_record, world_of_next_run
from rooda.plan.world import this_world
from rooda.record.rows import RunRow
from rooda.record.run_folders import run_folder
from rooda.run.control import AtWork, NoteTarget, note_text
from rooda.world.files.plain_files import open_plain_file
from rooda.world.process.interrupts import END
from rooda.world.state.folder import SESSION, StateFolder
from rooda.world.state.user_notes import (
    LONGEST,
    UserNote,
    remove_drafts,
    remove_note,
    waiting_notes,
)

_PACE = 0.2
_CHUNK = 64 * 1024
_BEFORE = 8 * 1024  # bytes of earlier output, so that the user sees the context
# Of `stop --now`: a run needs its kill grace (5 s by default), and then time to clean up.
_LONGEST_WAIT = 60.0
_FIRST_WORD, _NEXT_WORD = 2.0, 10.0  # when to tell the user that the command waits


@click.command("follow", cls=RunNamesCommand)
@click.argument("run", required=False, shell_complete=complete_runs)
@click.option("--from-start", is_flag=True, help="Begin at the start of the session log.")
def follow(*, run: str | None, from_start: bool) -> None:
    """Show a run live, until it ends."""
    record = Recorded.here()
    row = record.run(run)
    path = run_folder(record.state, row.run) / SESSION
    try:
        fd = open_plain_file(path)
    except OSError as error:
        message = f"run {row.run} has no session log: {error.strerror}"
        raise InvalidInput([Problem(message, "See `rooda show`")]) from None
    cleaner = record.masker.cleaner()  # an agent can write to that file, too
    try:
        _go_to_start(fd, row, cleaner, whole=from_start or row.status != "running")
        while _copy(fd, cleaner) or _is_at_work(record, row):
            time.sleep(_PACE)
        _copy(fd, cleaner)
        click.echo(cleaner.finish(), nl=False)
    finally:
        os.close(fd)


def _go_to_start(fd: int, row: RunRow, cleaner: SafeStream, *, whole: bool) -> None:
    """Go to the start of a run that has ended, or to the last lines of one at work."""
    start = 0 if whole else max(0, os.fstat(fd).st_size - _BEFORE)
    click.echo(f"Run {row.run} ({row.procedure}), {row.status}", err=True)
    os.lseek(fd, start, os.SEEK_SET)
    if start:
        piece = os.read(fd, _CHUNK)
        click.echo(cleaner.feed(piece.partition(b"\n")[2]), nl=False)


def _copy(fd: int, cleaner: SafeStream) -> bool:
    """Print what is new; whether there was anything."""
    found = False
    while piece := os.read(fd, _CHUNK):
        click.echo(cleaner.feed(piece), nl=False)
        found = True
    return found


def _is_at_work(record: Recorded, row: RunRow) -> bool:
    return readable_record(lambda: record.reader.run(row.run)).status == "running"


@click.command("stop")
@click.option("--now", is_flag=True, help="End it at once (SIGTERM), and wait until it has ended.")
def stop(*, now: bool) -> None:
    """End the run of this work tree after its current iteration."""
    run = AtWork.find(this_world().folder)
    if not now:
        run.send(END)
        click.echo(f"{run} stops when its current iteration has ended.")
        return
    run.send(signal.SIGTERM)
    run.wake()
    if not run.has_ended(_LONGEST_WAIT, _Progress(run)):
        raise InvalidInput([_still_at_work(run)])
    outcome = run.outcome()
    name = f"Run {run.note.run}" if run.note is not None else str(run)
    click.echo(f"{name} has ended: {outcome}." if outcome else f"{name} has ended.")


class _Progress:
    """Tells the user that the command waits, and for how long."""

    def __init__(self, run: AtWork) -> None:
        self._run = run
        self._due = _FIRST_WORD

    def __call__(self, waited: float) -> None:
        if waited < self._due:
            return
        if self._due == _FIRST_WORD:
            advice = "wait, or kill its agent at once with another `rooda stop --now`"
            click.echo(f"{self._run} has not ended yet: {advice}.", err=True)
        else:
            click.echo(f"Still waiting after {waited:.0f} seconds.", err=True)
        self._due += _NEXT_WORD


def _still_at_work(run: AtWork) -> Problem:
    return Problem(
        f"{run} is still at work {_LONGEST_WAIT:.0f} seconds after SIGTERM",
        "Wait for its end with `rooda follow`, kill its agent at once with another `rooda stop "
        f"--now`, or kill the run with `kill -9 {run.pid}`: its warden then stops the agent",
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
