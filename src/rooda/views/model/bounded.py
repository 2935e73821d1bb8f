"""Cuts rows to sizes that a summary can hold: thousands of them are in memory.

A broken program may have written anything into the record. Of long texts and lists the beginnings
stay, of outputs the ends.
"""

from typing import TypeVar, cast

from msgspec import UNSET, Struct
from msgspec.structs import replace

from rooda.loop.result import IterationResult
from rooda.record.rows import IterationRow, RunRow

_LONGEST = 2000  # characters of a text
_LONGEST_OUTPUT = 4000  # of the end of an output
_MOST = 100  # values of a list
_SMALL = frozenset({int, float, bool, type(None)})

_T = TypeVar("_T")


def bounded_run(row: RunRow) -> RunRow:
    """Return the row of a run within bounds, without what no view of a summary needs."""
    snapshot = row.snapshot
    return _within_bounds(
        replace(
            row,
            snapshot=snapshot and replace(snapshot, left_out=()),
            settings=None,
            waits=None,
            agents_changed=None,
            hooks=(),
            baseline=None,
            pruned=None,
            state=None,
            repository=None,
            given=UNSET,
        )
    )


def bounded_row(row: IterationRow) -> IterationRow:
    """Return a row within bounds, without the lists of names that the summary has counted."""
    result, lines, snapshot = row.result, row.lines, row.snapshot
    return _within_bounds(
        replace(
            row,
            headline=row.known_headline or None,
            result=result and IterationResult(result.exit_code),
            lines=lines and replace(lines, largest=()),
            snapshot=snapshot and replace(snapshot, left_out=()),
        )
    )


def _within_bounds(row: _T) -> _T:
    return cast("_T", _bounded(row))


def _bounded(value: object, name: str = "") -> object:
    if isinstance(value, str):
        return value[-_LONGEST_OUTPUT:] if name == "output" else value[:_LONGEST]
    if isinstance(value, tuple):
        found = tuple(_bounded(one) for one in value[:_MOST])
        return value if found == value else found
    return _bounded_struct(value) if isinstance(value, Struct) else value


def _bounded_struct(value: Struct) -> Struct:
    cut = {}
    for name in value.__struct_fields__:
        old = getattr(value, name)
        if type(old) in _SMALL or (type(old) is str and len(old) <= _LONGEST):
            continue  # most fields of most rows: a report has thousands of rows
        if (new := _bounded(old, name)) is not old:
            cut[name] = new
    return replace(value, **cut) if cut else value
