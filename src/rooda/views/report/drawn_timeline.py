"""The geometry of the timeline as numbers; the template draws it. Pure."""

import math
from datetime import datetime, timedelta

from msgspec import Struct

from rooda.base.times import DAY, HOUR, MINUTE
from rooda.loop.wait_kinds import WaitKind
from rooda.record.rows import moment_of
from rooda.views.model.summary import IterationSummary, RunSummary, Span, SpanKind
from rooda.views.report.geometry import DIGIT, LETTER, PlotLabel, Scale, rounded
from rooda.views.wording.labels import brief_duration

_STEPS = (
    *(5, 10, 15, 30, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE),
    *(HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 30 * DAY),
)
_SMALLEST = 0.5  # pixels; a smaller box is not drawn
_PAUSES = {SpanKind.ASLEEP: "asleep", SpanKind.STOPPED: "not running"}


class Box(Struct, frozen=True):
    """A part of the timeline."""

    kind: str
    x: float
    width: float
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


def timeline(run: RunSummary, lines: int, pixels: float) -> list[TimeLine]:
    """Return the timeline in so many lines, for a page that is about so many pixels wide."""
    if run.seconds <= 0:
        return []
    length = run.seconds / lines
    rows = [Scale(length * one, length * (one + 1), pixels) for one in range(lines)]
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


def _line(run: RunSummary, row: Scale, start: datetime | None, place: int) -> TimeLine:
    found = [pair for one in run.iterations if (pair := _piece(one, row)) is not None]
    # Failed iterations first: their numbers and kinds are never left out for others.
    for piece, one in sorted(found, key=lambda pair: not pair[1].is_failed):
        if _is_mostly_in(one, row):
            _name(piece, one, row)
    pieces = [piece for piece, _ in found]
    waits, above = _waits(run, row, pieces)
    return TimeLine(pieces, waits, above, _ticks(row, start), _ends(row, start, place))


def _box(row: Scale, span: Span, *, is_failed: bool = False) -> Box | None:
    left, right = row.x(span.start), row.x(span.end)
    if (right - left) * row.pixels / 100 < _SMALLEST:
        return None
    return Box(str(span.kind), left, rounded(right - left), is_failed)


def _is_mostly_in(one: IterationSummary, row: Scale) -> bool:
    """Return whether the longest part of an iteration is on this line: its number is there."""
    spans = [span for span in one.spans if span.kind is SpanKind.AGENT] or one.spans
    longest = max(spans, key=lambda span: span.seconds)
    middle = longest.start + longest.seconds / 2
    return row.start <= middle < row.end


def _piece(one: IterationSummary, row: Scale) -> tuple[Piece, IterationSummary] | None:
    boxes = [
        box
        for span in one.spans
        if span.end > row.start and span.start < row.end
        if (box := _box(row, span, is_failed=one.is_failed)) is not None
    ]
    if not boxes:
        return None
    return Piece(one.number, "", boxes), one


def _name(piece: Piece, one: IterationSummary, row: Scale) -> None:
    """Give the iteration its number, and a failed one its kind."""
    largest = max(piece.boxes, key=lambda box: box.width)
    agents = [box for box in piece.boxes if box.kind == SpanKind.AGENT] or [largest]
    widest = max(agents, key=lambda box: box.width)
    left, right = widest.x, widest.x + widest.width
    middle = (left + right) / 2
    text = str(one.number)
    if row.has_room("number", text, middle, DIGIT):
        piece.label = PlotLabel(text, rounded(middle), is_failed=one.is_failed)
    if not one.is_failed:
        return
    if (right - left) * row.pixels / 100 >= 2 * DIGIT:
        piece.cross = rounded(middle)
    kind = one.kind or one.status
    if piece.label is not None and row.has_room("above", kind, middle, LETTER):
        piece.kind = PlotLabel(kind, rounded(middle), is_failed=True)


def _waits(
    run: RunSummary, row: Scale, pieces: list[Piece]
) -> tuple[list[PlotLabel], list[PlotLabel]]:
    """Add the waits and pauses of the run to the pieces; return their labels."""
    inside: list[PlotLabel] = []
    above: list[PlotLabel] = []
    asleep = [span for one in run.iterations for span in one.spans if span.kind is SpanKind.ASLEEP]
    for span in (*run.spans, *asleep):
        if span.end <= row.start or span.start >= row.end:
            continue
        box = _box(row, span)
        if box is None:
            continue
        if span.kind is not SpanKind.ASLEEP:
            pieces.append(Piece(None, "", [box]))
        kind = span.kind
        name = kind.row.label if isinstance(kind, WaitKind) else _PAUSES[kind]
        text = f"{name} {brief_duration(span.seconds)}"
        middle, room = box.x + box.width / 2, box.width * row.pixels / 100
        width = len(text) * LETTER + 12
        if room >= width + 12:
            inside.append(PlotLabel(text, rounded(middle), width=rounded(width)))
        elif row.has_room("above", text, middle, LETTER):
            above.append(PlotLabel(text, rounded(middle)))
    return inside, above


def _ticks(row: Scale, start: datetime | None) -> list[PlotLabel]:
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
            found.append(PlotLabel(text, rounded(x)))
    return found


def _ends(row: Scale, start: datetime | None, place: int) -> tuple[PlotLabel, PlotLabel]:
    if start is None:
        return PlotLabel("", 0.0, "start"), PlotLabel("", 100.0, "end")
    form = "%H:%M" if row.end - row.start >= 10 * MINUTE else "%H:%M:%S"
    moments = (start + timedelta(seconds=one) for one in (row.start, row.end))
    first, last = (f"{moment:{form}}" for moment in moments)
    return PlotLabel("" if place and not first else first, 0.0, "start"), PlotLabel(
        last, 100.0, "end"
    )
