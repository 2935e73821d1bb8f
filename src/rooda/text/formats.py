"""Data formats: JSON that an untrusted program wrote, and values on one line of YAML."""

import json
from typing import Any

# An empty list takes three bytes as text and 56 in memory, so the text's size bounds too little.
MOST_JSON_PARTS = 500_000


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


def flow_yaml(value: object) -> str:
    """Return the value as one line of YAML."""
    import yaml  # noqa: PLC0415 - slow to load, and shell completion must be quick

    text: str = yaml.safe_dump(value, default_flow_style=True, width=10**6, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")
