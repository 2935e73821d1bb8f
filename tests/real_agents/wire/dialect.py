"""The interface of a wire format, and helpers for all of them."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from real_agents.scenarios import Refuse, Run, Say

Json = dict[str, Any]
JSON = "application/json"
EVENTS = "text/event-stream"

# The tokens of a turn in every format that reports them: input, cached part of it, output.
INPUT, CACHED, OUTPUT = 1200, 1000, 34
# How long a limit lasts from the time of its first message.
LIMIT_SECONDS = 4 * 3600


@dataclass(frozen=True)
class Answer:
    """One HTTP response."""

    body: bytes
    status: int = 200
    kind: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Asked:
    """The parts of a request on which the response depends."""

    body: Json
    streaming: bool
    resets_at: int


@dataclass(frozen=True)
class Dialect:
    """The endings of its paths, a check for tool results in a request, and the responses."""

    endings: tuple[str, ...]
    tool_has_run: Callable[[Json], bool]
    speak: Callable[[Asked, Say | Run], Answer]
    refuse: Callable[[Asked, Refuse], Answer]


def document(content: Json, status: int = 200, **headers: str) -> Answer:
    """Return a response with one JSON document; `_` in a header name stands for `-`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(json.dumps(content).encode(), status, JSON, named)


def stream(events: Iterable[Json], *, named: bool = True, end: str = "") -> Answer:
    """Return a response with server-sent events, with or without event names."""
    lines = [
        (f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event)}\n\n"
        for event in events
    ]
    return Answer("".join([*lines, end]).encode(), kind=EVENTS)


def pieces(text: str) -> list[str]:
    """Split a text into small pieces, so that no piece contains a whole signal."""
    size = max(7, len(text) // 200)
    return [text[start : start + size] for start in range(0, len(text) or 1, size)]


def offered(tools: Iterable[Json], *names: str) -> str | None:
    """Return the first of the names for which the agent has a tool."""
    there = {tool.get("name") for tool in tools}
    return next((name for name in names if name in there), None)
