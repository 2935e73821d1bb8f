import contextlib
import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from rooda.fleet.database.fleet_store import FleetStore
from rooda.fleet.database.fleet_tables import WORKERS, FleetDatabase
from rooda.fleet.database.workers import WorkerRow
from support.postgres import Postgres


@pytest.mark.slow
def test_a_worker_that_is_halted_in_a_transaction_can_be_declared_dead(postgres: Postgres) -> None:
    url = postgres.database()
    store, halted = FleetStore(url), FleetDatabase(url)
    store.workers.register(WorkerRow("w", "p", "host", 1, 1, ()))
    connection = halted.engine.connect()
    connection.execute(sa.update(WORKERS).values(beats=1))
    assert store.workers.declare_dead("w", 0)
    with pytest.raises(SQLAlchemyError):  # it wakes up too late
        connection.execute(sa.update(WORKERS).values(beats=2))
    connection.close()
    (row,) = store.workers.all("p")
    assert (row.state, row.beats) == ("dead", 0)
    halted.close()
    store.close()


FORGERIES = (
    (
        "CREATE VIEW rooda_batches AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) "
        "SELECT x AS project, x AS batch, x AS data FROM n"
    ),
    "CREATE TABLE t (x); CREATE TRIGGER a AFTER INSERT ON t BEGIN DELETE FROM t; END",
    "CREATE VIRTUAL TABLE rooda_batches USING fts5(project, batch, data)",
)


@pytest.mark.parametrize("forgery", FORGERIES, ids=["view", "trigger", "virtual table"])
def test_database_that_an_agent_forged_is_refused(tmp_path: Path, forgery: str) -> None:
    file = tmp_path / "fleet.sqlite"
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.executescript(forgery)
    with pytest.raises(SQLAlchemyError, match=r"rooda did not make all of it .*: move the file"):
        FleetDatabase(f"sqlite:///{file}")
