"""`rooda demo`."""

import contextlib
import os
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
is a script that needs no key and no network. It has three tasks and fails once, on purpose.
"""


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
        if session.interrupts.received:
            click.echo("Interrupted", err=True)
            return INTERRUPTED
        raise InvalidInput([Problem(f"git could not make a repository: {error}")]) from None
    # The user's own config takes no part in the demo.
    environ = demo_repository.environment(os.environ)
    environ["ROODA_CONFIG_HOME"] = str(folder / "no-global-config")
    from rooda.engine.start import start_run  # pressing Tab needs no database

    request = RunRequest("tasks", flags={"show_ai_output": ("--verbose", "true")})
    code = start_run(prepare(request, World(folder, environ)), session.interrupts).exit_code
    if code == 0:
        with contextlib.suppress(GitError):
            left = demo_repository.history(folder, tools)
            click.echo(f"\nWhat the run left in git:\n{left}", err=True)
        click.echo("Next: `rooda init` in a repository of yours, then `rooda list`.", err=True)
    return code
