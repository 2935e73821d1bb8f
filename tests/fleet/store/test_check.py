"""The doctor tells what a database is, and whether a fleet can use it, without its password."""

from pathlib import Path

import pytest
import sqlalchemy as sa

from rooda.fleet.store.check import DatabaseFault, look_at_database
from rooda.fleet.store.store import FleetStore
from rooda.fleet.store.tables import engine_for
from support.postgres import Postgres


def tables_of(url: str) -> list[str]:
    engine = engine_for(url)
    found = sa.inspect(engine).get_table_names()
    engine.dispose()
    return sorted(found)


def test_a_database_is_looked_at_and_left_as_it_is(url: str) -> None:
    FleetStore(url).close()
    before = tables_of(url)
    facts = look_at_database(url)
    assert facts.version.split()[0] in ("SQLite", "PostgreSQL")
    assert 0 < facts.latency < 5
    assert abs(facts.ahead) < 5
    assert tables_of(url) == before


@pytest.mark.real
def test_a_user_who_may_make_no_tables_is_told(postgres: Postgres) -> None:
    url = postgres.database()
    engine = engine_for(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE ROLE reader LOGIN PASSWORD 'hush-hush'")
        connection.exec_driver_sql("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    engine.dispose()
    mine = sa.make_url(url).set(username="reader", password="hush-hush")
    with pytest.raises(DatabaseFault, match="permission denied") as fault:
        look_at_database(mine.render_as_string(hide_password=False))
    assert "hush" not in str(fault.value)


@pytest.mark.parametrize(
    "wrong",
    [
        "postgresql://me:p%40ss-word@127.0.0.1:1/x",
        "postgresql://me:p%40ss-word@127.0.0.1:1/x?password=p%40ss-word",
        "postgresql://me:p%40ss-word@no-such-host.invalid/x",
    ],
)
def test_no_error_has_the_password(wrong: str) -> None:
    with pytest.raises(DatabaseFault) as fault:
        look_at_database(wrong)
    assert "ss-word" not in str(fault.value)
    assert fault.value.__cause__ is None


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("words, and many more of them, so that it is a file\n" * 40)
    with pytest.raises(DatabaseFault, match="not a database"):
        look_at_database(f"sqlite:///{tmp_path}/x")
