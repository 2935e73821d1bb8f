"""The slot processes of all workers, and which of them are alive."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from msgspec import Struct, json

from rooda.fleet.run_model import Count
from rooda.fleet.store.tables import WORKERS, FleetDatabase, checked, decoded

ALIVE, DEAD = "alive", "dead"
_KEPT = 24 * 3600.0  # seconds for which `rooda fleet` can show a dead worker


class WorkerRow(Struct, frozen=True):
    """One slot process as the database has it; `beats` grows while it is alive."""

    id: str
    project: str
    host: str
    pid: Count
    slot: Count
    labels: tuple[str, ...]
    state: str = ALIVE
    beats: int = 0


class Workers:
    """The workers in one database."""

    def __init__(self, database: FleetDatabase) -> None:
        self._database = database

    def register(self, worker: WorkerRow) -> None:
        """Add a worker, and forget those that died long ago."""
        with self._database.engine.begin() as connection:
            now = self._database.now(connection)
            connection.execute(
                sa.delete(WORKERS).where(
                    WORKERS.c.state == DEAD,
                    WORKERS.c.started < now - _KEPT,
                )
            )
            row = {
                **{name: getattr(worker, name) for name in WorkerRow.__struct_fields__},
                "labels": json.encode(worker.labels).decode(),
                "started": now,
            }
            connection.execute(sa.insert(WORKERS), row)

    def beat(self, worker: str) -> bool:
        """Show that the worker is alive; return False if another one declared it dead."""
        with self._database.engine.begin() as connection:
            done = connection.execute(
                sa.update(WORKERS)
                .where(WORKERS.c.id == worker, WORKERS.c.state == ALIVE)
                .values(beats=WORKERS.c.beats + 1)
            )
            return done.rowcount > 0

    def all(self, project: str) -> list[WorkerRow]:
        """Return the workers of a project that are alive or were so lately."""
        with self._database.engine.connect() as connection:
            rows = connection.execute(
                sa.select(WORKERS).where(WORKERS.c.project == project).order_by(WORKERS.c.started)
            )
            return self._database.readable(_worker, rows.mappings())

    def declare_dead(self, worker: str, beats: int) -> bool:
        """Declare a worker dead that has not shown itself since this beat."""
        with self._database.engine.begin() as connection:
            done = connection.execute(
                sa.update(WORKERS)
                .where(
                    WORKERS.c.id == worker,
                    WORKERS.c.state == ALIVE,
                    WORKERS.c.beats == beats,
                )
                .values(state=DEAD)
            )
            return done.rowcount > 0

    def may_work(self, connection: sa.Connection, worker: str) -> bool:
        """Return whether the worker is alive: then it stays so until the commit."""
        # A write keeps the row until the end of the transaction, in both kinds of database.
        found = connection.execute(
            sa.update(WORKERS)
            .where(WORKERS.c.id == worker, WORKERS.c.state == ALIVE)
            .values(state=ALIVE)
        )
        return found.rowcount > 0

    def leave(self, worker: str) -> None:
        """Delete a worker that ends by itself."""
        with self._database.engine.begin() as connection:
            connection.execute(sa.delete(WORKERS).where(WORKERS.c.id == worker))


def _worker(row: Mapping[Any, Any]) -> WorkerRow:
    fields = {name: row[name] for name in WorkerRow.__struct_fields__}
    place = f"the worker {row['id']!r}"
    labels = decoded(row["labels"], tuple[str, ...], f"the column `labels` of {place}")
    return checked({**fields, "labels": labels}, WorkerRow, place)
