"""A trial, what it found, and the verdict. Pure: the same evidence gives the same row."""

import os
import platform
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct, field

from rooda import __version__
from rooda.base.colors import Color, Painter
from rooda.base.controls import one_line
from rooda.base.numbers import count
from rooda.base.system import system_name
from rooda.run.outcome import RunOutcome
from rooda.views.terminal.table import Cell, Column, table

if TYPE_CHECKING:
    from rooda.front.selftest.scratch import Scratch


class Verdict(StrEnum):
    """What a trial says about a promise."""

    HELD = "held"
    BROKEN = "broken"
    NOT_HERE = "cannot be promised here"
    ERROR = "error"  # the trial could not be carried through, so it shows nothing


class Need(StrEnum):
    """What a machine must have for a promise."""

    GIT = "git"
    SUBREAPER = "subreaper"
    PROC = "proc"
    BWRAP = "bwrap"
    SCOPE = "scope"
    PIDFD = "pidfd"


class Evidence(Struct, frozen=True):
    """What a trial saw.

    `code` is the exit code of rooda, None if rooda had not ended when the patience of the trial
    was over. `survivors` are processes of the agent that still ran. `missing` counts bytes of
    output that rooda did not keep. `facts` are what this trial alone looks at.
    """

    code: int | None = None
    seconds: float = 0.0
    log: str = ""
    survivors: tuple[str, ...] = ()
    missing: int = 0
    outcome: RunOutcome | None = None
    facts: dict[str, Any] = field(default_factory=dict)


class Finding(NamedTuple):
    """What was found about a part of a promise, and whether the part holds."""

    text: str
    held: bool = True


class Claim(NamedTuple):
    """A part of a promise in words, and how to judge it."""

    words: str
    look: Callable[[Evidence], Finding]


class Trial(Struct, frozen=True):
    """One promise: what the agent does, what must hold, and how to find out."""

    name: str
    does: str
    claims: tuple[Claim, ...]
    perform: "Callable[[Scratch], Evidence]"
    needs: tuple[Need, ...] = ()

    @property
    def promise(self) -> str:
        """What must hold, in words."""
        return ", ".join(claim.words for claim in self.claims)


class Row(Struct, frozen=True):
    """The result of a trial, one row of the table."""

    name: str
    does: str
    promise: str
    verdict: Verdict
    found: str
    seconds: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the fields under their names in the JSON output."""
        return {
            "name": self.name,
            "does": self.does,
            "promise": self.promise,
            "verdict": str(self.verdict),
            "found": self.found,
            "seconds": round(self.seconds, 3),
        }


def judge(trial: Trial, evidence: Evidence) -> Row:
    """Return the row of a trial that was carried through."""
    found = [claim.look(evidence) for claim in trial.claims]
    wrong = [one for one in found if not one.held]
    verdict = Verdict.BROKEN if wrong else Verdict.HELD
    text = "; ".join(one.text for one in wrong or found)
    return _row(trial, verdict, text, evidence.seconds)


def not_here(trial: Trial, reason: str) -> Row:
    """Return the row of a trial for which this machine lacks something."""
    return _row(trial, Verdict.NOT_HERE, reason)


def failed(trial: Trial, trouble: str, seconds: float = 0.0) -> Row:
    """Return the row of a trial that could not be carried through."""
    return _row(trial, Verdict.ERROR, trouble, seconds)


def _row(trial: Trial, verdict: Verdict, found: str, seconds: float = 0.0) -> Row:
    return Row(trial.name, trial.does, trial.promise, verdict, found, seconds)


# -- claims ----------------------------------------------------------------------------------

_MOST_NAMED = 4


def ends_with(*codes: int) -> Claim:
    """Claim that rooda ends, with one of these exit codes."""

    def look(evidence: Evidence) -> Finding:
        if evidence.code is None:
            waited = f"{evidence.seconds:.0f} s"
            return _wrong(f"rooda had not ended after {waited}{_last_words(evidence.log)}")
        if evidence.code in codes:
            return Finding(f"exit code {evidence.code}")
        return _wrong(f"exit code {evidence.code}{_last_words(evidence.log)}")

    return Claim(f"rooda ends with exit code {' or '.join(map(str, codes))}", look)


def _wrong(text: str) -> Finding:
    return Finding(text, held=False)


def _last_words(log: str) -> str:
    lines = [line for line in log.splitlines() if line.strip()]
    return f" ({lines[-1].strip()})" if lines else ""


def _survivors(evidence: Evidence) -> Finding:
    if not evidence.survivors:
        return Finding("no process left")
    return _wrong(f"still there: {', '.join(evidence.survivors[:_MOST_NAMED])}")


def _missing(evidence: Evidence) -> Finding:
    if evidence.missing:
        return _wrong(f"{evidence.missing} bytes of output lost")
    return Finding("all output kept")


def _crashed(evidence: Evidence) -> Finding:
    if "Traceback" in evidence.log:
        return _wrong(f"an internal error of rooda{_last_words(evidence.log)}")
    return Finding("no internal error")


NOTHING_LIVES = Claim("no process of the agent is left", _survivors)
NOTHING_LOST = Claim("no output is lost", _missing)
NO_CRASH = Claim("rooda has no internal error", _crashed)


def fact(name: str, expected: str | int, words: str) -> Claim:
    """Claim that a fact of the trial has this value."""

    def look(evidence: Evidence) -> Finding:
        value = evidence.facts.get(name)
        return Finding(f"{name}: {value}", value == expected)

    return Claim(words, look)


def numbers(words: str, **expected: int) -> Claim:
    """Claim that the outcome of the run has these numbers (`iteration`, `good`, `failed`)."""

    def look(evidence: Evidence) -> Finding:
        if evidence.outcome is None:
            return _wrong("rooda wrote no outcome of the run")
        found = {name: getattr(evidence.outcome, name) for name in expected}
        text = ", ".join(f"{name}: {value}" for name, value in found.items())
        return Finding(text, found == expected)

    return Claim(words, look)


# The results of the self-test, as JSON and as text.


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
