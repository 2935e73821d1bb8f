"""Write the record: each row is on the disk before the run continues, and no error ends a run."""

import contextlib
import os
import re
import shutil
import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

from rooda.record.database import (
    BESIDE,
    NAME,
    SMALL_PAGES,
    Database,
    beside,
    connect,
    is_broken,
    is_passing,
    make_private,
)
from rooda.record.rows import (
    INTERRUPTED,
    RUNNING,
    UNFINISHED,
    IterationRow,
    RunRow,
    StoreError,
    Value,
    iteration_row,
    iteration_values,
    run_row,
    run_values,
    stored,
)
from rooda.record.tables import (
    SAVE_ITERATION,
    SAVE_RUN,
    SELECT_ITERATIONS,
    SELECT_RUN_COLUMNS,
    SELECT_RUNS,
    STEPS,
    Broken,
    NewerSchema,
    Steps,
    bring_up_to_date,
    last_known,
)
from rooda.world.files.plain_files import sync_folder
from rooda.world.state.folder import StateFolder, make_state_folder

# The rows of the current run in memory: those not written yet, and those an agent may delete.


MOST_ITERATIONS = 200
MOST_CHARACTERS = 32 * 1024 * 1024

_Key = tuple[Value, ...]  # a run; or a run, a number and an attempt


class RecentRows:
    """The newest rows, within bounds: the oldest iterations make room, never the last one."""

    def __init__(self) -> None:
        self._runs: dict[_Key, tuple[Value, ...]] = {}
        self._iterations: dict[_Key, tuple[Value, ...]] = {}
        self._unsaved: dict[_Key, None] = {}  # in the order of arrival
        self._characters = 0

    def note(self, run: RunRow | None, iteration: IterationRow | None) -> None:
        """Keep these rows; each replaces its earlier version."""
        if run is not None:
            values = run_values(run)
            self._runs[values[:1]] = values
            self._unsaved[values[:1]] = None
        if iteration is not None:
            values = iteration_values(iteration)
            self._drop(values[:3])
            self._iterations[values[:3]] = values
            self._unsaved[values[:3]] = None
            self._characters += _length(values)
            self._make_room()

    def _make_room(self) -> None:
        while len(self._iterations) > 1 and (
            len(self._iterations) > MOST_ITERATIONS or self._characters > MOST_CHARACTERS
        ):
            self._drop(next(iter(self._iterations)))

    def _drop(self, key: _Key) -> None:
        if values := self._iterations.pop(key, None):
            self._characters -= _length(values)
            self._unsaved.pop(key, None)

    def has(self, run: str) -> bool:
        """Whether this is the current run."""
        return (stored(run),) in self._runs

    def write(self, connection: sqlite3.Connection) -> None:
        """Write every row that is not saved yet."""
        for key in self._unsaved:
            if key in self._runs:
                connection.execute(SAVE_RUN, self._runs[key])
            else:
                connection.execute(SAVE_ITERATION, self._iterations[key])

    def settle(self) -> None:
        """Mark every row as saved."""
        self._unsaved.clear()

    def unsettle(self) -> None:
        """Mark every row as not saved."""
        self._unsaved = dict.fromkeys((*self._runs, *self._iterations))


def _length(values: tuple[Value, ...]) -> int:
    return len(str(values[-1]))


# Replace a database that somebody deleted, replaced or damaged.


_DRAFT: Final = f"{NAME}.new"
_MOST_ASIDE = 3
_ASIDE = re.compile(rf"{re.escape(NAME)}\.broken-([0-9]{{1,9}})(?:-[a-z]+)?")


def replace(path: Path, steps: Steps, fill: Callable[[sqlite3.Connection], None]) -> str | None:
    """Replace the database by a new one; return the new name of the old one.

    The old one stays until the new one is complete. Raises sqlite3.Error, OSError.
    """
    draft = path.with_name(_DRAFT)
    for file in (draft, *(beside(draft, suffix) for suffix in BESIDE)):
        _remove(file)
    try:
        _build(draft, steps, fill)
        aside = put_aside(path)
        draft.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            _remove(draft)
        raise
    sync_folder(path.parent)
    return aside


def _build(path: Path, steps: Steps, fill: Callable[[sqlite3.Connection], None]) -> None:
    make_private(path)
    connection = connect(path, "mode=rw")
    try:
        connection.execute(SMALL_PAGES)
        connection.execute("PRAGMA journal_mode = MEMORY")  # a crash leaves a draft
        connection.execute("PRAGMA synchronous = FULL")
        bring_up_to_date(connection, path.name, steps)
        connection.execute("BEGIN")
        fill(connection)
        connection.execute("COMMIT")
    finally:
        connection.close()


def copy_rows(old: sqlite3.Connection, new: sqlite3.Connection) -> None:
    """Copy every row that can still be read; a deleted file can, as long as it is open."""

    def readable(select: str) -> Iterator[tuple[object, ...]]:
        with contextlib.suppress(sqlite3.Error):
            yield from old.execute(f"{select} ORDER BY rowid")

    new.executemany(SAVE_RUN, (row for row in readable(SELECT_RUNS) if run_row(row)))
    iterations = (row for row in readable(SELECT_ITERATIONS) if iteration_row(row))
    new.executemany(SAVE_ITERATION, iterations)


def put_aside(path: Path) -> str | None:
    """Rename what is there, so that the user can examine it; only the last few are kept.

    The database goes last: while it is there, SQLite uses no `-wal` for another database.
    """
    there = [suffix for suffix in (*BESIDE, "") if os.path.lexists(beside(path, suffix))]
    if not there:
        return None
    matches = [_ASIDE.fullmatch(file.name) for file in path.parent.iterdir()]
    numbers = sorted({int(match[1]) for match in matches if match})
    aside = path.with_name(f"{NAME}.broken-{(numbers or [0])[-1] + 1}")
    for suffix in there:
        beside(path, suffix).rename(beside(aside, suffix))
    for number in numbers[: 1 - _MOST_ASIDE]:
        for suffix in ("", *BESIDE):
            _remove(path.with_name(f"{NAME}.broken-{number}{suffix}"))
    return aside.name


def _remove(path: Path) -> None:
    """Delete a file, a folder or a link; the target of a link stays."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


class Store:
    """The record of a work tree, open for writing until it is closed.

    Somebody may delete or replace it during a run, or fill the disk. Then the store writes it
    again, keeps the rows in memory until it can, and calls `on_trouble` once for each kind.
    """

    def __init__(
        self, state: StateFolder, on_trouble: Callable[[str], None], steps: Steps = STEPS
    ) -> None:
        """Open or create it. Raises StoreError; no later call does."""
        self.state = state
        self._path = state / NAME
        self._on_trouble = on_trouble
        self._steps = steps
        self._told: set[str] = set()
        self._memory = RecentRows()
        self._database: Database | None = None
        try:
            self._database = self._open()
        except (OSError, sqlite3.DatabaseError) as error:
            self._check_file(error)
            self._tell_unwritten(error)

    def _check_file(self, error: OSError | sqlite3.DatabaseError) -> None:
        """Raise StoreError if the file can't be opened; with a long path only SQLite can't.

        SQLite does not say why it can't open a file, so rooda opens the file itself.
        """
        try:
            code = getattr(error, "sqlite_errorcode", None)
            if code is None or code & 0xFF != sqlite3.SQLITE_CANTOPEN:
                raise error
            make_state_folder(self.state)
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except (OSError, sqlite3.DatabaseError) as found:
            raise StoreError(f"`{self._path}` can't be written: {_reason(found)}") from None

    def _open(self) -> Database:
        make_state_folder(self.state)
        path = self._path
        try:
            return Database(path, self._steps)
        except sqlite3.DatabaseError as error:
            if not is_broken(error):
                raise
            aside = put_aside(path)
            database = Database(path, self._steps)
            self._tell("broken", f"`{self._path}` was broken ({error}): put aside as `{aside}`")
            return database

    def save(self, run: RunRow | None = None, iteration: IterationRow | None = None) -> None:
        """Write both in one transaction; each replaces its earlier row."""
        self._memory.note(run, iteration)
        self._flush()

    def _flush(self) -> None:
        if self._attempt(self._memory.write):
            self._memory.settle()

    def runs(self, condition: str = "1", *values: str) -> list[RunRow]:
        """The runs, oldest first. Without a condition: the columns, which are quick to read."""
        found: list[RunRow] = []
        columns = SELECT_RUNS if values else SELECT_RUN_COLUMNS
        select = f"{columns} WHERE {condition} ORDER BY rowid"

        def read(connection: sqlite3.Connection) -> None:
            asked = connection.execute(select, [stored(value) for value in values])
            found[:] = [row for row in map(run_row, asked) if row is not None]

        self._attempt(read)
        return found

    def has(self, run: str) -> bool:
        """Whether the record has a run of this name."""
        return bool(self.runs("run = ?", run))

    def close_stale(self, is_alive: Callable[[RunRow], bool]) -> list[str]:
        """Mark runs whose process was killed as interrupted; return their names."""
        stale = [
            row.run
            for row in self.runs("status = ?", RUNNING)
            if not self._memory.has(row.run) and not is_alive(row)
        ]
        is_done = not stale or self._attempt(lambda connection: _interrupt(connection, stale))
        return stale if is_done else []

    def forget(self, runs: Collection[str]) -> bool:
        """Delete the rows of these runs; return whether that worked."""
        keys = [(stored(run),) for run in runs]

        def delete(connection: sqlite3.Connection) -> None:
            connection.executemany("DELETE FROM iterations WHERE run = ?", keys)
            connection.executemany("DELETE FROM runs WHERE run = ?", keys)

        return self._attempt(delete)

    def close(self) -> None:
        """Try once more to write what could not be written, and close the files."""
        self._flush()
        if self._database is not None:
            self._database.close()
            self._database = None

    def _attempt(self, work: Callable[[sqlite3.Connection], None]) -> bool:
        """Do the work, in a new database if necessary; return whether that worked."""
        try:
            self._do(work)
        except sqlite3.ProgrammingError:
            raise  # a bug of rooda
        except (OSError, sqlite3.DatabaseError, NewerSchema) as error:
            self._tell_unwritten(error)
            return False
        return True

    def _do(self, work: Callable[[sqlite3.Connection], None]) -> None:
        database = self._database or self._reopen()
        try:
            if database.is_gone():
                raise Broken("was deleted or replaced")
            database.transact(work)
        except sqlite3.DatabaseError as error:
            if is_passing(error) or isinstance(error, sqlite3.ProgrammingError):
                raise
            self._renew(database, error).transact(work)

    def _reopen(self) -> Database:
        """Open the database again; every row of the current run will be written again."""
        old, self._database = self._database, None
        if old is not None:
            old.close()
        self._database = self._open()
        self._memory.unsettle()
        return self._database

    def _renew(self, old: Database, error: sqlite3.DatabaseError) -> Database:
        """Replace the database: the readable rows of the old one, and those of the current run."""

        def fill(connection: sqlite3.Connection) -> None:
            copy_rows(old.connection, connection)
            self._memory.unsettle()
            self._memory.write(connection)

        make_state_folder(self.state)
        path = self._path
        aside = replace(path, self._steps, fill)
        what = str(error) if isinstance(error, Broken) else f"was damaged ({error})"
        place = f", and put aside as `{aside}`" if aside else ""
        message = f"`{self._path}` {what} during the run{place}: rooda wrote it again"
        self._tell(what.partition(" (")[0], message)
        return self._reopen()

    def _tell_unwritten(self, error: Exception) -> None:
        reason = _reason(error)
        self._tell(
            reason,
            f"the record can't be written to `{self._path}` ({reason}): "
            "it is kept in memory until that works",
        )

    def _tell(self, kind: str, message: str) -> None:
        if kind not in self._told:
            self._told.add(kind)
            self._on_trouble(message)


def _interrupt(connection: sqlite3.Connection, runs: Sequence[str]) -> None:
    """Mark the runs as interrupted at the last time that the record has of them."""
    for run in runs:
        last, key = last_known(connection, run), stored(run)
        connection.execute(
            "UPDATE runs SET status = ?, ended_at = ? WHERE run = ?", (INTERRUPTED, last, key)
        )
        connection.execute(
            "UPDATE iterations SET status = ? WHERE run = ? AND status IN (?, ?, ?, ?)",
            (INTERRUPTED, key, *UNFINISHED),
        )


def _reason(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)
