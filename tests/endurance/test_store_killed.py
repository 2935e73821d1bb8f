"""A writer is killed at any moment: the rows it saved are complete, and readers see no error."""

import contextlib
import hashlib
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rooda.record.reader import RecordReader
from rooda.record.rows import IterationRow
from rooda.record.store import Store
from support.record import Bench, all_are_alive, all_are_dead
from support.states import state_of

HEAD = f"""
import hashlib, itertools, os, sys
from msgspec.structs import replace
from pathlib import Path
sys.path[:0] = {[str(Path(__file__).parents[1])]!r}
from support.record import Bench, a_run, an_iteration, all_are_alive
bench = Bench(Path.cwd())
"""
# The writer prints a row only after it saved the row. Sizes differ, so that pages are split and
# freed.
WRITER = """
run, asks = sys.argv[1], "asks" in sys.argv
store = bench.store()
for number in itertools.count(1):
    for status in ("executing", "completed"):
        text = f"{number} {status} " * (number * 37 % 400)
        digest = hashlib.sha256(text.encode()).hexdigest()
        row = replace(an_iteration(number, status, run), evidence=text, reason=digest)
        if asks and not os.read(0, 1):
            sys.exit()
        store.save(a_run(run, iterations=number, reason=status), row)
        os.write(1, f"{number} {status}\\n".encode())
"""
# The reader reads in a loop until its standard input ends, and prints how often it read.
READER = """
import select
reader, reads, most, may_shrink = bench.reader, 0, {}, "shrinks" in sys.argv
os.write(1, b"ready\\n")
while not select.select([0], [], [], 0.002)[0]:
    for row in reader.runs(limit=1):
        found = [one.number for one in reader.iterations(row.run)]
        assert found == list(range(1, len(found) + 1)), found
        assert may_shrink or len(found) >= most.get(row.run, 0), (row.run, len(found), most)
        most[row.run] = len(found)
    reads += 1
print(reads)
"""


@contextlib.contextmanager
def child(folder: Path, body: str, *args: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run Python code in a folder, in a child process that is killed at the end of the block."""
    process = subprocess.Popen(
        [sys.executable, "-c", HEAD + body, *args],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def next_line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return process.stdout.readline()


def rest_of(process: subprocess.Popen[bytes], code: int) -> list[bytes]:
    """Close its standard input and return the rest of its output."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.close()
    # communicate() would lose the lines that readline() has buffered.
    lines = process.stdout.readlines()
    errors = process.stderr.read().decode()
    assert process.wait() == code, errors
    return lines


def killed(folder: Path, run: str) -> list[tuple[int, str]]:
    """Kill a writer at a random moment. Return the rows that it printed as saved."""
    with child(folder, WRITER, run) as process:
        lines = [next_line(process) for _ in range(random.choice((0, 1, 2, 10, 40)))]
        # A moment between two rows, or while the writer still creates or opens the store.
        time.sleep(random.uniform(0, 0.003 if lines else 0.15))
        process.send_signal(signal.SIGKILL)
        lines += rest_of(process, -signal.SIGKILL)
    words = [line.decode().split() for line in lines]
    return [(int(number), status) for number, status in words]


def check(folder: Path, run: str, saved: list[tuple[int, str]]) -> None:
    """Check that all saved rows are there and complete, with at most one more."""
    reader = RecordReader(state_of(folder), all_are_dead)
    rows = reader.iterations(run)
    assert all(map(is_whole, rows))
    steps = [(row.number, status) for row in rows for status in steps_of(row)]
    assert steps[: len(saved)] == saved
    assert len(steps) <= len(saved) + 1
    if steps:
        assert reader.run(run).status == "interrupted"
        check_pair(state_of(folder) / "rooda.db", run)


def check_pair(file: Path, run: str) -> None:
    """Check that the run and its last iteration were saved in one transaction.

    One query sees one state: the last commit of the killed writer may become visible between two.
    """
    ask = """
    SELECT json_extract(runs.data, '$.iterations'), json_extract(runs.data, '$.reason'), number,
        iterations.status FROM runs JOIN iterations USING (run) WHERE run = ?
    ORDER BY number DESC LIMIT 1
    """
    with contextlib.closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as connection:
        last, run_status, number, status = connection.execute(ask, (run,)).fetchone()
    assert (last, run_status) == (number, status)


def steps_of(row: IterationRow) -> list[str]:
    assert row.status in {"completed", "interrupted"}
    return ["executing", "completed"][: 2 if row.status == "completed" else 1]


def is_whole(row: IterationRow) -> bool:
    assert row.evidence is not None
    return hashlib.sha256(row.evidence.encode()).hexdigest() == row.reason


@pytest.mark.long
@pytest.mark.parametrize("moments", [pytest.param(10, marks=pytest.mark.sample), 50])
@pytest.mark.timeout(120)
def test_saved_rows_survive_the_death_of_the_writer(tmp_path: Path, moments: int) -> None:
    with child(tmp_path, READER) as reading:
        assert next_line(reading) == b"ready\n"
        runs = {f"20250101-{number:06}-abcdef": 0 for number in range(moments)}
        for run in runs:
            saved = killed(tmp_path, run)
            check(tmp_path, run, saved)
            runs[run] = len(saved)
        [reads] = rest_of(reading, 0)
        assert int(reads) > 0
    troubles: list[str] = []
    with contextlib.closing(Store(state_of(tmp_path), troubles.append)) as store:
        assert set(store.close_stale(all_are_dead)) >= {run for run, steps in runs.items() if steps}
    assert troubles == []
    for run, steps in runs.items():
        assert len(RecordReader(state_of(tmp_path), all_are_alive).iterations(run)) >= steps // 2
    assert sum(runs.values()) > 0


def nothing(_: Bench) -> None:
    pass


def rename_folder(bench: Bench) -> None:
    bench.folder.rename(bench.path / f"gone-{len(list(bench.path.iterdir()))}")


def rename_file(bench: Bench) -> None:
    bench.file.rename(bench.file.with_name("mine"))


DAMAGES: tuple[Callable[[Bench], None], ...] = (
    rename_folder,
    lambda bench: bench.file.unlink(),
    lambda bench: bench.file.with_name("rooda.db-wal").unlink(),
    lambda bench: bench.file.with_name("rooda.db-shm").unlink(),
    rename_file,
)


@pytest.mark.real
def test_readers_get_no_error_while_the_store_is_deleted_repeatedly(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path)
    reader = bench.reader  # opened before there is a store
    saved: list[str] = []
    with (
        child(tmp_path, READER, "shrinks") as reading,
        child(tmp_path, WRITER, "a-run", "asks") as writing,
    ):
        assert next_line(reading) == b"ready\n"
        assert writing.stdin is not None
        for deed in (nothing, *DAMAGES * 2):
            deed(bench)
            for _ in range(5):
                writing.stdin.write(b"x")
                writing.stdin.flush()
                saved.append(next_line(writing).decode().split()[0])
                rows = reader.iterations("a-run")
                assert [str(row.number) for row in rows] == sorted(set(saved), key=int)
                assert all(map(is_whole, rows))
        [reads] = rest_of(reading, 0)
        assert int(reads) > 0
