"""Reports in one document, and access to the fields of a JSON document that an agent wrote."""

from typing import Any, NamedTuple

from rooda.testresults.results import TestDetail
from rooda.testresults.suites import Counts

_MOST = 10**9


class RunnerReport(NamedTuple):
    """The results in one document."""

    runner: str
    counts: Counts
    details: list[TestDetail]


def at(value: Any, *path: str) -> Any:
    """Return the value below these keys; None if it is missing."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def amount(value: Any, *path: str) -> int:
    """Return the number below these keys; 0 if it is no plausible number."""
    found = at(value, *path)
    return found if type(found) is int and 0 <= found < _MOST else 0


def words(value: Any, *path: str) -> str:
    """Return the text below these keys; "" if it is no text."""
    found = at(value, *path)
    return found if isinstance(found, str) else ""


def members(value: Any, *path: str) -> list[Any]:
    """Return the list below these keys; an empty one if it is no list."""
    found = at(value, *path)
    return found if isinstance(found, list) else []
