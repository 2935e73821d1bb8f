"""Data formats: JSON from untrusted programs, its fields, and YAML on one line."""

import json
from datetime import datetime
from typing import Any

import msgspec

# An empty list takes three bytes as text but 56 in memory, so a text size limit is not enough.
MOST_JSON_PARTS = 500_000
_MOST = 10**9  # larger counts are implausible


def parse_json(text: str | bytes) -> Any:
    """Return the JSON value in the text, or None if the text is not JSON. Never raises.

    Text that is nested too deeply, or that has more than `MOST_JSON_PARTS` lists, objects and
    members, gives None. Invalid UTF-8 bytes become U+FFFD.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    if len(text) > MOST_JSON_PARTS and sum(map(text.count, ",[{")) > MOST_JSON_PARTS:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def to_builtins(record: msgspec.Struct) -> dict[str, Any]:
    """Return the record's fields by name; nested values are dictionaries, lists and strings.

    Datetimes are not converted, because each output format writes them in its own way.
    """
    body: dict[str, Any] = msgspec.to_builtins(record, builtin_types=(datetime,), enc_hook=str)
    return body


def json_at(value: Any, *path: str) -> Any:
    """Return the value below these keys, or None if it is missing."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def json_number(value: Any, *path: str) -> int:
    """Return the integer below these keys; 0 if it is missing, negative or implausible."""
    found = json_at(value, *path)
    return found if type(found) is int and 0 <= found < _MOST else 0


def json_text(value: Any, *path: str) -> str:
    """Return the string below these keys, or "" for any other value."""
    found = json_at(value, *path)
    return found if isinstance(found, str) else ""


def json_list(value: Any, *path: str) -> list[Any]:
    """Return the list below these keys, or [] for any other value."""
    found = json_at(value, *path)
    return found if isinstance(found, list) else []


def flow_yaml(value: object) -> str:
    """Return the value as one line of YAML."""
    import yaml  # noqa: PLC0415 - slow to load, and shell completion must be fast

    text: str = yaml.safe_dump(value, default_flow_style=True, width=10**6, allow_unicode=True)
    line = text.removesuffix("\n").removesuffix("\n...")
    # YAML would spread a text with newlines over several lines; JSON is YAML too.
    return json.dumps(value, ensure_ascii=False) if "\n" in line else line
