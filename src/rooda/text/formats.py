"""Data formats: JSON that an untrusted program wrote and its fields, and YAML on one line."""

import json
from datetime import datetime
from typing import Any

import msgspec

# An empty list takes three bytes as text and 56 in memory, so the text's size bounds too little.
MOST_JSON_PARTS = 500_000
_MOST = 10**9  # no plausible count is larger


def parse_json(text: str | bytes) -> Any:
    """Return the JSON value in the text; None for anything else. Never raises.

    Text that is nested too deeply for the parser, or that has more than `MOST_JSON_PARTS` lists,
    objects and members, counts as no JSON. Bytes that are not UTF-8 become U+FFFD.
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
    """Return the record's fields by name, with dictionaries, lists and strings inside.

    A datetime stays as it is: each format has its own way to write it.
    """
    body: dict[str, Any] = msgspec.to_builtins(record, builtin_types=(datetime,), enc_hook=str)
    return body


def json_at(value: Any, *path: str) -> Any:
    """Return the value below these keys; None if it is missing."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def json_number(value: Any, *path: str) -> int:
    """Return the whole number below these keys; 0 if it is none, negative or implausible."""
    found = json_at(value, *path)
    return found if type(found) is int and 0 <= found < _MOST else 0


def json_text(value: Any, *path: str) -> str:
    """Return the text below these keys; "" if it is no text."""
    found = json_at(value, *path)
    return found if isinstance(found, str) else ""


def json_list(value: Any, *path: str) -> list[Any]:
    """Return the list below these keys; an empty one if it is no list."""
    found = json_at(value, *path)
    return found if isinstance(found, list) else []


def flow_yaml(value: object) -> str:
    """Return the value as one line of YAML."""
    import yaml  # noqa: PLC0415 - slow to load, and shell completion must be quick

    text: str = yaml.safe_dump(value, default_flow_style=True, width=10**6, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")
