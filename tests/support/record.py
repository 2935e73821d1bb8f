"""A workspace with a record, for tests and for the programs that they start."""

import contextlib
import tempfile
from functools import cache
from pathlib import Path

from msgspec.structs import replace

from rooda.record.reader import RecordReader
from rooda.record.rows import IterationRow, RunRow
from rooda.record.store import Store
from rooda.record.tables import STEPS, Steps
from rooda.world.state.folder import StateFolder, make_state_folder
from support.states import state_of

RUN, EARLIER = "20250301-101500-0a1b2c", "20250228-090000-ffffff"
# Iterations of the earlier run, enough of them that some can be corrupted.
BEFORE = list(range(1, 11))


def a_run(run: str = RUN, status: str = "running", **more: object) -> RunRow:
    row = RunRow(
        run=run,
        procedure="build",
        status=status,
        started_at="2025-03-01T10:15:00.250+01:00",
        ended_at=None,
        pid=4711,
        pid_started=123.25,
        host="night",
        boot="b-1",
        workspace="/work",
        command="./agent",
    )
    return replace(row, **more)


def an_iteration(number: int, status: str = "completed", run: str = RUN) -> IterationRow:
    started = f"2025-03-01T10:{15 + number % 40}:01+01:00"
    ended = f"2025-03-01T10:{15 + number % 40}:30+01:00" if status == "completed" else None
    evidence = f"iteration {number} " * 200
    return IterationRow(
        run=run,
        number=number,
        attempt=1,
        status=status,
        started_at=started,
        ended_at=ended,
        evidence=evidence,
    )


def all_are_dead(_: RunRow) -> bool:
    return False


def all_are_alive(_: RunRow) -> bool:
    return True


@cache
def _earlier() -> bytes:
    """Return the bytes of the database that an earlier run left."""
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        store = bench.store()
        for number in BEFORE:
            store.save(a_run(EARLIER, "success"), an_iteration(number, run=EARLIER))
        bench.close()
        return bench.file.read_bytes()


class Bench:
    """A workspace with the store of a run, and the troubles that the store reported."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.troubles: list[str] = []
        self._stores = contextlib.ExitStack()

    def store(self, steps: Steps = STEPS) -> Store:
        store = Store(state_of(self.path), self.troubles.append, steps)
        self._stores.callback(store.close)
        return store

    def store_in_use(self) -> Store:
        """Return the store of a run after one iteration; an earlier run has ended."""
        make_state_folder(self.folder)
        self.file.write_bytes(_earlier())
        store = self.store()
        store.save(a_run(), an_iteration(1))
        return store

    @property
    def reader(self) -> RecordReader:
        return RecordReader(state_of(self.path), all_are_alive)

    @property
    def folder(self) -> StateFolder:
        return state_of(self.path)

    @property
    def file(self) -> Path:
        return self.folder / "rooda.db"

    def numbers(self, run: str = RUN) -> list[int]:
        return [row.number for row in self.reader.iterations(run)]

    def close(self) -> None:
        self._stores.close()
