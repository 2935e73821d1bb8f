"""Seconds as people write and read them."""

import re

_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
# The same as `parse_duration` for JSON Schema, which has no named groups.
DURATION_PATTERN = (
    rf"^ *(?:{_NUMBER}|(?=[0-9])(?:{_NUMBER} *d *)?(?:{_NUMBER} *h *)?"
    rf"(?:{_NUMBER} *m *)?(?:{_NUMBER} *s)?) *$"
)

_PARTS = re.compile(
    r"(?:(?P<d>\d+(?:\.\d+)?)d)?(?:(?P<h>\d+(?:\.\d+)?)h)?"
    r"(?:(?P<m>\d+(?:\.\d+)?)m)?(?:(?P<s>\d+(?:\.\d+)?)s)?"
)
_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}


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
    """Read `90`, `1.5`, `45s`, `5m`, `1h30m` or `2d`; raise ValueError for anything else."""
    compact = text.strip().replace(" ", "")
    try:
        return float(compact)
    except ValueError:
        match = _PARTS.fullmatch(compact)
        if not compact or match is None:
            raise ValueError(f"not a duration: {text!r}") from None
        return sum(float(n) * _UNITS[unit] for unit, n in match.groupdict().items() if n)
