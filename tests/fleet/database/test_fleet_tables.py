import contextlib
import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DataError, SQLAlchemyError

from rooda.fleet.database.fleet_store import FleetStore
from rooda.fleet.database.fleet_tables import WORKERS, FleetDatabase
from rooda.fleet.database.workers import WorkerRow
from rooda.fleet.display.fleet_table import Sight
from rooda.fleet.run_model import Batch, FleetTask
from support.postgres import Postgres


@pytest.mark.real
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


WRONG = {
    "batch with another type": """UPDATE rooda_batches SET data = '{"name": 5}'""",
    "batch without JSON": "UPDATE rooda_batches SET data = 'x'",
    "batch of bytes": "UPDATE rooda_batches SET data = x'ff'",
    "number as batch": "UPDATE rooda_batches SET data = 5",
    "task with another type": """UPDATE rooda_runs SET task = '{"name": "a", "after": 1}'""",
    "unknown state": "UPDATE rooda_runs SET state = 'great'",
    "cost as text": "UPDATE rooda_runs SET cost = 'much'",
    "number as text": "UPDATE rooda_runs SET number = 'first'",
    "labels": "UPDATE rooda_workers SET labels = '5'",
    "slot as text": "UPDATE rooda_workers SET slot = 'x'",
    "hold as text": "UPDATE rooda_holds SET until = 'x', most_until = 'x'",
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_wrong_type_in_a_row_is_an_error_with_advice(tmp_path: Path, change: str) -> None:
    file = tmp_path / "fleet.sqlite"
    store = FleetStore(f"sqlite:///{file}")
    store.add("p", Batch("b", "base"), [FleetTask("a")])
    store.workers.register(WorkerRow("w", "p", "host", 1, 1, ()))
    store.accounts.set_hold("default", 60, "limit")
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute(change)
        connection.commit()

    def use() -> None:
        Sight.of(store, "p")
        store.add("p", Batch("c", "base"), [FleetTask("d")])

    with pytest.raises(DataError, match=r"rooda did not write all of it .*use a new database"):
        use()
    store.close()
