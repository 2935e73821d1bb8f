"""One SQLite file: every commit is on the disk, and rooda notices if an agent changes the files.

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

from rooda.record.file_watch import CHANGED, FileWatch, beside
from rooda.record.tables import Broken, Steps, bring_up_to_date, check_tables, version_of
from rooda.workspace.state_folder import DATABASE

NAME: Final = DATABASE
BESIDE: Final = ("-wal", "-shm", "-journal")

# Every commit writes whole pages: with small ones it is as cheap as appending a line to a file.
SMALL_PAGES: Final = "PRAGMA page_size = 1024"
_LASTING = (
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA mmap_size = 0",  # SIGBUS would end rooda if an agent truncates the file
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cache_size = -256",  # kilobytes; rows are written once
)
PATIENCE = 5.0  # seconds that another program may hold the lock
LONGEST: Final = 256 * 1024 * 1024  # bytes of a row; the largest have names of 100,000s of files
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


def connect(path: Path, query: str, patience: float = PATIENCE) -> sqlite3.Connection:
    """A connection without implicit transactions. It has read nothing yet.

    `patience` is how many seconds it waits while another program has locked the file.
    """
    uri = f"{path.absolute().as_uri()}?{query}"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=patience)
    connection.text_factory = lambda text: text.decode("utf-8", "replace")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
    limit_time(connection)
    return connection


def limit_time(connection: sqlite3.Connection, seconds: float | None = None) -> None:
    """Interrupt statements once this thread has used this many more seconds of CPU time.

    Also without a limit, Python gets its turn during a statement, and handles signals.
    """
    end = math.inf if seconds is None else time.thread_time() + seconds
    connection.set_progress_handler(lambda: time.thread_time() > end, _STRIDE)


def check_files(path: Path) -> None:
    """Raise Broken unless these are files: SQLite would follow a link, and wait for a pipe."""
    if path.parent.is_symlink():
        raise Broken(f"{path.parent.name} is a symbolic link")
    for file in (path, *(beside(path, suffix) for suffix in BESIDE)):
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISREG(file.lstat().st_mode):
                raise Broken(f"{file.name} is not a file")


def check_content(connection: sqlite3.Connection) -> None:
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
    """A connection for writing that notices when another program changes its files."""

    def __init__(self, path: Path, steps: Steps) -> None:
        """Open it, or make it. Raises NewerSchema, sqlite3.DatabaseError, OSError."""
        check_files(path)
        make_private(path)
        self._path = path
        self._steps = steps
        self._watch: FileWatch | None = None
        self.connection = connect(path, "mode=rw")
        try:
            # Before anything is changed in it, and before any of its tables is read.
            version = version_of(self.connection, str(path), steps)
            check_tables(self.connection, steps[: max(0, version)])
            for statement in (SMALL_PAGES, *_LASTING):
                self.connection.execute(statement)
            check_content(self.connection)
            bring_up_to_date(self.connection, str(path), steps)
            # Move what earlier runs left in `-wal` into the file: an agent may damage `-wal`.
            self.connection.execute("PRAGMA wal_checkpoint").fetchall()
            self._watch = FileWatch(path)
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
        if self._watch is not None:
            self._watch.note()
        return result

    def look(self) -> str | None:
        """What another program did to the files since the last write, or None.

        CHANGED means that they are still valid; anything else is damage.
        """
        found = None if self._watch is None else self._watch.found()
        return self._look_closer() if found == CHANGED else found

    def _look_closer(self) -> str:
        """Check the files with a new connection: this one would trust the pages in its cache."""
        connection = connect(self._path, "mode=ro")
        try:
            check_tables(connection, self._steps)
            check_content(connection)
        except sqlite3.DatabaseError as error:
            if is_passing(error):
                raise
            return f"was damaged ({error})"
        finally:
            connection.close()
        return CHANGED

    def close(self) -> None:
        """Close the files, whatever their state."""
        if self._watch is not None:
            self._watch.mend()
        with contextlib.suppress(sqlite3.Error):
            self.connection.close()
        if self._watch is not None:
            self._watch.close()
            self._watch = None
