"""Databases for the tests of the fleet: a SQLite file, and a real PostgreSQL."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.postgres import Postgres


@pytest.fixture(autouse=True, scope="module")
def without_coverage() -> Iterator[None]:
    """Start processes without coverage, which counts nothing of the fleet."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)
        yield


@pytest.fixture(autouse=True)
def state_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for the state of rooda, for code that runs in this process."""
    folder = tmp_path / "state-home"
    monkeypatch.setenv("ROODA_STATE_HOME", str(folder))
    return folder


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    folder = Path(tempfile.mkdtemp(prefix="pg"))  # short: it is the path of a socket
    server = Postgres(folder)
    yield server
    server.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.real)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/fleet.sqlite"
    server: Postgres = request.getfixturevalue("postgres")
    return server.database()
