"""Parts of the screens: a reader in a thread, texts and rows for any width, small windows."""

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import ClassVar, Generic, TypeVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.geometry import Region, Size
from textual.message import Message
from textual.screen import ModalScreen, Screen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Footer, Static

from rooda.base.controls import storable

_T = TypeVar("_T")
_MOST = 4  # results that wait; then the thread waits for the view
_REST = 4  # a look that takes a second is followed by a pause of so many seconds, at least


class Poller(Generic[_T]):
    """Calls `look` again and again; the view takes the results when it has time for them."""

    def __init__(
        self, look: Callable[[], _T], seconds: float, close: Callable[[], None] = lambda: None
    ) -> None:
        self._look, self._seconds, self._close = look, seconds, close
        self._results: queue.Queue[_T] = queue.Queue(_MOST)
        self._is_over = threading.Event()
        self._is_wanted = threading.Event()
        self._is_wanted.set()
        self._error: Exception | None = None
        # A daemon: quitting does not wait for a disk that does not answer.
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> "Poller[_T]":
        """Start to look."""
        self._thread.start()
        return self

    def take(self) -> list[_T]:
        """Return the results since the last call. Raises what `look` raised."""
        if self._error is not None:
            raise self._error
        found: list[_T] = []
        with contextlib.suppress(queue.Empty):
            while len(found) < _MOST:
                found.append(self._results.get_nowait())
        return found

    def pause(self) -> None:
        """Do not look until `go_on`: the user looks at something else."""
        self._is_wanted.clear()

    def go_on(self) -> None:
        """Look again."""
        self._is_wanted.set()

    def stop(self) -> None:
        """Stop to look; the thread ends after its current look."""
        self._is_over.set()
        self._is_wanted.set()

    def _run(self) -> None:
        while not self._is_over.is_set():
            began = time.monotonic()
            try:
                result = self._look()
            except Exception as error:  # noqa: BLE001 - the view ends with it
                self._error = error
                break
            took = time.monotonic() - began
            while not self._is_over.is_set():
                with contextlib.suppress(queue.Full):
                    self._results.put(result, timeout=0.2)
                    break
            self._is_over.wait(max(self._seconds, _REST * took))
            self._is_wanted.wait()
        self._close()


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


_PACE = 2.0  # seconds between two looks
_TICK = 0.1  # seconds between two looks at the results


class TextScreen(Screen[None]):
    """Shows what `look` returns."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,backspace", "dismiss", "Back"),
        Binding("j", "down", "Down", show=False),
        Binding("k", "up", "Up", show=False),
    ]

    def __init__(self, title: str, look: Callable[[], Make]) -> None:
        super().__init__()
        self._title = title
        self._poller = Poller(look, _PACE)

    def compose(self) -> ComposeResult:
        """Lay the screen out."""
        with VerticalScroll(id="page", classes="panel") as page:
            page.border_title = self._title
            yield Fitted(lambda _room: "Reading ...", id="text")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Begin to read."""
        self._poller.start()
        self.set_interval(_TICK, self._take)

    def on_unmount(self) -> None:
        """Stop to read."""
        self._poller.stop()

    def action_down(self) -> None:
        """Scroll."""
        self.query_one("#page").scroll_down(animate=False)

    def action_up(self) -> None:
        """Scroll."""
        self.query_one("#page").scroll_up(animate=False)

    def _take(self) -> None:
        for make in self._poller.take()[-1:]:
            self.query_one("#text", Fitted).show(make)


_KEYS = """\
Keys of rooda watch

  Up, Down, PgUp, PgDn  move
  Enter                 open the run, or the iteration
  Esc                   back
  Tab                   from the iterations to the words
  t                     tell: a note for the next prompt
  s                     stop the run after its iteration
  S                     stop the run now
  f                     the table of the fleet
  ?                     this list
  q, Ctrl+C             quit; the run goes on

A run is also stopped with `rooda stop`, and told
something with `rooda tell`, in its folder.
"""


class HelpScreen(ModalScreen[None]):
    """Shows the keys until a key closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q,enter", "dismiss", "Close"),
    ]

    def compose(self) -> ComposeResult:
        """Show the text."""
        with VerticalScroll(classes="window"):
            yield Static(_KEYS, markup=False)


class QuestionScreen(ModalScreen[bool]):
    """Asks a question that only `y` answers with yes."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape,enter,q", "answer(False)", "No"),
    ]

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        """Show the question."""
        with VerticalScroll(classes="window"):
            yield Static(f"{self._question}\n\ny: yes   n: no", markup=False)

    def action_answer(self, is_yes: bool) -> None:  # noqa: FBT001 - Textual passes it so
        """Close the window with the answer."""
        self.dismiss(is_yes)
