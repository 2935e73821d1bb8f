"""A list of rows in columns that fit the width of the terminal; the user chooses one of them."""

from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from rooda.front.watch.fitted import Make, colored

_MARK, _NO_MARK = "\u203a ", "  "
_REVERSE, _BOLD = Style(reverse=True), Style(bold=True)


class RowList(ScrollView, can_focus=True):
    """Shows a table of rooda's views: a line of titles, which stays, and one line for each row."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home,g", "move(-1000000)", "First", show=False),
        Binding("end,G", "move(1000000)", "Last", show=False),
        Binding("enter", "choose", "Open", key_display="Enter"),
    ]

    class Chosen(Message):
        """The user has opened a row."""

        def __init__(self, rows: "RowList", key: str) -> None:
            super().__init__()
            self.rows, self.key = rows, key

    def __init__(self, *, id: str, empty: str, from_end: bool = False) -> None:  # noqa: A002
        """`from_end`: the cursor begins on the last row."""
        super().__init__(id=id)
        self._is_from_end = from_end
        self._empty = empty
        self._make: Make | None = None
        self._keys: Sequence[str] = ()
        self._room = 0
        self._lines: list[str] = []
        self._cursor = -1  # no row yet

    @property
    def key(self) -> str | None:
        """The key of the row with the cursor; None if there is no row."""
        return self._keys[self._cursor] if self._keys else None

    def show(self, make: Make, keys: Sequence[str]) -> None:
        """Show other rows. The cursor stays on its row, or on the last row if it was there."""
        before, was_last = self.key, self._cursor == len(self._keys) - 1
        is_grown = len(keys) > len(self._keys) and list(keys[: len(self._keys)]) == list(self._keys)
        self._make, self._keys = make, keys
        if is_grown and was_last and (self._is_from_end or before is not None):
            self._cursor = len(keys) - 1
        elif before is not None and before in keys:
            self._cursor = list(keys).index(before)
        else:
            self._cursor = max(0, min(self._cursor, len(keys) - 1))
        self._lay_out()

    def _lay_out(self) -> None:
        before = self._lines
        self._room = self.scrollable_content_region.width
        text = ""
        if self._make is not None and self._keys:
            text = self._make(max(1, self._room - len(_MARK)))
        self._lines = text.rstrip("\n").split("\n") if text else [self._empty]
        self.virtual_size = Size(self._room, len(self._lines))
        if before != self._lines:
            self._see_cursor()

    def _see_cursor(self) -> None:
        # The line of titles covers the first line of what is visible.
        region = Region(0, self._cursor, 1, 2) if self._keys else Region(0, 0, 1, 1)
        self.scroll_to_region(region, animate=False, force=True)
        self.refresh()

    def on_resize(self) -> None:
        """Make the columns fit again."""
        self._lay_out()
        self._see_cursor()

    def action_move(self, step: int) -> None:
        """Move the cursor."""
        if self._keys:
            self._cursor = max(0, min(self._cursor + step, len(self._keys) - 1))
            self._see_cursor()

    def action_page(self, direction: int) -> None:
        """Move the cursor by what is visible."""
        self.action_move(direction * max(1, self.scrollable_content_region.height - 2))

    def action_choose(self) -> None:
        """Open the row with the cursor."""
        if self.key is not None:
            self.post_message(self.Chosen(self, self.key))

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to a row; open the row that has it."""
        offset = event.get_content_offset(self)
        if offset is None or offset.y < 1:
            return
        row = offset.y + self.scroll_offset.y - 1
        if row < len(self._keys):
            if row == self._cursor and event.chain > 1:
                self.action_choose()
            self._cursor = row
            self._see_cursor()

    def render_line(self, y: int) -> Strip:
        """Return one line: the titles, or a row."""
        width = self.scrollable_content_region.width
        at = y + self.scroll_offset.y if y else 0
        line = self._lines[at] if at < len(self._lines) else ""
        is_chosen = bool(self._keys) and y > 0 and at == self._cursor + 1
        base = self.rich_style
        if is_chosen:
            base += _REVERSE if self.has_focus else _BOLD
        mark = _MARK if is_chosen else _NO_MARK
        text = colored(line)
        plain = is_chosen and self.has_focus
        segments = [Segment(mark, base)]
        if plain:
            segments.append(Segment(text.plain, base))
        else:
            segments += [
                Segment(part.text, base + part.style if isinstance(part.style, Style) else base)
                for part in text.render(self.app.console)
                if part.text
            ]
        return Strip(segments).adjust_cell_length(width, base)

    def on_focus(self) -> None:
        """Draw the cursor."""
        self.refresh()

    def on_blur(self) -> None:
        """Draw the cursor."""
        self.refresh()
