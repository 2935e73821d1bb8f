"""Which runs stay in the record, and how old ones are deleted."""

import contextlib
import math
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from msgspec import Struct

from rooda.loop.state import Status
from rooda.record.rows import RUNNING, RunRow, moment_of
from rooda.record.run_folders import remove_run, run_folders, size_on_disk
from rooda.record.store import Store
from rooda.world.state.lock import is_locked
from rooda.world.state.record_place import known_places

# Delete the records of work trees that have been gone for a long time.


KEPT_DAYS = 90
_MARK = "gone"  # an empty file: its time is when a run first saw that the work tree is gone
_DAY = 24 * 3600


def forget_gone_trees(environ: Mapping[str, str]) -> list[str]:
    """Delete each record whose work tree has been gone for 90 days; return their paths."""
    deleted = []
    for place in known_places(environ):
        mark = place.state / _MARK
        with contextlib.suppress(OSError):
            if place.tree.exists():
                mark.unlink(missing_ok=True)
            elif not mark.exists():
                mark.touch(mode=0o600)
            elif time.time() - mark.stat().st_mtime > KEPT_DAYS * _DAY and not is_locked(
                place.state
            ):
                shutil.rmtree(place.state)
                deleted.append(str(place.tree))
    return deleted


_UNKNOWN = datetime.min.replace(tzinfo=UTC)  # a run without a time is deleted first


class RetentionLimits(Struct, frozen=True):
    """How much stays. None means no limit; an age is in seconds, a size in bytes."""

    max_age: float | None = None
    max_size: int | None = None
    keep_runs: int | None = None


class KeptRun(Struct, frozen=True):
    """A run that is on the disk."""

    run: str
    last_at: datetime  # when it ended, or else when it started
    size: int
    is_running: bool = False
    is_successful: bool = False


def to_prune(
    runs: Sequence[KeptRun], limits: RetentionLimits, now: datetime, current: str | None = None
) -> list[KeptRun]:
    """The runs to delete, oldest first: as many as it takes until the rest is within the limits.

    The current run and the last one before it, the last successful one and running ones stay. One
    of these that is larger than the limit by itself does not count: to delete all others would
    not help.
    """
    oldest_first = sorted(runs, key=lambda run: (run.last_at, run.run))
    earlier = [run for run in oldest_first if run.run != current]
    good = [run for run in oldest_first if run.is_successful]
    running = [run for run in runs if run.is_running]
    staying = {current, *(run.run for run in (*earlier[-1:], *good[-1:], *running))}
    most = math.inf if limits.max_size is None else limits.max_size
    count = len(runs)
    size = sum(run.size for run in runs if run.run not in staying or run.size <= most)
    pruned = []
    for run in oldest_first:
        if run.run in staying:
            continue
        age = (now - run.last_at).total_seconds()
        is_old = limits.max_age is not None and age > limits.max_age
        is_many = limits.keep_runs is not None and count > limits.keep_runs
        if is_old or size > most or is_many:
            pruned.append(run)
            count -= 1
            size -= run.size
    return pruned


def prune(
    store: Store,
    limits: RetentionLimits,
    now: datetime,
    *,
    current: str | None = None,
    before: Callable[[Sequence[str]], None] = lambda _: None,
    on_trouble: Callable[[str], None] = lambda _: None,
) -> list[KeptRun]:
    """Delete runs over the limits: files first, so that no files are left without a row.

    `before` gets the runs first, so that it can delete their refs. Returns the deleted runs.
    """
    doomed = to_prune(_kept(store), limits, now, current)
    if doomed:
        before([run.run for run in doomed])
    gone = []
    for run in doomed:
        try:
            remove_run(store.state, run.run)
        except OSError as error:
            on_trouble(f"the files of run {run.run} can't be deleted: {error.strerror or error}")
        else:
            gone.append(run)
    return gone if not gone or store.forget([run.run for run in gone]) else []


def _kept(store: Store) -> list[KeptRun]:
    """Every run that has a row, and every folder of a run whose row was lost."""
    rows = {row.run: row for row in store.runs()}
    times = {row.run: _last_at(row) for row in rows.values()}
    if rows:  # without any row, the record could not be read
        with contextlib.suppress(OSError):
            lost = {run: _time_of(run) for run in run_folders(store.state)}
            times = {run: time for run, time in lost.items() if time is not None} | times
    return [
        KeptRun(
            run,
            time,
            size_on_disk(store.state, run),
            is_running=run in rows and rows[run].status == RUNNING,
            is_successful=run in rows and rows[run].status == Status.SUCCESS,
        )
        for run, time in times.items()
    ]


def _last_at(row: RunRow) -> datetime:
    return moment_of(row.ended_at or "") or moment_of(row.started_at) or _UNKNOWN


def _time_of(run: str) -> datetime | None:
    """When a run was started, by its name; None for a folder that is not of a run."""
    try:
        return datetime.strptime(run[:15], "%Y%m%d-%H%M%S").astimezone()
    except ValueError:
        return None
