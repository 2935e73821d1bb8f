"""How far a task is, by the words and signs that people use for it."""

import re
from enum import StrEnum

from rooda.ralph.reading.inline import plain

_LOOKED_AT = 400  # characters
_COMPLETE = re.compile(r"(?:completed?|done)\b")
_IN_PROGRESS = re.compile(r"(?:work[ _-])?in[ _-]?progress\b|wip\b")
_COMPLETE_SIGNS, _PROGRESS_SIGNS = frozenset("✅✔☑"), frozenset("🚧")
_LETTER = re.compile(r"[^\W_]")
_STRUCK = re.compile(r"~~[^~]*~~")
_OPEN_MARKS, _PROGRESS_MARKS = ("", " "), ("~", "/", "🚧")
BOX_MARKS = " xX~/✓✔✅☑🚧"  # what may stand in a check box


class TaskStatus(StrEnum):
    """How far a task is; whatever a plan says otherwise is open."""

    OPEN = "open"
    IN_PROGRESS = "in progress"
    COMPLETE = "complete"


def status_of_box(mark: str) -> TaskStatus:
    """What a check box says."""
    if mark in _OPEN_MARKS:
        return TaskStatus.OPEN
    return TaskStatus.IN_PROGRESS if mark in _PROGRESS_MARKS else TaskStatus.COMPLETE


def status_of(value: str) -> TaskStatus:
    """What a status line says: its first word decides, else a sign before it."""
    words = plain(_STRUCK.sub("", value[:_LOOKED_AT])).casefold()
    if words.startswith(("[x]", "[ ]")):
        return status_of_box(words[1])
    first = _LETTER.search(words)
    symbols, words = (words[: first.start()], words[first.start() :]) if first else (words, "")
    if _COMPLETE.match(words):
        return TaskStatus.COMPLETE
    if _IN_PROGRESS.match(words):
        return TaskStatus.IN_PROGRESS
    if not _COMPLETE_SIGNS.isdisjoint(symbols):
        return TaskStatus.COMPLETE
    if not _PROGRESS_SIGNS.isdisjoint(symbols):
        return TaskStatus.IN_PROGRESS
    return TaskStatus.OPEN
