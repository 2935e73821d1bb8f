"""`log_format: json`: one event a line. The schema is documented in docs/events.md."""

import json
import re
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from rooda.loop.emitter import Stamped
from rooda.loop.events import Event, IterationEnded, RunEnded
from rooda.loop.levels import level
from rooda.process.events import Output, Tick
from rooda.text.formats import to_builtins

SCHEMA_VERSION = 1
# Far too many for a log, and the agent's output is kept elsewhere.
UNLOGGED = (Output, Tick)
FOR_THE_RECORD = "state"  # a field of an iteration's end

_CONTROLS = re.compile(r"[\x7f-\x9f]")
_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")


def event_name(kind: type[Event]) -> str:
    """`iteration_started` for IterationStarted."""
    return _CAPITAL.sub("_", kind.__name__).lower()


def as_json(event: Event) -> dict[str, Any]:
    """The event's fields as JSON has them."""
    if isinstance(event, IterationEnded):
        body = to_builtins(replace(event, result=None, state=None))
        del body[FOR_THE_RECORD]
        return body | {"result": event.result and event.result.to_json()}
    body = to_builtins(event)
    if isinstance(event, RunEnded):
        body["stats"] = event.stats.summary()
    return body


def render(stamped: Stamped, time: str | None) -> str | None:
    """The event as a JSON object on one line."""
    event = stamped.event
    if isinstance(event, UNLOGGED):
        return None
    head: dict[str, object] = {"schema_version": SCHEMA_VERSION}
    if time is not None:
        head["time"] = time
    head |= {
        "elapsed": round(stamped.elapsed, 3),
        "level": level(event).name.lower(),
        "event": event_name(type(event)),
    }
    if stamped.iteration is not None:
        head["iteration"] = stamped.iteration
    body = as_json(event)
    line = json.dumps(head | body, ensure_ascii=False, default=_plain)
    # JSON lets these stand as they are, a terminal does not.
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", line)


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
