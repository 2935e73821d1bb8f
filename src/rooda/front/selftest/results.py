"""The results of the self-test, as JSON and as text."""

import os
import platform
from typing import Any

from msgspec import Struct

from rooda import __version__
from rooda.base.colors import Color, Painter
from rooda.base.controls import one_line
from rooda.base.numbers import count
from rooda.base.system import system_name
from rooda.front.selftest.trial import Row, Verdict
from rooda.views.terminal.table import Cell, Column, table

SCHEMA_VERSION = 1
_COLUMNS = (
    Column("VERDICT"),
    Column("TRIAL"),
    Column("SECONDS", 3, is_right=True),
    Column("THE AGENT", 2),
    Column("FOUND", 1),
)
_BAD = (Verdict.BROKEN, Verdict.ERROR)
_COLORS = {
    Verdict.HELD: Color.GOOD,
    Verdict.BROKEN: Color.BAD,
    Verdict.ERROR: Color.BAD,
    Verdict.NOT_HERE: Color.WARNING,
}
_SHORT = {Verdict.NOT_HERE: "not here"}
WIDTH = max(len(_SHORT.get(one, one)) for one in Verdict)


class Results(Struct, frozen=True):
    """A row for each trial, and what this machine lacks for some promises."""

    rows: tuple[Row, ...]
    limits: tuple[str, ...]
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether each promise that was tried holds."""
        return not any(row.verdict in _BAD for row in self.rows)

    def count(self, verdict: Verdict) -> int:
        """Return the number of rows with this verdict."""
        return sum(row.verdict is verdict for row in self.rows)

    def to_json(self) -> dict[str, Any]:
        """Return all fields under their names in the JSON output."""
        return {
            "schema_version": SCHEMA_VERSION,
            "ok": self.ok,
            "rooda": __version__,
            "python": platform.python_version(),
            "platform": system_name(),
            "root": os.geteuid() == 0,
            "seconds": round(self.seconds, 3),
            "counts": {str(one): self.count(one) for one in Verdict},
            "limits": list(self.limits),
            "trials": [row.to_json() for row in self.rows],
        }


def progress_line(row: Row, paint: Painter) -> str:
    """Return the line of a trial that has just ended."""
    return f"  {_verdict(row, paint)}  {row.name} ({row.seconds:.1f} s)"


def _verdict(row: Row, paint: Painter) -> str:
    return paint(_COLORS[row.verdict], f"{_SHORT.get(row.verdict, row.verdict):<{WIDTH}}")


def results_text(results: Results, room: int | None, paint: Painter) -> str:
    """Return the table, what is wrong, and what cannot be promised here."""
    cells = [_cells(row) for row in results.rows]
    parts = [table(_COLUMNS, cells, room=room, paint=paint)]
    parts += [_details(row) for row in results.rows if row.verdict in _BAD]
    if results.limits:
        lines = "".join(f"  {one_line(limit)}\n" for limit in results.limits)
        parts.append(f"Cannot be promised here:\n{lines}")
    return "\n".join([*parts, _summary(results)])


def _cells(row: Row) -> list[Cell]:
    shown = _SHORT.get(row.verdict, str(row.verdict))
    return [
        Cell(shown, _COLORS[row.verdict]),
        Cell(row.name),
        Cell(f"{row.seconds:.1f}" if row.seconds else ""),
        Cell(row.does),
        Cell(row.found),
    ]


def _details(row: Row) -> str:
    return (
        f"{row.verdict}: {row.name}\n"
        f"  the agent:  {one_line(row.does)}\n"
        f"  promised:   {one_line(row.promise)}\n"
        f"  found:      {one_line(row.found)}\n"
    )


def _summary(results: Results) -> str:
    held = count(results.count(Verdict.HELD), "promise")
    bad = results.count(Verdict.BROKEN)
    words = [f"{held} held", f"{bad} broken"]
    if failed := results.count(Verdict.ERROR):
        words.append(f"{count(failed, 'trial')} could not be carried through")
    if absent := results.count(Verdict.NOT_HERE):
        words.append(f"{absent} cannot be promised here")
    return f"{', '.join(words)}, in {results.seconds:.0f} s.\n"
