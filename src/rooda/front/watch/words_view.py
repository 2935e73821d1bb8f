"""The words of an agent as they come: the end of the session log, in bounded memory."""

from collections import deque
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from rooda.base.widths import width, wrapped

MOST_LINES = 2000
MOST_CHARACTERS = 300_000  # of all lines: wrapping them again takes a moment
_LONGEST = 2000  # characters of a line
_MORE = " [...]"
_TAB = 4
_RULES = ("=" * 80, "-" * 80)  # around the blocks of the session log
_QUIET = Style(dim=True)


class WordsView(ScrollView, can_focus=True):
    """Shows lines of plain text, and goes on with the newest unless the user has scrolled up."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k", "scroll_up", "Up", show=False),
        Binding("j", "scroll_down", "Down", show=False),
        Binding("g", "scroll_home", "First", show=False),
        Binding("G", "scroll_end", "Last", show=False),
    ]

    def __init__(self, *, id: str, empty: str) -> None:  # noqa: A002
        super().__init__(id=id)
        self._empty = empty
        self._lines: deque[tuple[str, list[str]]] = deque()  # lines, and their rows
        self._kept = 0
        self._open = ""  # the last line, which may grow
        self._rows: list[str] = []
        self._room = 1
        self._is_following = True

    @property
    def text(self) -> str:
        """All that is kept."""
        return "\n".join((*(line for line, _ in self._lines), self._open))

    def add(self, text: str) -> None:
        """Add a text that is clean of control codes; it may end within a line."""
        if not text:
            return
        *lines, last = text[-MOST_CHARACTERS:].rsplit("\n", MOST_LINES)
        for line in lines:
            self._close(self._open + line)
            self._open = ""
        self._open = (self._open + last)[: _LONGEST + 1]
        self._lay_out()

    def _close(self, line: str) -> None:
        """Keep a line that is complete, and forget the oldest ones."""
        line = line.rpartition("\n")[2][: _LONGEST + 1]
        self._lines.append((line, _rows(line, self._room)))
        self._kept += len(line) + 1
        while len(self._lines) > MOST_LINES or self._kept > MOST_CHARACTERS:
            self._kept -= len(self._lines.popleft()[0]) + 1

    def _lay_out(self) -> None:
        self._rows = [row for _, rows in self._lines for row in rows]
        if self._open:
            self._rows += _rows(self._open, self._room)
        self.virtual_size = Size(self._room, len(self._rows))
        if self._is_following:
            self.scroll_end(animate=False, force=True, immediate=True)
        self.refresh()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Follow the newest words as long as the last row is visible."""
        super().watch_scroll_y(old_value, new_value)
        self._is_following = round(new_value) >= self.max_scroll_y

    def on_resize(self) -> None:
        """Wrap the lines again."""
        room = max(1, self.scrollable_content_region.width)
        if room != self._room:
            self._room = room
            self._lines = deque((line, _rows(line, room)) for line, _ in self._lines)
        self._lay_out()

    def render_line(self, y: int) -> Strip:
        """Return one row."""
        at = y + self.scroll_offset.y
        base = self.rich_style
        row = self._rows[at] if at < len(self._rows) else ""
        if not self._rows and y == 0:
            row, base = self._empty, base + _QUIET
        elif row.startswith(("====", "----")):
            base += _QUIET
        strip = Strip([Segment(row, base)])
        return strip.adjust_cell_length(self.scrollable_content_region.width, self.rich_style)


def _rows(line: str, room: int) -> list[str]:
    """Return a line as rows of at most `room` columns; its indentation stays."""
    line = line.expandtabs(_TAB)
    if len(line) > _LONGEST:
        line = line[:_LONGEST] + _MORE
    if line in _RULES:
        return [line[:room]]
    if width(line) <= room:
        return [line]
    words = line.lstrip(" ")
    indent = " " * min(len(line) - len(words), room // 2)
    return [indent + row for row in wrapped(words, room - len(indent))]
