"""`rooda demo`."""

import os
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

import click

from rooda.base.problems import InvalidInput, Problem
from rooda.front.command_table import CliContext
from rooda.front.demo import demo_repository
from rooda.plan.prepare import RunRequest, prepare
from rooda.plan.world import World
from rooda.world.git.git import GitError
from rooda.world.process.interrupts import INTERRUPTED
from rooda.world.tools import Tools

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
        if keep:
            try:
                return _show(folder, session)
            finally:
                click.echo(f"The repository is kept: {folder}", err=True)
        state = Path(tempfile.mkdtemp(prefix="rooda-demo-state-"))
        try:
            with demo_repository.passing_state(state):
                return _show(folder, session)
        finally:
            for one in (folder, state):
                shutil.rmtree(one, ignore_errors=True)


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
    from rooda.run.start import start_run  # pressing Tab needs no database

    request = RunRequest("tasks", flags={"show_ai_output": ("--verbose", "true")})
    code = start_run(prepare(request, World(folder, environ)), session.interrupts).exit_code
    return _look_back(folder, session) if code == 0 else code


def _look_back(folder: Path, session: CliContext) -> int:
    """Show the run with the commands that a user has for it; return the exit code."""
    click.echo("\nThe run is over. What it did, why one iteration failed, what the next one did:")
    for words in (["show"], ["why", str(_FAILED)], ["diff", str(_FAILED + 1)], ["report"]):
        click.echo(f"\n$ {shlex.join(['rooda', *words])}")
        sys.stdout.flush()
        place = ["-o", _report_file()] if words == ["report"] else []
        code = demo_repository.look(folder, *words, *place)
        if session.interrupts.received:
            return INTERRUPTED
        if code:
            return code
    click.echo("\nNext: `rooda init` in a repository of yours, then `rooda list`.")
    return 0


def _report_file() -> str:
    """Return the path of the report, which stays when the folder of the demo is deleted."""
    return str(Path(tempfile.gettempdir(), f"rooda-demo-{os.urandom(4).hex()}.html"))
