"""Read the database of version 0.1 in `.rooda`, which a hostile repository can bring along.

A query of a forged view, a generated column or a trigger could take forever, and forged rows could
fill the memory of each later command. So rooda refuses all but its own tables, within limits.
"""

import contextlib
import functools
import math
import sqlite3
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rooda.record.database import BESIDE, PATIENCE, beside
from rooda.record.record_reader import open_for_reading
from rooda.record.tables import STEPS, Broken, version_of

_TABLES: Final = STEPS[:1]  # version 0.1 had no others
_SCHEMA = "type, name, tbl_name, sql FROM sqlite_master"
_MOST_FOUND = 100  # parts of the schema; rooda makes a few
_LONGEST_ROW = 64 * 1024 * 1024  # bytes; the largest have names of 100,000s of files
_MOST_ROWS = 100_000  # of a table
_MOST_READ = 256 * 1024 * 1024  # characters of the rows of both tables
_LONGEST_CHECK = 5.0  # seconds of the CPU
_STRIDE = 10_000  # instructions of SQLite, which take less than a millisecond


@contextlib.contextmanager
def opened_old(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection with rooda's own tables in it. Raises NewerSchema, sqlite3.Error, OSError."""
    _check_files(path)
    with contextlib.closing(open_for_reading(path, PATIENCE)) as connection:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_ROW)
        connection.execute("PRAGMA trusted_schema = OFF")
        version_of(connection, str(path))
        connection.execute("BEGIN")  # so that nobody can change the tables after the checks
        limit_time(connection, _LONGEST_CHECK)
        _check_tables(connection)
        _check_size(connection)
        limit_time(connection, math.inf)
        yield connection


def limit_time(connection: sqlite3.Connection, seconds: float) -> None:
    """Interrupt statements once this thread has used this many more seconds of CPU time.

    Also without a limit, Python gets its turn during a statement, and handles signals.
    """
    end = time.thread_time() + seconds
    connection.set_progress_handler(lambda: time.thread_time() > end, _STRIDE)


def _check_files(path: Path) -> None:
    """Raise Broken unless these are files: SQLite would follow a link, and wait for a pipe."""
    if path.parent.is_symlink():
        raise Broken(f"{path.parent.name} is a symbolic link")
    for file in (path, *(beside(path, suffix) for suffix in BESIDE)):
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISREG(file.lstat().st_mode):
                raise Broken(f"{file.name} is not a file")


def _check_tables(connection: sqlite3.Connection) -> None:
    """Raise Broken unless the tables are exactly those that rooda makes."""
    made = _made_by_rooda()
    tables = sorted({row[2] for row in made})
    asked = f"SELECT {_SCHEMA} WHERE lower(tbl_name) IN ({', '.join('?' * len(tables))}) LIMIT ?"
    found = set(connection.execute(asked, [*tables, _MOST_FOUND]))
    for kind, _, table, _ in sorted(found - made, key=str):
        raise Broken(_difference(str(kind), str(table).lower()))
    for _, _, table, _ in sorted(made - found, key=str):
        raise Broken(f"it has no table `{table}`")


def _difference(kind: str, table: str) -> str:
    if kind == "table":
        return f"`{table}` is not the table that rooda makes"
    return f"`{table}` is a view" if kind == "view" else f"`{table}` has a trigger or an index"


@functools.cache
def _made_by_rooda() -> frozenset[tuple[str, str, str, str | None]]:
    """Return what SQLite notes about the tables of version 0.1."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        for statements in _TABLES:
            for statement in statements:
                connection.execute(statement)
        return frozenset(connection.execute(f"SELECT {_SCHEMA}"))


def _check_size(connection: sqlite3.Connection) -> None:
    """Raise Broken for more rows, or longer ones, than a record of version 0.1 has."""
    size = 0.0
    for table in ("runs", "iterations"):
        numbers = "count(*), total(length(data)), max(length(data))"
        asked = f"SELECT {numbers} FROM {table}"  # noqa: S608 - names from here
        rows, characters, longest = connection.execute(asked).fetchone()
        size += characters
        if rows > _MOST_ROWS:
            raise Broken(f"`{table}` has more than {_MOST_ROWS} rows")
        if (longest or 0) > _LONGEST_ROW:
            raise Broken(f"a row of `{table}` has more than {_LONGEST_ROW // 1024**2} MB")
    if size > _MOST_READ:
        raise Broken(f"its rows have more than {_MOST_READ // 1024**2} MB")
