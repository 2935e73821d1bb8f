"""The forms of `log_timestamp_format`."""

from collections.abc import Callable

from rooda.loop.emitter import Stamped

TimeFormat = Callable[[Stamped], str | None]


def _relative(stamped: Stamped) -> str:
    return f"+{stamped.elapsed:.1f}s"


FORMATS: dict[str, TimeFormat] = {
    "time": lambda stamped: stamped.at.strftime("%H:%M:%S"),
    "time-ms": lambda stamped: stamped.at.isoformat(timespec="milliseconds")[11:23],
    "relative": _relative,
    "iso": lambda stamped: stamped.at.isoformat(timespec="milliseconds"),
    "none": lambda _: None,
}

# What holds where nothing was chosen.
AUTO = "auto"
DEFAULTS = {"text": "time", "logfmt": "time-ms", "json": "iso"}
LOG_FILE_DEFAULT = "iso"
