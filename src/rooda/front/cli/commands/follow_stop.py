"""`rooda follow` and `rooda stop`: a run that is at work in another terminal."""

import os
import signal
import time

import click

from rooda.base.problems import InvalidInput, Problem
from rooda.base.secrets.masking import SafeStream
from rooda.front.completion import complete_runs
from rooda.front.options import RunNamesCommand
from rooda.front.recorded import Recorded, readable_record
from rooda.plan.world import this_world
from rooda.record.rows import RunRow
from rooda.record.run_folders import run_folder
from rooda.run.control import AtWork
from rooda.world.files.plain_files import open_plain_file
from rooda.world.process.interrupts import END
from rooda.world.state.folder import SESSION

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
