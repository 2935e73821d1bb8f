"""Which runs stay in the record, and how old ones are deleted."""

import contextlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from msgspec import Struct

from rooda.record.rows import RUNNING, moment_of
from rooda.record.run_folders import remove_run, run_folders, size_on_disk
from rooda.record.store import Store

_UNKNOWN = datetime.min.replace(tzinfo=UTC)  # a run without a time is deleted first


class RetentionLimits(Struct, frozen=True):
    """How much stays. None means no limit; an age is in seconds, a size in bytes."""

    keep_runs: int
    max_age: float | None = None
    max_size: int | None = None


class KeptRun(Struct, frozen=True):
    """A run that is on the disk."""

    run: str
    started_at: datetime
    size: int
    is_running: bool


def to_prune(
    runs: Sequence[KeptRun], limits: RetentionLimits, now: datetime, current: str | None = None
) -> list[str]:
    """The runs to delete, oldest first: as many as it takes until the rest is within the limits.

    The newest run and running ones stay.
    """
    oldest_first = sorted(runs, key=lambda run: (run.started_at, run.run))
    count, size = len(runs), sum(run.size for run in runs)
    pruned = []
    for run in oldest_first[:-1]:
        if run.is_running or run.run == current:
            continue
        age = (now - run.started_at).total_seconds()
        is_old = limits.max_age is not None and age > limits.max_age
        is_much = limits.max_size is not None and size > limits.max_size
        if is_old or is_much or count > limits.keep_runs:
            pruned.append(run.run)
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
) -> list[str]:
    """Delete runs over the limits: files first, so that no files are left without a row.

    `before` gets the runs first, so that it can delete their refs. Returns the deleted runs.
    """
    doomed = to_prune(_kept(store, is_sized=limits.max_size is not None), limits, now, current)
    if doomed:
        before(doomed)
    gone = []
    for run in doomed:
        try:
            remove_run(store.workspace, run)
        except OSError as error:
            on_trouble(f"the files of run {run} can't be deleted: {error.strerror or error}")
        else:
            gone.append(run)
    return gone if not gone or store.forget(gone) else []


def _kept(store: Store, *, is_sized: bool) -> list[KeptRun]:
    """Every run that has a row, and every folder of a run whose row was lost."""
    rows = {row.run: row for row in store.runs()}
    times = {row.run: moment_of(row.started_at) or _UNKNOWN for row in rows.values()}
    if rows:  # without any row, the record could not be read
        with contextlib.suppress(OSError):
            lost = {run: _time_of(run) for run in run_folders(store.workspace)}
            times = {run: time for run, time in lost.items() if time is not None} | times
    return [
        KeptRun(
            run,
            time,
            size_on_disk(store.workspace, run) if is_sized else 0,
            run in rows and rows[run].status == RUNNING,
        )
        for run, time in times.items()
    ]


def _time_of(run: str) -> datetime | None:
    """When a run was started, by its name; None for a folder that is not of a run."""
    try:
        return datetime.strptime(run[:15], "%Y%m%d-%H%M%S").astimezone()
    except ValueError:
        return None
