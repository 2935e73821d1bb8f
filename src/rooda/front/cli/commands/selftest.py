"""`rooda selftest`."""

import json
import sys

import click

from rooda.base.colors import Painter
from rooda.base.problems import InvalidInput, Problem
from rooda.front.color import COLOR, painter, room
from rooda.front.command_table import CliContext
from rooda.front.options import JSON
from rooda.world.process.interrupts import INTERRUPTED

_INTRODUCTION = (
    "{count} trials with misbehaving agents, in a temporary folder: about a minute. "
    "No model is asked, and nothing of yours is touched.\n"
)


@click.command("selftest")
@JSON
@COLOR
@click.pass_obj
def selftest(session: CliContext, /, *, as_json: bool, color: str) -> int:
    """Let misbehaving agents loose on this machine, and show which promises of rooda hold.

    Each trial is a real run of rooda with a small script as its agent, in a temporary folder: no
    model, no key, no network, and nothing of yours is touched. The exit code is 1 if a promise is
    broken or a trial could not be carried through, else 0.
    """
    # Imported here, because shell completion needs none of it.
    from rooda.front.selftest.run_trials import all_trials, run_trials
    from rooda.front.selftest.trial import progress_line, results_text

    trials = all_trials()
    click.echo(_INTRODUCTION.format(count=len(trials)), err=True)
    paint = Painter(painter(color).is_on and sys.stderr.isatty())
    # From here on signals wait: an interrupt must not leave the scratch folders behind.
    with session.interrupts.deferred():
        try:
            results = run_trials(
                trials,
                session.interrupts,
                lambda row: click.echo(progress_line(row, paint), err=True),
            )
        except OSError as error:
            advice = "Check the folder for temporary files (TMPDIR), and the free space on its disk"
            message = f"could not create a folder for the trials: {error.strerror or error}"
            raise InvalidInput([Problem(message, advice)]) from None
        if results is None:
            click.echo("Interrupted", err=True)
            return INTERRUPTED
        if as_json:
            click.echo(json.dumps(results.to_json(), indent=2))
        else:
            click.echo("", err=True)
            click.echo(results_text(results, room(), painter(color)), nl=False, color=True)
        return 0 if results.ok else 1
