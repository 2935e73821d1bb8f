"""A log: events that are important enough, one rendering, one place to write to."""

from collections.abc import Callable

from msgspec import Struct

from rooda.loop.emitter import Stamped
from rooda.loop.levels import Level, level
from rooda.views import jsonl, logfmt, text
from rooda.views.timestamps import TimeFormat

_RENDERERS = {"text": text.render, "logfmt": logfmt.render}


class Log(Struct, frozen=True):
    """A listener that writes lines."""

    log_format: str
    time: TimeFormat
    threshold: Level
    write: Callable[[str], None]

    def __call__(self, stamped: Stamped) -> None:
        """Write the event's line, if it has one."""
        if level(stamped.event) < self.threshold:
            return
        line = self.line(stamped)
        if line is not None:
            self.write(line + "\n")

    def line(self, stamped: Stamped) -> str | None:
        """The event as this log shows it."""
        time = self.time(stamped)
        if self.log_format == "json":
            return jsonl.render(stamped, time)
        words = _RENDERERS[self.log_format](stamped.event)
        return words if words is None or time is None else f"[{time}] {words}"
