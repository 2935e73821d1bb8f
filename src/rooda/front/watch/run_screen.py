"""One run: how it stands, its iterations, small plots, and the words of its agent as they come."""

import os
import signal
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.geometry import Size
from textual.screen import Screen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Footer, Input, Static

from rooda.base.colors import Painter
from rooda.base.controls import one_line
from rooda.base.problems import InvalidInput, Problem
from rooda.base.widths import width, wrapped
from rooda.front.watch.run_head import aged, head_text, plots_of, plots_text
from rooda.front.watch.sources import RunPlace, Sources
from rooda.front.watch.widgets import Fitted, Poller, QuestionScreen, RowList, TextScreen
from rooda.plan.world import World
from rooda.run.control import AtWork, NoteTarget, note_text
from rooda.views.model.summary import RunSummary
from rooda.views.run_feed import News
from rooda.views.terminal.run_view import Page, iteration_table
from rooda.views.terminal.table import paragraph
from rooda.world.process.interrupts import END

# What a key does to a run: a note, a stop after the iteration, a stop now.


def tell(tree: Path, text: str) -> str:
    """Write a note, and return which run reads it when. Raises InvalidInput."""
    return NoteTarget.find(World(tree, os.environ)).tell(
        note_text(text.encode("utf-8", "surrogateescape"))
    )


def stop_later(tree: Path, run: str) -> str:
    """Let a run end after its iteration, and return what happens. Raises InvalidInput."""
    found = _find(tree, run)
    found.send(END)
    found.wake()
    return f"{found} stops when its current iteration has ended."


def stop_now(tree: Path, run: str) -> str:
    """Stop a run now, and return what happens. Raises InvalidInput."""
    found = _find(tree, run)
    found.send(signal.SIGTERM)
    found.wake()
    return f"{found} stops now. If its agent does not end, S again kills it."


def _find(tree: Path, run: str) -> AtWork:
    found = AtWork.find(tree)
    if found.note is not None and found.note.run != run:
        problem = Problem(f"run {run} has ended; run {found.note.run} is at work in {tree}")
        raise InvalidInput([problem])
    return found


# The words of an agent as they come: the end of the session log, in bounded memory.


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


_PACE = 0.2  # seconds between two looks at the run
_TICK = 0.1  # seconds between two looks at the results
_REST = 20  # a screen that takes a second to make rests for so many seconds
_ROOMY = 36  # lines of a terminal that has room for higher plots
_PAINT = Painter(is_on=True)


class RunScreen(Screen[None]):
    """Shows a run until the user leaves it; the run itself does not notice."""

    BINDINGS: ClassVar[list[BindingType]] = [
        # With priority, the keys after it are typed into the note and not into the table, however
        # fast they come: an `s` in the note must not stop the run.
        Binding("t", "tell", "Tell", priority=True),
        Binding("s", "stop_later", "Stop later"),
        Binding("S", "stop_now", "Stop now"),
        Binding("escape", "back", "Back"),
    ]

    def __init__(self, sources: Sources, place: RunPlace) -> None:
        super().__init__()
        self._sources, self.place = sources, place
        feed = sources.feed(place)
        self._poller: Poller[News] = Poller(feed.look, _PACE, feed.close)
        self._summary: RunSummary | None = None
        self._made = 0.0  # when the summary came
        self._shown = 0  # seconds since then that the screen shows
        self._trouble = ""  # why the record can't be read
        self._pause = 1.0  # seconds until the screen shows the next age

    def compose(self) -> ComposeResult:
        """Lay the screen out."""
        yield Fitted(lambda _room: "Reading the record ...", id="head")
        yield Fitted(id="plots")
        with Container(id="body"):
            rows = RowList(id="iterations", empty="No iteration has begun yet.", from_end=True)
            rows.border_title = "Iterations"
            yield rows
            words = WordsView(id="words", empty="The agent has said nothing yet.")
            words.border_title = "Words"
            yield words
        yield Static(id="message", markup=False)
        yield Input(id="note")
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Begin to read."""
        self.query_one("#note").display = False
        self.query_one("#message").display = False
        self.query_one(RowList).focus()
        self._poller.start()
        self.set_interval(_TICK, self._take)

    def on_unmount(self) -> None:
        """Stop to read."""
        self._poller.stop()

    def on_resize(self) -> None:
        """Make the texts for the new height."""
        self._show()

    # -- what is new ---------------------------------------------------------------------------

    def _take(self) -> None:
        for news in self._poller.take():
            self.query_one(WordsView).add(news.text)
            if news.trouble != self._trouble:
                self._trouble = news.trouble
                self._tell_user(news.trouble)
            if news.summary is not None:
                self._take_summary(news.summary)
        age = time.monotonic() - self._made
        is_running = self._summary is not None and self._summary.is_running
        if is_running and age >= self._shown + self._pause:
            self._shown = int(age)
            self._show()

    def _take_summary(self, run: RunSummary) -> None:
        if self._summary is not None and self._summary.is_running and not run.is_running:
            self._tell_user("")  # what a key has done is over
        self._summary, self._made, self._shown = run, time.monotonic(), 0
        self._show()

    def _show(self) -> None:
        if self._summary is None:
            return
        began = time.monotonic()
        run, height = aged(self._summary, self._shown), self.size.height
        self.query_one("#head", Fitted).show(lambda room: head_text(run, room, height, _PAINT))
        self.query_one("#body").set_class(not run.is_running, "ended")
        rows = 1 if height < _ROOMY else 3
        self.query_one("#plots", Fitted).show(
            lambda room: plots_text(plots_of(run), room, rows, _PAINT)
        )
        self.query_one(RowList).show(
            lambda room: iteration_table(run.iterations, Page(room, _PAINT)),
            [str(one.number) for one in run.iterations],
        )
        # A run of thousands of iterations has a long table: keys come first.
        self._pause = max(1.0, _REST * (time.monotonic() - began))

    # -- what keys do --------------------------------------------------------------------------

    def on_row_list_chosen(self, event: RowList.Chosen) -> None:
        """Show an iteration."""
        number = int(event.key)
        look = partial(self._sources.iteration, self.place, number, lambda room: Page(room, _PAINT))
        self.app.push_screen(TextScreen(f"Iteration {number}", look))

    def action_back(self) -> None:
        """Close the input line, or the run."""
        if self.query_one("#note").display:
            self._close_note()
            self._tell_user("")
        else:
            self.dismiss()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether a key acts now: in a note, `t` is a letter."""
        del parameters
        return not (action == "tell" and self.query_one("#note").display)

    def action_tell(self) -> None:
        """Open the input line."""
        self._tell_user("Write a note for the next prompt: Enter sends it, Esc closes this line.")
        note = self.query_one("#note")
        note.display = True
        self.set_focus(note)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Write the note."""
        text = event.value
        self._close_note()
        self._tell_user("")
        if text.strip():
            self._steer(partial(tell, self.place.tree, text))

    def action_stop_later(self) -> None:
        """Let the run end after its iteration."""
        if self._is_at_work():
            self._steer(partial(stop_later, self.place.tree, self.place.run))

    def action_stop_now(self) -> None:
        """Ask, then stop the run."""
        if self._is_at_work():
            question = f"Stop run {self.place.run} now? Its agent is stopped in its work."
            self.app.push_screen(QuestionScreen(question), self._answered)

    def _answered(self, is_yes: bool | None) -> None:  # noqa: FBT001 - Textual passes it so
        if is_yes:
            self._steer(partial(stop_now, self.place.tree, self.place.run))

    def _is_at_work(self) -> bool:
        if self._summary is not None and not self._summary.is_running:
            self._tell_user(f"Run {self.place.run} has ended: there is nothing to stop.")
            return False
        return True

    def _close_note(self) -> None:
        note = self.query_one("#note", Input)
        note.value, note.display = "", False
        self.set_focus(self.query_one(RowList))

    def _steer(self, act: Callable[[], str]) -> None:
        """Do something to the run in a thread, and tell the user what came of it."""

        def work() -> None:
            try:
                words = act()
            except InvalidInput as error:
                first = error.problems[0]
                words = f"{first.message[:1].upper()}{first.message[1:]}. {first.suggestion or ''}"
            self.app.call_from_thread(self._tell_user, words)

        self.run_worker(work, thread=True, group="steering")

    def _tell_user(self, words: str) -> None:
        message = self.query_one("#message", Static)
        room = max(1, self.size.width - 2)
        message.display = bool(words)
        message.update(paragraph(one_line(words), room=room).rstrip("\n"))
