"""`rooda record export` and `rooda record import`: take a run to another record."""

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from rooda.config.problems import InvalidInput, Problem
from rooda.console.completion import complete_runs
from rooda.console.options import PlainGroup, RunNamesCommand
from rooda.console.recorded import readable_record, workspace_here
from rooda.record.given_flags import masked_flags
from rooda.record.record_reader import RecordReader
from rooda.record.transfer import LARGEST, TransferError, export_run, import_run
from rooda.text.controls import one_line
from rooda.text.plain_files import read_plain_file, replace_file

_T = TypeVar("_T")
_STANDARD = "-"  # standard input or output
_RECORD = click.option(
    "--record", metavar="DIR", help="Folder with the record [default: that of this work tree]."
)


@click.group("record", cls=PlainGroup)
def group() -> None:
    """Take a run to another record, on this machine or on another."""


@group.command("export", cls=RunNamesCommand)
@click.argument("run", shell_complete=complete_runs)
@click.argument("file", default=_STANDARD)
@_RECORD
def export(*, run: str, file: str, record: str | None) -> None:
    """Write a run to FILE as one JSON document, or to standard output.

    It has the run, its iterations and what `rooda resume` needs; no transcripts, no environment,
    and no values of flags that may be secrets.
    """
    workspace = _workspace(record)
    row = readable_record(lambda: RecordReader(workspace).run(run))
    data = _transferred(lambda: export_run(workspace, row.run))
    if file == _STANDARD:
        sys.stdout.buffer.write(data)
        return
    try:
        replace_file(Path(file).absolute(), data)
    except OSError as error:
        raise _refused(f"{file} can't be written: {error.strerror}") from None


@group.command("import")
@click.argument("file")
@_RECORD
def import_(*, file: str, record: str | None) -> None:
    """Put an exported run from FILE, or from standard input (`-`), into the record.

    It replaces a run of the same name.
    """
    try:
        if file == _STANDARD:
            data = sys.stdin.buffer.read(LARGEST + 1)
        else:
            data = read_plain_file(Path(file), LARGEST + 1, follow=True)
    except OSError as error:
        raise _refused(f"{file} can't be read: {error.strerror}") from None
    workspace = _workspace(record)
    name = _transferred(lambda: import_run(workspace, data))
    click.echo(f"Imported run {name}. Continue it with: rooda resume {name}", err=True)
    flags = masked_flags(readable_record(lambda: RecordReader(workspace).run(name)).given)
    if flags:
        click.echo(f"It would run with the flags: {one_line(shlex.join(flags))}", err=True)


def _workspace(record: str | None) -> Path:
    return workspace_here() if record is None else Path(record).absolute()


def _transferred(work: Callable[[], _T]) -> _T:
    """Return what the work returns. Raises InvalidInput if the run can't be taken along."""
    try:
        return work()
    except TransferError as error:
        raise _refused(str(error)) from None


def _refused(message: str) -> InvalidInput:
    return InvalidInput([Problem(message, title="Run not transferred")])
