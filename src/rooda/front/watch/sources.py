"""What the view reads: the runs of the machine, one run, one iteration, the fleet."""

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

from msgspec import Struct

from rooda.base.controls import one_line
from rooda.base.secrets.masking import Masker
from rooda.front.watch.run_list import ListReader
from rooda.front.watch.widgets import Make
from rooda.record.json_objects import last_attempts
from rooda.record.reader import RecordReader
from rooda.record.rows import StoreError
from rooda.record.run_folders import iteration_folder
from rooda.views.model.build import summarize
from rooda.views.run_feed import RunFeed
from rooda.views.terminal.iteration_view import iteration_text
from rooda.views.terminal.run_view import Page
from rooda.views.terminal.table import paragraph
from rooda.views.wording.words import words_of
from rooda.world.state.record_place import RecordPlace

_CLOSING = 20_000  # characters of the agent's last words


class RunPlace(Struct, frozen=True):
    """A run, and the work tree with its record."""

    place: RecordPlace
    run: str

    @property
    def tree(self) -> Path:
        """The work tree."""
        return self.place.tree


class Sources(Struct, frozen=True):
    """Where the view reads. `fleet` returns the table of the fleet, or why there is none."""

    masker: Masker
    environ: Mapping[str, str]
    fleet: Callable[[], Make]

    def run_list(self) -> ListReader:
        """Return the reader of all runs."""
        return ListReader(self.masker, self.environ)

    def feed(self, place: RunPlace) -> RunFeed:
        """Return the feed of one run."""
        return RunFeed(place.place, place.run, self.masker, self.environ)

    def iteration(self, place: RunPlace, number: int, page: Callable[[int], Page]) -> Make:
        """Return the view of one iteration; if it can't be read, the reason."""
        reader = RecordReader.for_view(place.place.state, self.masker.tree)
        try:
            run = self.masker.tree(reader.run(place.run))
            now = datetime.now().astimezone()
            kept = reader.kept_snapshots(place.run)
            summary = summarize(run, reader.each_iteration(place.run), now, kept)
            rows = last_attempts(reader.iteration(place.run, number))
        except StoreError as error:
            reason = one_line(str(error))
            return lambda room: paragraph(reason, room=room)
        one = next((one for one in summary.iterations if one.number == number), None)
        if one is None or not rows:
            return lambda _room: f"Iteration {number} is not in the record."
        folder = iteration_folder(place.place.state, place.run, rows[0].number, rows[0].attempt)
        limits = {"longest": _CLOSING, "steps": 1}
        words = words_of(place.place, place.run, one, **limits, masker=self.masker)
        return lambda room: "".join(
            iteration_text(rows[0], one, summary, words, page(room), str(folder))
        )
