"""Small plots of a run made of block characters: one bar for each iteration. Pure."""

from collections.abc import Callable, Sequence

from msgspec import Struct

from rooda.base.colors import Color, Painter
from rooda.base.widths import cut, width
from rooda.views.model.summary import IterationSummary, RunSummary
from rooda.views.wording.labels import changes_words, money_of
from rooda.views.wording.lines import counts

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
