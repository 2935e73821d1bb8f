"""`rooda fleet demo`: three loops at once, one of them killed and taken over."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rooda.base.problems import InvalidInput, Problem
from rooda.fleet.display.fleet_table import table_text
from rooda.fleet.run_model import Batch, Run, RunState
from rooda.fleet.tasks.read_tasks import Wanted, read_tasks
from rooda.front.cli.commands.fleet_run import work
from rooda.front.cli.fleet_here import FleetHere, fleet_here, refuse_without_extra
from rooda.front.command_table import CliContext
from rooda.front.demo import demo_repository, fleet_agent
from rooda.front.demo.fleet_agent import TASKS
from rooda.plan.world import go_to
from rooda.world.git.git import GitError
from rooda.world.process.first_moment import own_module
from rooda.world.process.interrupts import INTERRUPTED
from rooda.world.state.home import VARIABLE
from rooda.world.tools import Tools

if TYPE_CHECKING:
    from rooda.fleet.worker.supervisor import Worker

_INTRODUCTION = """\
Three real loops of rooda at once, in a temporary git repository, with SQLite. Only the agent is not
real: it is a script that needs no key and no network. After a while this demo kills one of the
processes with SIGKILL, in the middle of an iteration: watch how another one takes its run over.
"""
_VICTIM = TASKS[1]
_TAKEOVER = "3s"


@click.command("demo")
@click.option("--keep", is_flag=True, help="Keep the repository of the demo.")
@click.pass_obj
def demo(session: CliContext, /, *, keep: bool) -> int:
    """Show three loops at once in half a minute, with a scripted agent; one of them is killed."""
    refuse_without_extra()
    # Deferred from here on: an interruption must not leave the folder behind.
    with session.interrupts.deferred():
        folder = Path(tempfile.mkdtemp(prefix="rooda-fleet-demo-"))
        before = Path.cwd()
        try:
            with _own_environment(folder, keep=keep):
                return _show(folder / "repository", session)
        finally:
            os.chdir(before)
            if keep:
                click.echo(f"The repository is kept: {folder / 'repository'}", err=True)
            else:
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _own_environment(folder: Path, *, keep: bool) -> Iterator[None]:
    """Let nothing of the user's configuration take part, and keep the slots in the folder.

    The state is there too, unless the user keeps the repository: its commands need the state.
    """
    before = dict(os.environ)
    kept = demo_repository.environment(before)
    own = {"ROODA_CONFIG_HOME": str(folder / "none"), "XDG_CACHE_HOME": str(folder / "cache")}
    if not keep:
        own[VARIABLE] = str(folder / "state")
    try:
        os.environ.clear()
        os.environ.update({**kept, **own, "PAGER": "cat", "GIT_PAGER": "cat"})
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _show(repository: Path, session: CliContext) -> int:
    click.echo(_INTRODUCTION, err=True)
    repository.mkdir()
    try:
        demo_repository.make(repository, Tools(folders=[repository]))
    except GitError as error:
        raise InvalidInput([Problem(f"git could not make a repository: {error}")]) from None
    go_to(repository)
    flags = {"jobs": ("-j", str(len(TASKS))), "takeover": ("--takeover", _TAKEOVER)}
    with fleet_here(flags) as here:
        _add(here)
        code = work(
            here,
            session,
            until=lambda runs: all(run.state.is_end for run in runs),
            meanwhile=_killer(here),
        )
        if code or session.interrupts.received:
            return code or INTERRUPTED
        click.echo("\n$ rooda fleet\n" + table_text(here.sight()))
    return _look("fleet", "merge", "--into", "night")


def _add(here: FleetHere) -> None:
    from rooda.fleet.actions.add_tasks import add_tasks, find_base

    file = here.place.git_dir / "TONIGHT.md"
    file.write_text("".join(f"## {name}\n\nWrite {name}.\n\n" for name in TASKS), encoding="utf-8")
    tasks = read_tasks(Wanted([str(file)], here.world.folder))
    base = find_base(here.git, None)
    agent = shlex.join([sys.executable, "-I", fleet_agent.__file__])
    batch = Batch("demo", base.commit, base.branch, ("--ai-cmd", agent, "--verify", "true"))
    project = here.place.project
    add_tasks(here.place, batch, tasks, here.tools, lambda: here.store.add(project, batch, tasks))


def _killer(
    here: FleetHere,
) -> "Callable[[Worker, Sequence[Run], Callable[[str], object]], None]":
    """Return what kills the process of one run, once, after the first iteration of that run."""
    has_killed = False

    def kill(worker: "Worker", runs: Sequence[Run], say: Callable[[str], object]) -> None:
        nonlocal has_killed
        victim = next((run for run in runs if run.run == _VICTIM), None)
        if has_killed or victim is None or victim.state is not RunState.WORKING:
            return
        own = {slot.pid for slot in worker.slots}
        pids = [
            one.pid
            for one in here.store.workers.all(here.place.project)
            if one.id == victim.worker and one.pid in own
        ]
        if victim.iteration and pids:
            has_killed = True
            say(f"demo: kill -9 {pids[0]}, the process that works on {_VICTIM}")
            os.kill(pids[0], signal.SIGKILL)

    return kill


def _look(*words: str) -> int:
    """Run a command of rooda on the user's terminal; return its exit code."""
    click.echo(f"$ {shlex.join(['rooda', *words])}")
    sys.stdout.flush()
    done = subprocess.run(own_module("rooda", *words), check=False)
    click.echo("\nNext: write tasks into TASKS.md, then `rooda fleet run TASKS.md -j 3 -a claude`.")
    return done.returncode
