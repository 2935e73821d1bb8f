"""`rooda history`, `rooda show` and `rooda why`: what is in the record."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from rooda.base.controls import one_line
from rooda.base.problems import InvalidInput, Problem
from rooda.base.secrets.masking import ByteStream, Masker
from rooda.front.color import COLOR, painter, room
from rooda.front.completion import complete_runs
from rooda.front.masking import UNMASKED, masker_here
from rooda.front.options import JSON, RunNamesCommand
from rooda.front.pager import is_terminal, print_paged
from rooda.front.recorded import (
    RECORD,
    Recorded,
    check_date,
    chosen_record,
    readable_record,
    shown_path,
    split_words,
)
from rooda.loop.state import Status
from rooda.plan.preflight.state import readable_home
from rooda.plan.world import this_world
from rooda.record.json_objects import iteration_object, run_object, with_summary
from rooda.record.reader import MOST_RUNS
from rooda.record.rows import IterationRow, RunRow, StoreError
from rooda.record.run_folders import iteration_folder, run_folder
from rooda.record.transcript_files import named_streams
from rooda.views.machine_runs import machine_runs
from rooda.views.model.brief import (
    RunBrief,
    brief_of,
    measured_brief,
    measured_iteration,
    measured_run,
)
from rooda.views.model.build import adapter_of, summarize
from rooda.views.model.summary import RunSummary
from rooda.views.terminal import why as why_view
from rooda.views.terminal.iteration_view import iteration_text
from rooda.views.terminal.run_view import Page, run_text, runs_text
from rooda.views.wording.words import readable, words_of
from rooda.world.agents.registry import TEXT

# `rooda show --output` and `--raw`: what the agent printed, to read or byte for byte.


_TITLE = "=== iteration {} ===\n"


def print_output(record: Recorded, run: RunRow, number: int | None, *, is_raw: bool) -> None:
    """Print the output of one iteration, or of all; `is_raw`: the bytes as the agent wrote them.

    A terminal never gets control codes of an agent.
    """
    rows = record.iterations(run.run) if number is None else [record.iteration(run, number)]
    if not rows:
        problem = Problem(
            f"run {run.run} has no output yet", "Wait until its first iteration has started"
        )
        raise InvalidInput([problem])
    output = _Output(record, run, number is None, is_raw)
    if is_terminal():
        print_paged(output.for_people(rows), record.workspace)
        return
    for piece in output.for_programs(rows):
        click.echo(piece, nl=False)


class _Output(Struct, frozen=True):
    """The output of iterations of a run, piece by piece."""

    record: Recorded
    run: RunRow
    is_whole_run: bool
    is_raw: bool

    def for_people(self, rows: Iterable[IterationRow]) -> Iterator[str]:
        """Yield clean text."""
        for row in rows:
            if self.is_whole_run:
                yield _TITLE.format(row.number)
            yield from self._words(row)

    def for_programs(self, rows: Iterable[IterationRow]) -> Iterator[bytes]:
        """Yield bytes; the text of an agent that rooda does not know is as the agent wrote it."""
        end = b"\n"
        for row in rows:
            if self.is_whole_run and not self.is_raw:
                yield (b"" if end == b"\n" else b"\n") + _TITLE.format(row.number).encode()
            if self._adapter(row) == TEXT:
                found = self._bytes(row)
            else:
                found = (text.encode("utf-8", "replace") for text in self._words(row))
            for data in found:
                end = data[-1:] or end
                yield data

    def _bytes(self, row: IterationRow) -> Iterator[bytes]:
        """Yield the bytes of both streams; only secrets are masked."""
        streams: dict[str, ByteStream] = {}
        for name, data in self._pieces(row):
            if name not in streams:
                streams[name] = ByteStream(self.record.masker)
            yield streams[name].feed(data)
        yield from (stream.finish() for stream in streams.values())

    def _words(self, row: IterationRow) -> Iterator[str]:
        folder = str(self.record.workspace)
        return readable(self._pieces(row), self._adapter(row), folder, self.record.masker)

    def _adapter(self, row: IterationRow) -> str:
        return TEXT if self.is_raw else adapter_of(self.run, row)

    def _pieces(self, row: IterationRow) -> Iterator[tuple[str, bytes]]:
        """Yield what the agent printed on each stream, in order of arrival."""
        folder = iteration_folder(self.record.state, row.run, row.number, row.attempt)
        try:
            yield from named_streams(folder)
        except OSError as error:
            message = f"the output of iteration {row.number} is gone: {error.strerror}"
            if self.is_whole_run:
                click.echo(f"Warning: {message}", err=True)  # the others may be there
                return
            problem = Problem(message, f"Something has deleted it from {folder}")
            raise InvalidInput([problem]) from None


# The runs of all work trees of this machine, for `rooda history --all`.


class ListedRun(Struct, frozen=True):
    """A run of a list, and the work tree of its record."""

    tree: Path
    row: RunRow
    brief: RunBrief


def listed(record: Recorded, rows: Sequence[RunRow]) -> list[ListedRun]:
    """Return runs of one record with their counts and headlines. Raises StoreError."""
    counted = [_counted(record, row) for row in rows]
    headlines = record.reader.headlines(row.run for row in counted)
    now = datetime.now().astimezone()
    return [
        ListedRun(record.place.tree, row, brief_of(row, headlines.get(row.run, ""), now))
        for row in counted
    ]


def _counted(record: Recorded, row: RunRow) -> RunRow:
    """Return the run with its counts; one that has ended has them, others are counted now."""
    is_known = row.rule is not None and row.summary is not None
    return row if is_known else record.summed_up(row)


def all_runs(masker: Masker, limit: int | None, wanted: Mapping[str, Any]) -> list[ListedRun]:
    """Return the runs that match, those at work first, then the newest first.

    A record that can't be read is named on standard error, and the others are shown. Raises
    InvalidInput if there can be no record at all.
    """
    world = this_world()
    readable_home(world)
    found = machine_runs(masker, world.environ, limit, _complain, **wanted)
    order = {(one.tree, one.row.run): number for number, one in enumerate(found)}
    runs: list[ListedRun] = []
    by_record = sorted(found, key=lambda one: one.place.state)
    for _, group in groupby(by_record, lambda one: one.place.state):
        rows = list(group)
        place = rows[0].place
        try:
            runs += listed(Recorded.at(place, masker), [one.row for one in rows])
        except (StoreError, InvalidInput) as error:
            _complain(place.tree, str(error))
    return sorted(runs, key=lambda one: order[one.tree, one.row.run])


def _complain(tree: Path, why: str) -> None:
    click.echo(f"Warning: the record of {one_line(str(tree))} can't be read: {why}", err=True)


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
        if chosen_record() is not None:
            message = "--all reads the records of all work trees, and --record only one"
            problem = Problem(message, "Give one of them alone")
            raise InvalidInput([problem])
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
