"""Many machines: workers with one PostgreSQL and one git remote, through the installed command."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from support.gitrepo import git
from support.postgres import Postgres
from support.workspace import ROODA

pytestmark = [pytest.mark.long, pytest.mark.timeout(180)]

TASKS = "".join(f"## Task {number}\n\nWrite it.\n\n" for number in range(1, 7))
AGENT = """\
#!/bin/sh
cat > /dev/null
echo "$(git branch --show-current)" >> {folder}/starts
sleep 0.3
echo line >> work.txt
echo "wrote line $(wc -l < work.txt)"
if [ "$(wc -l < work.txt)" -ge 3 ]; then echo '<promise>SUCCESS</promise>'; fi
"""


class Machines:
    """A shared remote and database, and machines with a checkout and a home of their own."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        self.remote = folder / "remote.git"
        self.workers: list[subprocess.Popen[bytes]] = []
        git(folder, "init", "-q", "--bare", "-b", "main", str(self.remote))
        agent = folder / "agent.sh"
        agent.write_text(AGENT.format(folder=folder))
        agent.chmod(0o755)
        self.agent = str(agent)
        first = self.machine("first")
        (first / "TASKS.md").write_text(TASKS)
        git(first, "add", "TASKS.md")
        git(first, "commit", "-q", "-m", "tasks")
        git(first, "push", "-q", "origin", "HEAD:main")

    def machine(self, name: str) -> Path:
        """Make a machine; return its checkout."""
        checkout = self.folder / name / "app"
        checkout.parent.mkdir()
        git(self.folder, "clone", "-q", str(self.remote), str(checkout))
        for key, value in (("user.name", name), ("user.email", f"{name}@example.com")):
            git(checkout, "config", key, value)
        return checkout

    def environ(self, checkout: Path) -> dict[str, str]:
        home = checkout.parent
        kept = {key: os.environ[key] for key in os.environ if key in ("PATH", "LANG")}
        own = {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
        return {**kept, **own, "ROODA_FLEET_URL": self.url, "GIT_CONFIG_NOSYSTEM": "1"}

    def rooda(self, checkout: Path, *words: str) -> str:
        done = subprocess.run(
            [str(ROODA), *words],
            cwd=checkout,
            env=self.environ(checkout),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def worker(self, checkout: Path, *words: str) -> subprocess.Popen[bytes]:
        with (checkout.parent / "worker.log").open("ab") as log:
            process = subprocess.Popen(
                [str(ROODA), "worker", "-j", "2", "--takeover", "3s", *words],
                cwd=checkout,
                env=self.environ(checkout),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.workers.append(process)
        return process

    def states(self, checkout: Path) -> dict[str, dict[str, object]]:
        found = json.loads(self.rooda(checkout, "fleet", "--json"))
        return {run["run"]: run for run in found["runs"]}

    def until(self, holds: Callable[[], bool], timeout: float = 45) -> None:
        end = time.monotonic() + timeout
        while not holds():
            logs = [path.read_text()[-3000:] for path in self.folder.glob("*/worker.log")]
            assert time.monotonic() < end, "\n".join(logs)
            time.sleep(0.2)

    def until_all(self, checkout: Path, state: str) -> None:
        self.until(lambda: {one["state"] for one in self.states(checkout).values()} == {state})

    def check(self, runs: int, iterations: int = 3) -> None:
        """Every iteration of every run is on its branch once."""
        for number in range(1, runs + 1):
            bodies = git(self.remote, "log", "--format=%B", f"main..rooda/task-{number}")
            lines = bodies.splitlines()
            for iteration in range(1, iterations + 1):
                assert lines.count(f"Rooda-Run: task-{number}/{iteration}") == 1, bodies

    def close(self) -> None:
        for process in self.workers:
            with contextlib.suppress(psutil.NoSuchProcess):
                kill_machine(process)
            process.wait()


def kill_machine(worker: subprocess.Popen[bytes]) -> None:
    """Kill everything of a worker at once: its machine loses its power."""
    process = psutil.Process(worker.pid)
    for one in [*process.children(recursive=True), process]:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    server = Postgres(folder)
    yield server
    server.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def machines(tmp_path: Path, postgres: Postgres) -> Iterator[Machines]:
    machines = Machines(tmp_path, postgres.database())
    yield machines
    machines.close()


def test_a_machine_that_dies_is_replaced_by_another(machines: Machines) -> None:
    first = machines.folder / "first" / "app"
    second = machines.machine("second")
    machines.rooda(first, "fleet", "add", "TASKS.md", "--ai-cmd", machines.agent)
    dying = machines.worker(first)
    machines.until((machines.folder / "starts").exists)
    machines.worker(second)
    kill_machine(dying)
    machines.until_all(second, "success")
    machines.check(6)


def test_a_worker_that_is_told_to_end_hands_its_runs_over(machines: Machines) -> None:
    first = machines.folder / "first" / "app"
    second = machines.machine("second")
    machines.rooda(first, "fleet", "add", "TASKS.md", "--ai-cmd", machines.agent)
    ending = machines.worker(first)
    machines.until((machines.folder / "starts").exists)
    ending.send_signal(signal.SIGTERM)
    assert ending.wait(30) == 130
    done = [one["iteration"] for one in machines.states(second).values()]
    assert any(number for number in done)  # the iterations at work were finished
    assert "working" not in {one["state"] for one in machines.states(second).values()}
    drained = machines.worker(second, "--drain")
    assert drained.wait(90) == 0
    machines.check(6)
    starts = (machines.folder / "starts").read_text().splitlines()
    assert len(starts) == 18  # no iteration was begun twice


def test_labels_choose_the_machine(machines: Machines) -> None:
    first = machines.folder / "first" / "app"
    (first / "fleet.yml").write_text(
        "- {name: plain, context: work}\n- {name: heavy, context: work, labels: [gpu]}\n"
    )
    machines.rooda(first, "fleet", "add", "fleet.yml", "--ai-cmd", machines.agent)
    assert machines.worker(first, "--drain").wait(60) == 0
    states = {name: one["state"] for name, one in machines.states(first).items()}
    assert states == {"plain": "success", "heavy": "queued"}
    second = machines.machine("second")
    assert machines.worker(second, "--drain", "--labels", "gpu").wait(60) == 0
    assert machines.states(second)["heavy"]["state"] == "success"
    assert "slot" in str(machines.states(second)["heavy"]["where"])


def test_runs_go_on_from_git_when_the_database_is_lost(
    machines: Machines, postgres: Postgres
) -> None:
    first = machines.folder / "first" / "app"
    machines.rooda(first, "fleet", "add", "TASKS.md", "--ai-cmd", machines.agent)
    dying = machines.worker(first)
    machines.until(lambda: any(one["iteration"] for one in machines.states(first).values()))
    kill_machine(dying)
    machines.url = postgres.database()  # empty
    machines.rooda(first, "fleet", "adopt", "--trust")
    assert machines.worker(first, "--drain").wait(90) == 0
    machines.until_all(first, "success")
    machines.check(6)
