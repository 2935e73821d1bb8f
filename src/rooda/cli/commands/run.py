"""`rooda run PROCEDURE`, which is also `rooda PROCEDURE`."""

from typing import Any

import click

from rooda.cli.app import HELP_FLAGS, RESERVED, Session
from rooda.cli.flags import (
    RunCommand,
    complete_from,
    given_flags,
    run_options,
    without_dry_run,
)
from rooda.cli.here import this_world
from rooda.cli.names import procedure_names
from rooda.config.plan import Request, prepare
from rooda.config.problems import InvalidInput
from rooda.prompts.parts import PHASES


class _Run(RunCommand):
    examples = """\
  rooda build --ai-cmd-alias claude
  rooda build -n 20 --iteration-timeout 30m -v
  rooda build -c TASK.md -c "the JWT check is broken"
  rooda build --ai-cmd "my-agent --flag" --dry-run
"""


@click.pass_obj
def _run(session: Session, /, procedure: str, **parameters: Any) -> int:
    request = Request(
        procedure=procedure,
        flags=given_flags(parameters),
        contexts=parameters["contexts"],
        phases={phase: parameters[phase] for phase in PHASES if parameters[phase]},
        config=parameters["config"],
        commands=RESERVED,
    )
    prepared = prepare(request, this_world())
    if parameters["dry_run"]:
        from rooda.views.dry_run import render  # noqa: PLC0415 - a run has no use for it

        click.echo(render(prepared, without_dry_run(session.arguments)), nl=False)
        return 0 if prepared.valid else 1
    from rooda.cli import running  # noqa: PLC0415 - neither Tab nor a dry run needs a database

    try:
        return running.execute(prepared, session.interrupts, parameters["resume"])
    except InvalidInput as invalid:
        running.report(invalid.problems, prepared.values)
        return 1


run = _Run(
    "run",
    callback=_run,
    context_settings=HELP_FLAGS,
    params=[
        click.Argument(["procedure"], shell_complete=complete_from(procedure_names)),
        *run_options(),
    ],
    help="Run a procedure until its work is done or a limit is reached.",
    epilog="A value of `none` takes a setting away where it may be missing. Settings can also be "
    "in rooda-config.yml and in variables such as ROODA_LOOP_ITERATION_TIMEOUT; "
    "`rooda config show` tells which holds.",
)
