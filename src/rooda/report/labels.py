"""Words and numbers that the page and the Markdown share. Pure."""

from collections.abc import Mapping
from datetime import timedelta

from rooda.record.rows import moment_of
from rooda.summary.model import RunSummary, SpanKind

KIND_NAMES: Mapping[str, str] = {
    SpanKind.AGENT: "agent",
    SpanKind.VERIFY: "verify",
    SpanKind.COMMIT: "commit and push",
    SpanKind.PUSH: "commit and push",
    SpanKind.HOOKS: "hooks",
    SpanKind.LIMIT: "waiting: usage limit",
    SpanKind.OUTAGE: "waiting: outage",
    SpanKind.BACKOFF: "waiting: after a failure",
    SpanKind.ASLEEP: "machine asleep",
    SpanKind.STOPPED: "not running",
    "other": "rooda itself",
}


def times_of(run: RunSummary) -> list[tuple[str, float]]:
    """Return the parts of the time, the largest first; a push is part of the commit."""
    found: dict[str, float] = {}
    for kind, seconds in run.times.items():
        name = str(SpanKind.COMMIT if kind is SpanKind.PUSH else kind)
        found[name] = found.get(name, 0.0) + seconds
    rest = run.seconds - sum(found.values())
    if found and rest >= 1:
        found["other"] = rest
    return sorted(found.items(), key=lambda pair: -pair[1])


def share(seconds: float, total: float) -> str:
    """Return the part of the whole in percent."""
    percent = 100 * seconds / total if total else 0.0
    return "<1 %" if 0 < percent < 1 else f"{percent:.0f} %"


def clock(text: str | None, *, seconds: bool = False) -> str:
    """Return the local time of day of a time in the record."""
    moment = moment_of(text) if text else None
    if moment is None:
        return "?"
    return f"{moment:%H:%M:%S}" if seconds else f"{moment:%H:%M}"


def clock_at(run: RunSummary, seconds: float) -> str:
    """Return the local time of day so many seconds after the start of the run."""
    start = moment_of(run.started_at)
    try:
        return f"{start + timedelta(seconds=seconds):%H:%M}" if start else "?"
    except OverflowError:
        return "?"


def day(text: str | None) -> str:
    """Return `Sat 14 Nov 23:02`."""
    moment = moment_of(text) if text else None
    return f"{moment:%a} {moment.day} {moment:%b %H:%M}" if moment else "?"
