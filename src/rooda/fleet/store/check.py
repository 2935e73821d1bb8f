"""Looks at the database of a fleet without changing it: can it be written, how far away is it."""

import time
from urllib.parse import quote

import sqlalchemy as sa
from msgspec import Struct
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from rooda.base.controls import one_line
from rooda.base.secrets.sensitive import HIDDEN, without_secret_values
from rooda.fleet.store.tables import engine_for, seconds_now

_TRIES = 3
_TRIAL = "rooda_doctor"


class DatabaseFault(Exception):  # noqa: N818 - what was found
    """Why the database is of no use now, on one line and without the password."""


class DatabaseFacts(Struct, frozen=True):
    """What the database told. `latency` and `ahead` (of this machine's clock) are in seconds."""

    version: str
    latency: float
    ahead: float


def look_at_database(url: str) -> DatabaseFacts:
    """Return facts about a database that can be written. Leaves nothing there.

    Raises DatabaseFault. A SQLite file has to exist.
    """
    try:
        engine = engine_for(url)
        try:
            with engine.connect() as connection:
                facts = _facts(connection)
                _try_to_write(connection)
        finally:
            engine.dispose()
    except (SQLAlchemyError, OSError) as error:
        raise DatabaseFault(database_words(error, url)) from None
    return facts


def database_words(error: Exception, url: str) -> str:
    """Return what an error of the database says, on one line and without the password."""
    text = str(getattr(error, "orig", None) or error)
    try:
        password = sa.make_url(url).password
    except ArgumentError:
        password = None
    if password:
        for form in (str(password), quote(str(password), safe="")):
            text = text.replace(form, HIDDEN)
    return one_line(without_secret_values(text)) or type(error).__name__


def _facts(connection: sa.Connection) -> DatabaseFacts:
    is_sqlite = connection.dialect.name == "sqlite"
    asked = "SELECT sqlite_version()" if is_sqlite else "SHOW server_version"
    version = str(connection.execute(sa.text(asked)).scalar_one())
    found = []
    for _ in range(_TRIES):
        before = time.time(), time.monotonic()
        now = seconds_now(connection)
        took = time.monotonic() - before[1]
        found.append((took, now - before[0] - took / 2))
    latency, ahead = min(found)
    name = "SQLite" if is_sqlite else "PostgreSQL"
    return DatabaseFacts(f"{name} {version}", latency, ahead)


def _try_to_write(connection: sa.Connection) -> None:
    """Make what the first worker makes, and take it back."""
    connection.rollback()
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        connection.exec_driver_sql(f"CREATE TABLE {_TRIAL} (x integer)")
        connection.exec_driver_sql(f"CREATE SCHEMA {_TRIAL}")
    connection.rollback()
