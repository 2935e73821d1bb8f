"""Find the complaint in what a CLI printed last."""

import re

from rooda.agents.faults import LONGEST_MESSAGE, brief, classify
from rooda.agents.report import Fault

# How programs begin a line that says what went wrong.
_BEGINNING = re.compile(
    r"\s*(?:\[?(?:fatal |api |critical |unexpected )?(?:error|failed|failure)\b|✗|✘|⚠|×"
    r"|[\w.$]{1,60}(?:error|exception)\b(?=:)"
    r"|unknown (?:argument|option|command|flag)s?\b)",
    re.IGNORECASE,
)


def last_line(words: str) -> str:
    """The last line that is not empty."""
    return next((line.strip() for line in reversed(words.splitlines()) if line.strip()), "")


def last_plain_line(words: str) -> str:
    """The last line that is neither empty nor markup: an error may end with a page of a proxy."""
    lines = (line.strip() for line in reversed(words.splitlines()))
    return next((line for line in lines if line and not line.startswith("<")), "")


def last_lines(words: str, most: int) -> str:
    """The last lines that are not empty, as one."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    return " ".join(lines[-most:])


def complaint(stderr: str) -> str:
    """What standard error says went wrong: its last line that begins like that, else its last."""
    found = (line.strip() for line in reversed(stderr.splitlines()) if is_complaint(line))
    return next(found, last_line(stderr))


def is_complaint(line: str) -> bool:
    """Whether a line begins like one that says what went wrong."""
    return _BEGINNING.match(line) is not None


def fault_in(
    words: str, status: int | None = None, retry_after: float | None = None
) -> Fault | None:
    """The failure that these words of a CLI speak of."""
    kind = classify(words, status, retry_after)
    if kind is None:
        return None
    return Fault(kind, brief(words), words=words[:LONGEST_MESSAGE], retry_after=retry_after)
