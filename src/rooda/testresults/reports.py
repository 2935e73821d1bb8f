"""Reports that are whole documents, and how to look into them: an agent wrote them."""

import json
from typing import Any, NamedTuple

from rooda.testresults.suites import Counts
from rooda.testresults.types import TestDetail

_MOST = 10**9


class Report(NamedTuple):
    """What a document says."""

    runner: str
    counts: Counts
    details: list[TestDetail]


def loaded(text: str) -> Any:
    """The JSON value that the text is; None if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def at(value: Any, *path: str) -> Any:
    """What is there below these keys; None if nothing is."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def amount(value: Any, *path: str) -> int:
    """The number there; 0 if there is none."""
    found = at(value, *path)
    return found if type(found) is int and 0 <= found < _MOST else 0


def words(value: Any, *path: str) -> str:
    """The text there; empty if there is none."""
    found = at(value, *path)
    return found if isinstance(found, str) else ""


def members(value: Any, *path: str) -> list[Any]:
    """The members of the list there; none if there is no list."""
    found = at(value, *path)
    return found if isinstance(found, list) else []
