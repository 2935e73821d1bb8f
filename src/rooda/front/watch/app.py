"""The full-screen view of the runs of this machine (`rooda watch`)."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Footer

from rooda.base.colors import Color, Painter
from rooda.base.controls import one_line
from rooda.base.numbers import count
from rooda.front.watch.run_list import ListedRun, RunList, list_text
from rooda.front.watch.run_screen import RunScreen
from rooda.front.watch.sources import RunPlace, Sources
from rooda.front.watch.widgets import Fitted, HelpScreen, Poller, RowList, TextScreen
from rooda.views.machine_runs import prepare_types
from rooda.views.terminal.table import paragraph
from rooda.world.process.interrupts import INTERRUPTED, Interrupts

# The first screen: the runs of this machine, those at work first.


_PACE = 1.0  # seconds between two looks at the records
_TICK = 0.1  # seconds between two looks at the results
_EMPTY = "No run is recorded on this machine yet. Start one, e.g. with `rooda build`."
_MOST_TROUBLES = 3


class RunsScreen(Screen[None]):
    """Lists the runs."""

    class Opened(Message):
        """The user opens a run."""

        def __init__(self, place: RunPlace) -> None:
            super().__init__()
            self.place = place

    def __init__(self, sources: Sources) -> None:
        super().__init__()
        self._poller: Poller[RunList] = Poller(sources.run_list().look, _PACE)
        self._runs: Sequence[ListedRun] | None = None

    def compose(self) -> ComposeResult:
        """Lay the screen out."""
        yield Fitted(lambda _room: "Reading the records ...", id="head")
        yield RowList(id="runs", empty=_EMPTY)
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Begin to read."""
        self._poller.start()
        self.set_interval(_TICK, self._take)

    def on_unmount(self) -> None:
        """Stop to read."""
        self._poller.stop()

    def on_screen_suspend(self) -> None:
        """Do not read what is not visible."""
        self._poller.pause()

    def on_screen_resume(self) -> None:
        """Read again."""
        self._poller.go_on()

    def on_row_list_chosen(self, event: RowList.Chosen) -> None:
        """Open a run."""
        found = next((one for one in self._runs or () if one.key == event.key), None)
        if found is not None:
            self.post_message(self.Opened(RunPlace(found.place, found.run)))

    def _take(self) -> None:
        for found in self._poller.take()[-1:]:
            self._show(found)

    def _show(self, found: RunList) -> None:
        self._runs, paint = found.runs, Painter(is_on=True)
        keys = [one.key for one in found.runs]
        self.query_one(RowList).show(lambda room: list_text(found.runs, room, paint), keys)
        self.query_one("#head", Fitted).show(lambda room: _head(found, room, paint))


def _head(found: RunList, room: int, paint: Painter) -> str:
    at_work = sum(one.is_running for one in found.runs)
    words = f"{count(at_work, 'run')} at work" if at_work else "No run is at work"
    ended = len(found.runs) - at_work
    rest = f", {count(ended, 'run')} ended" if ended else ""
    text = paint(Color.TITLE, paragraph(f"{words}{rest}", room=room).rstrip("\n")) + "\n"
    for trouble in found.troubles[:_MOST_TROUBLES]:
        text += paint(Color.BAD, paragraph(one_line(trouble), room=room).rstrip("\n")) + "\n"
    return text


_SIGNAL_TICK = 0.2


class WatchApp(App[int]):
    """Shows the list of runs, or one run at once. It only reads, until a key steers a run.

    The colors are those of the terminal, so that light and dark ones look right.
    """

    TITLE = "rooda watch"
    ENABLE_COMMAND_PALETTE = False
    CSS_PATH = "watch.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-stacked"), (140, "-wide")]  # noqa: RUF012 - as Textual has it
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (16, "-low"), (30, "-high")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f", "fleet", "Fleet"),
        Binding("question_mark", "help", "Help", key_display="?"),
        Binding("q", "quit_view", "Quit"),
        Binding("ctrl+c", "quit_view", "Quit", show=False, priority=True),
    ]

    def __init__(
        self, sources: Sources, place: RunPlace | None = None, interrupts: Interrupts | None = None
    ) -> None:
        prepare_types()
        super().__init__(ansi_color=True)
        self.theme = "ansi-dark"
        self._sources, self._place, self._interrupts = sources, place, interrupts

    def on_mount(self) -> None:
        """Show the list; over it the run that was asked for."""
        self.push_screen(RunsScreen(self._sources))
        if self._place is not None:
            self.push_screen(RunScreen(self._sources, self._place))
        self.set_interval(_SIGNAL_TICK, self._heed_signals)

    def on_runs_screen_opened(self, event: RunsScreen.Opened) -> None:
        """Open a run."""
        self.push_screen(RunScreen(self._sources, event.place))

    def action_fleet(self) -> None:
        """Show the table of the fleet."""
        if not isinstance(self.screen, TextScreen):
            self.push_screen(TextScreen("Fleet", self._sources.fleet))

    def action_help(self) -> None:
        """Show the keys."""
        self.push_screen(HelpScreen())

    def action_quit_view(self) -> None:
        """Quit; the runs go on."""
        self.exit(0)

    @property
    def failure(self) -> Exception | None:
        """What went wrong within the view: the caller reports it."""
        return self._exception

    def _fatal_error(self) -> None:
        """End without Textual's report, which shows the values of all variables."""
        self._close_messages_no_wait()

    def _heed_signals(self) -> None:
        if self._interrupts is not None and self._interrupts.received:
            self.exit(INTERRUPTED)
