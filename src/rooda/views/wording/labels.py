"""Words and numbers that the views of a summary share. Pure."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from rooda.base.numbers import money
from rooda.base.times import HOUR, MINUTE, format_duration
from rooda.loop.wait_kinds import WaitKind
from rooda.record.rows import moment_of
from rooda.views.model.summary import RunSummary, SpanKind

WORK_NAMES: Mapping[SpanKind, str] = {
    SpanKind.AGENT: "agent",
    SpanKind.VERIFY: "verify",
    SpanKind.COMMIT: "commit",
    SpanKind.PUSH: "push",
    SpanKind.HOOKS: "hooks",
    SpanKind.ASLEEP: "machine asleep",
    SpanKind.STOPPED: "not running",
}
# The names in a table of all times, see `times_of`.
KIND_NAMES: Mapping[str, str] = {
    **{str(kind): name for kind, name in WORK_NAMES.items()},
    **{str(kind): f"waiting: {kind.row.label}" for kind in WaitKind},
    SpanKind.COMMIT: "commit and push",
    SpanKind.PUSH: "commit and push",
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
    """Return the local time of day of a time in the record: `06:41`."""
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


def date_and_time(text: str | None) -> str:
    """Return `2026-11-14 23:02:09`, the local time of a time in the record."""
    if not text:
        return "-"
    moment = moment_of(text)
    return f"{moment:%Y-%m-%d %H:%M:%S}" if moment else text


def day(text: str | None) -> str:
    """Return `Sat 14 Nov 23:02`."""
    moment = moment_of(text) if text else None
    return f"{moment:%a} {moment.day} {moment:%b %H:%M}" if moment else "?"


def brief_duration(seconds: float) -> str:
    """Return a duration with two units at most: `7h39m`, `12m`, `45s`, `0.4s`."""
    whole = round(seconds)
    if seconds < 10 and seconds != whole:  # noqa: PLR2004 - a tenth still matters
        return format_duration(seconds)
    if whole < MINUTE:
        return f"{whole}s"
    if whole < HOUR:
        minutes, rest = divmod(whole, MINUTE)
        return f"{minutes}m{rest:02d}s" if rest and minutes < 10 else f"{minutes}m"  # noqa: PLR2004
    minutes = round(whole / MINUTE)
    days, hours = divmod(minutes // 60, 24)
    return f"{days}d{hours:02d}h" if days else f"{hours}h{minutes % 60:02d}m"


def changes_words(files: int | None, added: int | None, deleted: int | None) -> str:
    """Return `3 files +120 -14`, with a minus sign."""
    if files is None:
        return "changes unknown"
    words = f"{files:,} file" + ("" if files == 1 else "s")
    if added is None or deleted is None:
        return words
    return f"{words} +{added:,} \u2212{deleted:,}"


def brief_number(number: float) -> str:
    """Return `950`, `12.4 k`, `23.8 M`."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size * 0.9995:
            value = number / size
            return f"{value:.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"  # noqa: PLR2004
    return f"{number:g}"


def not_known(iterations: Sequence[int]) -> str:
    """Return `iteration 21 not known` for what a sum does not have; "" if it has all."""
    if not iterations:
        return ""
    number = len(iterations)
    return f"{f'iteration {iterations[0]}' if number == 1 else f'{number} iterations'} not known"


def money_of(run: RunSummary) -> str:
    """Return `$15.21`, or `$15.21 (iteration 21 not known)`; "" if no cost is known."""
    if run.cost is None:
        return ""
    return money(run.cost) + (f" ({not_known(run.unpriced)})" if run.unpriced else "")
