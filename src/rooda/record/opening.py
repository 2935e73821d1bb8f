"""Open a database for reading only, wherever it is and whatever state it was left in."""

import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rooda.record.database import SHOWN, check_files, connect
from rooda.record.schema import Steps, bring_up_to_date, version_of
from rooda.record.watching import beside, has_content

_REFUSED = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


@contextlib.contextmanager
def opened(path: Path, steps: Steps) -> Iterator[sqlite3.Connection]:
    """A connection with today's tables. Raises FileNotFoundError, NewerSchema, sqlite3.Error."""
    connection = _open(path)
    try:
        if version_of(connection, SHOWN, steps) < len(steps):
            connection = _in_memory(connection)
            bring_up_to_date(connection, SHOWN, steps)
        yield connection
    finally:
        connection.close()


def _open(path: Path) -> sqlite3.Connection:
    check_files(path)
    path.lstat()  # SQLite would only say that it can't open it
    connection = connect(path, "mode=ro")
    try:
        connection.execute("PRAGMA user_version").fetchone()
    except sqlite3.OperationalError as error:
        connection.close()
        if error.sqlite_errorcode & 0xFF not in _REFUSED or os.access(path.parent, os.W_OK):
            raise
    except BaseException:
        connection.close()
        raise
    else:
        return connection
    # SQLite wants to write beside the file, and can't. Then nobody else can, either.
    return _copied(path) if has_content(beside(path, "-wal")) else connect(path, "immutable=1")


def _copied(path: Path) -> sqlite3.Connection:
    """With what a killed run wrote last, which is not in the file itself yet."""
    with tempfile.TemporaryDirectory(prefix="rooda-") as folder:
        copy = Path(folder) / path.name
        for suffix in ("-wal", ""):
            shutil.copyfile(beside(path, suffix), beside(copy, suffix), follow_symlinks=False)
        return _in_memory(connect(copy, "mode=rw"))


def _in_memory(source: sqlite3.Connection) -> sqlite3.Connection:
    """A copy that may be written to; the source is closed."""
    copy = sqlite3.connect(":memory:", isolation_level=None)
    copy.text_factory = source.text_factory
    try:
        source.backup(copy)
    except BaseException:
        copy.close()
        raise
    finally:
        source.close()
    return copy
