"""What a dialect is, and what all of them are made of."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from real_agents.scenarios import Refuse, Run, Say

Json = dict[str, Any]
JSON = "application/json"
EVENTS = "text/event-stream"

# A turn's tokens in every dialect that tells them: what came in (of it from the cache), and out.
INPUT, CACHED, OUTPUT = 1200, 1000, 34
# How long a limit lasts from the moment in which it is told.
LIMIT_SECONDS = 4 * 3600


@dataclass(frozen=True)
class Answer:
    """One answer over HTTP, as bytes."""

    body: bytes
    status: int = 200
    kind: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Asked:
    """One request, as far as an answer depends on it."""

    body: Json
    streaming: bool
    resets_at: int


@dataclass(frozen=True)
class Dialect:
    """The end of its addresses, how to see a tool's result in a request, and how to answer."""

    endings: tuple[str, ...]
    tool_has_run: Callable[[Json], bool]
    speak: Callable[[Asked, Say | Run], Answer]
    refuse: Callable[[Asked, Refuse], Answer]


def document(content: Json, status: int = 200, **headers: str) -> Answer:
    """An answer in one piece; `_` in a header's name stands for `-`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(json.dumps(content).encode(), status, JSON, named)


def stream(events: Iterable[Json], *, named: bool = True, end: str = "") -> Answer:
    """Server-sent events, with or without the name of each."""
    lines = [
        (f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event)}\n\n"
        for event in events
    ]
    return Answer("".join([*lines, end]).encode(), kind=EVENTS)


def pieces(text: str) -> list[str]:
    """A text as models send it: in bits, so that a promise is never whole in one of them."""
    size = max(7, len(text) // 200)
    return [text[start : start + size] for start in range(0, len(text) or 1, size)]


def offered(tools: Iterable[Json], *names: str) -> str | None:
    """The first of the names that the agent has a tool for."""
    there = {tool.get("name") for tool in tools}
    return next((name for name in names if name in there), None)
