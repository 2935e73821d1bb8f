"""The geometry of the plots as numbers; the template draws them. Pure."""

import math
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from rooda.base.numbers import money
from rooda.views.model.summary import IterationSummary, RunSummary
from rooda.views.report.geometry import DIGIT, PlotLabel, Scale, rounded
from rooda.views.wording.labels import brief_number, changes_words

TOP, BOTTOM = 10.0, 108.0  # pixels: the room for values
_WIDTH = 330.0  # pixels, about
_LINE = 11.0  # pixels that a label needs
_MOST_COLUMNS = 400  # with a value of their own


class Bar(Struct, frozen=True):
    """A bar of a plot."""

    x: float
    width: float
    y: float
    height: float
    is_failed: bool = False


class PlotColumn(Struct, frozen=True):
    """The place of one iteration in a plot, and its value in words."""

    number: int
    x: float
    width: float
    words: str


class Plot(Struct, frozen=True, kw_only=True):
    """One plot. Lines are points in a box of `count` x 100, which is stretched."""

    title: str
    caption: str
    label: str  # for a reader of the screen
    count: int
    scale: tuple[tuple[str, float], ...]  # texts at the left, with their y
    zero: float
    style: str = ""
    areas: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    dashed: tuple[str, ...] = ()
    above: tuple[Bar, ...] = ()
    below: tuple[Bar, ...] = ()
    bad: tuple[Bar, ...] = ()
    dot: tuple[float, float] | None = None
    values: tuple[tuple[str, float, float, str], ...] = ()  # text, x, y, anchor
    marks: tuple[PlotLabel, ...] = ()  # below the plot
    columns: tuple[PlotColumn, ...] = ()


def plots(run: RunSummary) -> list[Plot]:
    """Return the plots that there is data for."""
    if not run.iterations:
        return []
    made = (_tests(run), _usage(run), _lines(run))
    return [one for one in made if one is not None]


def _tests(run: RunSummary) -> Plot | None:
    first, last = run.tests_first, run.tests_last
    if first is None or last is None:
        return None
    known = [(place, one.tests) for place, one in enumerate(run.iterations) if one.tests]
    count, most = len(run.iterations), nice(max(tests.total for _, tests in known))
    groups: list[list[tuple[int, float]]] = []
    dashed = []
    for place, tests in known:
        point = (place, 100 - 100 * tests.passed / most)
        if groups and groups[-1][-1][0] == place - 1:
            groups[-1].append(point)
        else:
            if groups:
                dashed.append(_points([groups[-1][-1], point]))
            groups.append([point])
    wide = 0.7 * 100 / count
    bad = tuple(
        _bar(place, count, wide, _y(tests.failed / most), BOTTOM, is_failed=True)
        for place, tests in known
        if tests.failed
    )
    end, begin = known[-1], known[0]
    values = [(str(last.passed), *_at(end[0], count, last.passed / most, up=9), "end")]
    if len(known) > 1:
        anchor = "start" if begin[0] < count / 3 else "middle"
        values.append((str(first.passed), *_at(begin[0], count, first.passed / most, up=9), anchor))
    ended = f"{last.passed:,} passed, {last.failed:,} failed"
    at_last = "" if end[0] == count - 1 else " at the last check"
    return Plot(
        title="Tests passed",
        caption=f"{ended}{at_last}",
        label=f"Tests passed per iteration: {first.passed} at first, {last.passed} at last",
        count=count,
        scale=_scale(most, str),
        zero=BOTTOM,
        areas=tuple(_area(group) for group in groups if len(group) > 1),
        lines=tuple(_points(group) for group in groups if len(group) > 1),
        dashed=tuple(dashed),
        bad=bad,
        dot=_at(end[0], count, last.passed / most),
        values=tuple(values),
        marks=_marks(run),
        columns=_columns(run, _tests_words),
    )


def _tests_words(one: IterationSummary) -> str:
    if one.tests is None:
        return "tests did not run"
    return f"{one.tests.passed:,} passed, {one.tests.failed:,} failed"


def _usage(run: RunSummary) -> Plot | None:
    total = run.tokens.total if run.tokens else 0
    in_tokens = f"{brief_number(total)} tokens" if total else ""
    is_money = bool(run.cost)
    if not is_money and not total:
        return None
    costs, tokens, sums = 0.0, 0, []
    words: dict[int, str] = {}
    for one in run.iterations:
        costs += one.cost or 0.0
        tokens += one.tokens.total if one.tokens else 0
        sums.append(costs if is_money else float(tokens))
        spent = f"+{money(one.cost or 0.0)} = {money(costs)} · " if is_money else ""
        words[one.number] = f"{spent}{brief_number(tokens)} tokens"
    count, most = len(sums), nice(sums[-1])
    line = [(place, 100 - 100 * value / most) for place, value in enumerate(sums)]
    last = money(sums[-1]) if is_money else brief_number(tokens)
    x, y = _at(count - 1, count, sums[-1] / most)
    is_right = count > 2  # noqa: PLR2004
    return Plot(
        title="Cost so far" if is_money else "Tokens so far",
        caption=" · ".join(filter(None, (last if is_money else "", in_tokens))),
        label=f"{'Cost' if is_money else 'Tokens'}, cumulative: {last} at the end",
        count=count,
        style="n",
        scale=_scale(most, _dollars if is_money else brief_number),
        zero=BOTTOM,
        areas=(_area(line, from_zero=True),),
        lines=(f"0,100 {_points(line)}",),
        dot=(x, y),
        values=((last, x, y - 7, "end" if is_right else "middle"),),
        marks=_marks(run),
        columns=_columns(run, lambda one: words[one.number]),
    )


def _lines(run: RunSummary) -> Plot | None:
    added = [one.added or 0 for one in run.iterations]
    deleted = [one.deleted or 0 for one in run.iterations]
    if not any(added) and not any(deleted):
        return None
    up, down = nice(max(added)), nice(max(deleted)) if any(deleted) else 0
    room = BOTTOM - TOP
    # Added and deleted lines have the same scale. A label needs 14 pixels on either side of zero.
    high = min(max(room * up / (up + down), 14.0), room - 14 if down else room)
    pixels = min(high / up, (room - high) / down if down else math.inf)
    zero, count = TOP + high, len(added)
    wide = 0.7 * 100 / count

    def height(value: int) -> float:
        return max(1.5, value * pixels) if value else 0.0

    above, below = [], []
    for place, one in enumerate(run.iterations):
        tall, deep = height(added[place]), height(deleted[place])
        if tall:
            above.append(_bar(place, count, wide, zero - tall, zero, is_failed=one.is_failed))
        if deep:
            bar = _bar(place, count, wide, zero + 1, zero + 1 + deep, is_failed=one.is_failed)
            below.append(bar)
    scale = [(f"+{brief_number(up)}", zero - up * pixels + 4), ("0", zero + 4)]
    if down * pixels >= _LINE:
        scale.append((f"\u2212{brief_number(down)}", zero + down * pixels + 4))
    return Plot(
        title="Lines changed",
        caption=changes_words(run.files, run.added, run.deleted),
        label="Lines added and deleted per iteration",
        count=count,
        scale=tuple(scale),
        zero=zero,
        above=tuple(above),
        below=tuple(below),
        marks=_marks(run),
        columns=_columns(run, lambda one: changes_words(one.files, one.added, one.deleted)),
    )


def _marks(run: RunSummary) -> tuple[PlotLabel, ...]:
    """Return the numbers below a plot: failed iterations first, as many as there is room for."""
    count = len(run.iterations)
    row = Scale(0.0, float(count), _WIDTH)
    found = []
    few = count <= 10  # noqa: PLR2004
    step = 1 if few else max(5, round(count / 6 / 5) * 5)
    for place, one in sorted(enumerate(run.iterations), key=lambda pair: not pair[1].is_failed):
        is_wanted = one.is_failed or few or place in (0, count - 1) or one.number % step == 0
        text = f"\u00d7{one.number}" if one.is_failed else str(one.number)
        x = row.x(place + 0.5)
        if is_wanted and row.has_room("mark", text, x, DIGIT):
            found.append(PlotLabel(text, rounded(x), is_failed=one.is_failed))
    return tuple(found)


def _columns(run: RunSummary, words: Callable[[IterationSummary], str]) -> tuple[PlotColumn, ...]:
    count = len(run.iterations)
    if count > _MOST_COLUMNS:
        return ()
    wide = 100 / count
    return tuple(
        PlotColumn(
            one.number,
            rounded(place * wide),
            rounded(wide),
            f"#{one.number}: {words(one)}",
        )
        for place, one in enumerate(run.iterations)
    )


def _bar(
    place: int, count: int, width: float, top: float, bottom: float, *, is_failed: bool
) -> Bar:
    x = (place + 0.5) * 100 / count - width / 2
    return Bar(rounded(x), rounded(width), rounded(top), rounded(bottom - top), is_failed)


def _y(part: float) -> float:
    return BOTTOM - part * (BOTTOM - TOP)


def _at(place: int, count: int, part: float, up: float = 0.0) -> tuple[float, float]:
    return rounded((place + 0.5) * 100 / count), rounded(max(9.0, _y(part) - up))


def _points(points: Iterable[tuple[int, float]]) -> str:
    return " ".join(f"{place + 0.5:g},{y:.2f}" for place, y in points)


def _area(points: Sequence[tuple[int, float]], *, from_zero: bool = False) -> str:
    first, last = points[0][0] + 0.5, points[-1][0] + 0.5
    start = "0,100" if from_zero else f"{first:g},100"
    return f"{start} {_points(points)} {last:g},100"


def _scale(most: float, write: Callable[[float], str]) -> tuple[tuple[str, float], ...]:
    half = most / 2
    middle = [(write(_whole(half)), _y(0.5) + 4)] if most > 1 else []
    return ((write(_whole(most)), TOP + 4), *middle, (write(0), BOTTOM + 4))


def _whole(number: float) -> float:
    return int(number) if number == int(number) else number


def _dollars(number: float) -> str:
    return f"${number:g}"


def nice(largest: float) -> float:
    """Return a round number that is not smaller."""
    if largest <= 0:
        return 1
    power: float = 10 ** math.floor(math.log10(largest))
    steps = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
    return next((one * power for one in steps if one * power >= largest * 0.999), 10 * power)
