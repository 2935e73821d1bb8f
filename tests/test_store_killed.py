"""A writer is killed at any moment: what it was told to be saved is there, and others can read."""

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

from rooda.record.record_reader import RecordReader
from rooda.record.rows import IterationRow
from rooda.record.store import Store
from support.record import Bench, anybody, nobody

HEAD = f"""
import hashlib, itertools, os, sys
from msgspec.structs import replace
from pathlib import Path
sys.path[:0] = {[str(Path(__file__).parent)]!r}
from support.record import Bench, a_run, an_iteration, anybody
bench = Bench(Path.cwd())
"""
# It says what was saved only after it was saved. Sizes differ, so that pages are split and freed.
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
# It looks until its standard input ends, and says how often.
READER = """
import select
reader, looks, most, may_shrink = bench.reader, 0, {}, "shrinks" in sys.argv
os.write(1, b"ready\\n")
while not select.select([0], [], [], 0.002)[0]:
    for row in reader.runs(limit=1):
        found = [one.number for one in reader.iterations(row.run)]
        assert found == list(range(1, len(found) + 1)), found
        assert may_shrink or len(found) >= most.get(row.run, 0), (row.run, len(found), most)
        most[row.run] = len(found)
    looks += 1
print(looks)
"""


@contextlib.contextmanager
def child(folder: Path, body: str, *args: str) -> Iterator[subprocess.Popen[bytes]]:
    """A Python program in a folder, which doesn't outlive the block."""
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


def said(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    return process.stdout.readline()


def rest_of(process: subprocess.Popen[bytes], code: int) -> list[bytes]:
    """What it said until its end, which is not far."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdin.close()
    lines = process.stdout.readlines()  # communicate() would lose what readline() has read ahead
    errors = process.stderr.read().decode()
    assert process.wait() == code, errors
    return lines


def killed(folder: Path, run: str) -> list[tuple[int, str]]:
    """Kill a writer at some moment; what it said was saved."""
    with child(folder, WRITER, run) as process:
        lines = [said(process) for _ in range(random.choice((0, 1, 2, 10, 40)))]
        # A moment between two words of it, or while it still makes or opens the store.
        time.sleep(random.uniform(0, 0.003 if lines else 0.15))
        process.send_signal(signal.SIGKILL)
        lines += rest_of(process, -signal.SIGKILL)
    words = [line.decode().split() for line in lines]
    return [(int(number), status) for number, status in words]


def check(folder: Path, run: str, saved: list[tuple[int, str]]) -> None:
    """Everything that was saved is there, whole, and at most one step more."""
    reader = RecordReader(folder, nobody)
    rows = reader.iterations(run)
    assert all(map(is_whole, rows))
    steps = [(row.number, status) for row in rows for status in steps_of(row)]
    assert steps[: len(saved)] == saved
    assert len(steps) <= len(saved) + 1
    if steps:
        assert reader.run(run).status == "interrupted"
        check_pair(folder / ".rooda/rooda.db", run)


def check_pair(file: Path, run: str) -> None:
    """The run and its last iteration were saved in one go. One question sees one moment: what the
    writer had just finished when it died may come to light between two.
    """
    ask = """
    SELECT json_extract(runs.data, '$.iterations'), json_extract(runs.data, '$.reason'), number,
        iterations.status FROM runs JOIN iterations USING (run) WHERE run = ?
    ORDER BY number DESC LIMIT 1
    """
    with contextlib.closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as connection:
        last, said_status, number, status = connection.execute(ask, (run,)).fetchone()
    assert (last, said_status) == (number, status)


def steps_of(row: IterationRow) -> list[str]:
    assert row.status in {"completed", "interrupted"}
    return ["executing", "completed"][: 2 if row.status == "completed" else 1]


def is_whole(row: IterationRow) -> bool:
    assert row.evidence is not None
    return hashlib.sha256(row.evidence.encode()).hexdigest() == row.reason


@pytest.mark.slow
@pytest.mark.parametrize("moments", [10, pytest.param(50, marks=pytest.mark.slow)])
@pytest.mark.timeout(120)
def test_what_was_saved_survives_the_death_of_the_writer(tmp_path: Path, moments: int) -> None:
    with child(tmp_path, READER) as looking:
        assert said(looking) == b"ready\n"
        runs = {f"20250101-{number:06}-abcdef": 0 for number in range(moments)}
        for run in runs:
            saved = killed(tmp_path, run)
            check(tmp_path, run, saved)
            runs[run] = len(saved)
        [looks] = rest_of(looking, 0)
        assert int(looks) > 0
    troubles: list[str] = []
    with contextlib.closing(Store(tmp_path, troubles.append)) as store:
        assert set(store.close_stale(nobody)) >= {run for run, steps in runs.items() if steps}
    assert troubles == []
    for run, steps in runs.items():
        assert len(RecordReader(tmp_path, anybody).iterations(run)) >= steps // 2
    assert sum(runs.values()) > 0


def nothing(_: Bench) -> None:
    pass


def rename_folder(bench: Bench) -> None:
    bench.folder.rename(bench.path / f"gone-{len(list(bench.path.iterdir()))}")


def rename_file(bench: Bench) -> None:
    bench.file.rename(bench.file.with_name("mine"))


DEEDS: tuple[Callable[[Bench], None], ...] = (
    rename_folder,
    lambda bench: bench.file.unlink(),
    lambda bench: bench.file.with_name("rooda.db-wal").unlink(),
    lambda bench: bench.file.with_name("rooda.db-shm").unlink(),
    rename_file,
)


def test_nobody_who_reads_gets_an_error_while_the_store_is_deleted_again_and_again(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path)
    reader = bench.reader  # from before there is anything to read
    saved: list[str] = []
    with (
        child(tmp_path, READER, "shrinks") as looking,
        child(tmp_path, WRITER, "a-run", "asks") as writing,
    ):
        assert said(looking) == b"ready\n"
        assert writing.stdin is not None
        for deed in (nothing, *DEEDS * 2):
            deed(bench)
            for _ in range(5):
                writing.stdin.write(b"x")
                writing.stdin.flush()
                saved.append(said(writing).decode().split()[0])
                rows = reader.iterations("a-run")
                assert [str(row.number) for row in rows] == sorted(set(saved), key=int)
                assert all(map(is_whole, rows))
        [looks] = rest_of(looking, 0)
        assert int(looks) > 0
