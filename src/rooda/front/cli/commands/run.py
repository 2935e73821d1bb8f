"""`rooda run PROCEDURE`, which is also `rooda PROCEDURE`; `rooda loop FILE`; `rooda resume`."""

import sys
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from rooda.front.command_table import HELP_FLAGS, RESERVED, CliContext
from rooda.front.completion import complete_runs, procedure_names
from rooda.front.flags import (
    RULES,
    PathHint,
    complete_from,
    given_flags,
    run_options,
    without_dry_run,
)
from rooda.front.options import EqualsOption, RunCommand, RunNamesCommand
from rooda.front.program_options import (
    NAMES,
    check_pause,
    check_run_id,
    for_programs,
    hold_lifeline,
    record_of,
    tell_not_started,
    telling_result,
)
from rooda.plan.layers import FILE_RUN
from rooda.plan.prompts.parts import PHASES

# Imported in functions: help and completion need none of it, a dry run needs no database.
if TYPE_CHECKING:
    from rooda.plan.prepare import Prepared
    from rooda.plan.resolve import Values
    from rooda.plan.world import World
    from rooda.run.request import TakenUp


_LOOP_RULES = replace(RULES, paths=RULES.paths | {"file"})


class _Run(RunCommand):
    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Leave PROCEDURE out of `rooda build [OPTIONS]`: the user has named it."""
        pieces = super().collect_usage_pieces(ctx)
        return pieces if ctx.info_name == self.name else pieces[:1]

    examples = """\
  rooda build -a claude
  rooda build -n 20 --iteration-timeout 30m -v
  rooda build -c TASK.md -c "the JWT check is broken"
  rooda build --ai-cmd "my-agent --flag" --dry-run
"""


class _Loop(RunCommand):
    examples = """\
  rooda loop PROMPT.md -a claude
  rooda loop PROMPT.md -a claude -n 50 --verify "make test" --commit
  rooda loop PROMPT.md --dry-run
"""


class _Resume(RunNamesCommand, RunCommand):
    examples = """\
  rooda resume
  rooda resume 20260301-2315
  rooda resume -2
  rooda resume -n 20 --max-cost 30
  rooda resume --dry-run
"""


@click.pass_obj
def _run(session: CliContext, /, procedure: str, **parameters: Any) -> int:
    with telling_result(parameters):
        _check(parameters)  # reports mistakes on the command line before all others
        if parameters["resume"] is not None:
            return _resume_run(session, parameters["resume"], procedure)
        return _start(session, procedure, parameters)


@click.pass_obj
def _loop(session: CliContext, /, file: str | None, **parameters: Any) -> int:
    with telling_result(parameters):
        _check(parameters)
        if parameters["resume"] is not None:
            return _resume_run(session, parameters["resume"], FILE_RUN)
        if file is None:
            raise click.UsageError("Missing argument 'FILE'.", click.get_current_context())
        return _start(session, FILE_RUN, {**parameters, "file": file})


@click.pass_obj
def _resume(session: CliContext, /, run: str | None, **parameters: Any) -> int:
    with telling_result(parameters):
        _check(parameters, is_new=False)
        return _resume_run(session, run or "", None)


def _check(parameters: Mapping[str, Any], *, is_new: bool = True) -> None:
    """Raise UsageError if something is wrong with the command line alone; hold the lifeline."""
    given_flags(parameters)
    check_run_id(parameters, is_new=is_new and parameters["resume"] is None)
    check_pause(parameters)
    hold_lifeline(parameters)


def _resume_run(session: CliContext, wanted: str, procedure: str | None) -> int:
    """Continue a run: the last one of the procedure, of any procedure, or the one named."""
    from rooda.base.problems import InvalidInput
    from rooda.front import starting
    from rooda.front.recorded import place_here, refuse_run_around
    from rooda.run.start import report

    ctx = click.get_current_context()
    try:
        apart = record_of(ctx.params)
        place = apart or place_here()
        if procedure is None:
            row = starting.find_for_rooda(place, wanted)
        else:
            file = "FILE" if procedure == FILE_RUN else None
            start = starting.rooda_commands(procedure, file).start
            row = starting.find(place, wanted, procedure, start)
        if apart is None:
            refuse_run_around(place.tree, row)
        again = partial(starting.take_up, place, row, ctx, is_apart=apart is not None)
        if starting.prompt_file_of(row) is None:
            taken_up = again(run, RULES, [row.procedure])
        else:
            _refuse_phases(ctx.params)
            taken_up = again(loop, _LOOP_RULES)
    except InvalidInput as invalid:
        report(invalid.problems, _values_now(ctx.params, procedure or ""))
        tell_not_started(ctx.params, [one.message for one in invalid.problems])
        return 1
    asked_now = {name: ctx.params[name] for name in ("dry_run", *NAMES)}
    parameters = {**taken_up.parameters, **asked_now}
    return _start(session, row.procedure, parameters, taken_up)


def _refuse_phases(parameters: Mapping[str, Any]) -> None:
    """Raise UsageError if the user replaces a phase of a run that has none."""
    for phase in PHASES:
        if parameters.get(phase):
            message = f"--{phase} is for procedures: the prompt of this run is one file"
            raise click.UsageError(message, click.get_current_context())


def _values_now(parameters: Mapping[str, Any], procedure: str) -> "Values":
    """Return the settings without those of an earlier run, to report that there is none."""
    from rooda.plan.locate import read_layers
    from rooda.plan.resolve import resolve
    from rooda.plan.world import this_world

    layers = read_layers(this_world(), parameters["config"], given_flags(parameters), [])
    return resolve(layers, procedure)


def _start(
    session: CliContext,
    procedure: str,
    parameters: Mapping[str, Any],
    taken_up: "TakenUp | None" = None,
) -> int:
    """Run the procedure, or show what a run would do."""
    from rooda.plan.prepare import RunRequest, prepare

    request = RunRequest(
        procedure=procedure,
        flags=given_flags(parameters),
        contexts=parameters["contexts"],
        phases={phase: parameters[phase] for phase in PHASES if parameters.get(phase)},
        file=parameters.get("file"),
        config=parameters["config"],
        commands=RESERVED,
        resumed=taken_up is not None,
        is_preview=parameters["dry_run"],
    )
    prepared = prepare(request, _world(parameters) if taken_up is None else taken_up.world)
    if parameters["dry_run"]:
        from rooda.front.preview import show_dry_run

        return show_dry_run(prepared, ["rooda", *without_dry_run(session.arguments)], taken_up)
    if parameters["only_run"] is not None:
        return _only_run(prepared, parameters["only_run"], session)
    from rooda.front.command_line import given_of, parts_of
    from rooda.front.starting import launch, rooda_commands
    from rooda.run.request import Invocation

    if taken_up is None:
        ctx = click.get_current_context()
        given = given_of(ctx.command, parts_of(ctx))
    else:
        given = taken_up.given
    commands, programs = rooda_commands(procedure, request.file), for_programs(parameters)
    invocation = Invocation(commands, given, taken_up, programs)
    return launch(prepared, session.interrupts, invocation)


def _only_run(prepared: "Prepared", command: str, session: CliContext) -> int:
    """Run a command in the place of the run, print what it printed, and return its exit code."""
    from rooda.run.only_run import run_alone

    found = run_alone(prepared, command, session.interrupts)
    sys.stdout.buffer.write(found.output)
    sys.stdout.flush()
    for trouble in found.troubles:
        click.echo(f"Error: {trouble}", err=True)
    return found.exit_code


def _world(parameters: Mapping[str, Any]) -> "World":
    """Return the current folder and environment, for a new run. Raises InvalidInput."""
    from rooda.front.recorded import settle_here
    from rooda.plan.world import this_world
    from rooda.run.request import make_record_folder

    apart = record_of(parameters)
    if not parameters["dry_run"]:
        if apart is None:
            settle_here()
        else:
            make_record_folder(apart.state)
    return replace(this_world(), place=apart, is_apart=apart is not None)


run = _Run(
    "run",
    callback=_run,
    context_settings=HELP_FLAGS,
    params=[
        click.Argument(["procedure"], shell_complete=complete_from(procedure_names)),
        *run_options(),
    ],
    help="Run a procedure until its work is done or a limit is reached.",
    epilog="`--help-all` shows all flags. A DURATION is 90, 45m or 1h30m. Pass `none` to unset an "
    "optional setting. Settings can also be in rooda-config.yml and in variables such as "
    "ROODA_LOOP_ITERATION_TIMEOUT; `rooda config show` shows each value and where it comes from.",
)


loop = _Loop(
    "loop",
    callback=_loop,
    context_settings=HELP_FLAGS,
    params=[
        click.Argument(["file"], required=False, metavar="FILE", type=PathHint()),
        *(option for option in run_options() if option.name not in PHASES),
    ],
    help="Run one prompt file again and again until its work is done or a limit is reached. rooda "
    "reads FILE again for each iteration, adds context and feedback as it does for procedures, and "
    "explains how the agent says that it is done, unless FILE itself names a <promise>.",
    epilog="`--help-all` shows all flags. Settings for this command alone are below "
    "`procedures: loop:` in rooda-config.yml.",
)


resume = _Resume(
    "resume",
    callback=_resume,
    context_settings=HELP_FLAGS,
    params=[
        click.Argument(["run"], required=False, shell_complete=complete_runs),
        *(option for option in run_options() if not isinstance(option, EqualsOption)),
    ],
    help="Continue a run with the flags that it was started with. Without RUN: the last run.",
    short_help="Continue an interrupted run with its flags.",
    epilog="`--help-all` shows all flags. Flags given now override those of the run: -c replaces "
    "every context, --env replaces the variables that it names. -n is the total number of "
    "iterations of the run. rooda reads config files and environment variables as they are now.",
)
