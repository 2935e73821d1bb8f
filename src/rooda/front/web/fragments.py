"""The pages as pieces of HTML: made of the same parts as the report, and escaped like it."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from rooda.front.web.sources import MOST, FleetTable, FoundIteration, FoundRun, RunCard
from rooda.views.model.summary import RunSummary
from rooda.views.report.details import DetailReader
from rooda.views.report.page import environment, listed_values, values

_TEMPLATES = Path(__file__).with_name("templates")
_MOST_ROWS = 200  # iterations in the list of a run
_PARTS = ("head", "timeline", "trends", "spent", "next")


def index() -> str:
    """Return the page that every address has; it contains no data."""
    return _render("index")


def run_list(cards: Sequence[RunCard], troubles: Sequence[str] = (), *, has_fleet: bool) -> str:
    """Return the page with all runs."""
    parts = _joined(list_parts(cards, troubles).values())
    return _render("runs", parts=parts, has_fleet=has_fleet)


def list_parts(cards: Sequence[RunCard], troubles: Sequence[str] = ()) -> dict[str, str]:
    """Return the parts of that page which change; `troubles` are records that can't be read."""
    at_work = [card for card in cards if card.is_at_work]
    ended = [card for card in cards if not card.is_at_work]
    is_cut = len(cards) == MOST
    return {
        "at-work": _render("at_work", cards=at_work),
        "ended": _render(
            "ended", cards=ended, is_cut=is_cut, is_empty=not cards, troubles=troubles
        ),
    }


def run_page(run: RunSummary, key: str, *, has_fleet: bool) -> str:
    """Return the page of one run."""
    known = run_values(run, key)
    parts = {name: Markup(html) for name, html in run_parts(known).items()}  # noqa: S704
    rows = _joined(reversed(row_parts(known).values()))
    left_out = max(0, len(run.iterations) - _MOST_ROWS)
    more = {"rows": rows, "left_out": left_out, "has_fleet": has_fleet}
    return _render("run", known, **parts, **more)


def run_parts(known: Mapping[str, Any], names: Iterable[str] = _PARTS) -> dict[str, str]:
    """Return parts of that page; `known` are the `run_values`."""
    return {name: _render(f"part_{name}", known) for name in names}


def row_parts(known: Mapping[str, Any], most: int = _MOST_ROWS) -> dict[str, str]:
    """Return the rows of the last iterations, the oldest first."""
    last = known["run"].iterations[-most:]
    return {f"i{one.number}": _render("run_row", known, one=one) for one in last}


def trouble(words: str) -> str:
    """Return the line that says why the record can't be read; an empty one if it can."""
    return _render("trouble", words=words)


def iteration_page(found: FoundIteration, key: str, *, has_fleet: bool) -> str:
    """Return the page of one iteration."""
    numbers = [one.number for one in found.run.iterations]
    place = numbers.index(found.one.number)
    known = run_values(found.run, key) | {
        "one": found.one,
        "details": found.details,
        "transcript": found.transcript,
        "is_too_long": found.is_too_long,
        "before": numbers[place - 1] if place else None,
        "after": numbers[place + 1] if place + 1 < len(numbers) else None,
        "is_open": True,
        "most_files": len(found.one.changed),
        "has_fleet": has_fleet,
    }
    return _render("iteration", known)


def report_page(found: FoundRun, *, has_fleet: bool) -> str:
    """Return the report inside of the page."""
    run = found.summary()
    reader = DetailReader(found.place, masker=found.masker)
    known = run_values(run, found.key) | {"at": "#i"} | listed_values(run, reader)
    known["download"] = f"/api/download/{found.key}/{run.run}"
    return _render("web_report", known, has_fleet=has_fleet)


def fleet_page(fleets: Sequence[FleetTable]) -> str:
    """Return the page of the fleet."""
    return _render("fleet", fleets=fleets)


def run_values(run: RunSummary, key: str) -> dict[str, Any]:
    """Return what the templates know of a run; `key` is that of its work tree."""
    home = f"#/run/{key}/{run.run}"
    return values(run, at=f"{home}/") | {"home": home, "report": f"#/report/{key}/{run.run}"}


def _render(name: str, known: Mapping[str, Any] | None = None, **more: Any) -> str:
    template = environment(_TEMPLATES).get_template(f"{name}.html.j2")
    return template.render(known or {}, **more)


def _joined(pieces: Iterable[str]) -> Markup:
    return Markup("\n".join(pieces))  # noqa: S704 - made by `_render`
