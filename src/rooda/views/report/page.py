"""The report as one HTML page: no network, no script needed, and nothing from an agent acts in it.

The page of `rooda web` has the same parts: `values` is what their templates know.
"""

import hashlib
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from rooda import __version__
from rooda.base.colors import Color
from rooda.base.numbers import money
from rooda.base.times import format_duration
from rooda.loop.state import known_status
from rooda.loop.wait_kinds import WaitKind
from rooda.views.model.open_tasks import left_words
from rooda.views.model.summary import TIME_KINDS, IterationSummary, RunSummary, Span, SpanKind
from rooda.views.report.details import DetailReader
from rooda.views.report.drawn_timeline import timeline
from rooda.views.report.plots import plots
from rooda.views.report.untrusted import plain_line, plain_text
from rooda.views.wording.labels import (
    KIND_NAMES,
    brief_duration,
    brief_number,
    changes_words,
    clock,
    clock_at,
    day,
    not_known,
    share,
    times_of,
)
from rooda.views.wording.lines import holding_of
from rooda.views.wording.sentences import MOST_NOTES, short, title_of, what_failed

# Jinja2 for the pages of rooda: everything is escaped, and no text has control characters.
#
# Jinja2 is imported here and nowhere else, so only the making of a page imports it.


TEMPLATES = Path(__file__).with_name("templates")


@cache
def environment(*folders: Path) -> Environment:
    """Return what makes pages of the templates of these folders, and of the report's parts."""
    made = Environment(
        loader=FileSystemLoader([*folders, TEMPLATES]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finished,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "line": plain_line,
        "block": plain_text,
        "diffline": lambda text: text or " ",
        "clock": clock,
        "day": day,
        "brief": brief_duration,
        "duration": format_duration,
        "number": brief_number,
        "money": money,
        "short": short,
        "holding": holding_of,
        "not_known": not_known,
    }
    return made


def _finished(value: object) -> object:
    """Return what an expression of the template writes: no text has control characters."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return plain_text(value)


_MOST_ROWS = 400  # iterations in the list
_MOST_FILES = 12  # of an iteration
# The classes of the page.
_TONES: Mapping[Color | None, str] = {
    Color.GOOD: "good",
    Color.BAD: "fail",
    Color.WARNING: "warn",
}
_PAUSES = {SpanKind.ASLEEP: "the machine slept {}", SpanKind.STOPPED: "rooda did not run for {}"}
# The name of a class, the number of lines, and the pixels of the widest page that uses them.
_SHAPES = (("w1", 1, 1120.0), ("w2", 2, 720.0), ("w4", 4, 358.0))
_FEW = 8  # iterations for which one line is enough


def tone_of(status: str, *, is_doubtful: bool) -> str:
    """Return the class of an outcome; a success that leaves tasks open is a warning."""
    known = known_status(status)
    color = Color.WARNING if is_doubtful else known.row.color if known else None
    return _TONES.get(color, "now")


def page(run: RunSummary, reader: DetailReader) -> Iterator[str]:
    """Yield the page in pieces."""
    style, script = (
        (TEMPLATES / name).read_text("utf-8").strip() for name in ("style.css", "script.js")
    )
    yield from (
        environment()
        .get_template("report.html.j2")
        .generate(
            values(run),
            **listed_values(run, reader),
            policy=_policy(style, script),
            style=Markup(style),  # noqa: S704 - rooda's own file
            script=Markup(script),  # noqa: S704 - likewise
        )
    )


def listed_values(run: RunSummary, reader: DetailReader) -> dict[str, Any]:
    """Return what the list of iterations with their details needs besides `values`."""
    rows = _listed(run)
    details = reader.read(run, rows)
    return {
        "rows": ((one, details[one.number]) for one in rows),
        "left_out": len(run.iterations) - len(rows),
    }


def values(run: RunSummary, at: str = "#i") -> dict[str, Any]:
    """Return what the templates know of a run; `at` is the beginning of a link to an iteration."""
    shapes = [_shape(run, *shape) for shape in _SHAPES]
    seconds = [one.seconds for one in run.iterations]
    return {
        "run": run,
        "at": at,
        "proof": run.proof,
        "version": __version__,
        "tone": tone_of(run.status, is_doubtful=run.is_doubtful),
        "tasks_left": left_words(run),
        "lines": [one for one in shapes if one[1]],
        "plots": plots(run),
        "titles": {one.number: _title(one) for one in run.iterations},
        "noted": sum(bool(one.notes or one.waited) for one in run.iterations),
        "waits": _waits(run),
        "opened": _opened(run),
        "drawn": _drawn(run),
        "is_open": False,  # the parts of an iteration
        "kind_names": KIND_NAMES,
        "times": times_of(run),
        "share": lambda part: share(part, run.seconds),
        "failed_seconds": sum(one.seconds for one in run.iterations if one.is_failed),
        "mean_seconds": sum(seconds) / max(1, len(seconds)),
        "longest": max(run.iterations, key=lambda one: one.seconds, default=None),
        "widest": max(((one.added or 0) + (one.deleted or 0) for one in run.changed), default=0),
        "most_notes": MOST_NOTES,
        "most_files": _MOST_FILES,
        "title_of": title_of,
        "what_failed": what_failed,
        "changes": changes_words,
    }


def _policy(style: str, script: str) -> str:
    """Return what a browser may do: use this style and this script, and load nothing."""
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _listed(run: RunSummary) -> Sequence[IterationSummary]:
    """Return the iterations in the list: all, or of many the failed, the noted and the last."""
    many = run.iterations
    if len(many) <= _MOST_ROWS:
        return many
    chosen = [one.number for one in many if one.is_failed or one.notes]
    chosen = chosen[-_MOST_ROWS // 2 :]
    rest = [one.number for one in many if one.number not in set(chosen)]
    wanted = {*chosen, *rest[-(_MOST_ROWS - len(chosen)) :]}
    return [one for one in many if one.number in wanted]


def _shape(run: RunSummary, name: str, lines: int, pixels: float) -> tuple[str, list[object]]:
    if len(run.iterations) <= _FEW:
        lines = (lines + 1) // 2
    return name, list(timeline(run, lines, pixels))


def _title(one: IterationSummary) -> str:
    waited = f" + {brief_duration(one.waited)} waiting" if one.waited else ""
    times = f"{clock(one.started_at)}\u2013{clock(one.ended_at)}"
    took = f"{format_duration(one.seconds)}{waited}"
    return " \u00b7 ".join((str(one.number), times, title_of(one), took))


def _waits(run: RunSummary) -> dict[int, list[str]]:
    """Return the waits of each iteration in words; those of one kind are one."""
    spans: dict[tuple[int, SpanKind | WaitKind], list[Span]] = {}
    asleep = (span for one in run.iterations for span in one.spans if span.kind is SpanKind.ASLEEP)
    for span in (*run.spans, *asleep):
        if span.iteration is not None:
            spans.setdefault((span.iteration, span.kind), []).append(span)
    found: dict[int, list[str]] = {}
    for (number, kind), several in spans.items():
        words = _spent(kind, brief_duration(sum(one.seconds for one in several)))
        first, last = (clock_at(run, one) for one in (several[0].start, several[-1].end))
        found.setdefault(number, []).append(f"{words}, {first} to {last}")
    return found


def _spent(kind: SpanKind | WaitKind, took: str) -> str:
    if isinstance(kind, WaitKind):
        return f"waited {took} ({kind.row.label})"
    return _PAUSES[kind].format(took)


def _opened(run: RunSummary) -> int | None:
    """Return the failure that ended the run: it is open, and nothing else is."""
    last = run.iterations[-1] if run.iterations else None
    ended_badly = run.status in ("aborted", "max-iters") and last is not None and last.is_failed
    return last.number if last is not None and ended_badly else None


def _drawn(run: RunSummary) -> list[str]:
    """Return the kinds that are large enough to be drawn."""
    smallest = run.seconds / 2000
    spans = [*run.spans, *(span for one in run.iterations for span in one.spans)]
    drawn = {str(span.kind) for span in spans if span.seconds >= smallest}
    if SpanKind.COMMIT in drawn:
        drawn.discard(SpanKind.PUSH)
    return [kind for kind in map(str, TIME_KINDS) if kind in drawn]
