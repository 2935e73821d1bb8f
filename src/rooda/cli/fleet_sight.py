"""The fleet of the current folder for a view that stays open, and never fails without one."""

import contextlib

from rooda.cli.fleet_here import NO_RUN, look_around, refuse_without_extra
from rooda.config.problems import InvalidInput
from rooda.fleet.display.fleet_table import Sight
from rooda.fleet.place import Place


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
        return _sight(self._place)


def _sight(place: Place) -> Sight | str:
    from sqlalchemy.exc import SQLAlchemyError

    from rooda.fleet.database.fleet_store import FleetStore

    try:
        with contextlib.closing(FleetStore(place.url)) as store:
            runs = store.runs(place.project)
            holds, workers = store.accounts.holds(), store.workers.all(place.project)
            return Sight(runs, store.now(), holds, workers) if runs else NO_RUN
    except SQLAlchemyError as error:
        from rooda.fleet.database.database_check import database_words

        why = database_words(error, place.url)
        return f"The database {place.shown_url} can't be used: {why}"
