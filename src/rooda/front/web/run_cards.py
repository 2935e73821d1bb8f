"""All runs of the machine for a list: one card for each."""

import threading
import time
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from rooda.base.secrets.masking import Masker
from rooda.front.web.sources import Sources
from rooda.record.database import NAME
from rooda.record.reader import RecordReader
from rooda.record.rows import StoreError
from rooda.views.machine_runs import TreeRun, machine_runs
from rooda.views.model.open_tasks import tasks_line
from rooda.views.model.summary import RunSummary
from rooda.views.report.make import summary_of
from rooda.views.report.page import tone_of
from rooda.views.run_feed import record_trace
from rooda.world.state.record_place import known_places

MOST = 100  # runs
_PACE = 1.0  # seconds between two looks at the records, at least
_OLDEST = 5.0  # seconds: the durations of runs at work grow
_RARELY = 30.0
_LONGEST = 5.0  # seconds for one record in one look; the other runs of it wait for the next look
_SLOW = "its record takes long to read, or parts are broken: some of its runs are missing here"


class RunCard(Struct, frozen=True):
    """A run in the list; `RunCards` keeps many of them."""

    key: str
    folder: str
    summary: RunSummary  # without its iterations
    headline: str  # what the last good iteration did

    @property
    def run(self) -> str:
        """The name of the run."""
        return self.summary.run

    @property
    def status(self) -> str:
        """The status in the record."""
        return self.summary.status

    @property
    def iterations(self) -> int:
        """How many iterations it has."""
        return self.summary.good + self.summary.failed + self.summary.other

    @property
    def text(self) -> str:
        """What it did last, or why it ended; of a doubtful success, the tasks that are left."""
        if self.summary.is_doubtful:
            return tasks_line(self.summary)
        is_good = self.is_at_work or self.status == "success"
        return (self.headline if is_good else "") or self.summary.rule_text

    @property
    def tone(self) -> str:
        """The class of its state."""
        return tone_of(self.status, is_doubtful=self.summary.is_doubtful)

    @property
    def is_at_work(self) -> bool:
        """Whether the run goes on."""
        return self.summary.is_running


class RunCards:
    """Makes the cards, for all readers; those of runs that have ended are kept."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._masker = sources.masker()
        self._kept: dict[tuple[str, str, str | None], RunCard] = {}
        self._unreadable: dict[
            tuple[str, str, str | None], object
        ] = {}  # and the file's trace then
        self._cards: Sequence[RunCard] = ()
        self.troubles: Sequence[str] = ()  # the work trees whose record can't be read, and why
        self._spent: dict[Path, float] = {}  # seconds that the records took in this look
        self._missing: dict[Path, None] = {}  # work trees with runs that could not be read
        self._seen: object = None
        self._at = 0.0
        self._lock = threading.Lock()  # two threads must not use the masker at once

    def cards(self) -> Sequence[RunCard]:
        """Return the cards: runs at work first, then the newest. The same list if it is new."""
        with self._lock:
            if self._is_outdated():
                self._seen = self._trace()
                self._at = time.monotonic()
                troubles: list[str] = []

                def note(tree: Path, why: str) -> None:
                    troubles.append(f"{tree}: {why}")

                self._spent.clear()
                self._missing.clear()
                environ = self._sources.environ
                runs = machine_runs(self._masker, environ, MOST, on_trouble=note)
                self._cards = [card for card in map(self._card, runs) if card is not None]
                self.troubles = [*troubles, *(f"{tree}: {_SLOW}" for tree in self._missing)]
            return self._cards

    def _is_outdated(self) -> bool:
        age = time.monotonic() - self._at
        if self._seen is None or age < _PACE:
            return self._seen is None
        is_old = age > (_OLDEST if any(one.is_at_work for one in self._cards) else _RARELY)
        return is_old or self._trace() != self._seen

    def _card(self, run: TreeRun) -> RunCard | None:
        name = (run.key, run.row.run, run.row.ended_at)
        found = self._kept.get(name)
        if found is None or found.status != run.row.status:
            spent = self._spent.setdefault(run.tree, 0.0)
            trace = record_trace(run.place.state / NAME)
            if spent > _LONGEST or self._unreadable.get(name) == trace:
                self._missing[run.tree] = None
                return found
            began = time.monotonic()
            found = _read(run, self._masker)
            self._spent[run.tree] = spent + time.monotonic() - began
            if found is None:
                self._missing[run.tree], self._unreadable[name] = None, trace
            if found is not None and not found.is_at_work:
                self._kept[name] = found
        return found

    def _trace(self) -> object:
        places = known_places(self._sources.environ)
        return [(one.tree, record_trace(one.state / NAME)) for one in places]


def _read(run: TreeRun, masker: Masker) -> RunCard | None:
    try:
        summary = summary_of(RecordReader.for_view(run.place.state, masker.tree), run.row)
    except StoreError:
        return None
    return card_of(summary, run)


def card_of(run: RunSummary, at: TreeRun) -> RunCard:
    """Return the card of a run."""
    small = replace(run, iterations=(), changed=(), spans=())
    return RunCard(at.key, str(at.tree), small, run.headline)
