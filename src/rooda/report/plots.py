"""The geometry of the timeline and of the plots, as numbers; the template draws them. Pure.

`x` and `width` are percentages of the width, `y` and `height` are pixels: so a drawing fits any
width, and its text keeps its size.
"""

import math
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from rooda.record.rows import moment_of
from rooda.summary.model import IterationSummary, RunSummary, Span, SpanKind
from rooda.text.times import DAY, HOUR, MINUTE

# -- the timeline --------------------------------------------------------------------------------

_DIGIT, _LETTER = 6.6, 6.4  # pixels
_GAP = 5.0  # pixels between two labels
_EDGE = 8.0  # pixels that a text may stand out
_SMALLEST = 0.5  # pixels; a smaller box is not drawn
_STEPS = (
    *(5, 10, 15, 30, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE),
    *(HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 30 * DAY),
)
_NAMES = {
    SpanKind.LIMIT: "usage limit",
    SpanKind.OUTAGE: "outage",
    SpanKind.BACKOFF: "pause",
    SpanKind.ASLEEP: "asleep",
    SpanKind.STOPPED: "not running",
}


class Box(Struct, frozen=True):
    """A part of the timeline."""

    kind: str
    x: float
    width: float
    is_failed: bool = False


class PlotLabel(Struct, frozen=True):
    """A text on the timeline or below a plot; `width` is that of a plate behind it, in pixels."""

    text: str
    x: float
    anchor: str = "middle"
    width: float = 0.0
    is_failed: bool = False


class Piece(Struct):
    """What one line of the timeline shows of an iteration, or of a wait (number None)."""

    number: int | None
    title: str
    boxes: list[Box]
    label: PlotLabel | None = None
    kind: PlotLabel | None = None
    cross: float | None = None


class TimeLine(Struct):
    """One line of the timeline."""

    pieces: list[Piece]
    waits: list[PlotLabel]  # inside of a box
    above: list[PlotLabel]  # above a box that is too small
    ticks: list[PlotLabel]
    ends: tuple[PlotLabel, PlotLabel]


class _Row:
    """One line of the timeline while it is made: seconds and pixels become percentages."""

    def __init__(self, start: float, end: float, pixels: float) -> None:
        self.start, self.end, self.pixels = start, end, pixels
        self._taken: dict[str, list[tuple[float, float]]] = {}

    def x(self, seconds: float) -> float:
        inside = min(max(seconds, self.start), self.end)
        return _percent((inside - self.start) / (self.end - self.start))

    def box(self, span: Span, *, is_failed: bool = False) -> Box | None:
        left, right = self.x(span.start), self.x(span.end)
        if (right - left) * self.pixels / 100 < _SMALLEST:
            return None
        return Box(str(span.kind), left, round(right - left, 3), is_failed)

    def has_room(self, where: str, text: str, x: float, letter: float) -> bool:
        """Take the room for a text, if it is free."""
        middle, half = x * self.pixels / 100, len(text) * letter / 2
        if middle - half < -_EDGE or middle + half > self.pixels + _EDGE:
            return False
        taken = self._taken.setdefault(where, [])
        left, right = middle - half - _GAP / 2, middle + half + _GAP / 2
        if any(left < other[1] and right > other[0] for other in taken):
            return False
        taken.append((left, right))
        return True


def timeline(run: RunSummary, lines: int, pixels: float) -> list[TimeLine]:
    """Return the timeline in so many lines, for a page that is about so many pixels wide."""
    if run.seconds <= 0:
        return []
    length = run.seconds / lines
    rows = [_Row(length * one, length * (one + 1), pixels) for one in range(lines)]
    start = _known_start(run)
    return [_line(run, row, start, place) for place, row in enumerate(rows)]


def _known_start(run: RunSummary) -> datetime | None:
    """Return when the run started; None if the calendar does not have its times."""
    start = moment_of(run.started_at)
    try:
        if start is not None:
            margin = timedelta(days=40)
            _ = start + timedelta(seconds=run.seconds) + margin, start - margin
    except OverflowError:
        return None
    return start


def _line(run: RunSummary, row: _Row, start: datetime | None, place: int) -> TimeLine:
    found = [pair for one in run.iterations if (pair := _piece(one, row)) is not None]
    # Failed iterations first: their numbers and kinds are never left out for others.
    for piece, one in sorted(found, key=lambda pair: not pair[1].is_failed):
        if _is_mostly_in(one, row):
            _name(piece, one, row)
    pieces = [piece for piece, _ in found]
    waits, above = _waits(run, row, pieces)
    return TimeLine(pieces, waits, above, _ticks(row, start), _ends(row, start, place))


def _is_mostly_in(one: IterationSummary, row: _Row) -> bool:
    """Return whether the longest part of an iteration is on this line: its number is there."""
    spans = [span for span in one.spans if span.kind is SpanKind.AGENT] or one.spans
    longest = max(spans, key=lambda span: span.seconds)
    middle = longest.start + longest.seconds / 2
    return row.start <= middle < row.end


def _piece(one: IterationSummary, row: _Row) -> tuple[Piece, IterationSummary] | None:
    boxes = [
        box
        for span in one.spans
        if span.end > row.start and span.start < row.end
        if (box := row.box(span, is_failed=one.is_failed)) is not None
    ]
    if not boxes:
        return None
    return Piece(one.number, "", boxes), one


def _name(piece: Piece, one: IterationSummary, row: _Row) -> None:
    """Give the iteration its number, and a failed one its kind."""
    largest = max(piece.boxes, key=lambda box: box.width)
    agents = [box for box in piece.boxes if box.kind == SpanKind.AGENT] or [largest]
    widest = max(agents, key=lambda box: box.width)
    left, right = widest.x, widest.x + widest.width
    middle = (left + right) / 2
    text = str(one.number)
    if row.has_room("number", text, middle, _DIGIT):
        piece.label = PlotLabel(text, _rounded(middle), is_failed=one.is_failed)
    if not one.is_failed:
        return
    if (right - left) * row.pixels / 100 >= 2 * _DIGIT:
        piece.cross = _rounded(middle)
    kind = one.kind or one.status
    if piece.label is not None and row.has_room("above", kind, middle, _LETTER):
        piece.kind = PlotLabel(kind, _rounded(middle), is_failed=True)


def _waits(
    run: RunSummary, row: _Row, pieces: list[Piece]
) -> tuple[list[PlotLabel], list[PlotLabel]]:
    """Add the waits and pauses of the run to the pieces; return their labels."""
    inside: list[PlotLabel] = []
    above: list[PlotLabel] = []
    asleep = [span for one in run.iterations for span in one.spans if span.kind is SpanKind.ASLEEP]
    for span in (*run.spans, *asleep):
        if span.end <= row.start or span.start >= row.end:
            continue
        box = row.box(span)
        if box is None:
            continue
        if span.kind is not SpanKind.ASLEEP:
            pieces.append(Piece(None, "", [box]))
        text = f"{_NAMES[span.kind]} {brief_duration(span.seconds)}"
        middle, room = box.x + box.width / 2, box.width * row.pixels / 100
        width = len(text) * _LETTER + 12
        if room >= width + 12:
            inside.append(PlotLabel(text, _rounded(middle), width=_rounded(width)))
        elif row.has_room("above", text, middle, _LETTER):
            above.append(PlotLabel(text, _rounded(middle)))
    return inside, above


def _ticks(row: _Row, start: datetime | None) -> list[PlotLabel]:
    if start is None:
        return []
    begin = start + timedelta(seconds=row.start)
    length = row.end - row.start
    most = max(2, row.pixels / 115)
    step = next((one for one in _STEPS if length / one <= most), _STEPS[-1])
    midnight = begin.replace(hour=0, minute=0, second=0, microsecond=0)
    first = math.ceil((begin - midnight).total_seconds() / step) * step
    found = []
    for place in range(int(most) + 2):
        moment = midnight + timedelta(seconds=first + place * step)
        x = row.x(row.start + (moment - begin).total_seconds())
        room = 36 / row.pixels * 100  # the labels of both ends
        if room * 1.6 < x < 100 - room * 1.6:
            text = f"{moment:%H:%M}" if step >= MINUTE else f"{moment:%H:%M:%S}"
            found.append(PlotLabel(text, _rounded(x)))
    return found


def _ends(row: _Row, start: datetime | None, place: int) -> tuple[PlotLabel, PlotLabel]:
    if start is None:
        return PlotLabel("", 0.0, "start"), PlotLabel("", 100.0, "end")
    form = "%H:%M" if row.end - row.start >= 10 * MINUTE else "%H:%M:%S"
    moments = (start + timedelta(seconds=one) for one in (row.start, row.end))
    first, last = (f"{moment:{form}}" for moment in moments)
    return PlotLabel("" if place and not first else first, 0.0, "start"), PlotLabel(
        last, 100.0, "end"
    )


def brief_duration(seconds: float) -> str:
    """Return a duration with two units at most: `7h39m`, `12m`, `45s`."""
    whole = round(seconds)
    if whole < MINUTE:
        return f"{whole}s"
    if whole < HOUR:
        minutes, rest = divmod(whole, MINUTE)
        return f"{minutes}m{rest:02d}s" if rest and minutes < 10 else f"{minutes}m"  # noqa: PLR2004
    minutes = round(whole / MINUTE)
    days, hours = divmod(minutes // 60, 24)
    return f"{days}d{hours:02d}h" if days else f"{hours}h{minutes % 60:02d}m"


def _percent(part: float) -> float:
    return round(100 * part, 3)


def _rounded(number: float) -> float:
    return round(number, 3)


# -- plots ---------------------------------------------------------------------------------------

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


class Column(Struct, frozen=True):
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
    columns: tuple[Column, ...] = ()


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
        money = f"+{price(one.cost or 0.0)} = {price(costs)} · " if is_money else ""
        words[one.number] = f"{money}{brief_number(tokens)} tokens"
    count, most = len(sums), nice(sums[-1])
    line = [(place, 100 - 100 * value / most) for place, value in enumerate(sums)]
    last = price(sums[-1]) if is_money else brief_number(tokens)
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


def changes_words(files: int | None, added: int | None, deleted: int | None) -> str:
    """Return `3 files +120 -14`, with a minus sign."""
    if files is None:
        return "changes unknown"
    words = f"{files:,} file" + ("" if files == 1 else "s")
    if added is None or deleted is None:
        return words
    return f"{words} +{added:,} \u2212{deleted:,}"


def _marks(run: RunSummary) -> tuple[PlotLabel, ...]:
    """Return the numbers below a plot: failed iterations first, as many as there is room for."""
    count = len(run.iterations)
    row = _Row(0.0, float(count), _WIDTH)
    found = []
    few = count <= 10  # noqa: PLR2004
    step = 1 if few else max(5, round(count / 6 / 5) * 5)
    for place, one in sorted(enumerate(run.iterations), key=lambda pair: not pair[1].is_failed):
        is_wanted = one.is_failed or few or place in (0, count - 1) or one.number % step == 0
        text = f"\u00d7{one.number}" if one.is_failed else str(one.number)
        x = row.x(place + 0.5)
        if is_wanted and row.has_room("mark", text, x, _DIGIT):
            found.append(PlotLabel(text, _rounded(x), is_failed=one.is_failed))
    return tuple(found)


def _columns(run: RunSummary, words: object) -> tuple[Column, ...]:
    count = len(run.iterations)
    if count > _MOST_COLUMNS or not callable(words):
        return ()
    wide = 100 / count
    return tuple(
        Column(
            one.number,
            _rounded(place * wide),
            _rounded(wide),
            f"#{one.number}: {words(one)}",
        )
        for place, one in enumerate(run.iterations)
    )


def _bar(
    place: int, count: int, width: float, top: float, bottom: float, *, is_failed: bool
) -> Bar:
    x = (place + 0.5) * 100 / count - width / 2
    return Bar(_rounded(x), _rounded(width), _rounded(top), _rounded(bottom - top), is_failed)


def _y(part: float) -> float:
    return BOTTOM - part * (BOTTOM - TOP)


def _at(place: int, count: int, part: float, up: float = 0.0) -> tuple[float, float]:
    return _rounded((place + 0.5) * 100 / count), _rounded(max(9.0, _y(part) - up))


def _points(points: Iterable[tuple[int, float]]) -> str:
    return " ".join(f"{place + 0.5:g},{y:.2f}" for place, y in points)


def _area(points: Sequence[tuple[int, float]], *, from_zero: bool = False) -> str:
    first, last = points[0][0] + 0.5, points[-1][0] + 0.5
    start = "0,100" if from_zero else f"{first:g},100"
    return f"{start} {_points(points)} {last:g},100"


def _scale(most: float, write: object) -> tuple[tuple[str, float], ...]:
    if not callable(write):
        return ()
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


def brief_number(number: float) -> str:
    """Return `950`, `12.4 k`, `23.8 M`."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size * 0.9995:
            value = number / size
            return f"{value:.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"  # noqa: PLR2004
    return f"{number:g}"


def price(dollars: float) -> str:
    """Return `$18.40`, or `$0.0042` for an amount below one cent."""
    return f"${dollars:.4f}" if 0 < dollars < 0.01 else f"${dollars:,.2f}"  # noqa: PLR2004
