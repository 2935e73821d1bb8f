"""`rooda follow` and `rooda stop`: a run that is at work in another terminal."""

import os
import signal
import time

import click

from rooda.cli.here import this_world
from rooda.cli.recorded import Recorded
from rooda.config.problems import InvalidInput, Problem
from rooda.process.interrupts import END
from rooda.process.leftovers import start_time
from rooda.record.places import run_folder
from rooda.record.rows import RunRow
from rooda.record.transcript import open_plain
from rooda.text.controls import StreamCleaner
from rooda.workspace.lock import here, who_holds
from rooda.workspace.state import SESSION
from rooda.workspace.tree import work_tree

_PACE = 0.2
_CHUNK = 64 * 1024
_BEFORE = 8 * 1024  # bytes of what was there before, to know where we are


@click.command("follow")
@click.argument("run", required=False)
@click.option("--from-start", is_flag=True, help="From the beginning of the session log.")
def follow(*, run: str | None, from_start: bool) -> None:
    """Show what a run does, as it happens; ends when the run does."""
    record = Recorded.here()
    row = record.run(run)
    path = run_folder(record.workspace, row.run) / SESSION
    try:
        fd = open_plain(path)
    except OSError as error:
        message = f"run {row.run} has no session log: {error.strerror}"
        raise InvalidInput([Problem(message, "See `rooda show`")]) from None
    cleaner = StreamCleaner()
    try:
        _go_to_start(fd, row, cleaner, whole=from_start or row.status != "running")
        while _copy(fd, cleaner) or _is_at_work(record, row):
            time.sleep(_PACE)
        _copy(fd, cleaner)
    finally:
        os.close(fd)


def _go_to_start(fd: int, row: RunRow, cleaner: StreamCleaner, *, whole: bool) -> None:
    """A run that is over is shown whole, one at work from its last lines on."""
    start = 0 if whole else max(0, os.fstat(fd).st_size - _BEFORE)
    click.echo(f"Run {row.run} ({row.procedure}), {row.status}", err=True)
    os.lseek(fd, start, os.SEEK_SET)
    if start:
        piece = os.read(fd, _CHUNK)
        click.echo(cleaner.feed(piece.partition(b"\n")[2]), nl=False)


def _copy(fd: int, cleaner: StreamCleaner) -> bool:
    """Print what is new; whether there was anything. An agent can write to that file, too."""
    found = False
    while piece := os.read(fd, _CHUNK):
        click.echo(cleaner.feed(piece), nl=False)
        found = True
    return found


def _is_at_work(record: Recorded, row: RunRow) -> bool:
    return record.run(row.run).status == "running"


@click.command("stop")
@click.option("--now", is_flag=True, help="At once, as by Ctrl+C.")
def stop(*, now: bool) -> None:
    """End the run that is at work here when its current iteration is over."""
    pid, name = _at_work()
    try:
        os.kill(pid, signal.SIGINT if now else END)
    except ProcessLookupError:
        raise _nobody() from None
    except PermissionError:
        problem = Problem(f"{name} belongs to somebody else", "Ask its owner to stop it")
        raise InvalidInput([problem]) from None
    when = "now" if now else "when its current iteration has ended"
    click.echo(f"{name} stops {when}.")


def _at_work() -> tuple[int, str]:
    """The process that is at work in this work tree, and what to call it. Raises InvalidInput."""
    pid, note = who_holds(work_tree(this_world().folder))
    if note is not None and note.host != here()[0]:
        message = f"the run of {note.procedure} is at work on {note.host}"
        raise InvalidInput([Problem(message, "Stop it there")])
    if pid is None or (note is not None and start_time(pid) != note.started):
        raise _nobody()
    return pid, f"{note.procedure} (run {note.run}, pid {pid})" if note else f"The run of pid {pid}"


def _nobody() -> InvalidInput:
    return InvalidInput([Problem("no run is at work here", "See `rooda history`")])
