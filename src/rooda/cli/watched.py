"""What `rooda watch` opens first, and where it reads."""

import contextlib
from pathlib import Path

from rooda.cli.fleet_sight import FleetSight
from rooda.config.problems import InvalidInput
from rooda.config.world import World
from rooda.console.recorded import Recorded, place_here
from rooda.engine.at_work import AtWork
from rooda.fleet.display.fleet_table import table_text
from rooda.live.machine_runs import machine_runs
from rooda.text.colors import Painter
from rooda.text.masking import Masker
from rooda.views.table import paragraph
from rooda.watch.fitted import Make
from rooda.watch.sources import RunPlace, Sources
from rooda.workspace.record_place import RecordPlace


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
