"""`--dry-run` of rooda and ralph: print what a run would do, and what keeps it from starting.

It does not import the modules that start a run, which load the database.
"""

from collections.abc import Sequence

import click
from msgspec.structs import replace

from rooda.base.problems import InvalidInput, Problem
from rooda.base.secrets.masking import Masker
from rooda.plan.configured_env import address_variable
from rooda.plan.prepare import Prepared
from rooda.plan.world import this_world
from rooda.run.request import TakenUp
from rooda.views.messages.targets import unusable_addresses
from rooda.views.terminal.dry_run import render


def show_dry_run(prepared: Prepared, command: Sequence[str], taken_up: TakenUp | None) -> int:
    """Print the dry run, and return 1 if a run can't start.

    `command` is the command line without `--dry-run`. `taken_up` is the run that would continue.
    """
    words, problems = "", [*prepared.problems, *unusable_addresses(prepared.values)]
    plan = prepared.plan
    if plan is not None and (missing := plan.missing_file()):
        problems.append(Problem(missing, title="Required file missing"))
    if taken_up is not None and plan is not None:
        from rooda.run.resume import resume  # loads the database

        try:
            words = taken_up.told(resume(plan, taken_up.run).state).as_text()
        except InvalidInput as invalid:
            problems += invalid.problems
    prepared = replace(prepared, problems=tuple(problems))
    environ = plan.environ if plan is not None else this_world().environ
    masker = Masker({**environ, **address_variable(prepared.values)})
    click.echo(masker.text(render(prepared, command, words)), nl=False)
    return 0 if prepared.valid else 1
