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
