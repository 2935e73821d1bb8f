"""What `rooda watch` opens first, and where it reads."""

import contextlib
from pathlib import Path

from rooda.base.colors import Painter
from rooda.base.problems import InvalidInput
from rooda.base.secrets.masking import Masker
from rooda.fleet.display.fleet_table import Sight, sight_at, table_text
from rooda.fleet.place import Place
from rooda.front.cli.fleet_here import NO_RUN, look_around, refuse_without_extra
from rooda.front.recorded import Recorded, place_here
from rooda.front.watch.sources import RunPlace, Sources
from rooda.front.watch.widgets import Make
from rooda.plan.world import World
from rooda.run.control import AtWork
from rooda.views.machine_runs import machine_runs
from rooda.views.terminal.table import paragraph
from rooda.world.state.record_place import RecordPlace

# The fleet of the current folder for a view that stays open, and never fails without one.


class FleetSight:
    """Looks at the database of the fleet, if there is one."""

    def __init__(self) -> None:
        self._place: Place | None = None

    def look(self) -> Sight | str:
        """Return what the database has, or one sentence that says why there is nothing to see."""
        try:
            refuse_without_extra()
            if self._place is None:
                self._place = look_around({})[3]
        except InvalidInput as error:
            first = error.problems[0]
            return f"{first.message[:1].upper()}{first.message[1:]}. {first.suggestion or ''}"
        if not self._place.has_database:
            return NO_RUN
        found = sight_at(self._place)
        return NO_RUN if isinstance(found, Sight) and not found.runs else found


def place_to_open(world: World, name: str | None, masker: Masker) -> RunPlace | None:
    """Return the run that the user asks for, else the one at work here; None: the list.

    A run of another work tree has to be named in full. Raises InvalidInput.
    """
    if name is None:
        return _at_work(world)
    record = Recorded.at(place_here(world.folder), masker)
    try:
        return RunPlace(record.place, record.run(name).run)
    except InvalidInput:
        for one in machine_runs(masker, world.environ):
            if one.row.run == name:
                return RunPlace(one.place, name)
        raise


def _at_work(world: World) -> RunPlace | None:
    with contextlib.suppress(InvalidInput):
        run = AtWork.find(world.folder)
        state = run.state()
        if run.note is not None and state is not None:
            return RunPlace(RecordPlace(Path(run.note.workspace), state), run.note.run)
    return None


def sources_here(world: World, masker: Masker) -> Sources:
    """Return where the view reads."""
    sight = FleetSight()

    def fleet() -> Make:
        found = sight.look()
        if isinstance(found, str):
            return lambda room: paragraph(found, room=room)
        shown = masker.tree(found)
        return lambda room: table_text(shown, room=room, paint=Painter(is_on=True))

    return Sources(masker, world.environ, fleet)
