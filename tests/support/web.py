"""A machine with recorded runs, and a small client that calls the app of `rooda web` directly."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from rooda.front.web.app import Pages
from rooda.front.web.guard import Guard
from rooda.front.web.hub import Hub, Threads
from rooda.front.web.sources import Fleets, RunCards, Sources
from rooda.record.rows import IterationRow, RunRow
from rooda.record.run_folders import iteration_folder
from rooda.record.store import Store
from rooda.world.state.folder import STDERR, STDOUT, new_file
from rooda.world.state.home import tree_key
from rooda.world.state.lock_note import ProcessIdentity
from support.nights import RUN, STEP, at, iteration, night, results
from support.states import own_state_home, remember, state_of

PORT = 7000
TOKEN = "the-token-of-this-server"
OWN = {"host": f"127.0.0.1:{PORT}", "authorization": f"Bearer {TOKEN}"}


@dataclass
class Machine:
    """A user's machine: work trees with records, and the list of them."""

    folder: Path
    more: dict[str, str] = field(default_factory=dict)

    @property
    def environ(self) -> Mapping[str, str]:
        return {**own_state_home(), **self.more}

    @property
    def sources(self) -> Sources:
        return Sources(self.environ)

    def tree(self, name: str) -> Path:
        """Return a work tree, which rooda knows when a run is saved in it."""
        found = self.folder / name
        found.mkdir(exist_ok=True)
        return found

    def save(self, tree: Path, run: RunRow, *rows: IterationRow) -> None:
        with contextlib.closing(Store(state_of(tree), print)) as store:
            store.save(run=replace(run, workspace=str(tree)))
            for row in rows:
                store.save(iteration=replace(row, run=run.run))
        remember(tree)

    def good_run(self, name: str = "shop", **more: Any) -> str:
        """Save a run with three iterations; return its address."""
        tree = self.tree(name)
        rows = [iteration(number, results(10 + number)) for number in (1, 2, 3)]
        self.save(tree, night(ended_at=at(3 * STEP), **more), *rows)
        return f"{tree_key(tree)}/{RUN}"

    def run_at_work(self, name: str = "payments", *rows: IterationRow) -> str:
        """Save a run of this process, which so is at work; return its address."""
        tree, own = self.tree(name), ProcessIdentity.own()
        run = night(status="running", ended_at=None, pid=own.pid, pid_started=own.started)
        self.save(tree, replace(run, host=own.host, boot=own.boot), *rows)
        return f"{tree_key(tree)}/{RUN}"

    def transcript(self, tree: Path, number: int, text: bytes) -> None:
        folder = iteration_folder(state_of(tree), RUN, number)
        folder.mkdir(parents=True)
        (folder / STDOUT).write_bytes(text)
        (folder / STDERR).write_bytes(b"")


def write_log(tree: Path, text: bytes) -> None:
    """Write the session log of the run."""
    with new_file(state_of(tree), f"runs/{RUN}/session.log") as file:
        file.write(text)


@dataclass
class Answer:
    """An answer of the app."""

    status: int
    headers: dict[str, str]
    text: str


@contextlib.asynccontextmanager
async def serving(machine: Machine, pace: float = 0.01) -> AsyncIterator[Guard]:
    """Yield the app with all that it needs."""
    threads = Threads()
    troubles: list[tuple[str, Exception]] = []
    hub = Hub(threads, pace, lambda name, error: troubles.append((name, error)))
    fleets = Fleets(machine.sources, machine.folder)
    cards = RunCards(machine.sources)
    pages = Pages(
        machine.sources, cards, fleets, threads, hub, lambda at, why: troubles.append((at, why))
    )
    try:
        yield pages.guarded(TOKEN, PORT)
    finally:
        hub.close()
        await asyncio.sleep(0)
        threads.close()
    assert troubles == []


async def ask(
    app: Any, path: str, headers: Mapping[str, str] | None = None, method: str = "GET"
) -> Answer:
    """Return the whole answer to a request."""
    got: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: dict[str, Any]) -> None:
        got.append(message)

    await app(scope_of(path, OWN if headers is None else headers, method), receive, send)
    start = got[0]
    names = {name.decode(): value.decode() for name, value in start["headers"]}
    body = b"".join(one.get("body", b"") for one in got[1:])
    return Answer(start["status"], names, body.decode())


@contextlib.asynccontextmanager
async def reading(app: Any, path: str) -> AsyncIterator["asyncio.Queue[dict[str, Any]]"]:
    """Yield the messages of a stream; the reader leaves at the end of the block."""
    lines: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    left = asyncio.Event()

    async def receive() -> dict[str, Any]:
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        for line in message.get("body", b"").splitlines():
            lines.put_nowait(json.loads(line))

    task = asyncio.create_task(app(scope_of(path, OWN, "GET"), receive, send))
    try:
        yield lines
    finally:
        left.set()
        await task


def scope_of(path: str, headers: Mapping[str, str], method: str) -> dict[str, Any]:
    """Return a request as a server passes it on."""
    return {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "scheme": "http",
        "http_version": "1.1",
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", PORT),
        "headers": [(name.lower().encode(), text.encode()) for name, text in headers.items()],
    }
