"""Replace a database that somebody deleted, replaced or damaged."""

import contextlib
import os
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from rooda.record.database import BESIDE, NAME, SMALL_PAGES, beside, connect, make_private
from rooda.record.rows import iteration_row, run_row
from rooda.record.tables import (
    SAVE_ITERATION,
    SAVE_RUN,
    SELECT_ITERATIONS,
    SELECT_RUNS,
    Steps,
    bring_up_to_date,
)
from rooda.world.files.plain_files import sync_folder

_DRAFT: Final = f"{NAME}.new"
_MOST_ASIDE = 3
_ASIDE = re.compile(rf"{re.escape(NAME)}\.broken-([0-9]{{1,9}})(?:-[a-z]+)?")


def replace(path: Path, steps: Steps, fill: Callable[[sqlite3.Connection], None]) -> str | None:
    """Replace the database by a new one; return the new name of the old one.

    The old one stays until the new one is complete. Raises sqlite3.Error, OSError.
    """
    draft = path.with_name(_DRAFT)
    for file in (draft, *(beside(draft, suffix) for suffix in BESIDE)):
        _remove(file)
    try:
        _build(draft, steps, fill)
        aside = put_aside(path)
        draft.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            _remove(draft)
        raise
    sync_folder(path.parent)
    return aside


def _build(path: Path, steps: Steps, fill: Callable[[sqlite3.Connection], None]) -> None:
    make_private(path)
    connection = connect(path, "mode=rw")
    try:
        connection.execute(SMALL_PAGES)
        connection.execute("PRAGMA journal_mode = MEMORY")  # a crash leaves a draft
        connection.execute("PRAGMA synchronous = FULL")
        bring_up_to_date(connection, path.name, steps)
        connection.execute("BEGIN")
        fill(connection)
        connection.execute("COMMIT")
    finally:
        connection.close()


def copy_rows(old: sqlite3.Connection, new: sqlite3.Connection) -> None:
    """Copy every row that can still be read; a deleted file can, as long as it is open."""

    def readable(select: str) -> Iterator[tuple[object, ...]]:
        with contextlib.suppress(sqlite3.Error):
            yield from old.execute(f"{select} ORDER BY rowid")

    new.executemany(SAVE_RUN, (row for row in readable(SELECT_RUNS) if run_row(row)))
    iterations = (row for row in readable(SELECT_ITERATIONS) if iteration_row(row))
    new.executemany(SAVE_ITERATION, iterations)


def put_aside(path: Path) -> str | None:
    """Rename what is there, so that the user can examine it; only the last few are kept.

    The database goes last: while it is there, SQLite uses no `-wal` for another database.
    """
    there = [suffix for suffix in (*BESIDE, "") if os.path.lexists(beside(path, suffix))]
    if not there:
        return None
    matches = [_ASIDE.fullmatch(file.name) for file in path.parent.iterdir()]
    numbers = sorted({int(match[1]) for match in matches if match})
    aside = path.with_name(f"{NAME}.broken-{(numbers or [0])[-1] + 1}")
    for suffix in there:
        beside(path, suffix).rename(beside(aside, suffix))
    for number in numbers[: 1 - _MOST_ASIDE]:
        for suffix in ("", *BESIDE):
            _remove(path.with_name(f"{NAME}.broken-{number}{suffix}"))
    return aside.name


def _remove(path: Path) -> None:
    """Delete a file, a folder or a link; the target of a link stays."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
