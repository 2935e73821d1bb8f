"""`rooda fleet follow`, `show`, `why` and `diff`: what runs do, did and changed."""

import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

import click

from rooda.base.controls import clean
from rooda.base.secrets.masking import Masker
from rooda.fleet.display.fleet_progress import going_on
from rooda.fleet.display.fleet_table import has_worker, run_object, worker_words
from rooda.fleet.display.run_words import (
    color_of,
    cost_words,
    iteration_words,
    next_words,
    state_words,
    time_of,
)
from rooda.fleet.run_model import Run, RunState
from rooda.front.cli.fleet_here import FleetHere, fleet_here, wrong
from rooda.front.color import COLOR, painter, room
from rooda.front.command_table import CliContext
from rooda.front.masking import UNMASKED, masker_here
from rooda.front.options import JSON
from rooda.front.pager import print_paged
from rooda.loop.stops import known_rule
from rooda.record.rows import RunRow
from rooda.views.terminal.run_view import Page, run_facts
from rooda.views.terminal.table import Cell, named_lines
from rooda.world.state.folder import StateFolder
from rooda.world.state.record_place import RecordPlace


@click.command("follow")
@click.argument("runs", nargs=-1, metavar="[RUN...]")
@click.pass_obj
def follow(session: CliContext, /, *, runs: tuple[str, ...]) -> int:
    """Show live what runs do, wherever they are, until they have ended. Without RUN: all."""
    from rooda.fleet.display.fleet_progress import Display, Viewer, follow_runs
    from rooda.views.terminal.terminal import Sink, Terminal

    with fleet_here() as here:
        names = frozenset(here.run(name).run for name in runs) or None
        sight = here.sight()
        if not going_on(sight.runs):
            click.echo("No run is at work or can start. See `rooda fleet`.", err=True)
            return 0
        if not has_worker(sight):
            click.echo("\n".join(worker_words(sight)), err=True)
        err = Sink(sys.stderr.fileno())
        display = Display(
            Terminal(Sink(sys.stdout.fileno()), err),
            is_live=err.is_terminal,
            names=names,
            masker=masker_here(),
        )

        def look() -> tuple[list[Run], float]:
            return here.runs(), here.store.now()

        def is_over(found: Sequence[Run]) -> bool:
            return not [run for run in going_on(found) if names is None or run.run in names]

        viewer = Viewer(look, display, session.interrupts, with_worker=False)
        try:
            return follow_runs(viewer, session.interrupts, is_over)
        finally:
            display.close()


@click.command("show")
@click.argument("run")
@COLOR
@JSON
@UNMASKED
def show(*, run: str, color: str, as_json: bool, unmasked: bool) -> None:
    """Show a run: its task, its state, and its iterations so far."""
    masker = masker_here(unmasked=unmasked)
    with fleet_here() as here:
        found = masker.tree(here.run(run))
        now, states = here.store.now(), here.sight().states
        if as_json:
            click.echo(json.dumps(run_object(found, states, now), indent=2))
            return
        page = Page(room(), painter(color))
        head = named_lines(_facts(found, states, now), room=page.room, paint=page.paint)
        with _record_of(here, found) as place:
            pieces = [head, *_recorded(place, found, page, masker)]
        print_paged(pieces, here.place.top, is_colored=page.paint.is_on)


def _facts(run: Run, states: dict[str, RunState], now: float) -> Iterator[tuple[str | Cell, str]]:
    yield "Run", f"{run.run} ({run.task.title})" if run.task.title != run.run else run.run
    yield Cell("State", color_of(run)), state_words(run, states, now)
    yield "Iteration", iteration_words(run) or "none yet"
    yield "Cost", cost_words(run.cost, run.unknown_costs) or "none known"
    yield "Branch", run.branch
    if run.where:
        yield "Where", run.where
    if run.task.procedure:
        yield "Procedure", run.task.procedure
    if run.task.after:
        yield "After", ", ".join(run.task.after)
    yield "Added", time_of(run.added, now)
    if run.headline:
        yield "Last", run.headline


def _recorded(place: RecordPlace | None, run: Run, page: Page, masker: Masker) -> Iterator[str]:
    """Yield what `rooda show` shows of a run."""
    from rooda.front.recorded import Recorded, readable_record
    from rooda.views.model.build import summarize

    if place is None:
        yield "\nNo iteration is published yet.\n"
        return
    record = Recorded.at(place, masker)
    row = record.run(run.run)
    every = record.reader.each_iteration(row.run)
    summary = readable_record(lambda: summarize(row, every, datetime.now().astimezone()))
    yield "\n"
    yield from run_facts(row, summary, page, with_end=_has_own_end(run, row))


def _has_own_end(run: Run, row: RunRow) -> bool:
    """Return whether rooda ended the run by a rule; else the fleet did, or it goes on.

    The record of a run that goes on, was stopped, or has used up the budget of its batch, says
    that rooda paused after an iteration, or that no agent could work.
    """
    rule = known_rule(row.rule)
    return run.state.is_end and (rule is None or not rule.row.is_break)


@click.command("why")
@click.argument("run")
@JSON
@UNMASKED
def why(*, run: str, as_json: bool, unmasked: bool) -> None:
    """Explain why a run waits, or which rule ended it, on which evidence."""
    from rooda.front.recorded import Recorded
    from rooda.views.terminal import why as why_view

    masker = masker_here(unmasked=unmasked)
    with fleet_here() as here:
        found = masker.tree(here.run(run))
        words = state_words(found, here.sight().states, here.store.now())
        with _record_of(here, found) as place:
            row = one = None
            if place is not None:
                record = Recorded.at(place, masker)
                row = record.run(found.run)
                rows = record.iterations(row.run)
                one = rows[-1] if rows else None
        if as_json:
            recorded = None if row is None else why_view.as_object(row, one)
            state = {"run": found.run, "state": str(found.state), "words": words}
            click.echo(json.dumps(state | {"reason": found.reason, "record": recorded}, indent=2))
            return
        text = clean(f"{found.run}: {words}\n")
        if row is not None and _has_own_end(found, row):
            text += "\n" + why_view.of_run(row, one, room())
        elif one is not None:
            text += "\n" + why_view.of_last(one)
        if advice := next_words(found):
            text += clean(f"\nNext: {advice}\n")
        print_paged([text], here.place.top)


@click.command("diff")
@click.argument("run")
@click.option("--stat", is_flag=True, help="Show only which files changed, and how much.")
@UNMASKED
def diff(*, run: str, stat: bool, unmasked: bool) -> None:
    """Show what a run changed, from the commit where it started to its branch."""
    from rooda.fleet.actions.one_run import run_diff

    with fleet_here() as here:
        found = here.run(run)
        text = run_diff(found, here.place, here.tools, stat=stat)
        if not text:
            click.echo(f"{found.run} has changed nothing yet.", err=True)
        shown = masker_here(unmasked=unmasked).text(clean(text))
        print_paged([shown], here.place.top)


@contextlib.contextmanager
def _record_of(here: FleetHere, run: Run) -> Iterator[RecordPlace | None]:
    """Yield a folder with the record of a run, from git; None if nothing is published yet."""
    from rooda.fleet.actions.one_run import published_record
    from rooda.record.transfer import TransferError, import_run

    data = published_record(run, here.place, here.tools)
    if not data:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="rooda-fleet-") as folder:
        place = RecordPlace(here.place.top, StateFolder(Path(folder)))
        try:
            import_run(place.state, data)
        except TransferError as error:
            message = f"the record of {run.run} can't be read: {error}"
            raise wrong(message, "See its branch with `rooda fleet diff`") from None
        yield place
