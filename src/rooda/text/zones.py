"""The time here, in a zone that knows its summer time."""

import os
from datetime import datetime, tzinfo
from pathlib import Path

_LOCALTIME = Path("/etc/localtime")
_DATABASE = "zoneinfo/"


def local_now() -> datetime:
    """The time now, where we are."""
    zone = local_zone(os.environ.get("TZ", ""), _LOCALTIME)
    return datetime.now().astimezone(zone)  # None: the offset of today


def local_zone(variable: str, localtime: Path) -> tzinfo | None:
    """The zone that TZ names, else the one that the system's link leads to; None: who knows."""
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - most runs never ask for a zone

    name = variable.removeprefix(":")
    try:
        if not name:
            name = str(localtime.resolve()).rpartition(_DATABASE)[2]
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # also where there is no database of zones
        return None
