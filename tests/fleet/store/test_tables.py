import contextlib
import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DataError, SQLAlchemyError

from rooda.fleet.display.fleet_table import Sight
from rooda.fleet.run_model import Batch, FleetTask
from rooda.fleet.store.store import FleetStore
from rooda.fleet.store.tables import WORKERS, FleetDatabase
from rooda.fleet.store.workers import WorkerRow
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


WRONG = {
    "batch with another type": """UPDATE rooda_batches SET data = '{"name": 5}'""",
    "batch without JSON": "UPDATE rooda_batches SET data = 'x'",
    "time after the year 9999": "UPDATE rooda_runs SET not_before = 4e11",
    "time before 1970": "UPDATE rooda_runs SET changed = -1e300",
    "endless cost": "UPDATE rooda_runs SET cost = 9e999",
    "negative cost": "UPDATE rooda_runs SET cost = -1",
    "turn that PostgreSQL can't have": "UPDATE rooda_runs SET turn = 9223372036854775807",
    "endless budget": (
        """UPDATE rooda_batches SET data = '{"name": "b", "base": "", "max_cost": 1e99}'"""
    ),
    "deep list": f"UPDATE rooda_runs SET task = '{'[' * 5000}'",
    "pid as text": "UPDATE rooda_workers SET pid = 'x'",
    "hold without end": "UPDATE rooda_holds SET until = 9e999",
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

    row = r"(run 'a'|batch 'b'|worker 'w'|hold of the account 'default'|column `number` of a run)"
    wanted = rf"rooda did not write all of it \(the (column `\w+` of the )?{row} has a wrong value"
    with pytest.raises(DataError, match=wanted) as caught:
        use()
    assert "use a new database" in str(caught.value)
    assert "column `" in str(caught.value)
    store.close()


def test_a_worker_leaves_a_broken_row_out_and_works_on_the_others(tmp_path: Path) -> None:
    file, told = tmp_path / "fleet.sqlite", list[str]()
    store = FleetStore(f"sqlite:///{file}", told.append)
    store.add("p", Batch("b", "base"), [FleetTask("a"), FleetTask("good")])
    store.workers.register(WorkerRow("w", "p", "host", 1, 1, ()))
    store.workers.register(WorkerRow("alive", "p", "host", 1, 1, ()))
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("UPDATE rooda_runs SET cost = 'much' WHERE run = 'a'")
        connection.execute("UPDATE rooda_workers SET slot = 'x' WHERE id = 'w'")
        connection.commit()
    for _ in range(2):
        assert [run.run for run in store.ready("p")] == ["good"]
        assert [one.id for one in store.workers.all("p")] == ["alive"]
    assert len(told) == 2
    assert (
        "the run 'a' has a wrong value: Expected `float`, got `str` in the column `cost`" in told[0]
    )
    assert "the worker 'w' has a wrong value" in told[1]
    store.close()
