"""Which messages a run sends, and whether they can be sent (`notify`)."""

from collections.abc import Iterator
from importlib.util import find_spec

from rooda.base.origin import Tier
from rooda.base.problems import Problem, Severity
from rooda.plan.resolve import Values
from rooda.plan.settings.settings import NOTIFY_ON, NOTIFY_URLS

INSTALL = "pip install 'rooda[notify]'"


def check_notify(values: Values) -> Iterator[Problem]:
    """Warn of addresses that can't get a message, because the extra is not installed."""
    urls, moments = values[NOTIFY_URLS], values[NOTIFY_ON]
    if urls and moments and find_spec("apprise") is None:
        yield Problem.at(
            values.origin(NOTIFY_URLS),
            values.field(NOTIFY_URLS),
            "notifications to services need a package that is not installed: apprise. Instead, "
            "rooda shows them on the desktop, or rings the bell of the terminal",
            f"Install it: {INSTALL}",
            Severity.WARNING,
        )


def moments_of(values: Values) -> tuple[str, ...]:
    """Return the moments to tell about; none if the user has set neither addresses nor moments."""
    is_chosen = values.origin(NOTIFY_ON).tier is not Tier.BUILTIN
    moments = values[NOTIFY_ON] or ()
    return moments if values[NOTIFY_URLS] or is_chosen else ()
