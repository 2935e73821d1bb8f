"""`rooda record`: where the records of this machine are, and how to move, delete and take them."""

import shutil
import sys
from pathlib import Path

import click

from rooda.base.controls import one_line
from rooda.base.numbers import approximate_size
from rooda.base.problems import InvalidInput, Problem
from rooda.front.cli.commands.record_transfer import export, import_
from rooda.front.color import room
from rooda.front.options import PlainGroup
from rooda.front.pager import print_paged
from rooda.front.recorded import place_here, shown_path
from rooda.plan.preflight.state import readable_home, record_place
from rooda.plan.world import this_world
from rooda.record.run_folders import size_below
from rooda.views.machine_runs import when_last
from rooda.views.terminal.table import Cell, Column, table
from rooda.world.state.fleet_state import is_fleet_in
from rooda.world.state.lock import is_locked
from rooda.world.state.record_place import RecordPlace, has_record, known_places, place_at
from rooda.world.state.tree_identity import note_tree
from rooda.world.state.user_notes import waiting_notes, write_note

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
        raise _refused(f"there is no record of {there.tree}", "See `rooda record list`")
    if there.state == here.state:
        raise _refused(f"{there.tree} has that record already", "")
    if has_record(here.state):
        advice = "Delete that one first with `rooda record forget`"
        raise _refused(f"{here.tree} has a record of its own", advice)
    _refuse_at_work(there)
    try:
        for note in waiting_notes(here.state):
            write_note(there.state, note)
        shutil.rmtree(here.state, ignore_errors=True)  # it has no record
        there.state.rename(here.state)
        note_tree(here.state, here.tree)
    except OSError as error:
        raise _refused(f"the record can't be moved: {error.strerror}", "") from None
    click.echo(f"The record of {there.tree} is that of {here.tree} now.", err=True)


@group.command("forget")
@click.argument("path", required=False)
@click.option("--yes", "is_sure", is_flag=True, help="Ask no question.")
def forget(*, path: str | None, is_sure: bool) -> None:
    """Delete all that rooda keeps of this work tree or the one at PATH: runs, snapshots, fleet."""
    home = readable_home(this_world())
    place = place_here() if path is None else place_at(_absolute(path), home)
    if not has_record(place.state):
        raise _refused(f"there is no record of {place.tree}", "See `rooda record list`")
    _refuse_at_work(place)
    if not is_sure:
        if sys.stdin is None or not sys.stdin.isatty():
            raise _refused("without a terminal, rooda can't ask", "Add --yes")
        size = approximate_size(size_below(place.state))
        question = f"Delete the record of {one_line(str(place.tree))} ({size})?"
        if not click.confirm(question, err=True):
            return
    try:
        shutil.rmtree(place.state)
    except OSError as error:
        message = f"{error.filename or place.state} can't be deleted: {error.strerror}"
        raise _refused(message, "Correct the mode of that folder") from None
    click.echo(f"Deleted the record of {place.tree}.", err=True)


def _absolute(path: str) -> Path:
    return this_world().folder / Path(path).expanduser()


def _refuse_at_work(place: RecordPlace) -> None:
    if is_locked(place.state) or is_locked(place.tree):
        raise _refused(f"a run is at work in {place.tree}", "Wait until it has ended")
    if is_fleet_in(place.state):
        raise _refused(f"the fleet of {place.tree} is at work", "Stop its workers first")


def _refused(message: str, advice: str) -> InvalidInput:
    return InvalidInput([Problem(message, advice, title=_TITLE)])
