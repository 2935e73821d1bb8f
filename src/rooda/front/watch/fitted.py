"""A text that is made for the width of its place, and made again when that changes."""

from collections.abc import Callable

from rich.text import Text
from textual.geometry import Size
from textual.widget import Widget

from rooda.base.controls import storable

Make = Callable[[int], str]  # the text for so many columns, with the colors of rooda.base.colors


def _empty(_room: int) -> str:
    return ""


def colored(line: str) -> Text:
    """Return a text of rooda's views for Textual. The text has colors, and never markup.

    The views have removed all control codes of programs; the colors are rooda's own. The name of a
    file that is not UTF-8 would end the view.
    """
    return Text.from_ansi(storable(line), no_wrap=True, end="")


class Fitted(Widget):
    """Shows such a text; its height is that of the text."""

    DEFAULT_CSS = "Fitted { height: auto; }"

    def __init__(self, make: Make = _empty, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self._make = make
        self._made: tuple[int, str] | None = None

    def show(self, make: Make) -> None:
        """Show another text."""
        room, before = self._made or (0, "")
        self._make, self._made = make, None
        text = self._text(room)
        if text != before:
            is_resized = not before or text.count("\n") != before.count("\n")
            self.refresh(layout=is_resized)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the lines of the text; none for an empty one."""
        del container, viewport
        text = self._text(width)
        return text.count("\n") + 1 if text else 0

    def render(self) -> Text:
        """Return the text."""
        return colored(self._text(self.content_size.width))

    def _text(self, room: int) -> str:
        if self._made is None or self._made[0] != room:
            self._made = room, self._make(room).rstrip("\n")
        return self._made[1]
