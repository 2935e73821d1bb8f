"""Tables for people: columns that give way on a narrow terminal, and lines with a name. Pure."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct

from rooda.base.colors import Color, Painter
from rooda.base.controls import one_line
from rooda.base.widths import cut, width, wrapped

_GAP = "  "
_READABLE = 36  # columns of the last column; the others give way until it has so many
_LONGEST = 4000  # characters of a value with a name
_NARROW = 24  # columns of a value beside its name; a narrower one is below the name
_PLAIN = Painter()


class Column(Struct, frozen=True):
    """A column. `gives_way`: the column with the highest number is left out first, 0 never."""

    title: str
    gives_way: int = 0
    is_right: bool = False


class Cell(NamedTuple):
    """The text of a cell, and its color."""

    text: str
    color: Color | None = None


def table(
    columns: Sequence[Column],
    rows: Sequence[Sequence[Cell]],
    *,
    room: int | None = None,
    paint: Painter = _PLAIN,
) -> str:
    """Return the rows below the titles of their columns.

    `room` is the width of the terminal: columns give way by their number, and at last the last
    column is cut. Without a terminal (None) nothing is left out or cut. A column without any text
    is left out.
    """
    cells = [[Cell(_shown(text), color) for text, color in row] for row in rows]
    places = [at for at in range(len(columns)) if any(row[at].text for row in cells)]
    widths = [
        max([width(one.title), *(width(row[at].text) for row in cells)])
        for at, one in enumerate(columns)
    ]
    places = _fitting(columns, places, widths, room)
    titles = [Cell(one.title, Color.QUIET) for one in columns]
    return "".join(
        _line([(columns[at], widths[at], row[at]) for at in places], room, paint)
        for row in (titles, *cells)
    )


def _fitting(
    columns: Sequence[Column], places: list[int], widths: Sequence[int], room: int | None
) -> list[int]:
    """Return the places of the columns that fit, with a last column that can be read."""
    if room is None or not places:
        return places
    last = min(widths[places[-1]], _READABLE)
    while sum(widths[at] + len(_GAP) for at in places[:-1]) + last > room:
        at = max(places[:-1], key=lambda at: columns[at].gives_way, default=None)
        if at is None or not columns[at].gives_way:
            break
        places = [other for other in places if other != at]
    return places


def _line(parts: Sequence[tuple[Column, int, Cell]], room: int | None, paint: Painter) -> str:
    left, found = room, ""
    for place, (column, wide, cell) in enumerate(parts):
        is_last = place == len(parts) - 1
        gap = "" if place == 0 else _GAP
        text = cell.text if left is None else cut(cell.text, max(0, left - len(gap)))
        space = "" if is_last else " " * (wide - width(text))
        shown = paint(cell.color, text) if cell.color else text
        found += gap + (space + shown if column.is_right else shown + space)
        if left is not None:
            left -= len(gap) + max(wide, width(text))
    return found.rstrip() + "\n"


def plain_table(
    titles: Sequence[str], rows: Sequence[Sequence[str]], *, room: int | None = None
) -> str:
    """Return the rows with all of their columns, below their titles if there are any.

    A terminal with less `room` cuts the ends of the lines.
    """
    lines = [list(map(_shown, line)) for line in ([titles, *rows] if titles else rows)]
    widths = [max(map(width, texts)) for texts in zip(*lines, strict=True)]
    column = Column("")
    return "".join(
        _line(
            [(column, wide, Cell(text)) for wide, text in zip(widths, line, strict=True)],
            room,
            _PLAIN,
        )
        for line in lines
    )


def named_lines(
    lines: Iterable[tuple[str | Cell, str]], *, room: int | None = None, paint: Painter = _PLAIN
) -> str:
    """Return lines like `Time   4h07m`. A terminal gets a long value in several lines.

    The end of a very long value is left out: an agent can write any text into the record.
    """
    pairs = [(_named(name), _shown(_limited(value))) for name, value in lines]
    wide = max((width(name.text) for name, _ in pairs), default=0) + len(_GAP)
    is_beside = room is None or room - wide >= _NARROW
    indent = " " * (wide if is_beside else len(_GAP))
    found = ""
    for name, value in pairs:
        rows = [value] if room is None else wrapped(value, room - len(indent))
        head = " " * (wide - width(name.text)) if is_beside else f"\n{indent}"
        text = f"\n{indent}".join(rows)
        found += f"{paint(name.color or Color.QUIET, name.text)}{head}{text}".rstrip() + "\n"
    return found


def _limited(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} [...]"


def _named(name: str | Cell) -> Cell:
    return Cell(name) if isinstance(name, str) else name


def paragraph(text: str, *, room: int | None = None) -> str:
    """Return a text in lines that fit."""
    return "\n".join([text] if room is None else wrapped(text, room)) + "\n"


def _shown(text: str) -> str:
    """Return an untrusted text on one line; a tab would move the columns."""
    return one_line(text.replace("\t", " "))
