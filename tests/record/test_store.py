"""The store keeps what was saved, whatever agents, disks and other programs do to it."""

import contextlib
import json
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from rooda.record import reader as record_reader
from rooda.record import store as recent_rows
from rooda.record.database import Database, connect, limit_time
from rooda.record.reader import RecordReader, moment
from rooda.record.rows import IterationRow, NoRecord, RunRow, StoreError
from rooda.record.store import RecentRows
from rooda.record.tables import STEPS, Steps, bring_up_to_date
from rooda.world.state.folder import make_state_folder
from support.faults import powerless, small_disk
from support.record import (
    BEFORE,
    EARLIER,
    RUN,
    Bench,
    a_run,
    all_are_alive,
    all_are_dead,
    an_iteration,
)
from support.states import state_of
from support.tables import each_row
from support.workspace import Workspace

ODD = "na\0me \udcff \ud800 \\udcff 日本 \x1b[31m"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    found = Bench(tmp_path)
    yield found
    found.close()


SCRIPT = f"""
import json, os, sys
from pathlib import Path
sys.path[:0] = {[str(Path(__file__).parents[1])]!r}
from support.record import Bench, a_run, an_iteration
bench = Bench(Path.cwd())
"""


def killed_after(body: str, folder: Path) -> None:
    """Run Python code in the folder, in a process that is killed afterwards."""
    body = f"{SCRIPT}{body}\nos.kill(os.getpid(), 9)"
    done = subprocess.run([sys.executable, "-c", body], cwd=folder, check=False, timeout=50)
    assert done.returncode == -signal.SIGKILL


# -- rows ----------------------------------------------------------------------------------


def test_saved_rows_are_read_back_unchanged(bench: Bench) -> None:
    store = bench.store()
    run, iteration = a_run(), an_iteration(1)
    store.save(run=run)
    store.save(iteration=iteration)
    assert bench.reader.run(RUN) == run
    assert bench.reader.iterations(RUN) == [iteration]
    assert bench.troubles == []


def test_later_row_replaces_an_earlier_one(bench: Bench) -> None:
    store = bench.store()
    store.save(a_run(), an_iteration(1, "executing"))
    done = a_run(status="success", ended_at="2025-03-01T11:00:00+01:00", exit_code=0)
    store.save(done, an_iteration(1))
    assert bench.reader.runs() == [done]
    assert bench.reader.iterations(RUN) == [an_iteration(1)]


def test_each_attempt_at_an_iteration_has_its_own_row(bench: Bench) -> None:
    store = bench.store()
    store.save(run=a_run())
    first, other = an_iteration(2, "failed"), an_iteration(10)
    second = replace(an_iteration(2), attempt=2)
    for row in (other, second, first):
        store.save(iteration=row)
    assert bench.reader.iteration(RUN, 2) == [first, second]
    assert bench.reader.iterations(RUN) == [first, second, other]
    assert bench.reader.iteration(RUN, 3) == []


def test_any_text_is_saved_and_read_back(bench: Bench) -> None:
    store = bench.store()
    run = a_run(
        procedure=ODD, status=ODD, host=ODD, boot=ODD, workspace=ODD, reason=ODD, stats={ODD: 1.5}
    )
    iteration = replace(an_iteration(1), status=ODD, evidence=ODD, metadata={ODD: ODD})
    store.save(run, iteration)
    assert bench.reader.runs(procedure=ODD, status=ODD) == [run]
    assert bench.reader.iterations(RUN) == [iteration]
    assert bench.troubles == []


def test_database_files_are_private(bench: Bench) -> None:
    before = os.umask(0)
    try:
        bench.store().save(run=a_run())
    finally:
        os.umask(before)
    files = list(bench.folder.glob("rooda.db*"))
    assert {file.name for file in files} == {"rooda.db", "rooda.db-wal", "rooda.db-shm"}
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE(bench.folder.stat().st_mode) == 0o700


def test_database_that_others_could_read_is_made_private(bench: Bench) -> None:
    bench.store_in_use().close()
    bench.file.chmod(0o644)
    bench.store()
    assert stat.S_IMODE(bench.file.stat().st_mode) == 0o600


def test_each_commit_is_synced_to_the_disk(bench: Bench) -> None:
    make_state_folder(bench.folder)
    database = Database(bench.file, STEPS)
    with contextlib.closing(database):
        assert database.connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert database.connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL


@each_row(
    "name", ["what?mode=memory#x", "100%41", "sp ace", os.fsdecode(b"n\xffn"), "日本"], ids=ascii
)
def test_workspace_may_have_any_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    bench = Bench(tmp_path / name)
    bench.store_in_use().close()
    assert bench.numbers() == [1]
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert bench.file.stat().st_size > 0


def test_invalid_rows_are_ignored(bench: Bench) -> None:
    bench.store_in_use().close()
    with contextlib.closing(sqlite3.connect(bench.file)) as connection, connection:
        insert = "INSERT INTO runs SELECT ?, procedure, status, started_at, ended_at, ?, "
        insert += "pid_started, host, boot, workspace, ? FROM runs WHERE run = ?"
        for run, pid, data in (
            ("../../home", 1, "{}"),
            ("20250401-000000-aaaaaa", "none", "{}"),
            ("20250401-000000-bbbbbb", 1, "[1]"),
            ("20250401-000000-cccccc", 1, "{" * 9000),
            ("20250401-000000-dddddd", 1, b"\xff"),
        ):
            connection.execute(insert, (run, pid, data, RUN))
        connection.execute("UPDATE iterations SET data = 'nonsense' WHERE run = ?", (EARLIER,))
    assert [row.run for row in bench.reader.runs()] == [RUN, EARLIER]
    assert bench.numbers(EARLIER) == []


def test_row_with_a_huge_column_is_ignored(bench: Bench) -> None:
    bench.store_in_use().close()
    with contextlib.closing(sqlite3.connect(bench.file)) as connection, connection:
        connection.execute("UPDATE runs SET procedure = ? WHERE run = ?", ("\x1b" * 70_000, RUN))
    assert [row.run for row in bench.reader.runs()] == [EARLIER]


def changed_data(bench: Bench, data: str) -> None:
    """Write other JSON into all rows of the current run."""
    with contextlib.closing(sqlite3.connect(bench.file)) as connection, connection:
        for table in ("runs", "iterations"):
            connection.execute(f"UPDATE {table} SET data = ? WHERE run = ?", (data, RUN))


def test_fields_of_a_later_version_are_ignored(bench: Bench) -> None:
    bench.store_in_use().close()
    changed_data(bench, '{"reason": "known", "mood": {"deep": [1]}, "unreadable": {"run": "x"}}')
    run, [iteration] = bench.reader.run(RUN), bench.reader.iterations(RUN)
    assert (run.reason, run.unreadable) == ("known", {})
    assert (iteration.reason, iteration.unreadable) == ("known", {})


@pytest.mark.real(rows=1)
@pytest.mark.parametrize(
    "value",
    ["7", '"text"', "[7]", "[[7]]", '{"deep": {}}', "1e999", "-1e999", "9" * 5000, "NaN", "true"],
    ids=lambda value: value[:9],
)
def test_invalid_field_is_named_and_the_other_fields_are_kept(bench: Bench, value: str) -> None:
    bench.store_in_use().close()
    for kind in (RunRow, IterationRow):
        columns = {"run", "number", "attempt", "status", "started_at", "ended_at", "unreadable"}
        for name in {*kind.__struct_fields__} - columns - {"command", "agent"}:
            changed_data(bench, f'{{"{name}": {value}, "command": "kept", "agent": "kept"}}')
            run, [iteration] = bench.reader.run(RUN), bench.reader.iterations(RUN)
            assert (run.command, iteration.agent) == ("kept", "kept")
            rows: tuple[RunRow | IterationRow, ...] = (run, iteration)
            for row in rows:
                assert set(row.unreadable) <= {name}
                assert name not in row.unreadable or getattr(row, name) in (None, (), UNSET)


def test_memory_is_bounded_by_number_and_by_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent_rows, "MOST_ITERATIONS", 10)
    monkeypatch.setattr(recent_rows, "MOST_CHARACTERS", 20_000)

    def written(rows: list[IterationRow]) -> list[int]:
        kept = RecentRows()
        kept.note(a_run(), None)
        for row in rows:
            kept.note(None, row)
        with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
            bring_up_to_date(connection, "it")
            kept.write(connection)
            assert connection.execute("SELECT count(*) FROM runs").fetchone() == (1,)
            numbers = connection.execute("SELECT number FROM iterations ORDER BY number")
            return [number for (number,) in numbers]

    short = [replace(an_iteration(number), evidence="") for number in range(1, 31)]
    assert written(short) == list(range(21, 31))
    assert written(short[:10] * 3) == list(range(1, 11))
    long = [replace(an_iteration(number), evidence="y" * 6000) for number in range(1, 10)]
    assert written(long) == [7, 8, 9]
    assert written([*long[:2], replace(long[2], evidence="y" * 30_000)]) == [3]


# -- versions ------------------------------------------------------------------------------

NEXT: Steps = (
    *STEPS,
    ("ALTER TABLE runs ADD COLUMN mood TEXT", "UPDATE runs SET mood = 'calm'"),
    ("CREATE TABLE moods (mood TEXT)", "INSERT INTO moods SELECT mood FROM runs"),
)


def moods(bench: Bench) -> list[str]:
    with contextlib.closing(sqlite3.connect(bench.file)) as connection:
        return [mood for (mood,) in connection.execute("SELECT mood FROM moods")]


def test_older_store_is_migrated_without_loss(bench: Bench) -> None:
    bench.store_in_use().close()
    store = bench.store(NEXT)
    store.save(iteration=an_iteration(2))
    assert moods(bench) == ["calm", "calm"]
    reader = RecordReader(state_of(bench.path), all_are_alive, NEXT)
    assert [row.run for row in reader.runs()] == [RUN, EARLIER]
    assert [row.number for row in reader.iterations(RUN)] == [1, 2]
    store.close()
    bench.store(NEXT)
    assert moods(bench) == ["calm", "calm"]  # each step runs once
    assert bench.troubles == []


def test_migration_is_one_transaction(bench: Bench) -> None:
    bench.store_in_use().close()
    with contextlib.closing(sqlite3.connect(bench.file, isolation_level=None)) as connection:
        with pytest.raises(sqlite3.OperationalError):
            bring_up_to_date(connection, "it", (*NEXT, ("nonsense",)))
        assert connection.execute("PRAGMA user_version").fetchone() == (len(STEPS),)
    with pytest.raises(sqlite3.OperationalError):
        moods(bench)
    assert bench.numbers() == [1]


def test_older_store_is_read_without_a_migration(bench: Bench) -> None:
    bench.store_in_use().close()
    before = bench.file.read_bytes()
    assert [row.run for row in RecordReader(state_of(bench.path), all_are_alive, NEXT).runs()] == [
        RUN,
        EARLIER,
    ]
    assert bench.file.read_bytes() == before


def test_newer_store_is_refused_and_unchanged(bench: Bench) -> None:
    bench.store(NEXT).close()
    with contextlib.closing(sqlite3.connect(bench.file)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")  # whatever a later version may do
    before = bench.file.read_bytes()
    words = (
        f"`{bench.file}` was written by a newer rooda (schema 3, this one knows 1): "
        "update rooda, or move the file away"
    )
    for operation in (bench.store, bench.reader.runs, bench.reader.run):
        with pytest.raises(StoreError) as refused:
            operation()
        assert str(refused.value) == words
    assert bench.file.read_bytes() == before
    assert bench.troubles == []


# -- what agents do to the files -----------------------------------------------------------


def garbage(file: Path) -> None:
    file.write_bytes(b"garbage " * 100)


def garbage_in_place(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.write(os.urandom(file.stat().st_size))


def garbage_in_its_second_half(file: Path) -> None:
    half = file.stat().st_size // 2
    with file.open("r+b") as opened:
        opened.seek(half)
        opened.write(os.urandom(half))


def a_foreign_database(file: Path) -> None:
    file.unlink()
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")


def a_future_database(file: Path) -> None:
    file.unlink()
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA user_version = 99")


def without_tables(file: Path) -> None:
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("DROP TABLE iterations")


def a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def a_link(file: Path) -> None:
    outside = file.parent.parent / "outside"
    outside.write_text("mine")
    file.unlink()
    file.symlink_to(outside)


def a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()
    (file / "deep").mkdir()


def moved_away(file: Path) -> None:
    file.rename(file.with_name("elsewhere"))


def everywhere(damage: Callable[[Path], None], names: str = "rooda.db*") -> Callable[[Path], None]:
    def do(file: Path) -> None:
        for found in sorted(file.parent.glob(names)):
            damage(found)

    return do


def beside(suffix: str, damage: Callable[[Path], None]) -> Callable[[Path], None]:
    return lambda file: damage(file.with_name(file.name + suffix))


def emptied(file: Path) -> None:
    file.write_bytes(b"")


# After these, the rows of earlier runs can still be read, from the file or from memory.
KEEPS_EARLIER_RUNS: dict[str, Callable[[Path], None]] = {
    "the folder is deleted": lambda file: shutil.rmtree(file.parent),
    "the file is deleted": Path.unlink,
    "the WAL is deleted": beside("-wal", Path.unlink),
    "the shared memory is deleted": beside("-shm", Path.unlink),
    "all files are deleted": everywhere(Path.unlink),
    "the WAL is a pipe": beside("-wal", a_pipe),
    "the shared memory is a link": beside("-shm", a_link),
    "the shared memory is a folder": beside("-shm", a_folder),
    "the file is a pipe": a_pipe,
    "the file is a link": a_link,
    "the file is a folder": a_folder,
    "the file is a foreign database": a_foreign_database,
    "the file is a future database": a_future_database,
    "the file is moved away": moved_away,
}
# Only an agent that forges the files of the state folder could do these during a run.
BEFORE_A_RUN: dict[str, Callable[[Path], None]] = {
    "the file is garbage": garbage,
    "the file is garbage in place": garbage_in_place,
    "half of the file is garbage": garbage_in_its_second_half,
    "all files are garbage": everywhere(garbage),
    "all files are garbage in place": everywhere(garbage_in_place),
    "a table is gone": without_tables,
}
HARMLESS: dict[str, Callable[[Path], None]] = {
    "the file is touched": os.utime,
    "the folder is open to all": lambda file: file.parent.chmod(0o777),
}


@pytest.mark.parametrize("damage", [*KEEPS_EARLIER_RUNS, "a table is gone"])
def test_store_that_is_deleted_or_replaced_is_rewritten(bench: Bench, damage: str) -> None:
    store = bench.store_in_use()
    (KEEPS_EARLIER_RUNS | BEFORE_A_RUN)[damage](bench.file)
    store.save(a_run(reason="step 2"), an_iteration(2, "executing"))
    assert bench.numbers() == [1, 2]
    assert bench.reader.run(RUN).reason == "step 2"
    store.save(iteration=an_iteration(2))
    assert bench.reader.iterations(RUN) == [an_iteration(1), an_iteration(2)]
    if damage in KEEPS_EARLIER_RUNS:
        assert bench.reader.run(EARLIER).status == "success"
        assert bench.numbers(EARLIER) == BEFORE
    [trouble] = bench.troubles
    assert trouble.startswith(f"`{bench.file}` ")
    assert "during the run" in trouble
    outside = bench.path / "outside"
    assert not outside.exists() or outside.read_text() == "mine"
    store.close()
    assert bench.numbers() == [1, 2]


@pytest.mark.parametrize("damage", HARMLESS)
def test_harmless_changes_are_not_reported(bench: Bench, damage: str) -> None:
    store = bench.store_in_use()
    HARMLESS[damage](bench.file)
    store.save(iteration=an_iteration(2))
    assert bench.numbers() == [1, 2]
    assert bench.numbers(EARLIER) == BEFORE
    store.close()
    assert bench.numbers() == [1, 2]
    assert bench.troubles == []
    assert list(bench.folder.glob("*broken*")) == []


def test_store_that_was_deleted_last_is_complete_after_close(bench: Bench) -> None:
    store = bench.store_in_use()
    shutil.rmtree(bench.folder)
    store.close()
    assert bench.numbers() == [1]


def test_rows_that_cannot_be_written_now_are_written_later(bench: Bench) -> None:
    store = bench.store_in_use()
    shutil.rmtree(bench.folder)
    bench.folder.write_text("mine")
    for number in (2, 3, 4):
        store.save(iteration=an_iteration(number))
    [trouble] = bench.troubles
    assert trouble.endswith("; move it away): it is kept in memory until that works")
    bench.folder.unlink()
    store.save(iteration=an_iteration(5))
    assert bench.numbers() == [1, 2, 3, 4, 5]
    assert bench.numbers(EARLIER) == BEFORE


@pytest.mark.parametrize(
    "damage",
    [
        *BEFORE_A_RUN,
        "the file is a pipe",
        "the file is a link",
        "the file is a folder",
        "the file is a foreign database",
    ],
)
def test_store_that_was_corrupt_before_the_run_is_put_aside(bench: Bench, damage: str) -> None:
    bench.store_in_use().close()
    (KEEPS_EARLIER_RUNS | BEFORE_A_RUN)[damage](bench.file)
    store = bench.store()
    store.save(a_run(), an_iteration(7))
    assert bench.numbers() == [7]
    [trouble] = bench.troubles
    assert trouble.endswith("put aside as `rooda.db.broken-1`")
    assert os.path.lexists(bench.folder / "rooda.db.broken-1")


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("was_killed", [True, False], ids=["killed", "closed"])
def test_leftover_wal_of_a_deleted_database_does_no_harm(bench: Bench, *, was_killed: bool) -> None:
    # Readers leave a WAL, too.
    rest = "" if was_killed else "; store.close(); bench.reader.runs()"
    killed_after(f"store = bench.store_in_use(){rest}", bench.path)
    assert bench.file.with_name("rooda.db-wal").exists()
    bench.file.unlink()
    bench.store().save(a_run("another"), an_iteration(1, run="another"))
    assert [row.run for row in bench.reader.runs()] == ["another"]
    assert bench.numbers("another") == [1]
    assert bench.troubles == []


def test_leftover_draft_does_not_block_the_rewrite(bench: Bench) -> None:
    store = bench.store_in_use()
    a_folder(bench.file)
    (bench.folder / "rooda.db.new" / "deep").mkdir(parents=True)
    os.mkfifo(bench.folder / "rooda.db.new-journal")
    store.save(iteration=an_iteration(2))
    assert bench.numbers() == [1, 2]
    assert list(bench.folder.glob("rooda.db.new*")) == []


def test_pipe_in_place_of_the_journal_does_not_block(bench: Bench) -> None:
    bench.store_in_use().close()
    os.mkfifo(bench.folder / "rooda.db-journal")
    with pytest.raises(StoreError, match=r"rooda\.db-journal is not a file"):
        bench.reader.runs()
    bench.store().save(run=a_run())
    assert [row.run for row in bench.reader.runs()] == [RUN]


# -- what the machine does to the files -----------------------------------------------------


def in_a_child(before: tuple[str, ...], workspace: Workspace, body: str) -> list[object]:
    """Run Python code in the workspace, in a child process. Return the list that it prints."""
    done = subprocess.run(
        [*before, sys.executable, "-c", SCRIPT + body],
        cwd=workspace.path,
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, list)
    return found


@pytest.mark.real
def test_full_disk_is_reported_once_and_all_rows_are_written_later(workspace: Workspace) -> None:
    full, later, troubles = in_a_child(
        small_disk(workspace, "700k"),
        workspace,
        """
store = bench.store_in_use()
ballast = Path("ballast").open("wb", buffering=0)
try:
    while True:
        ballast.write(bytes(4096))
except OSError:
    pass
for number in range(2, 150):
    store.save(a_run(), an_iteration(number))
full = bench.numbers()
os.unlink("ballast")
ballast.close()
store.save(a_run(status="success"), an_iteration(150))
print(json.dumps([full, bench.numbers(), bench.troubles]))
""",
    )
    assert isinstance(full, list)
    assert 1 in full
    assert 149 not in full
    assert later == list(range(1, 151))
    assert isinstance(troubles, list)
    [trouble] = troubles
    assert "(database or disk is full): it is kept in memory until that works" in trouble


@pytest.mark.real
def test_record_survives_removed_permissions_of_its_folder(workspace: Workspace) -> None:
    numbers, troubles = in_a_child(
        powerless(),
        workspace,
        """
store = bench.store_in_use()
bench.folder.chmod(0)
store.save(iteration=an_iteration(2))
store.close()
bench.folder.chmod(0o700)
print(json.dumps([bench.numbers(), bench.troubles]))
""",
    )
    assert numbers == [1, 2]
    assert troubles == []


@pytest.mark.real
def test_run_is_refused_if_the_record_cannot_be_written(workspace: Workspace) -> None:
    [trouble] = in_a_child(
        powerless(),
        workspace,
        """
bench.store_in_use().close()
bench.folder.chmod(0o500)
try:
    bench.store()
except Exception as error:
    print(json.dumps([str(error)]))
bench.folder.chmod(0o700)
""",
    )
    assert isinstance(trouble, str)
    assert "/rooda.db` can't be written: " in trouble


KILLED = "if os.fork() == 0: bench.store_in_use(); os.kill(os.getpid(), 9)\nos.wait()\n"
LEFT = {
    "closed": "bench.store_in_use().close()",
    "killed": KILLED,
    "killed and copied": f"{KILLED}(bench.folder / 'rooda.db-shm').unlink()",
}


@pytest.mark.real(rows=1)
@pytest.mark.parametrize("left", LEFT)
def test_record_can_be_read_without_write_permission(workspace: Workspace, left: str) -> None:
    runs, numbers, is_same = in_a_child(
        powerless(),
        workspace,
        f"""
{LEFT[left]}
for file in bench.folder.iterdir(): file.chmod(0o400)
bench.folder.chmod(0o500)
before = sorted(file.name for file in bench.folder.iterdir())
runs = [row.run for row in bench.reader.runs()]
numbers = bench.numbers()
is_same = before == sorted(file.name for file in bench.folder.iterdir())
bench.folder.chmod(0o700)
print(json.dumps([runs, numbers, is_same]))
""",
    )
    assert runs == [RUN, EARLIER]
    assert numbers == [1]
    assert is_same


@pytest.mark.real
def test_record_can_be_read_on_a_read_only_disk(workspace: Workspace) -> None:
    found = in_a_child(
        small_disk(workspace, "4m"),
        workspace,
        f"""
{KILLED}
assert os.system("mount -o remount,ro .") == 0
print(json.dumps([[row.run for row in bench.reader.runs()], bench.numbers()]))
""",
    )
    assert found == [[RUN, EARLIER], [1]]


@pytest.mark.real
def test_locked_store_is_waited_for_and_written_later(bench: Bench) -> None:
    store = bench.store_in_use()
    with contextlib.closing(sqlite3.connect(bench.file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        store.save(iteration=an_iteration(2))
        assert bench.numbers() == [1]  # readers are not blocked
        other.execute("ROLLBACK")
    assert [trouble.partition("(")[2].partition(")")[0] for trouble in bench.troubles] == [
        "database is locked"
    ]
    store.save(iteration=an_iteration(3))
    assert bench.numbers() == [1, 2, 3]
    assert list(bench.folder.glob("*broken*")) == []


# -- runs that did not end cleanly ---------------------------------------------------------


def test_run_of_a_dead_process_is_marked_as_interrupted(bench: Bench) -> None:
    store = bench.store()
    store.save(a_run(EARLIER), an_iteration(1, run=EARLIER))
    store.save(iteration=an_iteration(2, "executing", EARLIER))
    store.close()
    store = bench.store()
    assert store.close_stale(all_are_dead) == [EARLIER]
    row = bench.reader.run(EARLIER)
    assert (row.status, row.ended_at) == ("interrupted", "2025-03-01T10:17:01+01:00")
    iterations = bench.reader.iterations(EARLIER)
    assert [(one.status, one.ended_at is None) for one in iterations] == [
        ("completed", False),
        ("interrupted", True),
    ]
    assert store.close_stale(all_are_dead) == []


def test_running_and_ended_runs_are_not_marked_as_interrupted(bench: Bench) -> None:
    store = bench.store()
    store.save(a_run(EARLIER, "aborted"))
    store.close()
    store = bench.store()
    store.save(a_run(), an_iteration(1, "executing"))
    assert store.close_stale(all_are_dead) == []  # the current run is never stale
    store.close()
    assert bench.store().close_stale(all_are_alive) == []
    assert [row.status for row in bench.reader.runs()] == ["running", "aborted"]


@pytest.mark.parametrize("status", ["pending", "pre_hooks", "executing", "post_hooks"])
def test_reader_shows_a_dead_run_as_interrupted(bench: Bench, status: str) -> None:
    store = bench.store()
    store.save(a_run(), an_iteration(1))
    store.save(iteration=an_iteration(2, status))
    dead, alive = RecordReader(state_of(bench.path), all_are_dead), bench.reader
    row = dead.run()
    assert (row.status, row.ended_at) == ("interrupted", "2025-03-01T10:17:01+01:00")
    assert [one.status for one in dead.iterations(RUN)] == ["completed", "interrupted"]
    assert [one.status for one in dead.iteration(RUN, 2)] == ["interrupted"]
    assert dead.runs(status="running") == alive.runs(status="interrupted") == []
    assert dead.runs(status="interrupted") == [row]
    assert alive.run().status == "running"
    assert [one.status for one in alive.iterations(RUN)] == ["completed", status]


def test_run_that_ends_during_a_read_is_not_shown_as_interrupted(bench: Bench) -> None:
    store = bench.store()
    store.save(a_run(), an_iteration(1, "executing"))

    def ends_just_now(_: RunRow) -> bool:
        store.save(a_run(status="success", ended_at="2025-03-01T11:00:00+01:00"), an_iteration(1))
        return False

    reader = RecordReader(state_of(bench.path), ends_just_now)
    assert reader.run().status == "success"
    assert [row.status for row in reader.iterations(RUN)] == ["completed"]


# -- queries -------------------------------------------------------------------------------


def test_runs_are_sorted_by_time_across_time_zones(bench: Bench) -> None:
    store = bench.store()
    times = {
        "a": "2025-03-30T00:30:00+01:00",
        "b": "2025-03-29T23:59:00+00:00",  # later than a
        "c": "2025-03-30T03:10:00.5+02:00",
        "d": "2025-03-30T03:10:00.25+02:00",
    }
    for name, started in times.items():
        store.save(run=a_run(name, started_at=started))
    assert [row.run for row in bench.reader.runs()] == ["c", "d", "b", "a"]
    assert [row.run for row in bench.reader.runs(limit=2)] == ["c", "d"]
    assert bench.reader.run().run == "c"


@pytest.fixture
def many(bench: Bench) -> RecordReader:
    """Return a reader of six runs on three days, with two procedures and three statuses."""
    store = bench.store()
    for hour in range(6):
        started = moment(f"2025-06-0{1 + hour // 2}T{10 + hour}:00").isoformat()
        status = ("success", "aborted", "interrupted")[hour % 3]
        procedure = ("build", "plan")[hour % 2]
        store.save(run=a_run(f"r{hour}", status, started_at=started, procedure=procedure))
    return bench.reader


@pytest.mark.parametrize(
    "asked, found",
    [
        ({}, "543210"),
        ({"status": "aborted"}, "41"),
        ({"procedure": "plan"}, "531"),
        ({"procedure": "plan", "status": "success", "limit": 1}, "3"),
        ({"since": "2025-06-02"}, "5432"),
        ({"until": "2025-06-02"}, "3210"),
        ({"since": "2025-06-02", "until": "2025-06-02"}, "32"),
        ({"since": "2025-06-01T11:00"}, "54321"),
        ({"until": "2025-06-01 11:00"}, "0"),
        ({"since": "2025-06-02T12:00:01", "until": "2025-06-03T14:00:01"}, "43"),
        ({"since": "2026-01-01"}, ""),
        ({"status": "no' OR 1"}, ""),
        ({"limit": 0}, ""),
    ],
    ids=str,
)
def test_runs_are_filtered(many: RecordReader, asked: dict[str, str], found: str) -> None:
    rows = many.runs(**asked)  # type: ignore[arg-type]  # the table has all keywords
    assert [row.run for row in rows] == [f"r{number}" for number in found]


@pytest.mark.parametrize("text", ["yesterday", "2025-13-01", "", "2025-06-01T25:00", "9999-12-31"])
def test_invalid_time_is_an_error(many: RecordReader, text: str) -> None:
    with pytest.raises(ValueError, match=r"[Ii]nvalid|month|hour|out of range"):
        many.runs(until=text)


def test_run_is_found_by_a_unique_prefix_of_its_name(bench: Bench) -> None:
    bench.store_in_use()
    assert bench.reader.run("20250301").run == RUN
    assert bench.reader.run(EARLIER).run == EARLIER
    with pytest.raises(NoRecord, match=f"several runs begin with '2025': {RUN}, {EARLIER}"):
        bench.reader.run("2025")
    for nothing in ("2026", "%", "2025_301", ODD):
        with pytest.raises(NoRecord, match="there is no run"):
            bench.reader.run(nothing)


def test_last_and_a_number_with_a_dash_count_runs_from_the_end(many: RecordReader) -> None:
    runs = [row.run for row in many.runs()]
    assert many.run("last").run == many.run("-1").run == many.run().run == runs[0]
    assert [many.run(f"-{place}").run for place in (2, 3, len(runs))] == [
        runs[1],
        runs[2],
        runs[-1],
    ]
    with pytest.raises(NoRecord, match=f"there is no run -7: the record has {len(runs)} runs"):
        many.run("-7")


def test_ambiguous_name_lists_the_newest_five_runs(many: RecordReader) -> None:
    with pytest.raises(NoRecord, match=r"begin with 'r': r5, r4, r3, r2, r1, \.\.\.$"):
        many.run("r")


def test_exact_name_wins_over_a_longer_name(bench: Bench) -> None:
    store = bench.store()
    for name in ("ab", "abc", "abd"):
        store.save(run=a_run(name))
    assert bench.reader.run("ab").run == "ab"


def test_reader_without_a_record_finds_nothing_and_creates_nothing(bench: Bench) -> None:
    assert bench.reader.runs() == []
    assert bench.numbers() == []
    with pytest.raises(NoRecord, match="no run has been recorded here yet"):
        bench.reader.run()
    make_state_folder(bench.folder)
    assert bench.reader.runs() == []
    assert list(bench.folder.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"garbage " * 500], ids=["empty", "garbage"])
def test_reader_of_another_file_fails_and_does_not_change_it(bench: Bench, content: bytes) -> None:
    make_state_folder(bench.folder)
    bench.file.write_bytes(content)
    if content:
        with pytest.raises(StoreError, match=r"can't be read \(file is not a database\)"):
            bench.reader.runs()
    else:
        assert bench.reader.runs() == []
    assert bench.file.read_bytes() == content


@pytest.mark.parametrize("damage", [a_pipe, a_link, a_folder, a_foreign_database])
def test_reader_names_what_is_in_place_of_the_record_and_never_blocks(
    bench: Bench, damage: Callable[[Path], None]
) -> None:
    bench.store_in_use().close()
    damage(bench.file)
    for ask in (bench.reader.run, bench.reader.runs, bench.numbers):
        with pytest.raises(StoreError, match="can't be read"):
            ask()


def test_reader_of_a_store_without_a_table_names_the_table(bench: Bench) -> None:
    bench.store_in_use().close()
    without_tables(bench.file)
    with pytest.raises(StoreError, match=r"can't be read \(its table `iterations` is missing, or"):
        bench.numbers()


def test_reader_that_was_opened_before_the_store_sees_new_rows(bench: Bench) -> None:
    reader = bench.reader
    assert reader.runs() == []
    store = bench.store_in_use()
    assert len(reader.runs()) == 2
    shutil.rmtree(bench.folder)
    assert reader.runs() == []
    store.save(iteration=an_iteration(2))
    assert len(reader.runs()) == 2
    assert [row.number for row in reader.iterations(RUN)] == [1, 2]


# -- records that another program forged ---------------------------------------------------

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"
COLUMNS = (
    "x AS run, x AS procedure, x AS status, x AS started_at, x AS ended_at, x AS pid, "
    "x AS pid_started, x AS host, x AS boot, x AS workspace, x AS data, x AS number, x AS attempt"
)
VIEW = f"CREATE VIEW {{}} AS SELECT {COLUMNS} FROM ({ENDLESS})"
FORGERIES = {
    "runs is a view": ("DROP TABLE runs", VIEW.format("runs")),
    "runs is a view of another case": ("DROP TABLE runs", VIEW.format("RUNS")),
    "iterations is a view": ("DROP TABLE iterations", VIEW.format("iterations")),
    "runs is a virtual table": (
        "DROP TABLE runs",
        f"CREATE VIRTUAL TABLE runs USING fts5({COLUMNS.replace('x AS ', '')})",
    ),
    "a column is generated": (
        "DROP TABLE iterations",
        (
            "CREATE TABLE iterations (run, number, attempt, status, started_at, ended_at, "
            "data AS (hex(zeroblob(400000000))))"
        ),
    ),
    "a trigger is there": (
        "CREATE TRIGGER t AFTER INSERT ON iterations BEGIN DELETE FROM runs; END",
    ),
    "a check is expensive": (
        "DROP TABLE iterations",
        (
            "CREATE TABLE iterations (run, number, attempt, status, started_at, ended_at, data, "
            "CHECK (length(hex(randomblob(100000000))) > 0))"
        ),
    ),
    "an index has an expression": ("CREATE INDEX i ON runs(hex(data))",),
}


def forge(bench: Bench, *statements: str) -> None:
    with contextlib.closing(sqlite3.connect(bench.file)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


@pytest.mark.parametrize("statements", FORGERIES.values(), ids=FORGERIES)
def test_forged_tables_are_not_read(bench: Bench, statements: tuple[str, ...]) -> None:
    bench.store_in_use().close()
    forge(bench, *statements)
    began = time.thread_time()
    for question in (bench.reader.runs, bench.reader.run, lambda: bench.reader.iterations(RUN)):
        with pytest.raises(
            StoreError, match=r"rooda\.db` can't be read \(its table `(runs|iter).*mv .*rooda"
        ):
            question()
    assert time.thread_time() - began < 2


def test_view_of_the_user_beside_the_tables_is_left_alone(bench: Bench) -> None:
    bench.store_in_use().close()
    forge(bench, "CREATE VIEW mine AS SELECT run FROM runs", "ANALYZE")
    assert bench.reader.run().run == RUN
    assert bench.store().runs()[-1].run == RUN
    assert bench.troubles == []


def test_statement_without_an_end_is_interrupted_and_signals_are_handled(tmp_path: Path) -> None:
    noted: list[float] = []
    before = signal.signal(signal.SIGALRM, lambda *_: noted.append(time.thread_time()))
    with contextlib.closing(connect(tmp_path / "any.db", "mode=rwc")) as connection:
        limit_time(connection, 0.3)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            with pytest.raises(sqlite3.OperationalError, match="interrupted"):
                connection.execute(f"SELECT count(*) FROM ({ENDLESS})").fetchone()
        finally:
            signal.signal(signal.SIGALRM, before)
        assert noted
        assert noted[0] < time.thread_time() - 0.05


class StopError(Exception):
    """What the handler of a signal raises."""


def test_signal_ends_a_reader_that_waits_for_a_lock(bench: Bench) -> None:
    """Python runs no handler while SQLite waits."""
    bench.store_in_use().close()

    def stop(*_: object) -> None:
        raise StopError

    before = signal.signal(signal.SIGALRM, stop)
    with contextlib.closing(sqlite3.connect(bench.file, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        other.execute("UPDATE runs SET status = status")
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        began = time.monotonic()
        try:
            with pytest.raises(StopError):
                RecordReader(bench.folder, patience=60).runs()
        finally:
            signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - began < 20


def test_locked_record_is_an_error_when_the_patience_is_over(bench: Bench) -> None:
    bench.store_in_use().close()
    with contextlib.closing(sqlite3.connect(bench.file, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        other.execute("UPDATE runs SET status = status")
        with pytest.raises(StoreError, match="database is locked"):
            RecordReader(bench.folder, patience=0.1).runs()


def test_run_with_too_many_iterations_is_refused_before_they_are_read(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = bench.store_in_use()
    for number in range(2, 5):
        store.save(iteration=an_iteration(number))
    store.close()
    monkeypatch.setattr(record_reader, "MOST_ITERATIONS", 4)
    assert len(bench.reader.iterations(RUN)) == 4
    monkeypatch.setattr(record_reader, "MOST_ITERATIONS", 3)
    with pytest.raises(StoreError, match="has more than 3 iterations"):
        next(bench.reader.each_iteration(RUN))


def test_view_gives_up_a_run_whose_iterations_take_too_long(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = bench.store_in_use()
    store.save(iteration=an_iteration(2))
    store.close()
    monkeypatch.setattr(record_reader, "_PAGE", 1)
    monkeypatch.setattr(record_reader, "_LONGEST_VIEW", -1.0)
    view = RecordReader.for_view(bench.folder, lambda row: row)
    with pytest.raises(StoreError, match="take too long"):
        view.iterations(RUN)
    assert bench.numbers() == [1, 2]  # a command reads them to their end


def test_json_of_too_many_parts_is_not_read(bench: Bench) -> None:
    bench.store_in_use().close()
    parts = "[" + "[]," * 700_000 + "[]]"
    forge(bench, f"UPDATE runs SET data = '{{\"x\": {parts}}}' WHERE run = '{RUN}'")
    assert [row.run for row in bench.reader.runs()] == [EARLIER]


@pytest.mark.long
def test_a_million_runs_are_read_in_part(bench: Bench) -> None:
    bench.store_in_use().close()
    numbers = ENDLESS.replace("FROM n)", "FROM n WHERE x < 1000000)")
    forge(
        bench,
        "INSERT INTO runs SELECT 'r' || x, 'p', 'running', '2026-01-01T00:00:00+00:00', NULL, 1, "
        f"0.0, 'h', 'b', '/', '{{}}' FROM ({numbers})",
        "INSERT INTO iterations SELECT 'r1', x, 1, 'completed', "
        f"'2026-01-01T00:00:00+00:00', NULL, '{{}}' FROM ({numbers})",
    )
    began = time.thread_time()
    assert len(bench.reader.runs(limit=200)) == 200
    assert bench.reader.run("r1").run == "r1"
    with pytest.raises(StoreError, match="run r1 has more than 30000 iterations"):
        list(bench.reader.iterations("r1"))
    assert time.thread_time() - began < 10
