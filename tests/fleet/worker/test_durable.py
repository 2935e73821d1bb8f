"""The durable engine: what rooda relies on, with real processes on real databases."""

import base64
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from msgspec import json

from rooda.fleet.store.tables import FleetDatabase
from rooda.fleet.worker.durable import Turn
from support.fleet_engine import EnginePlan

TESTS = Path(__file__).parents[2]


class Engines:
    """Processes that share one database, and what the test sees of them."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, worker: str, *turns: Turn, labels: tuple[str, ...] = ()) -> int:
        plan = EnginePlan(self.url, worker, str(self.folder), list(labels), list(turns))
        process = subprocess.Popen(
            [sys.executable, "-m", "support.fleet_engine"],
            stdin=subprocess.PIPE,
            cwd=TESTS,
            env={**os.environ, "PYTHONPATH": f"{TESTS}:{TESTS.parent / 'src'}"},
        )
        self.started.append(process)
        assert process.stdin is not None
        process.stdin.write(json.encode(plan) + b"\n")
        process.stdin.flush()
        self.wait_for(f"launched-{worker}")
        return process.pid

    def wait_for(self, name: str) -> None:
        self.until((self.folder / name).exists)

    def until(self, holds: Callable[[], bool], timeout: float = 30) -> None:
        end = time.monotonic() + timeout
        while not holds():
            assert time.monotonic() < end, sorted(path.name for path in self.folder.iterdir())
            time.sleep(0.02)

    def ask(self, name: str, text: str = "") -> None:
        (self.folder / f"{name}.new").write_text(text)
        (self.folder / f"{name}.new").rename(self.folder / name)

    @property
    def log(self) -> list[str]:
        path = self.folder / "log"
        return path.read_text().splitlines() if path.exists() else []

    def rows(self, query: str, **values: Any) -> list[Any]:
        database = FleetDatabase(self.url)
        prefix = "" if self.url.startswith("sqlite") else "dbos."
        with database.engine.begin() as connection:
            found = connection.execute(sa.text(query.replace("dbos.", prefix)), values)
            rows = list(found) if found.returns_rows else []
        database.close()
        return rows

    def status(self, key: str) -> str:
        rows = self.rows("SELECT status FROM dbos.workflow_status WHERE workflow_uuid = :k", k=key)
        return str(rows[0][0]) if rows else ""

    def close(self) -> None:
        self.ask("end")
        for process in self.started:
            if process.poll() is None:
                os.kill(process.pid, signal.SIGCONT)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            assert process.stdin is not None
            process.stdin.close()


@pytest.fixture
def engines(url: str, tmp_path: Path) -> Iterator[Engines]:
    folder = tmp_path / "engines"
    folder.mkdir()
    engines = Engines(url, folder)
    yield engines
    engines.close()


def turn(run: str, number: int = 1, **more: Any) -> Turn:
    return Turn("project", run, number, **more)


@pytest.mark.real(rows=1)
def test_a_turn_runs_once_and_its_results_are_json(engines: Engines) -> None:
    engines.start("a", turn("x"), turn("x"), turn("y"), turn("x", 2))
    for name in ("ended-x-1", "ended-x-2", "ended-y-1"):
        engines.wait_for(name)
    engines.until(lambda: engines.status("project/y/1") == "SUCCESS")
    assert sorted(engines.log) == sorted(
        f"a {run} {number} {step}"
        for run, number in (("x", 1), ("x", 2), ("y", 1))
        for step in ("one", "two", "three")
    )
    rows = engines.rows("SELECT output, serialization FROM dbos.operation_outputs")
    assert {(json.decode(output)["worker"], kind) for output, kind in rows} == {
        ("a", "portable_json")
    }


@pytest.mark.long
def test_a_killed_process_is_replaced_in_the_step_where_it_was(engines: Engines) -> None:
    pid = engines.start("a", turn("held-x"))
    engines.wait_for("began-a-held-x-two")
    os.kill(pid, signal.SIGKILL)
    engines.start("b")
    engines.ask("recover-b", "b")
    engines.wait_for("began-b-held-x-two")
    engines.ask("go-b")
    engines.wait_for("ended-held-x-1")
    assert engines.log == ["a held-x 1 one", "b held-x 1 two", "b held-x 1 three"]


@pytest.mark.long
def test_the_step_of_a_woken_owner_is_refused(engines: Engines) -> None:
    pid = engines.start("a", turn("held-x"))
    engines.wait_for("began-a-held-x-two")
    os.kill(pid, signal.SIGSTOP)
    engines.start("b")
    engines.ask("recover-b", "b")
    engines.wait_for("began-b-held-x-two")
    engines.ask("go-a")
    os.kill(pid, signal.SIGCONT)
    engines.until(lambda: "a held-x 1 two" in engines.log)  # it worked, and now it wants to say so
    engines.ask("go-b")
    engines.until(lambda: engines.status("project/held-x/1") == "SUCCESS")
    rows = engines.rows("SELECT function_name, output FROM dbos.operation_outputs ORDER BY 1")
    assert [(name, json.decode(output)["worker"]) for name, output in rows] == [
        ("one", "a"),
        ("three", "b"),
        ("two", "b"),
    ]


@pytest.mark.long
def test_a_process_that_is_alive_keeps_its_turn(engines: Engines) -> None:
    engines.start("a", turn("held-x"))
    engines.wait_for("began-a-held-x-two")
    engines.start("b")
    engines.ask("recover-b", "a b")
    engines.wait_for("recover-b.done")
    engines.ask("go-a")
    engines.wait_for("ended-held-x-1")
    assert engines.log == [f"a held-x 1 {step}" for step in ("one", "two", "three")]


@pytest.mark.real(rows=1)
def test_a_turn_that_was_given_to_a_process_without_its_knowledge_is_not_lost(
    engines: Engines,
) -> None:
    """The connection died when the database had taken the claim, and before it could say so."""
    engines.start("a", turn("x", labels=("elsewhere",)))
    engines.rows(
        "UPDATE dbos.workflow_status SET status = 'PENDING', executor_id = 'a', "
        "queue_name = 'project' WHERE workflow_uuid = 'project/x/1'"
    )
    engines.ask("recover-a", "a")
    engines.wait_for("ended-x-1")
    assert engines.log == [f"a x 1 {step}" for step in ("one", "two", "three")]


@pytest.mark.real(rows=1)
def test_a_process_has_one_turn_at_a_time_of_the_queues_whose_labels_it_has(
    engines: Engines,
) -> None:
    turns = [turn("held-x"), turn("y", labels=("gpu",)), turn("z", labels=("gpu", "big"))]
    engines.start("a", *turns, labels=("gpu",))
    engines.until(lambda: bool(engines.log))
    first = engines.log[0].split()[1]
    if first == "held-x":  # the other one waits for it, in its own queue
        engines.wait_for("began-a-held-x-two")
        engines.start("b", labels=("gpu",))
        engines.wait_for("ended-y-1")
        assert not (engines.folder / "began-a-y-one").exists()
    engines.ask("go-a")
    engines.ask("go-b")
    engines.wait_for("ended-held-x-1")
    engines.wait_for("ended-y-1")
    assert not any(" z " in line for line in engines.log)
    assert engines.status("project/z/1") == "ENQUEUED"


@pytest.mark.real(rows=1)
def test_pickled_rows_run_no_code(engines: Engines, tmp_path: Path) -> None:
    engines.start("a", turn("x"))
    engines.wait_for("ended-x-1")

    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.system, (f"touch {tmp_path}/boom",)

    text = base64.b64encode(pickle.dumps({"args": (Bomb(),), "kwargs": {}})).decode()
    engines.until(lambda: engines.status("project/x/1") == "SUCCESS")
    engines.rows(
        "UPDATE dbos.workflow_status SET status = 'ENQUEUED', inputs = :text, "
        "serialization = 'py_pickle', output = NULL WHERE workflow_uuid = 'project/x/1'",
        text=text,
    )
    engines.until(lambda: engines.status("project/x/1") == "ERROR")
    assert not (tmp_path / "boom").exists()
