"""One SQLite file: every commit is on the disk, and rooda notices if somebody deletes the file.

Never open and close these files beside SQLite while a connection is open: a process loses all of
its locks on a file with the first descriptor that it closes.
"""

import contextlib
import math
import os
import sqlite3
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from rooda.record.tables import Broken, Steps, bring_up_to_date, version_of
from rooda.world.state.folder import DATABASE

NAME: Final = DATABASE
BESIDE: Final = ("-wal", "-shm", "-journal")

# Every commit writes whole pages: with small ones it is as cheap as appending a line to a file.
SMALL_PAGES: Final = "PRAGMA page_size = 1024"
_LASTING = (
    SMALL_PAGES,
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA cache_size = -256",  # kilobytes; rows are written once
)
PATIENCE = 5.0  # seconds that another program may hold the lock
_STRIDE = 10_000  # instructions of SQLite, which take less than a millisecond
_BROKEN = (
    sqlite3.SQLITE_ERROR,  # a table is missing, say
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH,
)
_PASSING = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PROTOCOL,
)

_T = TypeVar("_T")


def is_broken(error: sqlite3.DatabaseError) -> bool:
    """Whether an error proves that the file is bad."""
    if isinstance(error, Broken):
        return True
    code = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF in _BROKEN or code == sqlite3.SQLITE_IOERR_SHORT_READ


def is_passing(error: sqlite3.DatabaseError) -> bool:
    """Whether the error has another cause than the file, so that a new file would not help."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _PASSING


def beside(path: Path, suffix: str) -> Path:
    """One of the files that SQLite keeps beside a database."""
    return path.with_name(path.name + suffix)


def connect(path: Path, query: str, patience: float = PATIENCE) -> sqlite3.Connection:
    """A connection without implicit transactions. It has read nothing yet.

    `patience` is how many seconds it waits while another program has locked the file.
    """
    uri = f"{path.absolute().as_uri()}?{query}"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=patience)
    connection.text_factory = lambda text: text.decode("utf-8", "replace")
    limit_time(connection)
    return connection


def limit_time(connection: sqlite3.Connection, seconds: float | None = None) -> None:
    """Interrupt statements once this thread has used this many more seconds of CPU time.

    Also without a limit, Python gets its turn during a statement, and handles signals.
    """
    end = math.inf if seconds is None else time.thread_time() + seconds
    connection.set_progress_handler(lambda: time.thread_time() > end, _STRIDE)


def check_files(path: Path) -> None:
    """Raise Broken unless these are files: SQLite would wait for a pipe."""
    for file in (path, *(beside(path, suffix) for suffix in BESIDE)):
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISREG(file.lstat().st_mode):
                raise Broken(f"{file.name} is not a file")


def _check_content(connection: sqlite3.Connection) -> None:
    """Raise sqlite3.DatabaseError if pages are damaged; takes a tenth of a second for 50 MB."""
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        raise Broken("its pages are damaged")


def make_private(path: Path) -> None:
    """Create an empty file that only the user may read; SQLite gives its own files that mode."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        if path.lstat().st_mode & 0o077:
            path.chmod(0o600)


class Database:
    """A connection for writing."""

    def __init__(self, path: Path, steps: Steps) -> None:
        """Open it, or make it. Raises NewerSchema, sqlite3.DatabaseError, OSError."""
        check_files(path)
        make_private(path)
        self.connection = connect(path, "mode=rw")
        try:
            version_of(self.connection, str(path), steps)  # before anything is changed in it
            for statement in _LASTING:
                self.connection.execute(statement)
            _check_content(self.connection)
            bring_up_to_date(self.connection, str(path), steps)
            files = [path, *(beside(path, suffix) for suffix in BESIDE)]
            self._files = [(file, file.stat()) for file in files if file.exists()]
        except BaseException:
            self.close()
            raise

    def transact(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Do the work in one transaction, which is on the disk on return. Raises DatabaseError."""
        self.connection.execute("BEGIN IMMEDIATE")
        try:
            result = work(self.connection)
            self.connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
            raise
        return result

    def is_gone(self) -> bool:
        """Whether somebody deleted or replaced a file: SQLite would write to the old one."""
        try:
            return not all(os.path.samestat(file.lstat(), then) for file, then in self._files)
        except PermissionError:  # of the folder: the open files can still be written to
            return False
        except (FileNotFoundError, NotADirectoryError):
            return True

    def close(self) -> None:
        """Close the files, whatever their state."""
        with contextlib.suppress(sqlite3.Error):
            self.connection.close()
