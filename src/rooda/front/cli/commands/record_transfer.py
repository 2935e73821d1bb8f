"""`rooda record export` and `rooda record import`: take a run to another record."""

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from rooda.base.controls import one_line
from rooda.base.problems import InvalidInput, Problem
from rooda.front.completion import complete_runs
from rooda.front.options import RunNamesCommand
from rooda.front.recorded import RECORD, place_here, readable_record
from rooda.plan.preflight.state import writable_place
from rooda.plan.world import this_world
from rooda.record.given_flags import masked_flags
from rooda.record.reader import RecordReader
from rooda.record.rows import StoreError
from rooda.record.transfer import LARGEST, TransferError, export_run, import_run
from rooda.run.for_programs import record_apart
from rooda.world.files.plain_files import read_plain_file, replace_file
from rooda.world.state.folder import StateFolder
from rooda.world.state.old_record import OLD_FOLDER, has_old_record
from rooda.world.state.record_place import RecordPlace

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
