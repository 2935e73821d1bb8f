"""Reads JSON events of a CLI. A value of an unexpected type counts as missing.

The output of a CLI is untrusted: any value may have any type or size.
"""

import math
from collections.abc import Mapping
from typing import Any

from rooda.base.controls import clean
from rooda.base.formats import parse_json
from rooda.world.agents.agent_notes import AgentNotes
from rooda.world.agents.agent_report import Tokens
from rooda.world.agents.speech_buffers import GAP

Event = Mapping[str, Any]

_LARGEST = 10**15  # larger numbers of tokens or milliseconds are implausible
_EMPTY: Event = {}
_LONGEST_LABEL = 200
_HTTP_ERRORS = range(400, 600)


def parse_event(line: bytes) -> Event | list[Any] | None:
    """Return the JSON object or list in a line, or None if it is neither or too large."""
    found = parse_json(line)
    if found is None and GAP in line:
        # The kept end of a long line may start in the middle of an escaped quote.
        head, _, tail = line.rpartition(GAP)
        found = parse_json(head + GAP + tail[1:])
    return found if isinstance(found, dict | list) else None


# -- values ----------------------------------------------------------------------------------


def part(value: object, *path: str) -> Event:
    """Return the object at the end of a path of keys, or an empty object."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else _EMPTY


def parts(value: object) -> list[Event]:
    """Return the objects in a list, or [] for any other value."""
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def text(value: object) -> str:
    """Return a string, or "" for any other value."""
    return value if isinstance(value, str) else ""


def label(value: object) -> str:
    """Return a short name that is safe to print, or "" for any other value."""
    if not isinstance(value, str):
        return ""
    shown = " ".join(clean(value[:_LONGEST_LABEL]).split())
    return shown.encode("utf-8", "replace").decode()


def count(value: object) -> int:
    """Return a non-negative integer, or 0 for any other value."""
    return value if type(value) is int and 0 <= value <= _LARGEST else 0


def amount(value: object) -> float | None:
    """Return a finite non-negative number, or None for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    number = float(value) if abs(value) <= _LARGEST else math.inf
    return number if math.isfinite(number) and number >= 0 else None


def says_error(event: Event) -> bool:
    """Return whether a result event reports a failure, by `is_error` or else by its subtype."""
    flag = event.get("is_error")
    return flag if isinstance(flag, bool) else event.get("subtype") != "success"


def status_code(value: object) -> int | None:
    """Return the HTTP status of an error, or None for any other value."""
    return value if type(value) is int and value in _HTTP_ERRORS else None


# -- events in the format of Anthropic's messages, which several CLIs print ------------------


def read_assistant(event: Event, notes: AgentNotes) -> None:
    """Record the assistant's text and its tool calls.

    The text of a subagent is not part of the assistant's answer.
    """
    is_subagent = bool(event.get("parent_tool_use_id"))
    message = part(event, "message")
    for block in parts(message.get("content")):
        match block.get("type"):
            case "text" if not is_subagent:
                notes.say(text(block.get("text")))
            case "tool_use":
                notes.uses_tool(text(block.get("name")), block.get("input"))
    if not is_subagent:
        used = anthropic_tokens(part(message, "usage"))
        if used.total:
            notes.context_used = used.total


def read_user(event: Event, notes: AgentNotes) -> None:
    """Record the end of a tool if the event contains a tool result."""
    blocks = parts(part(event, "message").get("content"))
    if any(block.get("type") == "tool_result" for block in blocks):
        notes.tool_ended()


def anthropic_tokens(usage: Event) -> Tokens:
    """Return the tokens of a usage object; `input_tokens` does not include cached tokens."""
    given, output = count(usage.get("input_tokens")), count(usage.get("output_tokens"))
    read = count(usage.get("cache_read_input_tokens"))
    written = count(usage.get("cache_creation_input_tokens"))
    return Tokens(given, output, read, written, total=given + output + read + written)
