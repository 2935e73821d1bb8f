"""`rooda record`: where the records of this machine are, and how to move, delete and take them."""

import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from rooda.base.controls import one_line
from rooda.base.numbers import approximate_size
from rooda.base.problems import InvalidInput, Problem
from rooda.front.color import room
from rooda.front.completion import complete_runs
from rooda.front.options import PlainGroup, RunNamesCommand
from rooda.front.pager import print_paged
from rooda.front.recorded import RECORD, place_here, readable_record, shown_path
from rooda.plan.preflight.state import readable_home, record_place, writable_place
from rooda.plan.world import this_world
from rooda.record.given_flags import masked_flags
from rooda.record.reader import RecordReader
from rooda.record.rows import StoreError
from rooda.record.run_folders import size_below
from rooda.record.transfer import LARGEST, TransferError, export_run, import_run
from rooda.run.request import record_apart
from rooda.views.machine_runs import when_last
from rooda.views.terminal.table import Cell, Column, table
from rooda.world.files.plain_files import read_plain_file, replace_file
from rooda.world.state.folder import StateFolder
from rooda.world.state.home import OLD_FOLDER, has_old_record
from rooda.world.state.lock import is_locked
from rooda.world.state.record_place import (
    RecordPlace,
    has_record,
    is_fleet_in,
    known_places,
    note_tree,
    place_at,
)
from rooda.world.state.user_notes import waiting_notes, write_note

# `rooda record export` and `rooda record import`: take a run to another record.


_T = TypeVar("_T")
_STANDARD = "-"  # standard input or output


@click.command("export", cls=RunNamesCommand)
@click.argument("run", shell_complete=complete_runs)
@click.argument("file", default=_STANDARD)
@RECORD
def export(*, run: str, file: str) -> None:
    """Write a run to FILE as one JSON document, or to standard output.

    It has the run, its iterations and what `rooda resume` needs; no transcripts, no environment,
    and no values of flags that may be secrets.
    """
    state = place_here().state
    row = readable_record(lambda: RecordReader(state).run(run))
    data = _transferred(lambda: export_run(state, row.run))
    if file == _STANDARD:
        sys.stdout.buffer.write(data)
        return
    try:
        replace_file(Path(file).absolute(), data)
    except OSError as error:
        raise _refused(f"{file} can't be written: {error.strerror}") from None


@click.command("import")
@click.argument("source")
@click.option(
    "--record", metavar="DIR", help="Folder with the record [default: that of this work tree]."
)
def import_(*, source: str, record: str | None) -> None:
    """Put the runs of SOURCE into the record: an exported run, or a folder `.rooda` of rooda 0.1.

    SOURCE is a file, `-` for standard input, or that folder. It replaces runs of the same name.
    """
    world = this_world()
    place = writable_place(world) if record is None else record_apart(Path(record), world)
    file = source
    if Path(file).is_dir():
        _import_folder(Path(file), place)
        return
    try:
        if file == _STANDARD:
            data = sys.stdin.buffer.read(LARGEST + 1)
        else:
            data = read_plain_file(Path(file), LARGEST + 1, follow=True)
    except OSError as error:
        raise _refused(f"{file} can't be read: {error.strerror}") from None
    name = _transferred(lambda: import_run(place.state, data))
    click.echo(f"Imported run {name}. Continue it with: rooda resume {name}", err=True)
    flags = masked_flags(readable_record(lambda: RecordReader(place.state).run(name)).given)
    if flags:
        click.echo(f"It would run with the flags: {one_line(shlex.join(flags))}", err=True)


def _import_folder(folder: Path, place: RecordPlace) -> None:
    """Copy the record of version 0.1. Raises InvalidInput."""
    from rooda.record.settle import import_old_record

    old = folder if folder.name == OLD_FOLDER else folder / OLD_FOLDER
    if not has_old_record(old.parent):
        raise _refused(f"{folder} is neither an exported run nor a record of rooda 0.1")
    try:
        import_old_record(StateFolder(old.absolute()), place)
    except (StoreError, OSError) as error:
        raise _refused(f"the record in {old} can't be imported: {error}") from None
    click.echo(f"Imported the record. It is in {place.state} now; {old} may be deleted.", err=True)


def _transferred(work: Callable[[], _T]) -> _T:
    """Return what the work returns. Raises InvalidInput if the run can't be taken along."""
    try:
        return work()
    except TransferError as error:
        raise _refused(str(error)) from None


def _refused(message: str) -> InvalidInput:
    return InvalidInput([Problem(message, title="Run not transferred")])


_TITLE = "Record not changed"
_COLUMNS = (
    Column("WORK TREE"),
    Column("SIZE", 2, is_right=True),
    Column("LAST RUN", 1),
    Column("STATE FOLDER", 3),
)


@click.group("record", cls=PlainGroup)
def group() -> None:
    """Show, move, take along or delete the records of work trees."""


group.add_command(export)
group.add_command(import_)


@group.command("where")
def where() -> None:
    """Print the folder in which rooda keeps the record of this work tree."""
    click.echo(str(place_here().state))


@group.command("list")
def list_() -> None:
    """List the work trees that have a record: size, last run, and whether the folder is gone."""
    world = this_world()
    readable_home(world)
    places = known_places(world.environ)
    if not places:
        click.echo("No work tree has a record yet.", err=True)
        return
    print_paged([table(_COLUMNS, [*map(_row, places)], room=room())], world.folder)


def _row(place: RecordPlace) -> tuple[Cell, ...]:
    note = "" if place.tree.is_dir() else " (folder is gone)"
    last = when_last(place)
    return (
        Cell(f"{shown_path(place.tree)}{note}"),
        Cell(approximate_size(size_below(place.state))),
        Cell("-" if last is None else f"{last.astimezone():%Y-%m-%d %H:%M}"),
        Cell(place.state.name),
    )


@group.command("move")
@click.argument("old")
def move(*, old: str) -> None:
    """Give this work tree the record of the one that was at OLD.

    rooda does that itself where the file system tells it that the folder was moved, but not across
    disks.
    """
    world = this_world()
    home = readable_home(world)
    here = record_place(world)
    there = place_at(_absolute(old), home)
    if not has_record(there.state):
        raise _refused_place(f"there is no record of {there.tree}", "See `rooda record list`")
    if there.state == here.state:
        raise _refused_place(f"{there.tree} has that record already", "")
    if has_record(here.state):
        advice = "Delete that one first with `rooda record forget`"
        raise _refused_place(f"{here.tree} has a record of its own", advice)
    _refuse_at_work(there)
    try:
        for note in waiting_notes(here.state):
            write_note(there.state, note)
        shutil.rmtree(here.state, ignore_errors=True)  # it has no record
        there.state.rename(here.state)
        note_tree(here.state, here.tree)
    except OSError as error:
        raise _refused_place(f"the record can't be moved: {error.strerror}", "") from None
    click.echo(f"The record of {there.tree} is that of {here.tree} now.", err=True)


@group.command("forget")
@click.argument("path", required=False)
@click.option("--yes", "is_sure", is_flag=True, help="Ask no question.")
def forget(*, path: str | None, is_sure: bool) -> None:
    """Delete all that rooda keeps of this work tree or the one at PATH: runs, snapshots, fleet."""
    home = readable_home(this_world())
    place = place_here() if path is None else place_at(_absolute(path), home)
    if not has_record(place.state):
        raise _refused_place(f"there is no record of {place.tree}", "See `rooda record list`")
    _refuse_at_work(place)
    if not is_sure:
        if sys.stdin is None or not sys.stdin.isatty():
            raise _refused_place("without a terminal, rooda can't ask", "Add --yes")
        size = approximate_size(size_below(place.state))
        question = f"Delete the record of {one_line(str(place.tree))} ({size})?"
        if not click.confirm(question, err=True):
            return
        _refuse_at_work(place)  # the answer can take hours
    try:
        shutil.rmtree(place.state)
    except OSError as error:
        message = f"{error.filename or place.state} can't be deleted: {error.strerror or error}"
        raise _refused_place(message, "Correct the mode of that folder") from None
    click.echo(f"Deleted the record of {place.tree}.", err=True)


def _absolute(path: str) -> Path:
    return this_world().folder / Path(path).expanduser()


def _refuse_at_work(place: RecordPlace) -> None:
    if is_locked(place.state) or is_locked(place.tree):
        raise _refused_place(f"a run is at work in {place.tree}", "Wait until it has ended")
    if is_fleet_in(place.state):
        raise _refused_place(f"the fleet of {place.tree} is at work", "Stop its workers first")


def _refused_place(message: str, advice: str) -> InvalidInput:
    return InvalidInput([Problem(message, advice, title=_TITLE)])
