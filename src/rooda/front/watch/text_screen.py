"""A text that fills the screen and stays up to date: an iteration, or the table of the fleet."""

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer

from rooda.front.watch.fitted import Fitted, Make
from rooda.front.watch.poller import Poller

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
