"""`rooda demo`."""

import os
import shlex
import shutil
import tempfile
from pathlib import Path

import click

from rooda.config.prepare import RunRequest, prepare
from rooda.config.problems import InvalidInput, Problem
from rooda.config.world import World
from rooda.console.command_table import CliContext
from rooda.demo import demo_repository
from rooda.process.interrupts import INTERRUPTED
from rooda.workspace.git import GitError
from rooda.workspace.tools import Tools

_INTRODUCTION = """\
This is a real run of rooda's loop, in a temporary git repository. Only the agent is not real: it
is a script that needs no key and no network. It has three tasks. Once it says that all of them are
done when that is not true: watch how the check of the run finds out.
"""
_FAILED = 3  # the iteration that fails


@click.command("demo")
@click.option("--keep", is_flag=True, help="Keep the repository of the demo.")
@click.pass_obj
def demo(session: CliContext, /, *, keep: bool) -> int:
    """Show in ten seconds what a run looks like, with a scripted agent."""
    if shutil.which("git") is None:
        raise InvalidInput([Problem("git is not installed", "Install git, then try again")])
    # Deferred from here on: an interruption must not leave the folder behind.
    with session.interrupts.deferred():
        folder = Path(tempfile.mkdtemp(prefix="rooda-demo-"))
        try:
            return _show(folder, session)
        finally:
            if keep:
                click.echo(f"The repository is kept: {folder}", err=True)
            else:
                shutil.rmtree(folder, ignore_errors=True)


def _show(folder: Path, session: CliContext) -> int:
    click.echo(_INTRODUCTION, err=True)
    tools = Tools(folders=[folder], interrupts=session.interrupts)
    try:
        demo_repository.make(folder, tools)
    except GitError as error:
        return _stopped(session, f"git could not make a repository: {error}")
    # The user's own config takes no part in the demo.
    environ = demo_repository.environment(os.environ)
    environ["ROODA_CONFIG_HOME"] = str(folder / "no-global-config")
    from rooda.engine.start import start_run  # pressing Tab needs no database

    request = RunRequest("tasks", flags={"show_ai_output": ("--verbose", "true")})
    code = start_run(prepare(request, World(folder, environ)), session.interrupts).exit_code
    if code == 0:
        try:
            _look_back(folder, tools)
        except GitError as error:
            return _stopped(session, f"rooda could not show the run: {error}")
    return code


def _stopped(session: CliContext, message: str) -> int:
    """Return the exit code after a signal. Raises InvalidInput if there was none."""
    if not session.interrupts.received:
        raise InvalidInput([Problem(message)])
    click.echo("Interrupted", err=True)
    return INTERRUPTED


def _look_back(folder: Path, tools: Tools) -> None:
    """Show the run with the commands that a user has for it. Raises GitError if one is stopped."""
    click.echo(
        "\nThe run is over. What it did, why an iteration failed, what the next one changed:"
    )
    for words in (["show"], ["why", str(_FAILED)], ["diff", str(_FAILED + 1)]):
        click.echo(f"\n$ {shlex.join(['rooda', *words])}")
        click.echo(demo_repository.look(folder, tools, *words), nl=False)
    number, page = tempfile.mkstemp(prefix="rooda-demo-", suffix=".html")
    os.close(number)
    demo_repository.look(folder, tools, "report", "-o", page)
    click.echo(f"\nThe page of `rooda report`, for your browser: {page}")
    click.echo("Next: `rooda init` in a repository of yours, then `rooda list`.")
