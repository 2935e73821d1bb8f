"""What the pages show, read from the records of all known work trees. Nothing here writes.

Every call reads the record anew, with a masker of its own: the functions run in several threads,
and a masker learns the secrets of the runs that it has seen.
"""

import contextlib
import re
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from rooda.base.colors import Color
from rooda.base.problems import InvalidInput
from rooda.base.secrets.masking import Masker
from rooda.fleet.display.fleet_table import Sight, hold_words, sight_at, worker_words
from rooda.fleet.display.run_words import (
    budget_words,
    color_of,
    cost_words,
    iteration_words,
    state_words,
    total_words,
)
from rooda.fleet.place import Place, find_place
from rooda.fleet.run_model import RunState
from rooda.plan.settings.fleet_settings import URL
from rooda.plan.settings.fleet_values import read_fleet
from rooda.plan.world import World
from rooda.record.database import NAME
from rooda.record.reader import RecordReader
from rooda.record.rows import RunRow, StoreError
from rooda.record.run_folders import iteration_folder
from rooda.record.transcript_files import named_streams, size_of
from rooda.views.machine_runs import TreeRun, learn, machine_runs
from rooda.views.model.open_tasks import tasks_line
from rooda.views.model.summary import IterationSummary, RunSummary
from rooda.views.report.details import DetailReader, IterationDetails
from rooda.views.report.make import summary_of
from rooda.views.report.page import tone_of
from rooda.views.run_feed import record_trace
from rooda.views.wording.words import readable
from rooda.world.state.folder import STDOUT, is_run
from rooda.world.state.home import NoStateHomeError
from rooda.world.state.record_place import FLEET_DATABASE as DATABASE
from rooda.world.state.record_place import RecordPlace, fleet_state, known_places, place_with_key
from rooda.world.tools import Tools

_KEY = re.compile(r"[0-9a-f]{16}")
_NUMBER = re.compile(r"[0-9]{1,6}")
_MOST_READ = 16 * 1024 * 1024  # bytes of a transcript
_MOST_SHOWN = 120_000  # characters of it
_MOST_DETAILS = 400_000  # bytes of the details of one iteration


class NotThere(Exception):  # noqa: N818 - it says what was found
    """The address names nothing that is in a record."""


class FoundRun(Struct, frozen=True):
    """A run of a known work tree."""

    place: RecordPlace
    key: str
    row: RunRow
    reader: RecordReader
    masker: Masker

    @property
    def tree(self) -> Path:
        """The work tree."""
        return self.place.tree

    def summary(self) -> RunSummary:
        """Return the run as it stands now. Raises NotThere."""
        try:
            return summary_of(self.reader, self.row)
        except StoreError as error:
            raise NotThere(f"The record of {self.tree} can't be read: {error}") from None


class FoundIteration(Struct, frozen=True):
    """An iteration with its details, and what the agent printed."""

    run: RunSummary
    one: IterationSummary
    details: IterationDetails
    transcript: str = ""  # the end of it
    is_too_long: bool = False  # the transcript is not read


class Sources(Struct, frozen=True):
    """Finds runs and iterations; `environ` has the place of the list of work trees."""

    environ: Mapping[str, str]

    def masker(self) -> Masker:
        """Return a masker that knows the secrets of the environment."""
        return Masker(self.environ)

    def find(self, key: str, run: str) -> FoundRun:
        """Return a run. Raises NotThere."""
        place = place_with_key(key, self.environ) if _KEY.fullmatch(key) else None
        if place is None:
            raise NotThere("No work tree with this address has a record.")
        if not is_run(run):
            raise NotThere("This is not the name of a run.")
        masker = self.masker()
        reader = RecordReader.for_view(place.state, masker.tree)
        try:
            row = reader.run(run)
        except StoreError as error:
            raise NotThere(f"{masker.text(str(error))}.") from None
        if row.run != run:
            raise NotThere(f"There is no run {run} in the record.")
        learn(masker, place.tree, self.environ, row)
        return FoundRun(place, key, masker.tree(row), reader, masker)

    def iteration(self, key: str, run: str, number: str) -> FoundIteration:
        """Return an iteration. Raises NotThere."""
        found = self.find(key, run)
        summary = found.summary()
        wanted = int(number) if _NUMBER.fullmatch(number) else None
        one = next((one for one in summary.iterations if one.number == wanted), None)
        if one is None:
            raise NotThere(f"Run {run} has no such iteration.")
        reader = DetailReader(found.place, masker=found.masker, most=_MOST_DETAILS)
        details = reader.read(summary, [one])[one.number]
        folder = iteration_folder(found.place.state, run, one.number, one.attempt)
        try:
            is_too_long = size_of(folder / STDOUT) > _MOST_READ
            transcript = "" if is_too_long else _end_of(folder, one, found)
        except OSError:
            return FoundIteration(summary, one, details)
        return FoundIteration(summary, one, details, transcript, is_too_long)


def _end_of(folder: Path, one: IterationSummary, found: FoundRun) -> str:
    """Return the end of what the agent printed, to read."""
    kept: deque[str] = deque()
    size = 0
    pieces = named_streams(folder)
    is_cut = False
    for text in readable(pieces, one.adapter, str(found.tree), found.masker):
        kept.append(text)
        size += len(text)
        while size - len(kept[0]) > _MOST_SHOWN:
            size -= len(kept.popleft())
            is_cut = True
    text = "".join(kept).strip("\n")
    is_cut = is_cut or len(text) > _MOST_SHOWN
    return f"[...]\n{text[-_MOST_SHOWN:]}" if is_cut else text


# All runs of the machine for a list: one card for each.


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


# The fleets of the known work trees, as tables.


_KEPT = 30.0  # seconds: looking for fleets starts git in each work tree
_TONES = {Color.GOOD: "good", Color.BAD: "fail", Color.WARNING: "warn"}


class FleetRow(Struct, frozen=True):
    """A run of a fleet."""

    name: str
    iteration: str
    cost: str
    where: str
    branch: str
    state: str
    tone: str


class FleetTable(Struct, frozen=True):
    """A fleet; `trouble` says why there is no table."""

    project: str
    folder: str
    rows: tuple[FleetRow, ...] = ()
    lines: tuple[str, ...] = ()
    trouble: str = ""


class Fleets:
    """Finds the fleets of the work trees, and of the folder that the command started in."""

    def __init__(self, sources: Sources, folder: Path) -> None:
        self._sources = sources
        self._folder = folder
        self._places: list[Place] = []
        self._looked_at: float | None = None

    def are_there(self) -> bool:
        """Whether a work tree has a fleet, and its packages are installed."""
        return bool(self._find())

    def tables(self) -> list[FleetTable]:
        """Return the tables."""
        return [self._table(place) for place in self._find()]

    def _find(self) -> list[Place]:
        now = time.monotonic()
        if self._looked_at is None or now - self._looked_at > _KEPT:
            self._places, self._looked_at = self._look(), now
        return self._places

    def _look(self) -> list[Place]:
        if not all(find_spec(name) for name in ("sqlalchemy", "dbos")):
            return []
        found: dict[tuple[str, str], Place] = {}
        environ = self._sources.environ
        for folder in (self._folder, *(one.tree for one in known_places(environ))):
            with contextlib.suppress(InvalidInput):
                values, _ = read_fleet(World(folder, environ), {})
                if values[URL] is None and not _may_have_database(folder, environ):
                    continue
                place = find_place(folder, values, Tools(environ, [folder]))
                if place.has_database:
                    found.setdefault((place.url, place.project), place)
        return list(found.values())

    def _table(self, place: Place) -> FleetTable:
        name, folder = place.top.name, str(place.top)
        sight = sight_at(place)
        if isinstance(sight, str):
            return FleetTable(name, folder, trouble=sight)
        return self._sources.masker().tree(table_of(name, folder, sight))


def _may_have_database(folder: Path, environ: Mapping[str, str]) -> bool:
    """Whether it is worth to ask git: of a linked work tree, git knows where the database is."""
    here = folder.resolve()
    git = next((one / ".git" for one in (here, *here.parents) if (one / ".git").exists()), None)
    if git is None or git.is_file():
        return git is not None
    try:
        return (fleet_state(git, environ) / DATABASE).exists()
    except NoStateHomeError:
        return False


def table_of(project: str, folder: str, sight: Sight) -> FleetTable:
    """Return what the database has as a table."""
    states = sight.states
    rows = tuple(
        FleetRow(
            run.run,
            iteration_words(run),
            cost_words(run.cost, run.unknown_costs, run.iteration),
            run.where if run.state is RunState.WORKING else "",
            run.branch if run.iteration else "",
            state_words(run, states, sight.now),
            _TONES.get(color_of(run) or Color.QUIET, ""),
        )
        for run in sight.runs
    )
    lines = [total_words(sight.runs), *budget_words(sight.runs), *hold_words(sight)]
    return FleetTable(project, folder, rows, (*lines, *worker_words(sight)))
