"""The fleet of the current folder for a view that stays open, and never fails without one."""

from rooda.base.problems import InvalidInput
from rooda.fleet.display.fleet_table import Sight
from rooda.fleet.display.sight_at import sight_at
from rooda.fleet.place import Place
from rooda.front.cli.fleet_here import NO_RUN, look_around, refuse_without_extra


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
