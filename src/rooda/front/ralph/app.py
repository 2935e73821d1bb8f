"""The commands `ralph plan`, `ralph build`, `ralph prompt` and `ralph init`."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from rooda import __version__
from rooda.base.colors import CHOICES
from rooda.front.command_table import HELP_FLAGS, CliContext
from rooda.front.flags import Flags, MergeRules, without_dry_run
from rooda.front.options import EqualsCommand, EqualsOption, PlainGroup, wants_all_flags
from rooda.plan.settings.settings import COLOR, ITERATION_TIMEOUT, MAX_ITERATIONS, SHOW_AI_OUTPUT

# Imported in functions: help needs none of it.
if TYPE_CHECKING:
    from rooda.front.ralph.run_request import RalphArgs
    from rooda.run.request import TakenUp

_EXIT_CODES = """Exit codes: 0 complete, or the maximum of iterations was reached; 1 wrong input;
2 no implementation plan; 3 tests failed; 4 the agent failed; 5 git failed; 130 interrupted."""

_FIRST_STEPS = """\
  ralph init           make .ralph/ with a config and prompts
  ralph plan           write the implementation plan
  ralph build          build what the plan says
  ralph prompt FILE    run one prompt once"""

# The keys of the config, for `--help-all`.
_SETTINGS = (
    ("AGENT_CLI", "Program that reads the prompt from standard input, or a known agent."),
    ("AGENT_ARGS", "Arguments of the agent [default for a known agent: those that it needs]."),
    ("DEFAULT_MAX_ITERATIONS", "Maximum number of iterations [default: 10]."),
    ("MAX_RETRIES", "Attempts at an iteration, the first included [default: 3]."),
    ("DONE_WHEN", "When `build` is complete: signal, tasks or 'command: CMD' [default: signal]."),
    ("TEST_COMMAND", 'Command that tests the project [default: from AGENTS.md]; "" for none.'),
    ("SPECS_DIR", "Folder of the specs [default: specs]."),
    ("PROJECT_ROOT", "Folder in which the agent works [default: the folder of .ralph]."),
)


class _Mode(EqualsCommand):
    """A command that runs the agent; `--help-all` also describes the config."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, and for `--help-all` the settings."""
        super().format_options(ctx, formatter)
        if wants_all_flags(ctx):
            with formatter.section("Settings in .ralph/config"):
                formatter.write_dl(_SETTINGS)


def _number(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    if value is not None and not (value.isascii() and value.isdigit() and int(value) > 0):
        raise click.BadParameter(f"{value!r} is not a number of iterations, such as 10")
    return value


@click.group(
    cls=PlainGroup, context_settings=HELP_FLAGS, invoke_without_command=True, epilog=_EXIT_CODES
)
@click.version_option(__version__, prog_name="ralph", message="%(prog)s %(version)s")
@click.pass_context
def app(ctx: click.Context) -> None:
    """Plan, then build: run an AI coding agent in fresh iterations, test and commit its work."""
    if ctx.invoked_subcommand is None:
        raise click.UsageError(f"name a mode: plan, build or prompt\n{_FIRST_STEPS}", ctx)


_CONFIG = click.option(
    "--config", metavar="PATH", help="Config file [default: .ralph/config, else ./config]."
)
_MAXIMUM = click.option(
    "-n",
    "--max-iterations",
    metavar="N",
    callback=_number,
    help="Maximum number of iterations; overrides N [default: N, else DEFAULT_MAX_ITERATIONS of "
    "the config, else 10].",
)
_TIMEOUT = click.option(
    "--iteration-timeout",
    metavar="DURATION",
    help=f"{ITERATION_TIMEOUT.help}: 90, 45m or 1h30m [default: none].",
)
_VERBOSE = click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Stream the output of agent and tests, as ralph does by default.",
)
_DRY_RUN = click.option(
    "-d", "--dry-run", is_flag=True, help="Check everything and show the prompt; start no agent."
)
_COLOR = click.option("--color", metavar="|".join(CHOICES), help=f"{COLOR.help} [default: auto].")
_POSITIONAL = click.argument("maximum", required=False, callback=_number, metavar="[N]")
_RESUME = click.option(
    "--resume",
    cls=EqualsOption,
    metavar="RUN",
    help="Continue an interrupted run with its arguments. Without RUN: the last one of this mode.",
)


def _common(command: Callable[..., int]) -> Callable[..., int]:
    """Add the options that all modes have."""
    for option in reversed((_TIMEOUT, _VERBOSE, _COLOR, _DRY_RUN, _CONFIG, _RESUME)):
        command = option(command)
    return command


_RULES = MergeRules(
    rivals=(frozenset({"maximum", "max_iterations"}),), paths=frozenset({"config", "file"})
)


def _run(session: CliContext, mode: str, parameters: Mapping[str, Any]) -> int:
    from rooda.base.problems import InvalidInput
    from rooda.front.command_line import given_of, parts_of
    from rooda.front.ralph.run_request import RalphFiles, prepare_ralph
    from rooda.front.recorded import settle_here
    from rooda.front.starting import launch
    from rooda.loop.next_steps import RunCommands
    from rooda.plan.world import this_world
    from rooda.run.request import Invocation
    from rooda.run.start import report

    ctx = click.get_current_context()
    args, world, taken_up = _args(mode, parameters), this_world(), None
    given = given_of(ctx.command, parts_of(ctx))
    if parameters["resume"] is not None:
        try:
            taken_up = _taken_up(ctx, args, parameters["resume"])
        except InvalidInput as invalid:
            report(invalid.problems, prepare_ralph(args, world).values)
            return 1
        args, world = _args(mode, taken_up.parameters), taken_up.world
        given = taken_up.given
    flags = ("--max-iterations",) if "maximum" in parameters else ()
    then = "ralph build" if mode == "plan" else ""
    commands = RunCommands(f"ralph {mode}", f"ralph {mode} --resume={{run}}", flags, then)
    if taken_up is None and not parameters["dry_run"]:
        settle_here(RalphFiles(args, world).root)
    prepared = prepare_ralph(
        args, world, resumed=taken_up is not None, is_preview=parameters["dry_run"]
    )
    if parameters["dry_run"]:
        from rooda.front.preview import show_dry_run

        words = without_dry_run(session.arguments, ctx.command.params)
        return show_dry_run(prepared, ["ralph", *words], taken_up)
    return launch(prepared, session.interrupts, Invocation(commands, given, taken_up))


def _taken_up(ctx: click.Context, args: "RalphArgs", wanted: str) -> "TakenUp":
    """Return the earlier run to continue. Raises InvalidInput."""
    from rooda.front import starting
    from rooda.front.ralph.run_request import RalphFiles
    from rooda.front.recorded import place_here
    from rooda.plan.world import this_world

    place = place_here(RalphFiles(args, this_world()).root)
    row = starting.find(place, wanted, f"ralph {args.mode}", f"ralph {args.mode}")
    taken_up = starting.take_up(place, row, ctx, ctx.command, _RULES)
    _check_file(taken_up.parameters)
    return taken_up


def _check_file(parameters: Mapping[str, Any]) -> None:
    if parameters.get("file", "") is None:
        raise click.UsageError("Missing argument 'FILE'.", click.get_current_context())


def _args(mode: str, parameters: Mapping[str, Any]) -> "RalphArgs":
    from rooda.front.ralph.run_request import RalphArgs

    command = click.get_current_context().command
    known = frozenset(name for param in command.params for name in param.opts)
    flags, file = _flags(parameters), parameters.get("file")
    return RalphArgs(mode, flags, parameters["config"], file, known)


def _flags(parameters: Mapping[str, Any]) -> Flags:
    """Return the settings that the user gave; `--max-iterations` overrides the argument N."""
    named = (
        (MAX_ITERATIONS, "N", parameters.get("maximum")),
        (MAX_ITERATIONS, "--max-iterations", parameters.get("max_iterations")),
        (ITERATION_TIMEOUT, "--iteration-timeout", parameters["iteration_timeout"]),
        (COLOR, "--color", parameters["color"]),
        (SHOW_AI_OUTPUT, "--verbose", "true" if parameters["verbose"] else None),
    )
    return {setting.key: (flag, text) for setting, flag, text in named if text is not None}


@app.command()
def init() -> None:
    """Create `.ralph/` with a config and prompts, and the other files that a project needs."""
    from rooda.base.problems import InvalidInput, Problem
    from rooda.front.ralph import skeleton
    from rooda.front.ralph.home import Home
    from rooda.plan.world import this_world
    from rooda.world.git.work_tree import work_tree

    folder = this_world().folder
    earlier = Home.find(folder)
    try:
        written = skeleton.write(folder)
    except OSError as error:
        message = f"can't be written: {error.filename or folder}: {error.strerror}"
        raise InvalidInput([Problem(message, "Check the folder's mode")]) from None
    for name in written.created:
        click.echo(f"created  {name}")
    for name in written.kept:
        click.echo(f"kept     {name}")
    if earlier.project != folder:
        click.echo(f"From here on, ralph uses this .ralph here, and not {earlier.folder}")
    first = "" if (work_tree(folder) / ".git").exists() else "run git init, "
    click.echo(f"Next: {first}set AGENT_CLI in .ralph/config, write specs, then: ralph plan")


@app.command(cls=_Mode, epilog=_EXIT_CODES)
@_POSITIONAL
@_MAXIMUM
@_common
@click.pass_obj
def plan(session: CliContext, /, **parameters: Any) -> int:
    """Compare specifications and code, and write the implementation plan."""
    return _run(session, "plan", parameters)


@app.command(cls=_Mode, epilog=_EXIT_CODES)
@_POSITIONAL
@_MAXIMUM
@_common
@click.pass_obj
def build(session: CliContext, /, **parameters: Any) -> int:
    """Take one task from the plan per iteration: implement it, test it, commit it.

    Without `.ralph/implementation_plan.md`, run `ralph plan` first.
    """
    return _run(session, "build", parameters)


@app.command(cls=_Mode, epilog=_EXIT_CODES)
@click.argument("file", required=False, metavar="FILE")
@_common
@click.pass_obj
def prompt(session: CliContext, /, **parameters: Any) -> int:
    """Run one prompt once, and commit the changes."""
    if parameters["resume"] is None:
        _check_file(parameters)
    return _run(session, "prompt", parameters)
