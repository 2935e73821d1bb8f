"""Seconds as people write and read them."""

import re

DAY = 86400  # seconds

_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_UNITS = {"d": DAY, "h": 3600, "m": 60, "s": 1}
_PARTS = r" *".join(rf"(?:({_NUMBER}) *{unit})?" for unit in _UNITS)
# Also for JSON Schema, so without anything that only Python knows.
DURATION_PATTERN = rf"^ *(?:{_NUMBER}|(?=[0-9]){_PARTS}) *$"


def format_duration(seconds: float) -> str:
    """`45.2s`, `2m16s`, `1h02m05s`."""
    tenths = round(seconds, 1)
    if tenths < 60:  # noqa: PLR2004 - a minute
        return f"{tenths:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m{rest:02d}s" if hours else f"{minutes}m{rest:02d}s"


def format_seconds(seconds: float) -> str:
    """A limit as it was set, in plain seconds: `60s`, `0.5s`."""
    return f"{seconds:g}s" if seconds < 1e6 else f"{seconds:.0f}s"  # noqa: PLR2004 - no exponents


def parse_duration(text: str) -> float:
    """Read `90`, `1.5`, `-10`, `45s`, `5m`, `1h 30m` or `2d`, or raise ValueError."""
    try:
        return float(text)
    except ValueError:
        match = re.fullmatch(DURATION_PATTERN, text)
        if match is None:
            raise ValueError(f"not a duration: {text!r}") from None
        numbers = zip(match.groups(), _UNITS.values(), strict=True)
        return sum(float(number) * unit for number, unit in numbers if number)
