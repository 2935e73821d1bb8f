"""The tables of the fleet in a database: SQLite in WAL mode, or PostgreSQL."""

import contextlib
import os
import re
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from msgspec import MsgspecError, convert, json
from sqlalchemy.exc import DataError

from rooda.fleet.run_model import (
    DEFAULT_ACCOUNT,
    Batch,
    FleetTask,
    Order,
    Run,
    RunProgress,
    RunState,
)

_T = TypeVar("_T")
_Row = TypeVar("_Row")

_COLUMN = re.compile(r" - at `\$\.(\w+)`")  # where msgspec found a wrong value
_STRIDE = 10_000  # instructions of SQLite, which take less than a millisecond
_TRIES = 300  # to switch to WAL mode, within _BUSY
_BUSY = 30_000  # milliseconds that SQLite waits for another process
_MAKING = 0x726F6F64  # the advisory lock of a process that makes the tables in PostgreSQL
_POOL = 4  # connections: a slot process has four threads that use the database

# How long PostgreSQL may be silent: a connection that a network forgot does not hang for hours.
PATIENCE = {
    "connect_timeout": 10,
    "tcp_user_timeout": 30_000,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}

# Seconds that a transaction may pause in PostgreSQL: a process that is halted in one keeps others
# from its rows, so that they could not even declare it dead.
LONGEST_PAUSE = 5.0

METADATA = sa.MetaData()

BATCHES = sa.Table(
    "rooda_batches",
    METADATA,
    sa.Column("project", sa.Text, primary_key=True),
    sa.Column("batch", sa.Text, primary_key=True),
    sa.Column("data", sa.Text, nullable=False),
)

RUNS = sa.Table(
    "rooda_runs",
    METADATA,
    sa.Column("project", sa.Text, primary_key=True),
    sa.Column("run", sa.Text, primary_key=True),
    sa.Column("batch", sa.Text, nullable=False),
    sa.Column("task", sa.Text, nullable=False),
    sa.Column("account", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("turn", sa.Integer, nullable=False),
    sa.Column("life", sa.Text, nullable=False),  # differs after each `add` and `retry`
    sa.Column("enqueued", sa.Integer, nullable=False),  # the last turn that the queue was given
    sa.Column("iteration", sa.Integer, nullable=False),
    sa.Column("most_iterations", sa.Integer),
    sa.Column("cost", sa.Double, nullable=False),
    sa.Column("unknown_costs", sa.Integer, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("headline", sa.Text, nullable=False),
    sa.Column("not_before", sa.Double, nullable=False),
    sa.Column("worker", sa.Text, nullable=False),
    sa.Column("place", sa.Text, nullable=False),
    sa.Column("ordered", sa.Text, nullable=False),
    sa.Column("number", sa.Integer, nullable=False),  # in the order in which they were added
    sa.Column("added", sa.Double, nullable=False),
    sa.Column("changed", sa.Double, nullable=False),
    sa.Column("ended", sa.Text, nullable=False),
)

WORKERS = sa.Table(
    "rooda_workers",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("project", sa.Text, nullable=False),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("pid", sa.Integer, nullable=False),
    sa.Column("slot", sa.Integer, nullable=False),
    sa.Column("labels", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("beats", sa.BigInteger, nullable=False),
    sa.Column("started", sa.Double, nullable=False),
)

HOLDS = sa.Table(
    "rooda_holds",
    METADATA,
    sa.Column("account", sa.Text, primary_key=True),
    sa.Column("until", sa.Double, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("most", sa.Integer),  # runs at work until `most_until`; NULL: as many as there are
    sa.Column("most_until", sa.Double, nullable=False),
)


class FleetDatabase:
    """One database with the tables in it. Raises SQLAlchemyError if it is away."""

    def __init__(self, url: str, leave_out: Callable[[str], object] | None = None) -> None:
        self.engine = engine_for(url)
        self._leave_out = leave_out
        self._told: set[str] = set()
        _make_tables(self.engine)

    def close(self) -> None:
        """Close the connections."""
        self.engine.dispose()

    def readable(self, read: Callable[[_Row], _T], rows: Iterable[_Row]) -> list[_T]:
        """Return what the rows have; leave out those that rooda did not write, if it may."""
        found: list[_T] = []
        for row in rows:
            try:
                found.append(read(row))
            except DataError as error:
                if self._leave_out is None:
                    raise
                words = f"A row of the database is left out: {error.orig}"
                if words not in self._told:
                    self._told.add(words)
                    self._leave_out(words)
        return found

    def now(self, connection: sa.Connection) -> float:
        """Return the time of the database, in seconds since 1970."""
        return seconds_now(connection)


def seconds_now(connection: sa.Connection) -> float:
    """Return the time of the database, in seconds since 1970."""
    text = "SELECT extract(epoch FROM clock_timestamp())"
    if connection.dialect.name == "sqlite":
        text = "SELECT (julianday('now') - 2440587.5) * 86400.0"
    return float(connection.execute(sa.text(text)).scalar_one())


def checked(value: object, kind: type[_T], place: str) -> _T:
    """Return what the database has as the type that rooda wrote.

    Raises DataError otherwise, with the place: the name of the row.
    """
    try:
        return convert(value, kind)
    except MsgspecError as error:
        raise wrong_value(place, _COLUMN.sub(r" in the column `\1`", str(error))) from None


def decoded(text: str, kind: type[_T], place: str) -> _T:
    """Return the JSON of a column as the type that rooda wrote. Raises DataError otherwise."""
    try:
        return json.decode(text, type=kind)
    except (MsgspecError, TypeError, UnicodeError, RecursionError) as error:
        raise wrong_value(place, str(error)) from None


def wrong_value(place: str, reason: str) -> DataError:
    """Return the error about a value that rooda did not write: an agent may have done it."""
    words = (
        f"rooda did not write all of it ({place} has a wrong value: {reason}): use a new database, "
        "and bring the runs back with `rooda fleet adopt`"
    )
    return DataError(None, None, ValueError(words))


def engine_for(url: str) -> sa.Engine:
    """Return the connections to a database. A SQLite file is made if it is missing."""
    return _sqlite(url) if url.startswith("sqlite:") else _postgres(url)


def _sqlite(url: str) -> sa.Engine:
    path = Path(str(sa.make_url(url).database))
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))
    engine = sa.create_engine(url, pool_size=_POOL)

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        # A transaction that reads and then writes must not lose its place in between.
        connection.isolation_level = "IMMEDIATE"
        connection.set_progress_handler(lambda: 0, _STRIDE)  # Python gets its turn, for signals
        connection.execute(f"PRAGMA busy_timeout={_BUSY}")
        _use_wal(connection)
        connection.execute("PRAGMA synchronous=NORMAL")

    return engine


def _use_wal(connection: sqlite3.Connection) -> None:
    """Let readers and a writer work at once. SQLite does not wait by itself for this change."""
    for _ in range(_TRIES):
        with contextlib.suppress(sqlite3.OperationalError):  # another process opens or closes it
            connection.execute("PRAGMA journal_mode=WAL")
            return
        time.sleep(_BUSY / 1000 / _TRIES)
    connection.execute("PRAGMA journal_mode=WAL")


def _postgres(url: str) -> sa.Engine:
    driver = sa.make_url(url).set(drivername="postgresql+psycopg")
    engine = sa.create_engine(driver, pool_size=_POOL, pool_pre_ping=True, connect_args=PATIENCE)

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, _: object) -> None:
        milliseconds = int(LONGEST_PAUSE * 1000)
        connection.execute(f"SET idle_in_transaction_session_timeout = {milliseconds}")
        connection.commit()

    return engine


def _make_tables(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MAKING)))
        for table in METADATA.sorted_tables:
            connection.execute(sa.schema.CreateTable(table, if_not_exists=True))


# The row of a run: made for a new run or one that git knows, and read.


_LONGEST_NAME = 80
# Of fields with another name.
_COLUMNS = {"where": "place", "order": "ordered", "max_iterations": "most_iterations"}


class KnownRun(RunProgress, frozen=True):
    """What git tells of a run that the database has lost."""

    task: FleetTask
    batch: Batch
    state: RunState
    turn: int
    reason: str = ""


def text_of(value: object) -> str:
    """Return a task or a batch as the text in its column."""
    return json.encode(value).decode()


def new_life() -> str:
    """Return a name for the time from `add` or `retry` until the run has ended."""
    return secrets.token_hex(4)


def columns_of(run: RunProgress) -> dict[str, Any]:
    """Return the columns that say how far a run is."""
    return {_COLUMNS.get(name, name): value for name, value in run.progress.items()}


def new_row(project: str, batch: Batch, task: FleetTask, number: int, now: float) -> dict[str, Any]:
    """Return the row of a new run."""
    is_blocked = bool(task.after)
    return {
        "project": project,
        "run": task.name,
        "batch": batch.name,
        "task": text_of(task),
        "account": task.account or DEFAULT_ACCOUNT,
        "state": RunState.BLOCKED if is_blocked else RunState.QUEUED,
        "turn": 1,
        "life": new_life(),
        "enqueued": 0,
        **columns_of(RunProgress(max_iterations=task.max_iterations)),
        "reason": "",
        "not_before": 0.0,
        "worker": "",
        "place": "",
        "ordered": Order.NONE,
        "number": number,
        "added": now,
        "changed": now,
        "ended": "",
    }


def known_row(project: str, run: KnownRun, number: int, now: float) -> dict[str, Any]:
    """Return the row of a run that git knows."""
    row = new_row(project, run.batch, run.task, number, now)
    is_begun = run.state.is_end or run.iteration > 0
    return {
        **row,
        "state": run.state if is_begun else row["state"],
        **columns_of(run),
        "turn": run.turn,
        "most_iterations": run.max_iterations or run.task.max_iterations,
        "reason": run.reason,
    }


def batch_of(data: str, name: str) -> Batch:
    """Return the batch of a row of the batches. Raises DataError."""
    return decoded(data, Batch, f"the column `data` of the batch {_shown(name)}")


def run_of(row: Mapping[Any, Any]) -> Run:
    """Return the run of a row, with its batch. Raises DataError."""
    place = f"the run {_shown(row['run'])}"
    found = {
        name: row[_COLUMNS.get(name, name)] for name in Run.__struct_fields__ if name != "batch"
    }
    found["batch"] = batch_of(row["data"], row["batch"])
    found["task"] = decoded(row["task"], FleetTask, f"the column `task` of {place}")
    return checked(found, Run, place)


def _shown(name: object) -> str:
    """Return a name for a message, whatever the column has."""
    return repr(name)[:_LONGEST_NAME]
