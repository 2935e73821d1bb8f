"""Retention of runs by age, size and number; running runs are never deleted."""

import os
import shutil
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rooda.record.retention import KeptRun, RetentionLimits, forget_gone_trees, prune, to_prune
from rooda.record.run_folders import (
    iteration_folder,
    remove_run,
    run_folder,
    run_folders,
    size_on_disk,
)
from rooda.world.state.folder import make_state_folder, new_file, place_of
from rooda.world.state.lock import Lock
from support.record import Bench, a_run, an_iteration
from support.states import remember, state_of
from support.tables import each_row

# The record of a work tree that is gone stays for 90 days.


DAY = 24 * 3600


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    make_state_folder(state_of(folder))
    (state_of(folder) / "rooda.db").touch()
    remember(folder)
    return folder


def later(tree: Path, days: int) -> None:
    """Make the mark of a deleted tree this many days old."""
    then = time.time() - days * DAY
    os.utime(state_of(tree) / "gone", (then, then))


def test_record_of_a_tree_that_is_gone_is_deleted_after_90_days(tree: Path) -> None:
    assert forget_gone_trees(os.environ) == []
    tree.rmdir()
    assert forget_gone_trees(os.environ) == []
    later(tree, 89)
    assert forget_gone_trees(os.environ) == []
    later(tree, 91)
    assert forget_gone_trees(os.environ) == [str(tree)]
    assert not state_of(tree).exists()


def test_tree_that_came_back_is_gone_for_no_time(tree: Path) -> None:
    tree.rmdir()
    forget_gone_trees(os.environ)
    later(tree, 91)
    tree.mkdir()
    forget_gone_trees(os.environ)
    tree.rmdir()
    assert forget_gone_trees(os.environ) == []
    assert state_of(tree).exists()


def test_record_of_a_run_at_work_is_not_deleted(tree: Path) -> None:
    lock = Lock(tree, state=state_of(tree))
    tree.rmdir()
    forget_gone_trees(os.environ)
    later(tree, 91)
    assert forget_gone_trees(os.environ) == []
    lock.close()
    assert forget_gone_trees(os.environ) == [str(tree)]


NOW = datetime(2025, 6, 30, 12, tzinfo=UTC)
HOUR = 3600.0


def kept(
    ages: Sequence[float], sizes: Sequence[int] = (), running: str = "", good: str = ""
) -> list[KeptRun]:
    """Return runs a, b, c ... that ended so many hours ago."""
    return [
        KeptRun(
            name,
            NOW - timedelta(hours=age),
            sizes[place] if sizes else 1,
            is_running=name in running,
            is_successful=name in good,
        )
        for place, (name, age) in enumerate(zip("abcdefgh", ages, strict=False))
    ]


def of_number(number: int) -> RetentionLimits:
    return RetentionLimits(keep_runs=number)


@each_row(
    "runs, limits, pruned",
    [
        (kept([5, 4, 3, 2, 1]), RetentionLimits(), ""),
        (kept([5, 4, 3, 2, 1]), of_number(5), ""),
        (kept([5, 4, 3, 2, 1]), of_number(3), "ab"),
        (kept([1, 2, 3, 4, 5]), of_number(3), "ed"),
        (kept([5, 4, 3, 2, 1]), of_number(1), "abcd"),
        (kept([5, 4, 3, 2, 1]), of_number(0), "abcd"),  # the newest run stays
        (kept([5, 4, 3, 2, 1], running="a"), of_number(3), "bc"),
        (kept([5, 4, 3, 2, 1], running="abc"), of_number(1), "d"),
        (kept([5, 4, 3, 2, 1], good="ab"), of_number(1), "acd"),  # and the last successful one
        (kept([5, 4, 3, 2, 1]), RetentionLimits(2.5 * HOUR), "abc"),
        (kept([5, 4, 3, 2, 1], running="b"), RetentionLimits(2.5 * HOUR), "ac"),
        (kept([5, 4, 3, 2, 1], good="ac"), RetentionLimits(2.5 * HOUR), "ab"),
        (kept([5, 4]), RetentionLimits(HOUR), "a"),
        (kept([5, 4, -3]), RetentionLimits(4.5 * HOUR), "a"),  # the clock was set back
        (kept([5, 4, 3], [10, 10, 10]), RetentionLimits(max_size=30), ""),
        (kept([5, 4, 3], [10, 10, 10]), RetentionLimits(max_size=29), "a"),
        (kept([5, 4, 3], [1, 10, 10]), RetentionLimits(max_size=15), "ab"),
        (kept([5, 4, 3], [10, 10, 10], good="a"), RetentionLimits(max_size=29), "b"),
        # A run that stays and is larger than the limit does not push out the others.
        (kept([5, 4, 3], [10, 10, 90]), RetentionLimits(max_size=50), ""),
        (kept([5, 4, 3], [30, 30, 90]), RetentionLimits(max_size=50), "a"),
        (kept([5, 4, 3], [90, 10, 10], running="a"), RetentionLimits(max_size=50), ""),
        (kept([5, 4, 3], [90, 10, 10], good="a"), RetentionLimits(max_size=50), ""),
        (kept([5, 4, 3, 2], [1, 1, 9, 9]), RetentionLimits(3.5 * HOUR, 10, 3), "abc"),
        ([], RetentionLimits(0, 0, 0), ""),
        (kept([1]), RetentionLimits(0, 0, 0), ""),
    ],
)
def test_oldest_runs_are_pruned_until_the_rest_is_within_the_limits(
    runs: list[KeptRun], limits: RetentionLimits, pruned: str
) -> None:
    assert [run.run for run in to_prune(runs, limits, NOW)] == list(pruned)


def test_current_run_is_never_pruned() -> None:
    pruned = to_prune(kept([5, 4, 3]), of_number(0), NOW, current="a")
    assert [run.run for run in pruned] == ["b"]
    pruned = to_prune(kept([5, 4, 3]), of_number(0), NOW, current="c")
    assert [run.run for run in pruned] == ["a"]  # the run before the current one stays too


# -- deletion ------------------------------------------------------------------------------


class Archive(Bench):
    """A store of runs with rows and files: `run(1)` is the oldest."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.open = self.store()
        self.pruned: list[list[str]] = []

    def run(self, day: int) -> str:
        return f"202506{day:02}-120000-abcdef"

    def add(
        self, day: int, size: int = 10, status: str = "max-iters", ended: int | None = None
    ) -> str:
        run = self.run(day)
        times = {"started_at": f"2025-06-{day:02}T12:00:00+00:00"}
        if ended is not None:
            times["ended_at"] = f"2025-06-{ended:02}T12:00:00+00:00"
        self.open.save(
            a_run(run, status, **times),
            an_iteration(1, run=run),
        )
        self.fill(run, size)
        return run

    def fill(self, run: str, size: int = 10) -> None:
        with new_file(state_of(self.path), f"{place_of(run, 1)}/stdout.log") as file:
            file.write(bytes([1]) * size)

    def prune(self, limits: RetentionLimits, current: str | None = None) -> list[str]:
        gone = prune(
            self.open,
            limits,
            NOW,
            current=current,
            before=lambda runs: self.pruned.append(list(runs)),
            on_trouble=self.troubles.append,
        )
        return [run.run for run in gone]

    @property
    def rows(self) -> list[str]:
        return sorted(row.run for row in self.reader.runs())


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    found = Archive(tmp_path)
    yield found
    found.close()


def test_pruned_runs_leave_neither_rows_nor_files(archive: Archive) -> None:
    old = [archive.add(day) for day in (1, 2)]
    new = [archive.add(day) for day in (3, 4)]
    assert archive.prune(of_number(2)) == old
    assert archive.rows == run_folders(state_of(archive.path)) == new
    assert [archive.numbers(run) for run in (*old, *new)] == [[], [], [1], [1]]
    assert archive.pruned == [old]
    assert archive.prune(of_number(2)) == []
    assert archive.pruned == [old]


def test_callback_runs_before_a_run_is_deleted(archive: Archive) -> None:
    for day in (1, 2):
        archive.add(day)
    there: list[bool] = []

    def check(runs: Sequence[str]) -> None:
        there.extend(
            run_folder(state_of(archive.path), run).exists() and run in archive.rows for run in runs
        )
        raise InterruptedError

    with pytest.raises(InterruptedError):
        prune(archive.open, of_number(1), NOW, before=check)
    assert there == [True]
    assert archive.rows == [archive.run(1), archive.run(2)]


def test_running_and_current_runs_keep_everything(archive: Archive) -> None:
    running, gone, current = (
        archive.add(day, status=status)
        for day, status in ((1, "running"), (2, "success"), (3, "interrupted"))
    )
    good, newest = archive.add(4, status="success"), archive.add(5)
    assert archive.prune(of_number(0), current=current) == [gone]
    assert archive.rows == run_folders(state_of(archive.path)) == [running, current, good, newest]


def test_a_run_is_as_old_as_its_end(archive: Archive) -> None:
    resumed = archive.add(1, ended=28)
    old = archive.add(2, ended=3)
    newest = archive.add(29)
    assert archive.prune(RetentionLimits(24 * HOUR * 7)) == [old]
    assert archive.rows == [resumed, newest]


def test_size_of_a_run_is_its_space_on_the_disk(archive: Archive) -> None:
    with new_file(state_of(archive.path), f"{place_of(archive.run(1), 1)}/stdout.log") as file:
        file.truncate(1 << 30)  # a sparse file
    archive.add(2, size=600_000)
    archive.add(3, size=600_000)
    assert size_on_disk(state_of(archive.path), archive.run(1)) < 100_000
    assert size_on_disk(state_of(archive.path), archive.run(2)) >= 600_000
    assert archive.prune(RetentionLimits(max_size=1_500_000)) == []
    assert archive.prune(RetentionLimits(max_size=1_000_000)) == [archive.run(1), archive.run(2)]


def test_folders_without_rows_are_pruned_like_other_runs(archive: Archive) -> None:
    for day in (1, 2):
        archive.fill(archive.run(day))
    archive.fill("notes")  # not a valid name of a run
    archive.add(3)
    assert archive.prune(of_number(2)) == [archive.run(1)]
    assert archive.prune(of_number(1)) == [archive.run(2)]
    assert run_folders(state_of(archive.path)) == [archive.run(3), "notes"]


def test_nothing_is_deleted_if_the_record_has_no_row(archive: Archive) -> None:
    for day in (1, 2):
        archive.fill(archive.run(day))
    assert archive.prune(of_number(0)) == []
    assert len(run_folders(state_of(archive.path))) == 2


def test_run_without_files_is_pruned(archive: Archive) -> None:
    archive.add(1)
    archive.add(2)
    shutil.rmtree(archive.folder / "runs")
    assert archive.prune(of_number(1)) == [archive.run(1)]
    assert archive.rows == [archive.run(2)]


def test_links_are_deleted_and_their_targets_stay(archive: Archive) -> None:
    run = archive.add(1)
    archive.add(2)
    outside = archive.path / "outside"
    run_folder(state_of(archive.path), run).rename(outside)
    before = sorted(outside.rglob("*"))
    run_folder(state_of(archive.path), run).symlink_to(outside)
    assert archive.prune(of_number(1)) == [run]
    assert sorted(outside.rglob("*")) == before
    assert not os.path.lexists(run_folder(state_of(archive.path), run))


def test_name_with_a_path_is_no_run(archive: Archive) -> None:
    outside = archive.path / "outside"
    outside.mkdir()
    for name in ("../../outside", "..", "", "/", "a/b", "a\0b", ".hidden"):
        with pytest.raises(ValueError, match="not the name of a run"):
            remove_run(state_of(archive.path), name)
        with pytest.raises(ValueError, match="not the name of a run"):
            run_folder(state_of(archive.path), name)
    assert outside.exists()


def test_each_attempt_has_its_own_folder(tmp_path: Path) -> None:
    folder = run_folder(state_of(tmp_path), "r")
    assert folder == state_of(tmp_path) / "runs" / "r"
    assert iteration_folder(state_of(tmp_path), "r", 3) == folder / "3"
    assert iteration_folder(state_of(tmp_path), "r", 3, 2) == folder / "3.2"
