"""Checks whether messages about runs can be sent from here. Sends none."""

from collections.abc import Iterator, Mapping

from rooda.base.numbers import count
from rooda.front.doctor.findings import Finding, Mark
from rooda.plan.preflight.messages import check_notify, moments_of
from rooda.plan.resolve import Values
from rooda.plan.settings.settings import NOTIFY_URLS
from rooda.views.messages.targets import targets_of
from rooda.views.messages.url_check import unusable_addresses
from rooda.world.tools import Tools

_TOPIC = "notify"
_TRY = "Try it: rooda notify --test"


def check_notifications(
    values: Values, tools: Tools, environ: Mapping[str, str]
) -> Iterator[Finding]:
    """Yield where messages would go; nothing if no notifications are configured."""
    moments = moments_of(values)
    if not moments:
        return
    for problem in check_notify(values):
        yield Finding(_TOPIC, Mark.WARNING, problem.message, problem.suggestion)
    wrong = unusable_addresses(values)
    for problem in wrong:
        yield Finding(_TOPIC, Mark.PROBLEM, problem.message, problem.suggestion)
    targets = targets_of(values, tools, environ)
    about = f"notifications ({', '.join(moments)})"
    services = [one.shown for one in targets if one.url]
    if services and not wrong:
        text = f"{about} go to {count(len(services), 'service')}: {', '.join(services)}"
        yield Finding(_TOPIC, Mark.OK, text, _TRY)
    elif targets and not services:
        yield Finding(_TOPIC, Mark.OK, f"{about} are shown by {targets[0].shown}", _TRY)
    elif not targets and not values[NOTIFY_URLS]:
        text = f"{about} only ring the bell of the terminal: there is no desktop here"
        yield Finding(_TOPIC, Mark.WARNING, text, "Set loop.notify.urls to send them to a service")
