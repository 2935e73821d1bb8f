"""One run: how it stands, its iterations, small plots, and the words of its agent as they come."""

import time
from collections.abc import Callable
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import Screen
from textual.widgets import Footer, Input, Static

from rooda.base.colors import Painter
from rooda.base.controls import one_line
from rooda.base.problems import InvalidInput
from rooda.front.watch import steering
from rooda.front.watch.dialogs import QuestionScreen
from rooda.front.watch.fitted import Fitted
from rooda.front.watch.plots import plots_of, plots_text
from rooda.front.watch.poller import Poller
from rooda.front.watch.row_list import RowList
from rooda.front.watch.run_head import aged, head_text
from rooda.front.watch.sources import RunPlace, Sources
from rooda.front.watch.text_screen import TextScreen
from rooda.front.watch.words_view import WordsView
from rooda.views.model.summary import RunSummary
from rooda.views.run_feed import News
from rooda.views.terminal.run_view import Page, iteration_table
from rooda.views.terminal.table import paragraph

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
            self._steer(partial(steering.tell, self.place.tree, text))

    def action_stop_later(self) -> None:
        """Let the run end after its iteration."""
        if self._is_at_work():
            self._steer(partial(steering.stop_later, self.place.tree, self.place.run))

    def action_stop_now(self) -> None:
        """Ask, then stop the run."""
        if self._is_at_work():
            question = f"Stop run {self.place.run} now? Its agent is stopped in its work."
            self.app.push_screen(QuestionScreen(question), self._answered)

    def _answered(self, is_yes: bool | None) -> None:  # noqa: FBT001 - Textual passes it so
        if is_yes:
            self._steer(partial(steering.stop_now, self.place.tree, self.place.run))

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
