"""Where messages go: services by their addresses, or the desktop and the terminal's bell."""

import sys
from collections.abc import Mapping
from importlib.util import find_spec

from msgspec import Struct

from rooda.base.problems import Problem
from rooda.base.service_addresses import shown_address
from rooda.plan.resolve import Values
from rooda.plan.settings.settings import NOTIFY_URLS
from rooda.world.tools import Tools

_SESSION = ("DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS")
# The texts follow as arguments: they are never a part of the script.
_SCRIPT = "display notification (item 2 of argv) with title (item 1 of argv)"
_OSASCRIPT = ("-e", "on run argv", "-e", _SCRIPT, "-e", "end run")
_NOTIFY_SEND = ("--app-name=rooda", "--")


class Target(Struct, frozen=True):
    """One place that gets messages: an address, or a program that gets title and text.

    `shown` is its name in messages, without secrets.
    """

    shown: str
    url: str = ""
    argv: tuple[str, ...] = ()


def has_extra() -> bool:
    """Return whether the package that sends messages to services is installed."""
    return find_spec("apprise") is not None


def targets_of(values: Values, tools: Tools, environ: Mapping[str, str]) -> list[Target]:
    """Return the services; without addresses, or without the extra, the desktop if there is one."""
    urls = values[NOTIFY_URLS]
    if urls and has_extra():
        return [Target(shown_address(url), url) for url in urls]
    desktop = _desktop(tools, environ)
    return [] if desktop is None else [desktop]


def _desktop(tools: Tools, environ: Mapping[str, str]) -> Target | None:
    """Return the program that shows a message on this desktop; None if there is no desktop."""
    name, words = "notify-send", _NOTIFY_SEND
    if sys.platform == "darwin":
        name, words = "osascript", _OSASCRIPT
    elif not any(environ.get(one) for one in _SESSION):
        return None
    path = tools.find(name)
    return None if path is None else Target(name, argv=(path, *words))


# Ask the package that sends messages whether it can use the addresses; nothing is sent.
#
# That takes a second, so a run leaves it to the process that sends its messages.


def unusable_addresses(values: Values) -> list[Problem]:
    """Return a problem for each address that can't be used; none without the extra."""
    urls = values[NOTIFY_URLS]
    if not urls or not has_extra():
        return []
    from rooda.views.messages.delivery import UNKNOWN, unusable  # noqa: PLC0415 - most runs send nothing

    origin, field = values.origin(NOTIFY_URLS), values.field(NOTIFY_URLS)
    return [
        Problem.at(
            origin,
            field,
            f"address {number} ({shown_address(urls[int(number) - 1])}) can't be used: {UNKNOWN}",
            "Compare it with the list of services in the documentation of apprise",
        )
        for number in unusable(urls)
    ]
