"""Read the record: while a run writes it, after a run was killed, and on a read-only disk."""

import contextlib
import functools
import itertools
import math
import os
import shlex
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from msgspec.structs import replace

from rooda.base.numbers import count
from rooda.record.database import NAME, PATIENCE, beside, check_files, connect, limit_time
from rooda.record.rows import (
    INTERRUPTED,
    RUNNING,
    UNFINISHED,
    IterationRow,
    NoRecord,
    NothingRecorded,
    RunRow,
    StoreError,
    Value,
    for_terminal,
    is_run_alive,
    iteration_row,
    run_row,
    stored,
)
from rooda.record.run_names import LAST, from_end
from rooda.record.tables import (
    SELECT_ITERATIONS,
    SELECT_RUNS,
    STEPS,
    Broken,
    Steps,
    bring_up_to_date,
    check_tables,
    has_tables,
    last_known,
    version_of,
)
from rooda.world.state.folder import StateFolder, kept_snapshots

_T = TypeVar("_T")

# While rooda replaces the file, a query may find half of each: then it tries again.
_LOOKS, _PAUSE = 3, 0.05
_MOST_NAMED = 5
_PAGE = 500  # rows of one query
_SHORT = 0.3  # seconds that a view waits for a file that another program has locked
_LONGEST_QUESTION = 5.0  # seconds of the CPU; a million rows take one
MOST_RUNS = 1000  # without a limit; each one takes about a millisecond
MOST_ITERATIONS = 30_000  # of one run; they take about ten seconds and 130 MB
_LONGEST_VIEW = 4.0  # seconds of the CPU for the iterations of a run, in a view that stays open
_RUN_AT = f"{SELECT_RUNS} WHERE rowid = ?"
_RUN_BY_NAME = f"{SELECT_RUNS} WHERE run = ?"
_LOCKED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_REFUSED = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)


class RecordReader:
    """Opens the file for each query and closes it afterwards, so that it never blocks a run.

    A run with the status `running` whose process is gone (`is_alive`) was interrupted. Every method
    raises StoreError if the record can't be read.
    """

    def __init__(
        self,
        state: StateFolder,
        is_alive: Callable[[RunRow], bool] | None = None,
        steps: Steps = STEPS,
        mask: Callable[[Any], Any] | None = None,
        patience: float = PATIENCE,
        longest: float = math.inf,
    ) -> None:
        """`mask` removes the secrets from a row, for a view. For `patience` see `connect`.

        Without `mask`, rows are as they were written: they can have control codes. `longest` is how
        many seconds of the CPU the iterations of a run may take.
        """
        self._patience = patience
        self._state = state
        self._longest = longest
        self._path = state / NAME
        self._is_alive = is_alive or (lambda row: is_run_alive(row, state))
        self._steps = steps
        self._mask = _same if mask is None else _cleaned(mask)

    @classmethod
    def for_view(cls, state: StateFolder, mask: Callable[[Any], Any]) -> "RecordReader":
        """A reader for a view that stays open, or that a run waits for.

        One record that is locked, or has very many iterations, does not hold up the others.
        """
        return cls(state, mask=mask, patience=_SHORT, longest=_LONGEST_VIEW)

    def kept_snapshots(self, run: str) -> frozenset[str]:
        """Return the names of the snapshots of a run that rooda still has."""
        return kept_snapshots(self._state, run)

    def runs(
        self,
        *,
        status: str | None = None,
        procedure: str | None = None,
        since: str | None = None,
        until: str | None = None,
        limit: int | None = None,
    ) -> list[RunRow]:
        """The newest first; none where nothing was recorded. For the times see `moment`."""
        conditions = ["1"]
        values: list[Value] = []
        if procedure is not None:
            conditions.append("procedure = ?")
            values.append(stored(procedure))
        if since is not None:
            conditions.append("julianday(started_at) >= julianday(?)")
            values.append(moment(since).isoformat())
        if until is not None:
            conditions.append("julianday(started_at) < julianday(?)")
            values.append(moment(until, is_end=True).isoformat())
        if status is not None:  # a run at work may turn out to be interrupted
            conditions.append("status IN (?, ?)")
            values += [stored(status), RUNNING]
        most = limit if status is None else None
        rows = self._rows(" AND ".join(conditions), values, most)
        wanted = (row for row in rows if status in {None, row.status})
        return list(itertools.islice(wanted, limit))

    def run(self, which: str | None = None, procedure: str | None = None) -> RunRow:
        """A run by its name or the beginning of it, else the last one. Raises NoRecord.

        `last` and `-1` are the last run, `-2` the one before it, and so on: of all runs, or of
        those of a procedure.
        """
        place = from_end(LAST if which is None else which)
        if which is None or place is not None:
            return self._run_from_end(place or 1, procedure)
        found = list(self._rows("run = ?", [stored(which)])) or list(
            self._rows("substr(run, 1, ?) = ?", [len(which), stored(which)], _MOST_NAMED + 1)
        )
        if not found:
            raise NoRecord(f"there is no run {which!r} in the record{self._pruned_by(which)}")
        if len(found) > 1:
            names = [row.run for row in found[:_MOST_NAMED]] + ["..."] * (len(found) > _MOST_NAMED)
            raise NoRecord(f"several runs begin with {which!r}: {', '.join(names)}")
        return found[0]

    def _run_from_end(self, place: int, procedure: str | None) -> RunRow:
        """Return the last run for 1, the one before it for 2, and so on."""
        rows = self.runs(procedure=procedure, limit=place)
        if len(rows) == place:
            return rows[-1]
        of = "" if procedure is None else f" of {procedure}"
        if not rows:
            raise NothingRecorded(f"no run{of} has been recorded here yet")
        raise NoRecord(f"there is no run -{place}: the record has {count(len(rows), 'run')}{of}")

    def _pruned_by(self, which: str) -> str:
        """Say when rooda deleted the run; empty if no later run says that it did."""
        for row in self._rows("1", []):
            gone = [name for one in row.pruned or () for name in one.runs]
            if any(name.startswith(which) for name in gone):
                return f": it was removed as an old one when run {row.run} started"
        return ""

    def iterations(self, run: str) -> list[IterationRow]:
        """Every attempt at every iteration, in order; none for a run that isn't there."""
        return list(self.each_iteration(run))

    def iteration(self, run: str, number: int) -> list[IterationRow]:
        """Every attempt at one iteration, in order."""
        return list(self._each_iteration(run, "run = ? AND number = ?", [stored(run), number]))

    def each_iteration(self, run: str) -> Iterator[IterationRow]:
        """The same as `iterations`, with only a few of them in memory at once."""
        return self._each_iteration(run, "run = ?", [stored(run)])

    def _each_iteration(
        self, run: str, condition: str, values: list[Value]
    ) -> Iterator[IterationRow]:
        # The run comes first: once it has ended, its iterations don't change any more.
        is_running = any(row.status == RUNNING for row in self._rows("run = ?", [stored(run)]))
        end = f"WHERE {condition} ORDER BY number, attempt LIMIT ? OFFSET ?"
        beyond = f"SELECT 1 FROM iterations {end}"  # noqa: S608 - names from this module
        if self._ask(lambda asked: _all(asked, beyond, [*values, 1, MOST_ITERATIONS])):
            raise self._refused(f"run {run} has more than {MOST_ITERATIONS} iterations")
        select, until = f"{SELECT_ITERATIONS} {end}", time.thread_time() + self._longest
        for offset in range(0, MOST_ITERATIONS, _PAGE):
            asked = [*values, _PAGE, offset]
            found = self._ask(functools.partial(_all, select=select, asked=asked))
            for row in map(iteration_row, found):
                if row is not None:
                    shown: IterationRow = self._mask(row)
                    yield shown if is_running else _ended(shown)
            if len(found) < _PAGE:
                return
            if time.thread_time() > until:
                raise self._refused(f"the iterations of run {run} take too long")

    def _refused(self, reason: str) -> StoreError:
        return StoreError(_unreadable(Broken(reason), self._path))

    def headlines(self, runs: Iterable[str]) -> dict[str, str]:
        """The headline of the last good iteration of each of these runs that has one."""
        select = (
            f"{SELECT_ITERATIONS} WHERE run = ? AND status = 'completed' "
            "ORDER BY number DESC, attempt DESC LIMIT 1"
        )
        names = list(runs)

        def found(connection: sqlite3.Connection) -> list[tuple[str, str]]:
            limit_time(connection)  # there may be many names, and none takes long
            asked = (_all(connection, select, [stored(name)]) for name in names)
            rows = (iteration_row(values) for some in asked for values in some)
            return [(one.run, self._mask(one).known_headline) for one in rows if one is not None]

        return dict(self._ask(found))

    def _rows(
        self, condition: str, values: list[Value], most: int | None = None
    ) -> Iterator[RunRow]:
        """The newest first, each as it is by now."""
        rows = list(self._fetch(condition, values, most))
        gone = {one.run for one in rows if one.status == RUNNING and not self._is_alive(one)}
        # A run may have ended normally since the query: now its process is gone, ask again.
        again = {one.run: one for one in self._ask_again(gone)} if gone else {}
        for row in rows:
            if row.run not in gone:
                yield row
            elif row.run in again:
                yield again[row.run]

    def _fetch(
        self, condition: str, values: list[Value], most: int | None = None
    ) -> Iterator[RunRow]:
        order = "ORDER BY julianday(started_at) DESC, rowid DESC LIMIT ?"
        select = f"SELECT rowid FROM runs WHERE {condition} {order}"  # noqa: S608 - see above
        asked = [*values, max(MOST_RUNS, most or 0)]

        def found(connection: sqlite3.Connection) -> list[RunRow]:
            places = _all(connection, select, asked)
            limit_time(connection)  # only single rows are read from here on
            rows = (run_row(_all(connection, _RUN_AT, place)[0]) for place in places)
            return list(itertools.islice((row for row in rows if row is not None), most))

        return map(self._mask, self._ask(found))

    def _ask_again(self, gone: Iterable[str]) -> Iterator[RunRow]:
        """Return runs whose process is gone. One that did not end was interrupted."""

        def found(connection: sqlite3.Connection) -> list[RunRow]:
            limit_time(connection)
            asked = (_all(connection, _RUN_BY_NAME, [stored(name)]) for name in gone)
            rows = (run_row(values) for some in asked for values in some)
            return [
                row
                if row.status != RUNNING
                else replace(row, status=INTERRUPTED, ended_at=last_known(connection, row.run))
                for row in rows
                if row is not None
            ]

        return map(self._mask, self._ask(found))

    def _ask(self, question: Callable[[sqlite3.Connection], list[_T]]) -> list[_T]:
        """The answer, which is nothing where there is no record."""
        looks, patient_until = 0, time.monotonic() + self._patience
        while True:
            looks += 1
            try:
                with opened(self._path, self._steps, min(_SHORT, self._patience)) as connection:
                    return question(connection)
            except FileNotFoundError:
                return []
            except (OSError, sqlite3.Error) as error:
                code = _code_of(error)
                # While SQLite waits for a lock, Python handles no signal: so each wait is short.
                is_final = time.monotonic() > patient_until if code in _LOCKED else looks >= _LOOKS
                if is_final or code == sqlite3.SQLITE_INTERRUPT:
                    raise StoreError(_unreadable(error, self._path)) from None
            time.sleep(_PAUSE)


def _same(row: Any) -> Any:
    return row


def _cleaned(mask: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda row: mask(for_terminal(row))


def _code_of(error: Exception) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def _all(
    connection: sqlite3.Connection, select: str, asked: Sequence[Value]
) -> list[Sequence[Value]]:
    return connection.execute(select, asked).fetchall()


def moment(text: str, *, is_end: bool = False) -> datetime:
    """A date or a time as ISO 8601 writes it, meant here if it has no offset.

    A date is its first moment; as an end, the first of the next day. Raises ValueError.
    """
    try:
        return _moment(text, is_end=is_end).astimezone()
    except OverflowError:
        raise ValueError(f"out of range: {text!r}") from None


def _moment(text: str, *, is_end: bool) -> datetime:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return datetime.fromisoformat(text)
    return datetime.combine(day + timedelta(days=is_end), datetime.min.time())


def _ended(row: IterationRow) -> IterationRow:
    return replace(row, status=INTERRUPTED) if row.status in UNFINISHED else row


def _unreadable(error: Exception, file: Path) -> str:
    if _is_forbidden(file):
        advice = f"chmod -R u+rwX {shlex.quote(str(file.parent))}"
        return f"`{file}` can't be read (Permission denied); allow it with `{advice}`"
    reason = (isinstance(error, OSError) and error.strerror) or str(error)
    if _code_of(error) == sqlite3.SQLITE_INTERRUPT:
        reason = "a query takes too long"
    name = shlex.quote(str(file))
    return (
        f"`{file}` can't be read ({reason}); if it is broken, the next run starts a new one, "
        f"or move it away: mv {name} {shlex.quote(f'{file}.broken')}"
    )


def _is_forbidden(file: Path) -> bool:
    """Return whether the user may not read the file; SQLite only says that it can't open it."""
    try:
        file.lstat()
    except OSError as error:
        return isinstance(error, PermissionError)
    return not os.access(file, os.R_OK)


@contextlib.contextmanager
def opened(path: Path, steps: Steps, patience: float) -> Iterator[sqlite3.Connection]:
    """A connection with today's tables. Raises FileNotFoundError, NewerSchema, sqlite3.Error."""
    connection = _open(path, patience)
    try:
        limit_time(connection, _LONGEST_QUESTION)
        version = version_of(connection, str(path), steps)
        if version <= 0 and has_tables(connection):
            raise Broken("it is not rooda's")
        if version < len(steps):
            connection = _in_memory(connection)
            bring_up_to_date(connection, str(path), steps)
        connection.execute("BEGIN")  # so that check and question see the same tables
        check_tables(connection, steps)
        yield connection
    finally:
        connection.close()


def _open(path: Path, patience: float) -> sqlite3.Connection:
    check_files(path)
    path.lstat()  # SQLite would only say that it can't open it
    connection = connect(path, "mode=ro", patience)
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
    # SQLite can't write beside the file, so no run can either: the file does not change.
    return _copied(path) if _has_content(beside(path, "-wal")) else connect(path, "immutable=1")


def _has_content(path: Path) -> bool:
    try:
        return path.lstat().st_size > 0
    except FileNotFoundError:
        return False


def _copied(path: Path) -> sqlite3.Connection:
    """A copy with the last commits of a killed run, which are in `-wal` only."""
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
