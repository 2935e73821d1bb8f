"""One run for people: outcome, proof, numbers, iterations, what to look at, what to do next."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from rooda.base.colors import Color, Painter
from rooda.base.controls import one_line, shown_words
from rooda.base.numbers import count, money
from rooda.base.times import format_duration
from rooda.base.widths import width
from rooda.loop.events.run import HistoryPruned
from rooda.loop.events.work import HookEnded
from rooda.loop.next_steps import NextCommand
from rooda.loop.state import known_status
from rooda.loop.wait_kinds import known_wait
from rooda.record.given_flags import masked_flags
from rooda.record.rows import RecordedWait, RunRow
from rooda.views.model.brief import RunBrief
from rooda.views.model.open_tasks import tasks_line
from rooda.views.model.summary import IterationSummary, ProofState, RunSummary
from rooda.views.terminal.table import Cell, Column, named_lines, paragraph, table
from rooda.views.wording import lines
from rooda.views.wording.labels import date_and_time
from rooda.views.wording.lines import brief
from rooda.views.wording.sentences import MOST_NOTES, target_of

# Describes the waits of a run; waits for one outage, or after failures, are one group. Pure.


class WaitGroup(Struct, frozen=True):
    """The waits of a run for one and the same outage, those after failures, or a single wait."""

    last: RecordedWait
    number: int = 1
    total: float = 0.0  # seconds

    @property
    def cause(self) -> str:
        """What the run waited for, or before what."""
        return target_of(self.last)

    def joined(self, wait: RecordedWait) -> "WaitGroup":
        """Return the group with one more wait."""
        return WaitGroup(wait, self.number + 1, self.total + (wait.waited or 0.0))

    def is_continued_by(self, wait: RecordedWait) -> bool:
        """Return whether the wait is for the same outage, or both are after the same failure."""
        kind = known_wait(wait.kind)
        if kind is not None and kind.row.is_grouped:
            return (wait.kind, wait.what) == (self.last.kind, self.last.what)
        before = self.last.lasted
        if wait.lasted is None or before is None:
            return False
        return wait.lasted > before and wait.lasted >= before + (self.last.waited or 0.0)

    def __str__(self) -> str:
        """Return how long the run waited, or until when it will wait."""
        last = self.last
        if last.waited is None:
            words = f"{format_duration(last.seconds)} until {date_and_time(last.until)}"
        else:
            words = f"{format_duration(last.waited)} of {format_duration(last.seconds)}"
        if self.number > 1:
            words = f"{self.number} waits of {format_duration(self.total)}, the last {words}"
        if last.lasted is None:
            return words
        lasted = format_duration(last.lasted + (last.waited or 0.0))
        return f"{words}, in an outage of {lasted}"


def grouped_waits(waits: Sequence[RecordedWait]) -> list[WaitGroup]:
    """Return the waits of a run; those for the same outage or failure are one group."""
    found: list[WaitGroup] = []
    for wait in waits:
        if found and found[-1].is_continued_by(wait):
            found[-1] = found[-1].joined(wait)
        else:
            found.append(WaitGroup(wait, total=wait.waited or 0.0))
    return found


_RUNS = 3  # names of deleted runs
_WAITS = 10
_LONGEST = 2000  # characters of a command
_OF_ITERATIONS = {"completed": Color.GOOD, "failed": Color.BAD, "timed_out": Color.BAD}
PROOF_COLORS = {
    ProofState.PASSED: Color.GOOD,
    ProofState.NOT_PROVEN: Color.BAD,
    ProofState.NOT_CHECKED: Color.WARNING,
}
_NOTE = {True: Color.BAD, False: Color.WARNING}
# The first to give way on a narrow terminal are the tasks.
_COLUMNS = (
    Column("NO", is_right=True),
    Column("STATUS"),
    Column("TIME", 1, is_right=True),
    Column("WAITED", 4, is_right=True),
    Column("FILES", 3),
    Column("TESTS", 2, is_right=True),
    Column("COST", 5, is_right=True),
    Column("COMMIT", 6),
    Column("TASKS", 7, is_right=True),
    Column("HEADLINE"),
)


class Page(Struct, frozen=True):
    """How to print: the columns of the terminal (None: it is no terminal), and its colors."""

    room: int | None = None
    paint: Painter = Painter()

    def named(self, pairs: Sequence[tuple[str | Cell, str]]) -> str:
        """Return lines with a name."""
        return named_lines(pairs, room=self.room, paint=self.paint)

    def title(self, words: str) -> str:
        """Return the title of a section, after an empty line."""
        return f"\n{self.paint(Color.TITLE, words)}\n"

    def next(self, commands: Sequence[NextCommand], hint: str = "") -> str:
        """Return the commands to run next, each with its purpose: beside it, or above it."""
        if not commands:
            return ""
        wide = max(width(one.command) for one in commands)
        beside = wide + max(width(one.why) for one in commands) + len("     # ")
        is_narrow = self.room is not None and beside > self.room
        found = self.title("Next") + (paragraph(hint, room=self.room) if hint else "")
        for one in commands:
            command = self.paint(Color.NAME, one.command)
            purpose = self.paint(Color.QUIET, f"# {one.why}")
            space = " " * (wide - width(one.command) + 3)
            line = f"{purpose}\n  {command}" if is_narrow else f"{command}{space}{purpose}"
            found += f"  {line}\n"
        return found


def status_color(status: str, *, is_doubtful: bool = False) -> Color:
    """Return the color of a run or an iteration; a success that leaves tasks open is a warning."""
    if is_doubtful:
        return Color.WARNING
    known = known_status(status)
    return known.row.color if known else _OF_ITERATIONS.get(status, Color.WARNING)


def run_text(row: RunRow, run: RunSummary, page: Page, folder: str = "") -> Iterator[str]:
    """Yield the view of a run in pieces; `folder` has its files."""
    yield from run_facts(row, run, page, folder)
    report = NextCommand("See all of it as one page", f"rooda report {run.run}")
    commands = [*run.next_commands, *([report] if run.iterations else ())]
    yield page.next(commands, run.next_hint)


def run_facts(
    row: RunRow, run: RunSummary, page: Page, folder: str = "", *, with_end: bool = True
) -> Iterator[str]:
    """Yield the view of a run without the commands to run next.

    `with_end`: begin with how the run ended; else its end is decided elsewhere.
    """
    if with_end:
        yield _head(run, page)
    yield page.named([*_numbers(run)])
    if run.iterations:
        yield "\n" + iteration_table(run.iterations, page)
    yield _notes(run, page)
    yield page.title("Details") + page.named([*_details(row, folder)])
    yield hook_table(row.hooks, page)


def _head(run: RunSummary, page: Page) -> str:
    sentence = paragraph(one_line(lines.outcome_line(run)), room=page.room)
    rule = paragraph(one_line(run.rule_text), room=page.room)
    color = status_color(run.status, is_doubtful=run.is_doubtful)
    return page.paint(color, sentence.rstrip("\n")) + f"\n{rule}\n"


def _numbers(run: RunSummary) -> Iterator[tuple[str | Cell, str]]:
    yield "Run", run.run
    yield Cell("Proof", PROOF_COLORS[run.proof.state]), lines.proof_line(run.proof)
    yield from task_lines(run)
    if run.closing:
        said = f"iteration {run.closing_iteration}, not checked by rooda"
        yield "Agent says", f"{run.closing} ({said})"
    if tests := lines.tests_line(run):
        yield "Tests", tests
    yield "Time", lines.time_line(run)
    yield "Iterations", lines.iterations_line(run)
    yield "Changes", lines.changes_line(run)
    if cost := lines.cost_line(run):
        yield "Cost", cost


def task_lines(run: RunSummary) -> Iterator[tuple[Cell, str]]:
    """Yield how the tasks of the task file stand, with a name; nothing without a task file."""
    if words := tasks_line(run):
        yield Cell("Tasks", Color.WARNING if run.is_doubtful else None), words


def iteration_table(iterations: Sequence[IterationSummary], page: Page) -> str:
    """Return one line for each iteration."""
    rows = list(map(_row, iterations))
    return table(_COLUMNS, rows, room=page.room, paint=page.paint)


def _row(one: IterationSummary) -> tuple[Cell, ...]:
    is_bad_test = one.tests is not None and one.tests.failed > 0
    return (
        Cell(str(one.number)),
        Cell(one.status, status_color(one.status)),
        Cell(format_duration(one.wall)),
        Cell(format_duration(one.waited) if one.waited else ""),
        Cell(lines.files_of(one)),
        Cell(lines.counts(one.tests), Color.BAD if is_bad_test else None),
        Cell(lines.cost_of(one)),
        Cell(lines.commit_of(one), Color.NAME),
        Cell(lines.tasks_of(one)),
        Cell(lines.headline_of_row(one), Color.BAD if one.is_failed else None),
    )


def _notes(run: RunSummary, page: Page) -> str:
    if not run.notes:
        return ""
    notes = run.notes[:MOST_NOTES]
    wide = max(len(str(note.iteration)) for note in notes)
    names = [
        Cell(f"{note.iteration:>{wide}}  {note.title}", _NOTE[note.is_failure]) for note in notes
    ]
    text = page.named([(name, note.text) for name, note in zip(names, notes, strict=True)])
    more = len(run.notes) - MOST_NOTES
    return (
        page.title("Worth a look")
        + text
        + (f"{more} more: see each iteration\n" if more > 0 else "")
    )


def _details(row: RunRow, folder: str) -> Iterator[tuple[str, str]]:
    yield "Command", (row.command or "-")[:_LONGEST]
    if (flags := masked_flags(row.given)) is not None:
        yield "Flags", shown_words(flags) or "none"
    if (baseline := row.baseline) is not None:
        words = (f"verify {baseline.verdict}", baseline.error, baseline.counts)
        yield "Before", ", ".join(filter(None, words))
    groups = grouped_waits(row.waits or ())
    for group in groups[-_WAITS:]:
        yield "Waited", _wait_line(group)
    for one in (row.agents_changed or ())[-_WAITS:]:
        yield "Changed", f"iteration {one.iteration}: {one.agent} for {one.before}"
    for pruned in (row.pruned or ())[-_WAITS:]:
        yield "Pruned", _pruned(pruned)
    if folder:
        yield "Folder", folder
    yield from unreadable(row.unreadable)


def _wait_line(group: WaitGroup) -> str:
    return f"iteration {group.last.iteration}, {group.cause[:_LONGEST]}: {group}"


def _pruned(one: HistoryPruned) -> str:
    names, more = one.runs[:_RUNS], len(one.runs) - _RUNS
    shown = ", ".join(names) + (f", {more} more" if more > 0 else "")
    return f"{count(len(one.runs), 'older run')}: {shown}"


def unreadable(names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield which parts of a row are missing: an agent can write to the record."""
    if names:
        yield "Unreadable", f"{', '.join(names)} (something changed the record)"


def hook_table(hooks: Sequence[HookEnded], page: Page) -> str:
    """Return one line for each hook that ran."""
    if not hooks:
        return ""
    columns = (Column("HOOK"), Column("END"), Column("TIME", 1), Column("COMMAND"))
    rows = [
        (
            Cell(hook.hook),
            Cell(hook.error or "ok", Color.BAD if hook.error else None),
            Cell(format_duration(hook.duration)),
            Cell(hook.command[:_LONGEST]),
        )
        for hook in hooks
    ]
    return "\n" + table(columns, rows, room=page.room, paint=page.paint)


# The runs of a record for people, one line each.


# The name of a run, its status and the reason stay; the name has the time of the start too.
_RUN_COLUMNS = (
    Column("RUN"),
    Column("STARTED", 6),
    Column("PROCEDURE", 3),
    Column("STATUS"),
    Column("ITERATIONS", 2),
    Column("TASKS", 3),
    Column("TIME", 1, is_right=True),
    Column("WAITED", 5, is_right=True),
    Column("VERIFY", 7, is_right=True),
    Column("COST", 4, is_right=True),
    Column("WHY"),
)
_TREE = Column("WORK TREE")


def runs_text(runs: Sequence[RunBrief], page: Page, trees: Sequence[str] = ()) -> str:
    """Return one line for each run; `trees` are their work trees, if those differ."""
    if not trees:
        return table(_RUN_COLUMNS, list(map(_run_row, runs)), room=page.room, paint=page.paint)
    rows = [(Cell(tree), *_run_row(run)) for tree, run in zip(trees, runs, strict=True)]
    return table((_TREE, *_RUN_COLUMNS), rows, room=page.room, paint=page.paint)


def _run_row(run: RunBrief) -> tuple[Cell, ...]:
    color = status_color(run.status, is_doubtful=run.is_doubtful)
    return (
        Cell(run.run, Color.NAME),
        Cell(date_and_time(run.started_at)),
        Cell(run.procedure),
        Cell(run.status, color),
        Cell(_counts(run)),
        Cell(run.tasks_done, color if run.is_doubtful else None),
        Cell("" if run.seconds is None else brief(run.seconds)),
        Cell(brief(run.waited) if run.waited else ""),
        Cell(brief(run.checked) if run.checked else ""),
        Cell("" if run.cost is None else money(run.cost)),
        Cell(run.why),
    )


def _counts(run: RunBrief) -> str:
    """Return `28 good, 2 failed`, without what there is none of."""
    kinds = ((run.good, "good"), (run.failed, "failed"), (run.other, "other"))
    return ", ".join(f"{number} {name}" for number, name in kinds if number) or "none"
