"""The first screen: the runs of this machine, those at work first."""

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Footer

from rooda.base.colors import Color, Painter
from rooda.base.controls import one_line
from rooda.base.numbers import count
from rooda.front.watch.fitted import Fitted
from rooda.front.watch.poller import Poller
from rooda.front.watch.row_list import RowList
from rooda.front.watch.run_list import ListedRun, RunList, list_text
from rooda.front.watch.sources import RunPlace, Sources
from rooda.views.terminal.table import paragraph

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
