"""The fleets of the known work trees, as tables."""

import contextlib
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

from rooda.base.colors import Color
from rooda.base.problems import InvalidInput
from rooda.fleet.display.fleet_table import Sight, hold_words, worker_words
from rooda.fleet.display.run_words import (
    budget_words,
    color_of,
    cost_words,
    iteration_words,
    state_words,
    total_words,
)
from rooda.fleet.display.sight_at import sight_at
from rooda.fleet.place import Place, find_place
from rooda.fleet.run_model import RunState
from rooda.front.web.sources import Sources
from rooda.plan.settings.fleet_settings import URL
from rooda.plan.settings.fleet_values import read_fleet
from rooda.plan.world import World
from rooda.world.state.fleet_state import DATABASE, fleet_state
from rooda.world.state.home import NoStateHomeError
from rooda.world.state.record_place import known_places
from rooda.world.tools import Tools

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
