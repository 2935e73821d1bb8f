"""`rooda fleet merge`: the branches of runs into one branch, without a work tree of the user."""

import json
from collections.abc import Callable, Sequence

import click

from rooda.base.controls import clean
from rooda.base.numbers import count
from rooda.fleet.actions.look_at_run import bring_branches
from rooda.fleet.actions.merge_runs import (
    MergeCheck,
    MergeOutcome,
    MergeRefused,
    MergeResult,
    merge_runs,
)
from rooda.fleet.remote.replay import TooOldGit
from rooda.fleet.run_model import Run, RunState
from rooda.fleet.slot.start_words import TASK_FILE, words_in_sandbox
from rooda.front.cli.commands.run import loop
from rooda.front.cli.fleet_here import FleetHere, fleet_here, wrong
from rooda.front.flags import given_flags
from rooda.front.options import JSON
from rooda.plan.layers import FILE_RUN
from rooda.plan.locate import read_layers
from rooda.plan.resolve import resolve
from rooda.plan.settings.settings import SANDBOX_KIND, SANDBOX_NETWORK
from rooda.world.git.git import GitError, GitInterruptedError
from rooda.world.process.interrupts import INTERRUPTED

_DONE = (MergeOutcome.MERGED, MergeOutcome.ALREADY, MergeOutcome.WITH_ANOTHER)


@click.command("merge")
@click.argument("runs", nargs=-1, metavar="[RUN...]")
@click.option("--into", required=True, metavar="BRANCH", help="Branch to merge into; may be new.")
@click.option(
    "--verify", metavar="CMD", help="Command that must succeed after each merge, in a clean copy."
)
@JSON
def merge(*, runs: tuple[str, ...], into: str, verify: str | None, as_json: bool) -> int:
    """Merge the runs that ended as success into a branch, oldest first. Without RUN: all of them.

    A conflict, or a merge that does not pass the check, is named and left out. Nothing is deleted,
    and no file of yours changes: the branch must not be checked out.
    """
    with fleet_here() as here:
        chosen = _chosen(here, runs)

        def tell(result: MergeResult) -> None:
            words = "merged" if result.outcome in _DONE else result.line
            if result.outcome is not MergeOutcome.MISSING:
                here.store.set_ended(here.place.project, result.run, words)
            if not as_json:
                click.echo(clean(f"{result.run}: {result.line}"))
                for line in clean(result.words).splitlines():
                    click.echo(f"  {line}")

        try:
            bring_branches(chosen, here.place, here.tools)
            results = merge_runs(
                here.place.top,
                [run.run for run in chosen],
                into,
                base=chosen[0].batch.base,
                tools=here.tools,
                check=None if verify is None else MergeCheck(verify, within=_within(here, chosen)),
                tell=tell,
            )
        except GitInterruptedError:
            return INTERRUPTED
        except MergeRefused as refused:
            raise wrong(str(refused), "") from None
        except (TooOldGit, GitError) as error:
            raise wrong(f"git can't merge: {error}", "Merges made before that stay") from None
    _report(results, into, as_json=as_json)
    return 0 if all(one.outcome in _DONE for one in results) else 1


def _chosen(here: FleetHere, names: tuple[str, ...]) -> list[Run]:
    """Return the runs to merge, in the order in which they were added."""
    wanted = {here.run(name).run for name in names}
    found = [
        run
        for run in here.runs()
        if run.run in wanted or (not wanted and run.state is RunState.SUCCESS)
    ]
    if not found:
        raise wrong("no run has ended as success yet", "See their states with `rooda fleet`")
    return found


def _within(here: FleetHere, chosen: Sequence[Run]) -> Callable[[str], Sequence[str]]:
    """Return what makes the words that run a command in the sandbox of the runs, if they had one.

    Merged work is that of several agents: the run with the closest sandbox decides.
    """
    run = max([*chosen, *here.runs()], key=lambda one: _closeness(here, one))
    file = here.layers.workspace.file
    config = ["--config", str(here.world.folder / file)] if file else []
    return lambda command: words_in_sandbox(
        run.task, run.batch.flags, "../record", command, *config
    )


def _closeness(here: FleetHere, run: Run) -> int:
    """Return how much the sandbox keeps in that the iterations of a run have; 0: there is none."""
    try:
        ctx = loop.make_context("loop", [TASK_FILE, *run.batch.flags], help_option_names=[])
        flags = given_flags(ctx.params)
    except click.UsageError:  # such a run can't start
        return 0
    layers = read_layers(here.world, None, flags, [])
    values = resolve(layers, run.task.procedure or FILE_RUN)
    if values[SANDBOX_KIND] == SANDBOX_KIND.default:
        return 0
    return 1 if values[SANDBOX_NETWORK] else 2


def _report(results: list[MergeResult], into: str, *, as_json: bool) -> None:
    if as_json:
        objects = [
            {
                "run": one.run,
                "outcome": str(one.outcome),
                "commit": one.commit or None,
                "conflicts_with": one.conflicts_with or None,
                "files": list(one.files),
                "words": one.words,
            }
            for one in results
        ]
        click.echo(json.dumps(objects, indent=2))
        return
    merged = sum(one.outcome in _DONE for one in results)
    click.echo(f"{merged} of {count(len(results), 'run')} merged into {into}.", err=True)
    for one in results:
        if one.files or one.outcome is MergeOutcome.VERIFY_FAILED:
            click.echo(f"Next: rooda fleet retry {one.run} --onto {into}", err=True)
