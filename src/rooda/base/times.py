"""Durations as users write and read them, and the local time."""

import os
import re
from datetime import datetime, tzinfo
from pathlib import Path

MINUTE, HOUR, DAY = 60, 3600, 86400  # seconds

_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_UNITS = {"d": DAY, "h": HOUR, "m": MINUTE, "s": 1}
_PARTS = r" *".join(rf"(?:({_NUMBER}) *{unit})?" for unit in _UNITS)
# JSON Schema uses this pattern too, so it must not contain Python-only syntax.
DURATION_PATTERN = rf"^ *(?:{_NUMBER}|(?=[0-9]){_PARTS}) *$"
_FIRST_EXPONENT = 1e6  # from this value on, the format `g` writes `1e+06`

_LOCALTIME = Path("/etc/localtime")
_DATABASE = "zoneinfo/"


def format_duration(seconds: float) -> str:
    """Return a measured duration: `45.2s`, `2m16s`, `1h02m05s`."""
    tenths = round(seconds, 1)
    if tenths < MINUTE:
        return f"{tenths:.1f}s"
    minutes, rest = divmod(round(seconds), MINUTE)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m{rest:02d}s" if hours else f"{minutes}m{rest:02d}s"


def format_seconds(seconds: float) -> str:
    """Return a limit in plain seconds, as the user set it: `60s`, `0.5s`."""
    return f"{seconds:g}s" if seconds < _FIRST_EXPONENT else f"{seconds:.0f}s"


def short_duration(seconds: float) -> str:
    """Return a limit as a user would write it: `24h`, `30m`, `90s`."""
    for unit, size in (("h", HOUR), ("m", MINUTE)):
        if seconds and seconds % size == 0:
            return f"{seconds // size:.0f}{unit}"
    return format_seconds(seconds)


def parse_duration(text: str) -> float:
    """Return the seconds in `90`, `1.5`, `-10`, `45s`, `5m`, `1h 30m` or `2d`.

    Any other text raises ValueError.
    """
    try:
        return float(text)
    except ValueError:
        match = re.fullmatch(DURATION_PATTERN, text)
        if match is None:
            raise ValueError(f"not a duration: {text!r}") from None
        numbers = zip(match.groups(), _UNITS.values(), strict=True)
        return sum(float(number) * unit for number, unit in numbers if number)


def local_now() -> datetime:
    """Return the current time in the local zone, including its daylight saving rules."""
    zone = local_zone(os.environ.get("TZ", ""), _LOCALTIME)
    return datetime.now().astimezone(zone)  # None means the current UTC offset


def local_zone(variable: str, localtime: Path) -> tzinfo | None:
    """Return the zone named by `variable` (TZ), else the zone that the link `localtime` points to.

    Returns None if neither is a known zone.
    """
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - most runs need no zone

    name = variable.removeprefix(":")
    try:
        if not name:
            name = _linked_zone(localtime)
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # KeyError: the system has no zone database
        return None


def _linked_zone(localtime: Path) -> str:
    """Return the name of the zone that the link leads to, mostly with a single system call."""
    try:
        target = str(localtime.readlink())
    except OSError:  # not a link
        target = ""
    if _DATABASE not in target:
        target = str(localtime.resolve())
    return target.rpartition(_DATABASE)[2]
