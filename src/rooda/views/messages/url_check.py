"""Ask the package that sends messages whether it can use the addresses; nothing is sent.

That takes a second, so a run leaves it to the process that sends its messages.
"""

from rooda.base.problems import Problem
from rooda.base.service_addresses import shown_address
from rooda.plan.resolve import Values
from rooda.plan.settings.settings import NOTIFY_URLS
from rooda.views.messages.targets import has_extra


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
