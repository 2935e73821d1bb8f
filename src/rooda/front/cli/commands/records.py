"""`rooda history`, `rooda show` and `rooda why`: what is in the record."""

import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import click

from rooda.front.cli.agent_output import print_output
from rooda.front.cli.all_runs import ListedRun, all_runs, listed
from rooda.front.color import COLOR, painter, room
from rooda.front.completion import complete_runs
from rooda.front.masking import UNMASKED, masker_here
from rooda.front.options import JSON, RunNamesCommand
from rooda.front.pager import print_paged
from rooda.front.recorded import (
    RECORD,
    Recorded,
    check_date,
    readable_record,
    shown_path,
    split_words,
)
from rooda.loop.state import Status
from rooda.plan.world import this_world
from rooda.record.json_objects import iteration_object, run_object, with_summary
from rooda.record.reader import MOST_RUNS
from rooda.record.rows import IterationRow, RunRow
from rooda.record.run_folders import iteration_folder, run_folder
from rooda.views.model.build import summarize
from rooda.views.model.measured import measured_brief, measured_iteration, measured_run
from rooda.views.model.summary import RunSummary
from rooda.views.terminal import why as why_view
from rooda.views.terminal.history_view import runs_text
from rooda.views.terminal.iteration_view import iteration_text
from rooda.views.terminal.run_view import Page, run_text
from rooda.views.wording.words import words_of

_WORDS = click.argument(
    "words", nargs=-1, metavar="[RUN] [ITERATION]", shell_complete=complete_runs
)
_NO_RUN = (
    "No run is recorded here yet. Start one with `rooda PROCEDURE` (`rooda list` shows the "
    "procedures)."
)
_NO_RUN_AT_ALL = (
    "No run is recorded on this machine yet. A work tree is listed from its next run on; start one "
    "with `rooda PROCEDURE`."
)
_CLOSING = 2000  # characters of the agent's last words


def _dump(value: object) -> str:
    return json.dumps(value, indent=2)


def _page(color: str) -> Page:
    return Page(room(), painter(color))


def _print(pieces: Iterable[str], record: Recorded, page: Page) -> None:
    print_paged(pieces, record.workspace, is_colored=page.paint.is_on)


@click.command("history")
@click.option(
    "--status", type=click.Choice([str(one) for one in Status]), help="Only runs with this status."
)
@click.option("--procedure", metavar="NAME", help="Only runs of this procedure.")
@click.option("--since", metavar="DATE", help="Only runs from this day or time on.")
@click.option("--until", metavar="DATE", help="Only runs up to this day or time.")
@click.option("--all", "every", is_flag=True, help="The runs of all work trees of this machine.")
@click.option("-n", "--limit", type=click.IntRange(1), metavar="N", help="Only the newest N runs.")
@COLOR
@JSON
@RECORD
@UNMASKED
def history(
    *,
    status: str | None,
    procedure: str | None,
    since: str | None,
    until: str | None,
    every: bool,
    limit: int | None,
    color: str,
    as_json: bool,
    unmasked: bool,
) -> None:
    """List the runs of this work tree, newest first.

    With --all: the runs of all work trees of this machine, those at work first.
    """
    wanted = {"status": status, "procedure": procedure, "since": since, "until": until}
    for text in (since, until):
        check_date(text)
    if every:
        runs = all_runs(masker_here(unmasked=unmasked), limit, wanted)
        workspace = this_world().folder
    else:
        record = Recorded.here(unmasked=unmasked)
        rows = record.runs(**wanted, limit=limit)
        runs, workspace = readable_record(lambda: listed(record, rows)), record.workspace
    if limit is None and len(runs) >= MOST_RUNS:
        click.echo(f"Without -n, rooda lists at most {MOST_RUNS} runs of a work tree.", err=True)
    if as_json:
        click.echo(_dump([_listed_object(one, with_tree=every) for one in runs]))
    elif runs:
        page = _page(color)
        trees = [shown_path(one.tree) for one in runs] if every else ()
        text = runs_text([one.brief for one in runs], page, trees)
        print_paged([text], workspace, is_colored=page.paint.is_on)
    else:
        nothing = _NO_RUN_AT_ALL if every else _NO_RUN
        click.echo("No run matches." if any(wanted.values()) else nothing, err=True)


def _listed_object(one: ListedRun, *, with_tree: bool) -> dict[str, Any]:
    found = run_object(one.row) | measured_brief(one.brief)
    return {"tree": str(one.tree), **found} if with_tree else found


@click.command("show", cls=RunNamesCommand)
@_WORDS
@click.option(
    "--output",
    is_flag=True,
    help="Print the agent's words and tool calls.",
)
@click.option(
    "--raw",
    is_flag=True,
    help="Print what the agent printed, byte for byte; a terminal gets no control codes of it.",
)
@COLOR
@JSON
@RECORD
@UNMASKED
def show(
    *,
    words: tuple[str, ...],
    output: bool,
    raw: bool,
    color: str,
    as_json: bool,
    unmasked: bool,
) -> None:
    """Show a run, or one of its iterations. Without RUN: the last run."""
    if output and raw:
        raise click.UsageError("--output and --raw exclude each other: choose one of them")
    record = Recorded.here(unmasked=unmasked)
    name, number = _named(words)
    row = record.run(name)
    if output or raw:
        print_output(record, row, number, is_raw=raw)
    elif as_json:
        _print_json(record, row, number)
    else:
        page = _page(color)
        pieces = _run(record, row, page) if number is None else _one(record, row, number, page)
        _print(pieces, record, page)


def _summary(record: Recorded, row: RunRow) -> RunSummary:
    now, reader = datetime.now().astimezone(), record.reader
    kept = reader.kept_snapshots(row.run)
    return readable_record(lambda: summarize(row, reader.each_iteration(row.run), now, kept))


def _run(record: Recorded, row: RunRow, page: Page) -> Iterator[str]:
    folder = shown_path(run_folder(record.state, row.run))
    return run_text(row, _summary(record, row), page, folder)


def _one(record: Recorded, row: RunRow, number: int, page: Page) -> Iterator[str]:
    found = record.iteration(row, number)
    run = _summary(record, row)
    one = next(one for one in run.iterations if one.number == found.number)
    limits = {"longest": _CLOSING, "steps": 1}
    words = words_of(record.place, row.run, one, **limits, masker=record.masker)
    folder = iteration_folder(record.state, row.run, found.number, found.attempt)
    return iteration_text(found, one, run, words, page, shown_path(folder))


def _named(words: tuple[str, ...]) -> tuple[str | None, int | None]:
    if words[2:]:
        raise click.UsageError("name a run and an iteration, and no more")
    return split_words(words)


def _print_json(record: Recorded, row: RunRow, number: int | None) -> None:
    """Print one object. Iterations are printed one by one: each can have megabytes."""
    if number is not None:
        one = record.iteration(row, number)
        click.echo(_dump(_iteration_object(record, one, _summary(record, row))))
        return
    iterations = record.iterations(row.run)
    run = _summary(record, row)
    whole = run_object(with_summary(row, iterations))
    head = _dump(whole | measured_run(run, whole)).removesuffix("\n}")
    click.echo(f'{head},\n  "iterations": [', nl=False)
    for place, one in enumerate(iterations):
        click.echo("," if place else "")
        text = _dump(_iteration_object(record, one, run))
        click.echo("\n".join(f"    {line}" for line in text.splitlines()), nl=False)
    click.echo("\n  ]\n}")


def _iteration_object(record: Recorded, row: IterationRow, run: RunSummary) -> dict[str, Any]:
    one = next((one for one in run.iterations if one.number == row.number), None)
    # The object has the prompt too, from its file.
    found = record.masker.tree(iteration_object(row, record.state))
    return found if one is None else found | measured_iteration(one)


@click.command("why", cls=RunNamesCommand)
@_WORDS
@JSON
@RECORD
@UNMASKED
def why(*, words: tuple[str, ...], as_json: bool, unmasked: bool) -> None:
    """Explain which rule ended a run or an iteration, on which evidence.

    It also shows the limits, and where each was set. Without RUN: the last run.
    """
    record = Recorded.here(unmasked=unmasked)
    name, number = _named(words)
    row = record.run(name)
    rows = record.iterations(row.run) if number is None else [record.iteration(row, number)]
    one = rows[-1] if rows else None
    if as_json:
        click.echo(_dump(why_view.as_object(row, one)))
    elif number is not None and one is not None:
        print_paged([why_view.of_iteration(row, one, room())], record.workspace)
    else:
        print_paged([why_view.of_run(row, one, room())], record.workspace)
