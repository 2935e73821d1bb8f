"""`rooda watch`: the runs of this machine on the full screen."""

import contextlib
import signal
import sys
from collections.abc import Iterator

import click

from rooda.base.problems import InvalidInput, Problem
from rooda.front.command_table import CliContext
from rooda.front.completion import complete_runs
from rooda.front.extras import need_extra
from rooda.front.masking import masker_here
from rooda.front.options import RunNamesCommand
from rooda.plan.world import this_world
from rooda.world.process.interrupts import end_at_once, stays_ignored


@click.command("watch", cls=RunNamesCommand)
@click.argument("run", required=False, shell_complete=complete_runs)
@click.pass_obj
def watch(session: CliContext, /, *, run: str | None) -> int:
    """Show the runs of this machine on the full screen, live; keys tell and stop them.

    Opens RUN, else the run at work in this folder, else the list of all runs. Quitting leaves the
    runs alone. `?` shows the keys.
    """
    need_extra("tui", "`rooda watch`", "textual")
    is_simple = this_world().environ.get("TERM") == "dumb"
    if is_simple or not (_is_terminal(sys.stdin) and _is_terminal(sys.stdout)):
        advice = "Run it in a terminal; `rooda follow` and `rooda show` print to anything"
        raise InvalidInput([Problem("`rooda watch` needs a terminal", advice)])
    from rooda.front.cli.watched import place_to_open, sources_here
    from rooda.front.watch.app import WatchApp

    world = this_world()
    masker = masker_here()
    place = place_to_open(world, run, masker)
    # A signal must not leave the terminal without its cursor: the view ends by itself.
    with session.interrupts.deferred(), _hang_up_ends_at_once():
        app = WatchApp(sources_here(world, masker), place, session.interrupts)
        app.run()
    if app.failure is not None:
        raise app.failure
    return app.return_value or app.return_code or 0


@contextlib.contextmanager
def _hang_up_ends_at_once() -> Iterator[None]:
    """Without its terminal, Textual would wait forever for room to write to it."""
    if stays_ignored(signal.SIGHUP):
        yield
        return
    before = signal.signal(signal.SIGHUP, end_at_once)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def _is_terminal(stream: object) -> bool:
    return hasattr(stream, "isatty") and bool(stream.isatty())
