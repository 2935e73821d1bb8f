"""The full-screen view of the runs of this machine (`rooda watch`)."""

from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType

from rooda.front.watch.dialogs import HelpScreen
from rooda.front.watch.run_screen import RunScreen
from rooda.front.watch.runs_screen import RunsScreen
from rooda.front.watch.sources import RunPlace, Sources
from rooda.front.watch.text_screen import TextScreen
from rooda.views.record_types import prepare_types
from rooda.world.process.interrupts import INTERRUPTED, Interrupts

_TICK = 0.2


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
        self.set_interval(_TICK, self._heed_signals)

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
