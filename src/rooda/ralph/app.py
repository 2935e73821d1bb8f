"""`ralph plan`, `ralph build`, `ralph prompt` and `ralph init`: thin fronts of the engine."""

from pathlib import Path

import click

from rooda import __version__
from rooda.cli.app import HELP_FLAGS, Session
from rooda.cli.flags import EqualsCommand, EqualsOption
from rooda.cli.here import this_world
from rooda.config.problems import InvalidInput, Problem
from rooda.ralph import skeleton
from rooda.ralph.planning import Wish, prepare

_EXIT_CODES = """Exit codes: 0 complete, or the maximum of iterations was reached; 1 wrong input;
2 no implementation plan; 3 tests failed; 4 the agent failed; 5 git failed; 130 interrupted."""


def _number(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:  # noqa: ARG001 - click's form
    if value is not None and not (value.isascii() and value.isdigit() and int(value) > 0):
        raise click.BadParameter(f"{value!r} is not a number of iterations, such as 10")
    return value


@click.group(context_settings=HELP_FLAGS, invoke_without_command=True, epilog=_EXIT_CODES)
@click.version_option(__version__, prog_name="ralph", message="%(prog)s %(version)s")
@click.pass_context
def app(ctx: click.Context) -> None:
    """Plan, then build: run an AI coding agent in fresh iterations; test and commit its work."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        raise click.UsageError("name a mode: plan, build or prompt", ctx)


_CONFIG = click.option("--config", metavar="PATH", help="Config file instead of the home's own.")
_MAXIMUM = click.option(
    "--max-iterations",
    metavar="N",
    callback=_number,
    help="How many iterations to run at most (default 10); beats the positional number.",
)
_POSITIONAL = click.argument("maximum", required=False, callback=_number, metavar="[N]")
_RESUME = click.option(
    "--resume",
    cls=EqualsOption,
    metavar="RUN",
    help="Go on with an interrupted run, the last one of this mode if none is named.",
)


def _run(session: Session, wish: Wish, resume: str | None = None) -> int:
    from rooda.cli import running  # noqa: PLC0415 - neither help nor init needs a database

    prepared = prepare(wish, this_world())
    try:
        return running.execute(prepared, session.interrupts, resume)
    except InvalidInput as invalid:
        running.report(invalid.problems, prepared.values)
        return 1


def _maximum(flag: str | None, positional: str | None) -> tuple[str, str] | None:
    if flag is not None:
        return "--max-iterations", flag
    return None if positional is None else ("N", positional)


@app.command(cls=EqualsCommand)
@_POSITIONAL
@_MAXIMUM
@_CONFIG
@_RESUME
@click.pass_obj
def plan(
    session: Session,
    /,
    *,
    maximum: str | None,
    max_iterations: str | None,
    config: str | None,
    resume: str | None,
) -> int:
    """Compare specifications and code, and write the implementation plan."""
    wish = Wish("plan", _maximum(max_iterations, maximum), config)
    return _run(session, wish, resume)


@app.command(cls=EqualsCommand)
@_POSITIONAL
@_MAXIMUM
@_CONFIG
@_RESUME
@click.pass_obj
def build(
    session: Session,
    /,
    *,
    maximum: str | None,
    max_iterations: str | None,
    config: str | None,
    resume: str | None,
) -> int:
    """Take tasks from the plan, one an iteration: implement, test, commit."""
    wish = Wish("build", _maximum(max_iterations, maximum), config)
    return _run(session, wish, resume)


@app.command()
@click.argument("file")
@_CONFIG
@click.pass_obj
def prompt(session: Session, /, *, file: str, config: str | None) -> int:
    """Run one prompt once, and commit what it changed."""
    return _run(session, Wish("prompt", None, config, file))


@app.command()
def init() -> None:
    """Make `.ralph/` with a config and prompts, and what a project needs beside it."""
    folder: Path = this_world().folder
    try:
        written = skeleton.write(folder)
    except OSError as error:
        message = f"can't be written: {error.filename or folder}: {error.strerror}"
        raise InvalidInput([Problem(message, "Check the folder's mode")]) from None
    for name in written.created:
        click.echo(f"created  {name}")
    for name in written.kept:
        click.echo(f"kept     {name}")
    click.echo("Next: set AGENT_CLI in .ralph/config, write specs, then: ralph plan")
