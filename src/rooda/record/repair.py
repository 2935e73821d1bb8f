"""Rescue what a database has that somebody deleted, replaced or damaged."""

import contextlib
import os
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rooda.record.database import BESIDE, NAME, beside
from rooda.record.rows import iteration_row, run_row
from rooda.record.tables import SAVE_ITERATION, SAVE_RUN, SELECT_ITERATIONS, SELECT_RUNS

_MOST_ASIDE: Final = 3
_ASIDE = re.compile(rf"{re.escape(NAME)}\.broken-([0-9]{{1,9}})(?:-[a-z]+)?")


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
            path.with_name(f"{NAME}.broken-{number}{suffix}").unlink(missing_ok=True)
    return aside.name
