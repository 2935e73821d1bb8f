"""A fleet for tests: a user's repository, tasks, slot processes, and what must hold at the end."""

import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import psutil
import sqlalchemy as sa
from msgspec import json

from rooda.fleet.actions.add_tasks import records_of
from rooda.fleet.place import project_key
from rooda.fleet.remote.fence import Remote, scratch_remote
from rooda.fleet.remote.own_fence import make_fence
from rooda.fleet.run_model import Batch, FleetTask, Run, RunState
from rooda.fleet.slot.slot import Slot
from rooda.fleet.store.store import FleetStore
from rooda.fleet.store.tables import FleetDatabase
from rooda.fleet.worker.slot_plan import SlotPlan
from rooda.world.process.first_moment import own_module
from rooda.world.tools import Tools

_TICK = 0.05
_PATIENCE = 10.0  # seconds for a process to end
# Each iteration adds a line to `work.txt`, and a line to a file of the test. With the last line the
# agent says that it is done.
AGENT = """\
#!/bin/sh
echo "$ROODA_FLEET_RUN started" >> {starts}
{before}
echo "line" >> work.txt
lines=$(wc -l < work.txt)
echo "did line $lines"
if [ "$lines" -ge {lines} ]; then echo '<promise>SUCCESS</promise>'; fi
"""


def rooda_in(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Return the processes that run an iteration: the children of slot processes."""
    mark = own_module("rooda")[-2:]
    return [one for one in processes if one.cmdline()[5:7] == mark]


class Fleet:
    """One project: `repo` is the user's repository, which receives the work."""

    def __init__(self, folder: Path, url: str, remote: Path | None = None) -> None:
        self.folder = folder
        self.url = url
        self.repo = folder / "repo"
        self.home = folder / "home"
        self.starts = folder / "starts"
        self.batch_cost: float | None = None
        self.processes: list[subprocess.Popen[bytes]] = []
        self.home.mkdir()
        self._init()
        self.remote = str(remote or self.repo / ".git")
        self.fence: Path | None = None
        if remote is None and url.startswith("sqlite:"):
            self.fence = folder / "fence.git"
            make_fence(self.fence, self.repo / ".git", Tools(self.environ()))
        self.project = project_key(self.remote)
        self.store = FleetStore(url)
        self.batch = Batch("batch", self.git("rev-parse", "HEAD"))

    def _init(self) -> None:
        self.repo.mkdir()
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "Test User")
        self.git("config", "user.email", "test@example.com")
        (self.repo / "README").write_text("hello\n")
        self.git("add", "README")
        self.git("commit", "-qm", "first")

    def git(self, *words: str, given: str = "") -> str:
        """Run git in the user's repository; return what it prints."""
        done = subprocess.run(
            ["git", *words],
            cwd=self.repo,
            env=self.environ(),
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout.strip()

    def records(self, *words: str, given: str = "") -> str:
        """Run git in the repository that has the records of runs; return what it prints."""
        user = ("-c", "user.name=Test User", "-c", "user.email=test@example.com")
        place = [f"--git-dir={self.fence}"] if self.fence else []
        return self.git(*user, *place, *words, given=given)

    def open_slot(self, **more: str) -> Slot:
        """Return slot 1, held by this process."""
        root, environ = self.folder / "slots", self.environ(**more)
        return Slot.open(root, self.project, 1, self.remote, fence=self.fence, environ=environ)

    def remote_here(self, **more: str) -> AbstractContextManager[Remote]:
        """Yield the remote as a command of the user sees it, with more variables."""
        return scratch_remote(self.remote, Tools(self.environ(**more)), fence=self.fence)

    def environ(self, **more: str) -> dict[str, str]:
        """Return the environment of a user who has nothing but this fleet."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        paths = {"HOME": str(self.home), "XDG_CACHE_HOME": str(self.folder / "cache")}
        quiet = {"GIT_CONFIG_NOSYSTEM": "1", "PYTHONUNBUFFERED": "1"}
        return {**kept, **paths, **quiet, **more}

    def agent(self, lines: int = 3, before: str = "") -> str:
        """Write an agent that is done after so many iterations; return its path."""
        path = self.folder / f"agent-{lines}.sh"
        path.write_text(AGENT.format(starts=self.starts, lines=lines, before=before))
        path.chmod(0o755)
        return str(path)

    def add(
        self,
        tasks: Sequence[FleetTask],
        agent: str,
        *flags: str,
        batch: str = "batch",
        environ: Mapping[str, str] | None = None,
    ) -> list[Run]:
        """Add tasks for an agent; return their runs."""
        words = ("--ai-cmd", agent, *flags)
        brought = Batch(batch, self.batch.base, flags=words, max_cost=self.batch_cost)
        with self.remote_here(**(environ or {})) as remote:
            remote.add(records_of(brought, tasks))
        self.store.add(self.project, brought, tasks)
        names = {task.name for task in tasks}
        return [run for run in self.store.runs(self.project) if run.run in names]

    def start_slot(
        self,
        number: int,
        takeover: float = 3.0,
        more: Mapping[str, str] | None = None,
        *,
        url: str | None = None,
        most_claims: int = 8,
    ) -> subprocess.Popen[bytes]:
        """Start a slot process, with more variables in its environment."""
        plan = SlotPlan(
            url or self.url,
            self.remote,
            self.project,
            number,
            fence=str(self.fence) if self.fence else None,
            takeover=takeover,
            most_claims=most_claims,
        )
        with (self.folder / f"slot-{number}.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "rooda.fleet.worker.slot_process"],
                stdin=subprocess.PIPE,
                stderr=log,
                env=self.environ(**(more or {})),
                start_new_session=True,
            )
        assert process.stdin is not None
        process.stdin.write(json.encode(plan) + b"\n")
        process.stdin.flush()
        self.processes.append(process)
        return process

    def hurry(self, process: subprocess.Popen[bytes]) -> int:
        """Ask a slot process to end, again and again; return its exit code."""
        end = time.monotonic() + 40
        while process.poll() is None:
            assert time.monotonic() < end, self.story()
            process.terminate()
            time.sleep(0.3)  # two signals at once would be one
        return process.returncode

    def run(self, name: str) -> Run:
        """Return the row of a run."""
        found = self.store.run(self.project, name)
        assert found is not None
        return found

    def sql(self, query: str, **values: object) -> list[tuple[object, ...]]:
        """Return the rows of a query; the tables of the queue are in `dbos.`."""
        database = FleetDatabase(self.url)
        prefix = "" if self.url.startswith("sqlite") else "dbos."
        with database.engine.begin() as connection:
            found = connection.execute(sa.text(query.replace("dbos.", prefix)), values)
            rows = [tuple(row) for row in found] if found.returns_rows else []
        database.close()
        return rows

    def until(self, holds: Callable[[], bool], timeout: float = 120) -> None:
        """Wait for a sign."""
        end = time.monotonic() + timeout
        while not holds():
            assert time.monotonic() < end, self.story()
            time.sleep(_TICK)

    def until_ended(self, timeout: float = 120) -> None:
        """Wait until all runs have ended."""
        self.until(lambda: all(run.state.is_end for run in self.store.runs(self.project)), timeout)

    @property
    def agent_starts(self) -> int:
        """How often an agent was started."""
        return len(self.starts.read_text().splitlines()) if self.starts.exists() else 0

    def story(self) -> str:
        """What a person needs to know about a test that failed."""
        rows = [
            f"{run.run}: {run.state} turn {run.turn} iteration {run.iteration}"
            f" {run.worker} {run.reason}"
            for run in self.store.runs(self.project)
        ]
        logs = [path.read_text()[-3000:] for path in sorted(self.folder.glob("slot-*.log"))]
        children = [
            path.read_text()[-1500:]
            for path in sorted((self.folder / "cache").glob("rooda/fleet/*/*/log"))
        ]
        return "\n".join([*rows, *logs, *children])

    def check_exactly_once(self, name: str, iterations: int) -> None:
        """Every iteration is once on the branch and once in the record."""
        self.check_work(name, iterations)
        rows = self.recorded(name)
        assert rows == [(number, "completed") for number in range(1, iterations + 1)], rows

    def check_work(self, name: str, lines: int) -> None:
        """The run did its work once: its lines, its commits, its record. An agent may have died."""
        run = self.run(name)
        assert run.state is RunState.SUCCESS, self.story()
        rows = self.recorded(name)
        numbers = [number for number, _ in rows]
        assert numbers == list(range(1, len(rows) + 1)), rows
        assert run.iteration == len(rows), self.story()
        bodies = self.git("log", "--format=%B", f"{self.batch.base}..rooda/{name}")
        commits = Counter(re.findall(rf"^Rooda-Run: {name}/(\d+)$", bodies, re.MULTILINE))
        completed = {str(number) for number, status in rows if status == "completed"}
        assert set(commits.values()) == {1}, f"{bodies}\n{self.story()}"
        assert completed <= set(commits) <= {str(number) for number in numbers}, self.story()
        assert self.git("show", f"rooda/{name}:work.txt").splitlines() == ["line"] * lines
        subjects = self.records("log", "--first-parent", "--format=%s", f"refs/rooda/fleet/{name}")
        done = [line for line in subjects.splitlines() if line.startswith("done")]
        assert sorted(done) == sorted(f"done {number}" for number in numbers), subjects

    def recorded(self, name: str) -> list[tuple[int, str]]:
        """Return the iterations in the record of a run, with their states."""
        record = json.decode(self.records("show", f"refs/rooda/fleet/{name}:record.json"))
        return [(number, status) for _, number, _, status, *_ in record["iterations"]]

    def close(self) -> None:
        """End everything: a slot process ends when its worker is gone."""
        for process in self.processes:
            if process.poll() is None:
                os.kill(process.pid, signal.SIGCONT)
            assert process.stdin is not None
            process.stdin.close()
        for process in self.processes:
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.store.close()


def hub_elsewhere(fleet: Fleet) -> dict[str, str]:
    """Give the fleet a remote that is not on this machine; return the variables that reach it.

    The remote is `hub.git` in the folder of the fleet. A stand-in for ssh gets there.
    """
    hub = fleet.folder / "hub.git"
    fleet.git("clone", "-q", "--bare", ".", str(hub))
    identity = "[user]\nname = Test User\nemail = test@example.com\n"
    (fleet.home / ".gitconfig").write_text(identity)
    ssh = fleet.folder / "ssh"
    ssh.write_text('#!/bin/sh\nexec sh -c "$2"\n')
    ssh.chmod(0o755)
    fleet.fence = None
    fleet.remote = f"ssh://elsewhere{hub}"
    fleet.project = project_key(fleet.remote)
    return {"GIT_SSH": str(ssh), "GIT_SSH_VARIANT": "simple"}
