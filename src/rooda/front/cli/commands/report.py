"""`rooda report`: one run as a page."""

import os
import shlex
import socket
import sys
from collections.abc import Iterable
from pathlib import Path

import click

from rooda.base.numbers import approximate_size
from rooda.base.problems import InvalidInput, Problem
from rooda.front.completion import complete_runs
from rooda.front.masking import UNMASKED
from rooda.front.options import RunNamesCommand
from rooda.front.recorded import RECORD, Recorded, readable_record
from rooda.record.rows import RunRow
from rooda.views.report import make
from rooda.views.report.details import DetailReader
from rooda.views.report.make import write_default, write_whole
from rooda.world.git.work_tree import work_tree
from rooda.world.state.record_place import RecordPlace

_STDOUT = "-"


@click.command("report", cls=RunNamesCommand)
@click.argument("name", required=False, metavar="[RUN]", shell_complete=complete_runs)
@click.option(
    "-f",
    "--format",
    "form",
    type=click.Choice(list(make.FORMATS)),
    help="The form of the report [default: as PATH ends, else html].",
)
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    help="Write to this file, or `-` for standard output.",
)
@RECORD
@UNMASKED
def report(*, name: str | None, form: str | None, output: str | None, unmasked: bool) -> None:
    """Make one page of a run: outcome, proof, timeline, iterations, next commands.

    The page is one HTML file that needs no network and no script. Without RUN: the last run.
    Without a PATH: a file in the folder of the run (`rooda record where`). Markdown and JSON go to
    standard output instead.
    """
    if output == "":
        raise InvalidInput([Problem("-o has no PATH", "Name a file, or `-` for standard output")])
    record = Recorded.here(unmasked=unmasked)
    row = record.run(name)
    summary = readable_record(lambda: make.summary_of(record.reader, row))
    form = form or make.format_of(Path(output or ""))
    details = DetailReader(record.place, masker=record.masker)
    pieces = make.text_of(summary, form, record.place, details)
    if output == _STDOUT or (output is None and form != "html"):
        for piece in pieces:
            click.echo(piece.encode("utf-8", "replace"), nl=False)
        return
    path = _write(record.place, row, pieces, output, make.FORMATS[form])
    size = approximate_size(path.stat().st_size)
    click.echo(f"Report of run {row.run}: {path} ({size})")
    if form == "html":
        click.echo(f"To open it: {_opening(path)}")


def _write(
    place: RecordPlace, row: RunRow, pieces: Iterable[str], output: str | None, ending: str
) -> Path:
    try:
        if output is None:
            return write_default(place, row.run, pieces)
        path = Path(output).absolute()
        if path.is_dir():
            path /= f"rooda-{row.run}{ending}"
        write_whole(path, pieces, place, (work_tree(Path.cwd()),))
    except OSError as error:
        where = error.filename or output or place.state
        message = f"the report can't be written: {where}: {error.strerror or error}"
        raise InvalidInput([Problem(message, "Choose another file with -o PATH")]) from None
    return path


def _opening(path: Path) -> str:
    """Return the command that shows the file on this machine, or that fetches it from here."""
    if os.environ.get("SSH_CONNECTION"):
        return f"scp {shlex.quote(f'{socket.gethostname()}:{path}')} .   (on your own machine)"
    program = "open" if sys.platform == "darwin" else "xdg-open"
    return f"{program} {shlex.quote(str(path))}"
