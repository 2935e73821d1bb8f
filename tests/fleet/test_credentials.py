"""The password of the database stays with the worker, and is in no file, log or command line."""

import secrets
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from rooda.fleet.run_model import FleetTask, RunState
from rooda.fleet.store.tables import engine_for
from rooda.fleet.worker.slot_plan import SlotPlan
from rooda.fleet.worker.supervisor import Worker
from support.fleet import Fleet
from support.postgres import Postgres

pytestmark = pytest.mark.real

PASSWORD = "correct-horse-9731"
SEEN_BY_AGENT = """\
env > {folder}/seen-env
tr '\\0' '\\n' < /proc/$PPID/environ > {folder}/seen-parent
touch {folder}/gate
while [ ! -e {folder}/gate.open ]; do sleep 0.05; done
"""


class Admin:
    """The server as its owner sees it. One role needs its password."""

    def __init__(self, url: str) -> None:
        self._engine = engine_for(url)
        self.url = url
        self._role = f"night_{secrets.token_hex(4)}"
        file = Path(str(self.ask("SHOW hba_file")))
        file.write_text(f"local all {self._role} scram-sha-256\n{file.read_text()}")
        self.ask("SELECT pg_reload_conf()")
        self.do(f"CREATE ROLE {self._role} SUPERUSER LOGIN PASSWORD '{PASSWORD}'")

    def alter(self, what: str) -> None:
        """Change the role."""
        self.do(f"ALTER ROLE {self._role} {what}")

    def ask(self, question: str) -> object:
        with self._engine.connect() as connection:
            return connection.exec_driver_sql(question).scalar_one()

    def do(self, command: str) -> None:
        with self._engine.begin() as connection:
            connection.exec_driver_sql(command)

    def url_with(self, password: str) -> str:
        url = sa.make_url(self.url).set(username=self._role, password=password)
        return url.set(drivername="postgresql").render_as_string(hide_password=False)

    def lock_out(self) -> None:
        """Let the role log in no more, and end its connections."""
        self.alter("NOLOGIN")
        ended = "pg_terminate_backend(pid)"
        self.ask(f"SELECT count({ended}) FROM pg_stat_activity WHERE usename = '{self._role}'")

    def everything(self) -> str:
        """Return all rows of all tables."""
        names = sa.text(
            "SELECT schemaname, tablename FROM pg_tables"
            " WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        )
        with self._engine.connect() as connection:
            found = [
                f"{schema}.{table} {row}"
                for schema, table in connection.execute(names)
                for row in connection.exec_driver_sql(f'SELECT * FROM "{schema}"."{table}"')
            ]
        return "\n".join(found)

    def close(self) -> None:
        self._engine.dispose()


class Watch:
    """Reads the arguments of all processes, again and again."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self.found: set[bytes] = set()
        self.looks = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopped.wait(0.01):
            self.looks += 1
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    words = path.read_bytes()
                except OSError:
                    continue
                if PASSWORD.encode() in words:
                    self.found.add(words)

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()


@pytest.fixture
def admin(postgres: Postgres) -> Iterator[Admin]:
    admin = Admin(postgres.database())
    yield admin
    admin.close()


@pytest.fixture
def fleet(admin: Admin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path, admin.url)
    for name, value in fleet.environ().items():
        monkeypatch.setenv(name, value)
    fleet.url = admin.url_with(PASSWORD)
    yield fleet
    fleet.close()


def a_worker(fleet: Fleet, url: str, monkeypatch: pytest.MonkeyPatch) -> Worker:
    monkeypatch.setenv("ROODA_FLEET_URL", url)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)

    def say(words: str) -> None:
        sys.stderr.write(f"{words}\n")

    plan = SlotPlan(url, fleet.remote, fleet.project, 1, setup="env > env.log")
    return Worker([plan], say)


def end(worker: Worker) -> None:
    until = time.monotonic() + 30
    while not worker.is_gone and time.monotonic() < until:
        worker.stop()
        time.sleep(0.2)
    worker.stop()  # closes what is left


def files_with_the_password(folder: Path) -> list[Path]:
    plain = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return [path for path in plain if PASSWORD.encode() in path.read_bytes()]


@pytest.mark.long
def test_the_password_is_in_no_argument_environment_log_table_or_file(
    fleet: Fleet, admin: Admin, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Also while the database refuses the worker for a while, in the middle of an iteration."""
    watch = Watch()
    fleet.repo.joinpath(".git/info/exclude").write_text("*.log\n")
    fleet.add(
        [FleetTask("one", text="work")], fleet.agent(2, SEEN_BY_AGENT.format(folder=fleet.folder))
    )
    worker = a_worker(fleet, fleet.url, monkeypatch)
    try:
        worker.look_after()
        fleet.until((fleet.folder / "gate").exists)
        admin.lock_out()
        (fleet.folder / "gate.open").touch()
        log = ("log", "--format=%s", "refs/rooda/fleet/one")
        fleet.until(lambda: "done 1" in fleet.git(*log))
        admin.alter("LOGIN")
        fleet.until_ended()
    finally:
        end(worker)
        watch.stop()
    assert fleet.run("one").state is RunState.SUCCESS
    assert (watch.found, watch.looks > 50) == (set(), True)
    said = capfd.readouterr()
    assert PASSWORD not in said.out + said.err
    assert PASSWORD not in admin.everything()
    assert "rooda_runs" in admin.everything()
    seen = (fleet.folder / "seen-env").read_text() + (fleet.folder / "seen-parent").read_text()
    assert "ROODA_SLOT=1" in seen
    assert "ROODA_FLEET_URL" not in seen
    assert files_with_the_password(fleet.folder) == []
    assert list(fleet.folder.rglob("work/env.log"))  # the setup command was looked at, too
    messages = fleet.git("log", "--all", "--format=%B")
    assert PASSWORD not in messages


@pytest.mark.long
@pytest.mark.parametrize("trouble", ["wrong password", "away", "no such database"])
def test_a_database_that_refuses_is_told_without_the_password(
    fleet: Fleet,
    admin: Admin,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    trouble: str,
) -> None:
    good = admin.url_with(PASSWORD)
    if trouble == "wrong password":
        admin.alter("PASSWORD 'another'")
        url = good
    elif trouble == "away":
        url = f"postgresql://night:{PASSWORD}@127.0.0.1:1/x"
    else:
        url = sa.make_url(good).set(database="gone").render_as_string(hide_password=False)
    worker = a_worker(fleet, url, monkeypatch)
    try:
        worker.look_after()
        fleet.until(lambda: not worker.slots[0].is_running)
        worker.look_after()  # shows what the process said
    finally:
        end(worker)
    said = capfd.readouterr()
    assert "failed" in said.err
    assert PASSWORD not in said.out + said.err
