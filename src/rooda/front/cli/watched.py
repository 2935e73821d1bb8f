"""What `rooda watch` opens first, and where it reads."""

import contextlib
from pathlib import Path

from rooda.base.colors import Painter
from rooda.base.problems import InvalidInput
from rooda.base.secrets.masking import Masker
from rooda.fleet.display.fleet_table import table_text
from rooda.front.cli.fleet_sight import FleetSight
from rooda.front.recorded import Recorded, place_here
from rooda.front.watch.fitted import Make
from rooda.front.watch.sources import RunPlace, Sources
from rooda.plan.world import World
from rooda.run.control import AtWork
from rooda.views.machine_runs import machine_runs
from rooda.views.terminal.table import paragraph
from rooda.world.state.record_place import RecordPlace


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
