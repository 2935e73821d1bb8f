"""The tables, and the migrations from every earlier version of them."""

import contextlib
import functools
import sqlite3
from typing import Final

from rooda.record.rows import StoreError, last_time, stored

Steps = tuple[tuple[str, ...], ...]

_RUNS = """
CREATE TABLE runs (
    run TEXT NOT NULL PRIMARY KEY,
    procedure TEXT NOT NULL,
    status TEXT NOT NULL,
    started_at TEXT NOT NULL,
    ended_at TEXT,
    pid INTEGER NOT NULL,
    pid_started REAL NOT NULL,
    host TEXT NOT NULL,
    boot TEXT NOT NULL,
    workspace TEXT NOT NULL,
    data TEXT NOT NULL
)
"""
_ITERATIONS = """
CREATE TABLE iterations (
    run TEXT NOT NULL,
    number INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    status TEXT NOT NULL,
    started_at TEXT NOT NULL,
    ended_at TEXT,
    data TEXT NOT NULL,
    PRIMARY KEY (run, number, attempt)
)
"""

# Each step leads to the next version. Steps never change: users have databases of every version.
STEPS: Final[Steps] = ((_RUNS, _ITERATIONS),)

_SCHEMA = "type, name, tbl_name, sql FROM sqlite_master"
_MOST_FOUND = 100  # parts of the schema; rooda makes a few

_RUN = "run, procedure, status, started_at, ended_at, pid, pid_started, host, boot, workspace, data"
_ITERATION = "run, number, attempt, status, started_at, ended_at, data"

# These statements contain names from this module only, so no input can inject SQL.
SELECT_RUNS: Final = f"SELECT {_RUN} FROM runs"  # noqa: S608 - see above
SELECT_ITERATIONS: Final = f"SELECT {_ITERATION} FROM iterations"  # noqa: S608 - see above
# The same without the column that can be large.
SELECT_RUN_COLUMNS: Final = SELECT_RUNS.replace("data FROM", "NULL FROM")
SAVE_RUN: Final = f"""
INSERT INTO runs ({_RUN}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (run) DO UPDATE SET
    procedure = excluded.procedure, status = excluded.status, started_at = excluded.started_at,
    ended_at = excluded.ended_at, pid = excluded.pid, pid_started = excluded.pid_started,
    host = excluded.host, boot = excluded.boot, workspace = excluded.workspace,
    data = excluded.data
"""  # noqa: S608 - see above
SAVE_ITERATION: Final = f"""
INSERT INTO iterations ({_ITERATION}) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (run, number, attempt) DO UPDATE SET
    status = excluded.status, started_at = excluded.started_at, ended_at = excluded.ended_at,
    data = excluded.data
"""  # noqa: S608 - see above


class Broken(sqlite3.DatabaseError):
    """The file is not a database of rooda; the message says what was found."""


class NewerSchema(StoreError):  # noqa: N818 - what was found
    """A later version of rooda wrote the file, so this version leaves it alone."""

    def __init__(self, name: str, found: int, known: int) -> None:
        super().__init__(
            f"`{name}` was written by a newer rooda (schema {found}, this one knows {known}): "
            "update rooda, or move the file away"
        )


def bring_up_to_date(connection: sqlite3.Connection, name: str, steps: Steps = STEPS) -> None:
    """Take the steps that this database lacks, all or none.

    Raises NewerSchema, and sqlite3.DatabaseError for a file that rooda has not written.
    """
    version = version_of(connection, name, steps)
    check_tables(connection, steps[: max(0, version)])
    if version < len(steps):
        connection.execute("BEGIN IMMEDIATE")
        try:
            _climb(connection, name, steps)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def check_tables(connection: sqlite3.Connection, steps: Steps) -> None:
    """Raise sqlite3.DatabaseError unless the tables are exactly those that the steps make.

    A `.rooda` of version 0.1 may come with a repository of strangers: a query of a forged view or
    trigger could take forever. The check has to come before the first query of a table.
    """
    made = _made_by(steps)
    tables = sorted({row[2] for row in made})
    asked = f"SELECT {_SCHEMA} WHERE lower(tbl_name) IN ({', '.join('?' * len(tables))}) LIMIT ?"
    found = set(connection.execute(asked, [*tables, _MOST_FOUND]))
    if differing := sorted({str(row[2]).lower() for row in found ^ made}):
        raise Broken(f"its table `{differing[0]}` is missing, or is not the one that rooda makes")


@functools.cache
def _made_by(steps: Steps) -> frozenset[tuple[str, str, str, str | None]]:
    """Return what SQLite notes about the tables of these steps."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        for statements in steps:
            for statement in statements:
                connection.execute(statement)
        return frozenset(connection.execute(f"SELECT {_SCHEMA}"))


def version_of(connection: sqlite3.Connection, name: str, steps: Steps = STEPS) -> int:
    """The version of the tables in this database. Raises NewerSchema."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(steps):
        raise NewerSchema(name, version, len(steps))
    return int(version)


def last_known(connection: sqlite3.Connection, run: str) -> str | None:
    """The last time that the record has of a run."""
    times = connection.execute(
        "SELECT started_at, ended_at FROM runs WHERE run = ?1 "
        "UNION ALL SELECT started_at, ended_at FROM iterations WHERE run = ?1",
        (stored(run),),
    )
    return last_time(time for pair in times for time in pair if isinstance(time, str))


def _climb(connection: sqlite3.Connection, name: str, steps: Steps) -> None:
    """Check again under the lock: another process may have migrated the tables already."""
    version = version_of(connection, name, steps)
    if version < 0 or (version == 0 and has_tables(connection)):
        raise Broken("it is not rooda's")
    for statements in steps[version:]:
        for statement in statements:
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {len(steps)}")


def has_tables(connection: sqlite3.Connection) -> bool:
    """Whether anything is in the database."""
    return connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None
