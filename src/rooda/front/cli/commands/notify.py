"""`rooda notify`: where messages about runs go, and whether they arrive."""

import contextlib
import os
import sys
import time
from collections.abc import Sequence
from datetime import datetime

import click

from rooda.base.problems import InvalidInput, Problem, errors, in_order
from rooda.front.completion import procedure_names
from rooda.front.extras import need_extra
from rooda.front.flags import complete_from, config_option
from rooda.plan.locate import read_layers
from rooda.plan.preflight.validate import moments_of
from rooda.plan.resolve import Values, resolve
from rooda.plan.settings.settings import NOTIFY_URLS
from rooda.plan.world import this_world
from rooda.views.messages.message import trial_message
from rooda.views.messages.notifier import Delivery, kill_group, start_delivery
from rooda.views.messages.notifier_client import delivery_command, without_addresses
from rooda.views.messages.targets import Target, targets_of, unusable_addresses
from rooda.world.tools import Tools

_LOOK = 0.05  # seconds between two looks at the deliveries
_BELL = "the bell of this terminal"
_SET_UP = (
    "Write the addresses of your services to loop.notify.urls of your global config file, or to "
    f"{NOTIFY_URLS.variable}"
)


@click.command("notify")
@click.argument("procedure", default="", shell_complete=complete_from(procedure_names))
@click.option("--test", is_flag=True, help="Send a test message now, and say whether it arrived.")
@config_option
def notify(*, procedure: str, test: bool, config: str | None) -> int:
    """Show where messages about runs go, and when; with --test: send one now.

    With PROCEDURE: as the settings of this procedure say.
    """
    values = _values(config, procedure)
    moments = moments_of(values)
    if not moments:
        raise InvalidInput([Problem("no notifications are configured", _SET_UP)])
    if values[NOTIFY_URLS]:
        need_extra("notify", "rooda notify", "apprise")
    if wrong := unusable_addresses(values):
        raise InvalidInput(wrong)
    world = this_world()
    tools = Tools(world.environ, [world.workspace(), world.folder])
    targets = targets_of(values, tools, world.environ)
    rings = not values[NOTIFY_URLS] and sys.stderr is not None and sys.stderr.isatty()
    if not targets and not rings:
        message = "there is no desktop here that shows notifications, and no terminal"
        raise InvalidInput([Problem(message, _SET_UP)])
    if test:
        return _test(targets, rings=rings)
    click.echo(f"Messages about: {', '.join(moments)}")
    for shown in [*(one.shown for one in targets), *([_BELL] if rings else [])]:
        click.echo(f"To: {shown}")
    return 0


def _values(config: str | None, procedure: str) -> Values:
    problems: list[Problem] = []
    layers = read_layers(this_world(), config, {}, problems)
    if errors(problems):
        raise InvalidInput(in_order(problems))
    return resolve(layers, procedure)


def _test(targets: Sequence[Target], *, rings: bool) -> int:
    """Send a message to each target at once, and print what came of it."""
    message = trial_message(datetime.now().astimezone())
    words = {"title": message.title, "body": message.body, "kind": message.kind}
    environ, command = without_addresses(os.environ), delivery_command()
    if rings:
        click.echo("\a", err=True, nl=False)
        click.echo(f"{_BELL}: rung")
    failed = 0
    with contextlib.ExitStack() as closing:
        sent: list[Delivery] = []
        for one in targets:
            job = {"shown": one.shown, "url": one.url, "argv": one.argv, **words}
            sent.append(start_delivery(job, "test", command, environ))
            closing.callback(kill_group, sent[-1].process)
        for delivery in sent:
            while (reason := delivery.result(time.monotonic())) is None:
                time.sleep(_LOOK)
            failed += bool(reason)
            click.echo(f"{delivery.shown}: {f'failed: {reason}' if reason else 'delivered'}")
    return 1 if failed else 0
