"""A digest of how a check failed, so that rooda finds the same failure again. Pure."""

import hashlib
import re
from functools import cache
from pathlib import Path

_LAST_LINES = 10

_UNIT = r"(?:ns|µs|us|ms|s|secs?|seconds?|m|mins?|minutes?|h|hours?)"

# What differs between two runs that fail in the same way. The numbers of tests stay.
_NOISE: tuple[tuple[str, str], ...] = (
    (r"\b\d{4}-\d\d-\d\d[T _]\d\d[:_]\d\d[:_]\d\d(?:[.,_]\d+)?(?:Z|[+-]\d\d:?\d\d)?", "TIME"),
    (r"(?<![\w:.])\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?|[.,]\d+)(?: ?[AP]M)?\b", "TIME"),
    (r"\b\d{4}[-/]\d\d[-/]\d\d\b", "DATE"),
    (r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UUID"),
    (rf"(?<![\w.])(?:\d+(?:[.,]\d+)?\s?{_UNIT}(?:\s(?=\d))?)+(?!\w)", "SPAN"),
    (r"(\bduration_ms:?\s+)[\d.]+", r"\1SPAN"),
    (r"(\btook\s+|\bin\s+)\d+\.\d+(?!\S)", r"\1SPAN"),
    (r"\b\d+(?:[.,]\d+)?\s?[KMG]i?B\b", "SIZE"),
    (r"\b0x[0-9a-fA-F]+\b", "ADDRESS"),
    (r"==\d+==", "==PID=="),
    (r"(\b(?:pid|PID|process|thread)[ =:]+)\d+", r"\1PID"),
    (r"(\bseed[ =:]+)\d+", r"\1SEED"),
    (r"(\b(?:127\.0\.0\.1|localhost|\[::1\]):)\d+", r"\1PORT"),
    (r"(?:/private)?(?:/var/folders/\w+/\w+/T|/var/tmp|/tmp)/[\w.-]+", "/TMP"),
    (r"/tmp[\w.-]{4,}", "/TMP"),  # noqa: S108 - a pattern
    (r"\bpytest-\d+\b", "pytest-N"),
)


def failure_digest(exit_code: int | None, command: str, output: str, folder: Path) -> str:
    """Return a digest of how a check failed; empty if it printed nothing to compare.

    `folder` is where the check ran: another slot of a fleet has another one.
    """
    lines = last_lines(output, folder)
    if not lines:
        return ""
    text = "\n".join([str(exit_code), command, *lines])
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def last_lines(output: str, folder: Path) -> tuple[str, ...]:
    """Return the last lines of an output without times, temporary paths, addresses and the like."""
    lines = [line for line in output.splitlines() if line.strip()]
    return tuple(map(_plain, (line.replace(str(folder), ".") for line in lines[-_LAST_LINES:])))


def _plain(line: str) -> str:
    for pattern, instead in _noise():
        line = pattern.sub(instead, line)
    # A runner fills its last line with signs up to the width of the terminal.
    return re.sub(r"([=\-_*.])\1{3,}", r"\1\1\1", " ".join(line.split()))


@cache
def _noise() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return the compiled patterns. A run whose checks pass needs none of them."""
    return tuple((re.compile(pattern), instead) for pattern, instead in _NOISE)
