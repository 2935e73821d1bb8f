"""The fleet of the current folder, for the commands of `rooda fleet` and `rooda worker`."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from rooda.base.lookup import did_you_mean
from rooda.base.numbers import count
from rooda.base.problems import InvalidInput, Problem
from rooda.fleet.display.fleet_table import Sight
from rooda.fleet.place import TITLE, Place, find_place, make_state
from rooda.fleet.remote.own_fence import make_fence
from rooda.fleet.run_model import Run
from rooda.front.extras import need_extra
from rooda.front.recorded import settle_here
from rooda.plan.layers import Layers
from rooda.plan.preflight.state import check_state
from rooda.plan.resolve import Values
from rooda.plan.settings.fleet_settings import URL
from rooda.plan.settings.fleet_values import read_fleet
from rooda.plan.world import World, this_world
from rooda.world.git.git import Git, GitError
from rooda.world.state.folder import StateFolder
from rooda.world.state.record_place import RecordPlace, fleet_in
from rooda.world.tools import Tools

if TYPE_CHECKING:
    from rooda.fleet.store.store import FleetStore

NO_RUN = (
    "This project has no run of a fleet yet. Start some with `rooda fleet run TASKS.md -j 3`: each "
    "`## heading` of the file is a run."
)


class FleetHere(Struct, frozen=True):
    """The place, its settings, and the open database."""

    world: World
    values: Values
    layers: Layers
    place: Place
    tools: Tools
    store: "FleetStore"

    @property
    def git(self) -> Git:
        """Git in the user's checkout."""
        return Git(self.place.top, self.tools)

    def runs(self) -> list[Run]:
        """Return the runs of the project."""
        return self.store.runs(self.place.project)

    def run(self, name: str) -> Run:
        """Return a run by its name, or by a beginning that no other name has."""
        runs = self.runs()
        found = [run for run in runs if run.run == name] or [
            run for run in runs if run.run.startswith(name)
        ]
        if len(found) == 1:
            return found[0]
        names = [run.run for run in runs]
        if found:
            message = f"{name!r} is the beginning of {', '.join(run.run for run in found[:5])}"
            raise wrong(message, "Write more of the name")
        advice = did_you_mean(name, names) or "See the names with `rooda fleet`"
        raise wrong(f"there is no run {name!r}", advice)

    def sight(self, runs: Sequence[Run] | None = None) -> Sight:
        """Return all that the database has, or that about these runs."""
        return Sight.of(self.store, self.place.project, runs)


@contextlib.contextmanager
def fleet_here(
    flags: Mapping[str, tuple[str, str]] | None = None,
    config: str | None = None,
    *,
    is_worker: bool = False,
) -> Iterator[FleetHere]:
    """Yield the fleet of the current folder; the database is made if there is none.

    A worker leaves rows out that rooda did not write, and says so: other runs go on. Raises
    InvalidInput if the database can't be used, also if it goes away later.
    """
    refuse_without_extra()
    from sqlalchemy.exc import SQLAlchemyError

    from rooda.fleet.store.store import FleetStore

    world, values, layers, place, tools = look_around(flags or {}, config)
    _make_state(place, world, tools)
    leave_out = partial(click.echo, err=True) if is_worker else None
    try:
        with (
            fleet_in(place.needed_state),
            contextlib.closing(FleetStore(place.url, leave_out)) as store,
        ):
            yield FleetHere(world, values, layers, place, tools, store)
    except SQLAlchemyError as error:
        from rooda.fleet.store.check import database_words

        message = (
            f"the database {place.shown_url} can't be used: {database_words(error, place.url)}"
        )
        advice = f"Check that it runs, and fleet.url ({URL.variable})"
        raise wrong(message, advice) from None


def look_around(
    flags: Mapping[str, tuple[str, str]], config: str | None = None
) -> tuple[World, Values, Layers, Place, Tools]:
    """Return the world, the settings and the place, without a look at the database."""
    world = this_world()
    settle_here()
    values, layers = read_fleet(world, flags, config)
    tools = Tools(world.environ, [world.folder])
    return world, values, layers, find_place(world.folder, values, tools), tools


def _make_state(place: Place, world: World, tools: Tools) -> None:
    """Make what a fleet on one machine needs, and take over what version 0.1 left in `.git`."""
    if place.state is not None:
        record = RecordPlace(place.top, StateFolder(place.state))
        if found := [*check_state(world, record)]:
            raise InvalidInput(found)
    old = make_state(place)
    records = 0
    if place.fence is not None:
        try:
            records = make_fence(place.fence, place.git_dir, tools)
        except (GitError, OSError) as error:
            raise wrong(f"{place.fence} can't be made: {error}", "Check its disk") from None
    if old is not None or records:
        click.echo(
            f"Took over the fleet of version 0.1 from {place.git_dir}: its database and "
            f"{count(records, 'record')} are in {place.state} now.",
            err=True,
        )


def refuse_without_extra() -> None:
    """Raise InvalidInput if the packages of the fleet are not installed."""
    need_extra("fleet", "the fleet", "sqlalchemy", "dbos")


def wrong(message: str, advice: str) -> InvalidInput:
    """Return a problem with what the user asked of the fleet."""
    return InvalidInput([Problem(message, advice, title=TITLE)])
