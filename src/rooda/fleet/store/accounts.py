"""The accounts of agents: what all runs of one account must wait for."""

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from msgspec import Struct

from rooda.fleet.run_model import Count, Moment, RunState
from rooda.fleet.store.tables import HOLDS, RUNS, FleetDatabase, checked

# Both databases know this form; the row of an account is made when it is needed.
_KEEP = sa.text(
    "INSERT INTO rooda_holds (account, until, reason, most_until) VALUES (:account, 0, '', 0) "
    "ON CONFLICT DO NOTHING"
)


class Hold(Struct, frozen=True):
    """What the runs of an account must wait for: until a time, or because too many are at work."""

    account: str
    until: Moment = 0.0
    reason: str = ""
    most: Count | None = None
    most_until: Moment = 0.0


class Accounts:
    """The accounts in one database, shared by all projects in it."""

    def __init__(self, database: FleetDatabase) -> None:
        self._database = database

    def hold(self, account: str) -> Hold:
        """Return what the runs of this account must wait for; an empty hold if for nothing."""
        with self._database.engine.connect() as connection:
            found = connection.execute(sa.select(HOLDS).where(HOLDS.c.account == account))
            row = found.mappings().one_or_none()
            return Hold(account) if row is None else _hold(row)

    def holds(self) -> list[Hold]:
        """Return the holds that still hold."""
        with self._database.engine.connect() as connection:
            now = self._database.now(connection)
            rows = connection.execute(
                sa.select(HOLDS).where(
                    sa.or_(HOLDS.c.until > now, HOLDS.c.most_until > now),
                )
            )
            return [_hold(row) for row in rows.mappings()]

    def set_hold(self, account: str, seconds: float, reason: str) -> None:
        """Let all runs of the account wait for so many seconds; a longer hold stays."""
        with self._database.engine.begin() as connection:
            until = self._database.now(connection) + seconds
            connection.execute(_KEEP, {"account": account})
            connection.execute(
                sa.update(HOLDS)
                .where(HOLDS.c.account == account, HOLDS.c.until < until)
                .values(until=until, reason=reason)
            )

    def lower(self, account: str, seconds: float, reason: str) -> int:
        """Halve the number of runs of the account at work, for so many seconds; return it."""
        with self._database.engine.begin() as connection:
            now = self._database.now(connection)
            connection.execute(_KEEP, {"account": account})
            at_work = connection.execute(
                sa.select(sa.func.count())
                .select_from(RUNS)
                .where(RUNS.c.account == account, RUNS.c.state == RunState.WORKING)
            ).scalar_one()
            most = max(1, int(at_work) // 2)
            connection.execute(
                sa.update(HOLDS)
                .where(HOLDS.c.account == account)
                .values(most=most, most_until=now + seconds, reason=reason)
            )
            return most

    def rank(self, project: str, name: str, account: str) -> int:
        """Return how many older runs of the account are at work."""
        with self._database.engine.connect() as connection:
            rows = connection.execute(
                sa.select(RUNS.c.project, RUNS.c.run)
                .where(RUNS.c.account == account, RUNS.c.state == RunState.WORKING)
                .order_by(RUNS.c.added, RUNS.c.number, RUNS.c.project)
            )
            order = [(row.project, row.run) for row in rows.mappings()]
            return order.index((project, name)) if (project, name) in order else len(order)


def _hold(row: Mapping[Any, Any]) -> Hold:
    place = f"the hold of the account {row['account']!r}"
    return checked({name: row[name] for name in Hold.__struct_fields__}, Hold, place)
