"""Take values out of JSON that anybody may have written: what is not as expected is not there."""

import math
from collections.abc import Mapping
from typing import Any

from rooda.text.controls import clean

Event = Mapping[str, Any]

_MOST = 10**15  # more tokens or milliseconds than that are a mistake
_NOTHING: Event = {}
_LONGEST_LABEL = 200


def part(value: object, *path: str) -> Event:
    """The object at the end of a path; an empty one where there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else _NOTHING


def parts(value: object) -> list[Event]:
    """The objects in a list."""
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def text(value: object) -> str:
    """A text, else an empty one."""
    return value if isinstance(value, str) else ""


def label(value: object) -> str:
    """A name that is fit to be shown, else an empty one."""
    if not isinstance(value, str):
        return ""
    shown = " ".join(clean(value[:_LONGEST_LABEL]).split())
    return shown.encode("utf-8", "replace").decode()


def count(value: object) -> int:
    """A number of things, else 0."""
    return value if type(value) is int and 0 <= value <= _MOST else 0


def amount(value: object) -> float | None:
    """A finite number that is not negative, else None."""
    if type(value) not in (int, float):
        return None
    number = float(value) if abs(value) <= _MOST else math.inf  # type: ignore[arg-type]  # a number, see above
    return number if math.isfinite(number) and number >= 0 else None


def says_error(event: Event) -> bool:
    """Whether a result event is about a failure; where it does not say, its subtype does."""
    flag = event.get("is_error")
    return flag if isinstance(flag, bool) else event.get("subtype") != "success"


def status_code(value: object) -> int | None:
    """An HTTP status of a failure, else None."""
    return value if type(value) is int and 400 <= value <= 599 else None  # noqa: PLR2004 - HTTP's
