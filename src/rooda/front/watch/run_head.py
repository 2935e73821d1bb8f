"""How a run stands or how it ended, in the lines above its iterations. Pure.

The wording is that of `rooda.views.wording`, which the report and `rooda show` use too.
"""

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from rooda.base.colors import Color, Painter
from rooda.base.controls import one_line
from rooda.base.widths import cut, width
from rooda.loop.state import known_status
from rooda.record.rows import UNFINISHED
from rooda.views.model.summary import IterationSummary, ProofState, RunSummary
from rooda.views.terminal.run_view import PROOF_COLORS, Page, status_color, task_lines
from rooda.views.terminal.table import Cell, paragraph
from rooda.views.wording import lines
from rooda.views.wording.labels import changes_words, money_of
from rooda.views.wording.lines import counts

_UNKNOWN_MARK, _DOUBT = "\u25a0", "!"
_LONGEST = 300  # characters of the agent's closing words
_ROOMY = 30  # lines of a terminal that has room for more
_LOW = 20  # lines of a terminal that has room for the numbers
_FEW, _MANY = 2, 6  # commands


def aged(run: RunSummary, seconds: float) -> RunSummary:
    """Return the summary of a run at work, so many seconds after it was made."""
    if not run.is_running or not run.iterations:
        return replace(run, seconds=run.seconds + seconds) if run.is_running else run
    *before, last = run.iterations
    if last.status in UNFINISHED:
        last = replace(last, seconds=last.seconds + seconds)
    return replace(run, seconds=run.seconds + seconds, iterations=(*before, last))


def mark_of(status: str, *, is_doubtful: bool = False) -> str:
    """Return a sign for an outcome, for terminals without color."""
    known = known_status(status)
    return _DOUBT if is_doubtful else known.row.mark if known else _UNKNOWN_MARK


def head_text(run: RunSummary, room: int, height: int, paint: Painter) -> str:
    """Return the headline of a run for a screen of `height` lines."""
    page = Page(room, paint)
    doubt = run.is_doubtful
    sentence = f"{mark_of(run.status, is_doubtful=doubt)} {one_line(lines.outcome_line(run))}"
    first = paragraph(sentence, room=room).rstrip("\n")
    found = paint(status_color(run.status, is_doubtful=doubt), paint(Color.TITLE, first)) + "\n"
    found += paragraph(one_line(run.rule_text), room=room)
    if run.is_running:
        return found + _numbers_line(run, room, paint)
    if height < _ROOMY:
        numbers = _numbers_line(run, room, paint) if height >= _LOW else ""
        return found + numbers + _result(run, page, [*_proof(run)], _FEW)
    return found + _result(run, page, [*_proof(run), *_numbers(run)], _MANY)


def _result(run: RunSummary, page: Page, pairs: Sequence[tuple[str | Cell, str]], most: int) -> str:
    """Return the proof and the numbers, and the commands to run next, all with their names."""
    names = ["Next", *(name if isinstance(name, str) else name.text for name, _ in pairs)]
    indent = max(map(len, names)) + 2
    return page.named([*pairs]) + _next(run, page, most, indent)


def _numbers_line(run: RunSummary, room: int, paint: Painter) -> str:
    """Return the numbers on one line, for a small screen."""
    most = f" of at most {run.max_iterations}" if run.max_iterations else ""
    parts = (
        run.tasks.words if run.is_running and run.tasks else "",
        f"iterations {lines.iterations_line(run)}{most}" if run.iterations else "",
        lines.cost_line(run),
        lines.changes_line(run) if run.files else "",
    )
    line = cut(one_line(" \u00b7 ".join(filter(None, parts))), room)
    return paint(Color.QUIET, line) + "\n" if line else ""


def _proof(run: RunSummary) -> Iterator[tuple[str | Cell, str]]:
    if run.iterations or run.proof.state is not ProofState.NOT_CHECKED:
        yield Cell("Proof", PROOF_COLORS[run.proof.state]), lines.proof_line(run.proof)
    yield from task_lines(run)
    if run.closing:
        words = run.closing[:_LONGEST] + ("..." if run.closing[_LONGEST:] else "")
        yield "Agent says", f"{words} (not checked by rooda)"


def _numbers(run: RunSummary) -> Iterator[tuple[str | Cell, str]]:
    if tests := lines.tests_line(run):
        yield "Tests", tests
    yield "Time", lines.time_line(run)
    yield "Iterations", lines.iterations_line(run)
    yield "Changes", lines.changes_line(run)
    if cost := lines.cost_line(run):
        yield "Cost", cost


def _next(run: RunSummary, page: Page, most: int, indent: int) -> str:
    """Return the first commands, each on one line: on a narrow terminal without its purpose."""
    room, found = page.room or 0, ""
    for place, one in enumerate(run.next_commands[:most]):
        name = page.paint(Color.QUIET, "Next".ljust(indent)) if place == 0 else " " * indent
        command = cut(one.command, max(1, room - indent))
        purpose = f"   # {one.why}"
        if indent + len(command) + len(purpose) > room:
            purpose = ""
        found += f"{name}{page.paint(Color.NAME, command)}{page.paint(Color.QUIET, purpose)}\n"
    return found


# Small plots of a run made of block characters: one bar for each iteration. Pure.


_BLOCKS = " ▁▂▃▄▅▆▇█"
_FULL = len(_BLOCKS) - 1
_GAP = 3  # columns between two plots
_NARROWEST = 18  # columns of a plot


class Bar(Struct, frozen=True):
    """The value of an iteration, or of several that share a column; None: it is not known."""

    value: float | None
    is_failed: bool = False


class SmallPlot(Struct, frozen=True):
    """One plot: its title, the last value in words, and its bars."""

    title: str
    words: str
    bars: tuple[Bar, ...]


def plots_of(run: RunSummary) -> list[SmallPlot]:
    """Return the plots that there is data for: tests passed, cost, and lines changed."""
    made = (
        _plot(run, "Tests passed", counts(run.tests_last), _passed),
        _plot(run, "Cost", money_of(run), lambda one: one.cost),
        _plot(run, "Lines", changes_words(run.files, run.added, run.deleted), _lines),
    )
    return [one for one in made if one is not None]


def plots_text(plots: Sequence[SmallPlot], room: int, rows: int, paint: Painter) -> str:
    """Return the plots beside each other, those that fit, each `rows` high below its title."""
    most = max(1, (room + _GAP) // (_NARROWEST + _GAP))
    shown = plots[:most]
    if not shown:
        return ""
    wide = max(1, (room - _GAP * (len(shown) - 1)) // len(shown))
    columns = [_drawn(one, wide, rows, paint) for one in shown]
    return "\n".join((" " * _GAP).join(parts).rstrip() for parts in zip(*columns, strict=True))


def bars_text(bars: Sequence[Bar], room: int, rows: int, paint: Painter) -> list[str]:
    """Return lines of block characters. Every bar begins at zero; an unknown value is a gap.

    The bars of failed iterations are red.
    """
    shared = _shared(bars, room)
    wide = 2 if 2 * len(shared) <= room else 1
    highest = max((bar.value for bar in shared if bar.value is not None), default=0.0)
    eighths = [_eighths(bar.value, highest, rows) for bar in shared]
    found = []
    for row in reversed(range(rows)):
        line = ""
        for bar, high in zip(shared, eighths, strict=True):
            block = _BLOCKS[min(_FULL, max(0, high - row * _FULL))] * wide
            line += paint(Color.BAD if bar.is_failed else Color.NAME, block)
        found.append(line + " " * (room - wide * len(shared)))
    return found


def _plot(
    run: RunSummary, title: str, words: str, value: Callable[[IterationSummary], float | None]
) -> SmallPlot | None:
    bars = tuple(Bar(value(one), one.is_failed) for one in run.iterations)
    return SmallPlot(title, words, bars) if any(bar.value for bar in bars) else None


def _passed(one: IterationSummary) -> float | None:
    return one.tests.passed if one.tests else None


def _lines(one: IterationSummary) -> float | None:
    if one.added is None and one.deleted is None:
        return None
    return (one.added or 0) + (one.deleted or 0)


def _drawn(plot: SmallPlot, wide: int, rows: int, paint: Painter) -> list[str]:
    title = cut(plot.title, wide)
    words = cut(plot.words, max(0, wide - width(title) - 1))
    space = " " * max(0, wide - width(title) - 1 - width(words))
    head = f"{paint(Color.QUIET, title)} {words}{space}" if words else title.ljust(wide)
    return [head, *bars_text(plot.bars, wide, rows, paint)]


def _shared(bars: Sequence[Bar], room: int) -> Sequence[Bar]:
    """Return at most `room` bars. Iterations that share a column show their highest value."""
    if len(bars) <= room:
        return bars
    found = []
    for column in range(room):
        part = bars[column * len(bars) // room : (column + 1) * len(bars) // room]
        known = [bar.value for bar in part if bar.value is not None]
        is_failed = any(bar.is_failed for bar in part)
        found.append(Bar(max(known) if known else None, is_failed))
    return found


def _eighths(value: float | None, highest: float, rows: int) -> int:
    """Return the height of a bar; a value above zero is always visible."""
    return max(1, round(value / highest * rows * _FULL)) if value else 0
