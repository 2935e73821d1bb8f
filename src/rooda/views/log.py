"""A log: the events that are important enough, in one format, with the time in one form.

The words of an event are its own (`rooda.text.event`). docs/events.md describes the JSON schema.
"""

import json
import re
from collections.abc import Callable
from datetime import datetime

from msgspec import Struct

from rooda.loop.emitter import Stamped
from rooda.text.event import LogLevel

SCHEMA_VERSION = 1
_CONTROLS = re.compile(r"[\x7f-\x9f]")

TimeFormat = Callable[[Stamped], str | None]
# The forms of `log_timestamp_format`.
TIME_FORMATS: dict[str, TimeFormat] = {
    "time": lambda stamped: stamped.at.strftime("%H:%M:%S"),
    "time-ms": lambda stamped: stamped.at.isoformat(timespec="milliseconds")[11:23],
    "relative": lambda stamped: f"+{stamped.elapsed:.1f}s",
    "iso": lambda stamped: stamped.at.isoformat(timespec="milliseconds"),
    "none": lambda _: None,
}
AUTO_TIME = "auto"  # the user has not chosen a form: it depends on the format of the log
DEFAULT_TIMES = {"text": "time", "logfmt": "time-ms", "json": "iso"}
LOG_FILE_TIME = "iso"


class Log(Struct, frozen=True):
    """A listener that writes lines."""

    log_format: str
    time: TimeFormat
    threshold: LogLevel
    write: Callable[[str], None]

    def __call__(self, stamped: Stamped) -> None:
        """Write the event's line, if it has one."""
        if stamped.event.log_level < self.threshold:
            return
        line = self.line(stamped)
        if line is not None:
            self.write(line + "\n")

    def line(self, stamped: Stamped) -> str | None:
        """Return the event as this log shows it."""
        time, event = self.time(stamped), stamped.event
        if self.log_format == "json":
            return json_line(stamped, time)
        words = event.as_text() if self.log_format == "text" else event.as_logfmt()
        return words if words is None or time is None else f"[{time}] {words}"


def json_line(stamped: Stamped, time: str | None) -> str | None:
    """Return the event as a JSON object on one line; None if it is not logged."""
    event = stamped.event
    if not event.is_logged:
        return None
    head: dict[str, object] = {"schema_version": SCHEMA_VERSION}
    if time is not None:
        head["time"] = time
    head |= {
        "elapsed": round(stamped.elapsed, 3),
        "level": event.log_level.name.lower(),
        "event": event.event_name(),
    }
    if stamped.iteration is not None:
        head["iteration"] = stamped.iteration
    line = json.dumps(head | event.to_json(), ensure_ascii=False, default=_plain)
    # JSON allows these control characters as they are, but a terminal obeys them.
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", line)


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
