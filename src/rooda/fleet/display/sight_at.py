"""What the database of a fleet has, for views that stay open: a database that fails is words."""

import contextlib

from rooda.fleet.display.fleet_table import Sight
from rooda.fleet.place import Place


def sight_at(place: Place) -> Sight | str:
    """Return what the database has, or one sentence that says why it can't be used.

    Needs the packages of the fleet.
    """
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415 - a part of the extra

    from rooda.fleet.store.check import database_words  # noqa: PLC0415 - likewise
    from rooda.fleet.store.store import FleetStore  # noqa: PLC0415 - likewise

    try:
        with contextlib.closing(FleetStore(place.url)) as store:
            return Sight.of(store, place.project)
    except SQLAlchemyError as error:
        words = database_words(error, place.url)
        return f"The database {place.shown_url} can't be used: {words}"
