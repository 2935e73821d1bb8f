"""Find the complaint in what a CLI printed last."""

import re

from rooda.agents.faults import brief, classify
from rooda.agents.report import Fault

# How programs begin a line that says what went wrong.
_BEGINNING = re.compile(
    r"\s*(?:\[?(?:fatal |api |critical |unexpected )?(?:error|failed|failure)\b|✗|✘|⚠|×)",
    re.IGNORECASE,
)
_MOST_LINES = 40


def last_line(words: str) -> str:
    """The last line that is not empty."""
    return next((line.strip() for line in reversed(words.splitlines()) if line.strip()), "")


def complaint(stderr: str) -> str:
    """What standard error says went wrong: its last line that begins like that, else its last."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()][-_MOST_LINES:]
    found = (line for line in reversed(lines) if _BEGINNING.match(line))
    return next(found, lines[-1] if lines else "")


def fault_in(words: str, status: int | None = None) -> Fault | None:
    """The failure that these words of a CLI speak of."""
    kind = classify(words, status)
    return None if kind is None else Fault(kind, brief(words))
