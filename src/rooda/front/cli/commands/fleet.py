"""`rooda fleet`: the table of all runs, and what a user can do with them."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import click
from msgspec import to_builtins

from rooda.base.controls import clean
from rooda.base.numbers import count
from rooda.fleet.actions.merge_runs import (
    MergeCheck,
    MergeOutcome,
    MergeRefused,
    MergeResult,
    merge_runs,
)
from rooda.fleet.actions.one_run import bring_branches
from rooda.fleet.display.fleet_table import as_object, has_worker, table_text
from rooda.fleet.remote.replay import TooOldGit
from rooda.fleet.run_model import Order, Run, RunState
from rooda.fleet.slot.slot_setup import TASK_FILE, words_in_sandbox
from rooda.front.cli.commands.fleet_demo import demo
from rooda.front.cli.commands.fleet_look import diff, follow, show, why
from rooda.front.cli.commands.fleet_run import add, run_
from rooda.front.cli.commands.run import loop
from rooda.front.cli.fleet_here import (
    NO_RUN,
    FleetHere,
    fleet_here,
    look_around,
    refuse_without_extra,
    wrong,
)
from rooda.front.color import COLOR, painter, room
from rooda.front.command_table import HELP_FLAGS
from rooda.front.flags import given_flags
from rooda.front.masking import masker_here
from rooda.front.options import JSON, PlainGroup
from rooda.front.pager import print_paged
from rooda.plan.layers import FILE_RUN
from rooda.plan.locate import read_layers
from rooda.plan.resolve import resolve
from rooda.plan.settings.settings import SANDBOX_KIND, SANDBOX_NETWORK
from rooda.world.git.git import GitError, GitInterruptedError
from rooda.world.process.interrupts import INTERRUPTED

# `rooda fleet merge`: the branches of runs into one branch, without a work tree of the user.


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


_EXAMPLES = """\
  rooda fleet demo                           see it, with no agent and no key
  rooda fleet run TASKS.md -j 3 -a claude    work on each `## heading` of the file, three at once
  rooda fleet add specs/*.md -n 20           add a run for each file; a worker takes them up
  rooda worker -j 4                          work on them, on this machine
  rooda fleet                                what each run does, and how it ended
  rooda fleet why auth                       why it waits, or how it ended
  rooda fleet diff auth                      what it changed
  rooda fleet stop auth                      end it after its current iteration
  rooda fleet retry auth                     go on with it
  rooda fleet merge --into night --verify "make test"
"""


class _Fleet(PlainGroup):
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, and examples."""
        super().format_commands(ctx, formatter)
        with formatter.section("Examples"):
            formatter.write(_EXAMPLES)


@click.group("fleet", cls=_Fleet, invoke_without_command=True, context_settings=HELP_FLAGS)
@COLOR
@JSON
@click.pass_context
def group(ctx: click.Context, *, color: str, as_json: bool) -> None:
    """Run many tasks at once, each on a branch of its own, on one machine or on many.

    Without a command: show all runs of this project.
    """
    if ctx.invoked_subcommand is not None:
        return
    refuse_without_extra()
    *_, place, _ = look_around({})
    if not place.has_database and not place.has_old_database:
        click.echo(json.dumps({"runs": []}) if as_json else NO_RUN, err=not as_json)
        return
    with fleet_here() as here:
        sight = masker_here().tree(here.sight())
    if as_json:
        found: dict[str, Any] = {"project": place.project, "database": place.shown_url}
        click.echo(json.dumps(found | as_object(sight), indent=2))
    elif not sight.runs:
        click.echo(NO_RUN, err=True)
    else:
        paint = painter(color)
        text = table_text(sight, room=room(), paint=paint)
        print_paged([text], place.top, is_colored=paint.is_on)


for _command in (run_, add, follow, show, why, diff, merge, demo):
    group.add_command(_command)


@group.command("stop")
@click.argument("runs", nargs=-1, metavar="RUN...")
@click.option("--all", "everything", is_flag=True, help="Stop all runs of the project.")
@click.option("--now", is_flag=True, help="Stop the agents now, without their iterations.")
def stop(*, runs: tuple[str, ...], everything: bool, now: bool) -> None:
    """End runs after their current iterations. Their branches stay; `retry` goes on with them."""
    if bool(runs) == everything:
        raise click.UsageError("name runs, or write --all")
    with fleet_here() as here:
        chosen = here.runs() if everything else [here.run(name) for name in runs]
        if everything and all(one.state.is_end for one in chosen):
            click.echo("No run is at work or waits.", err=True)
        for one in chosen:
            if not one.state.is_end:
                here.store.order(one.project, one.run, Order.NOW if now else Order.STOP)
                click.echo(_stopped(one, here.run(one.run), now=now))
            elif not everything:
                click.echo(f"{one.run} has ended already: {one.state}.", err=True)


def _stopped(before: Run, after: Run, *, now: bool) -> str:
    if after.state.is_end:
        return f"{before.run} is stopped."
    when = "now" if now else "when its current iteration has ended"
    return f"{before.run} stops {when}."


@group.command("retry")
@click.argument("run")
@click.option("-n", "--max-iterations", type=click.IntRange(1), metavar="N", help="New maximum.")
@click.option(
    "--max-cost",
    type=click.FloatRange(0.01),
    metavar="USD",
    help="New budget of all runs that were added with it.",
)
@click.option(
    "--run-max-cost", type=click.FloatRange(0.01), metavar="USD", help="New budget of this run."
)
@click.option(
    "--onto",
    metavar="BRANCH",
    help="Add a run that brings the work onto this branch, after a conflict.",
)
def retry(
    *,
    run: str,
    max_iterations: int | None,
    max_cost: float | None,
    run_max_cost: float | None,
    onto: str | None,
) -> None:
    """Go on with a run that has ended: after a failure, a stop or a conflict."""
    from rooda.fleet.actions.one_run import refuse_success, with_limits

    with fleet_here() as here:
        found = here.run(run)
        if not found.state.is_end:
            raise wrong(f"{found.run} has not ended: it is {found.state}", _go_on_or_stop(found))
        if onto is not None:
            _retry_onto(here, found, onto)
            return
        refuse_success(found)
        task = with_limits(found.task, max_iterations, run_max_cost)
        if max_cost is not None:
            here.store.set_budget(found.project, found.batch, max_cost)
        here.store.retry(found.project, found.run, task)
        click.echo(f"{found.run} is queued again.")
        _say_who_works(here)


def _go_on_or_stop(run: Run) -> str:
    return f"`rooda fleet run` goes on with it; to change it, first: rooda fleet stop {run.run}"


def _retry_onto(here: FleetHere, run: Run, onto: str) -> None:
    """Add a run that brings the work of another one onto a branch."""
    from rooda.fleet.actions.add_tasks import add_tasks, check_is_shared, find_base
    from rooda.fleet.actions.one_run import branch_commit, task_onto

    base = find_base(here.git, onto)
    check_is_shared(here.place, here.git, [base.commit])
    tip = branch_commit(run, here.place, here.tools)
    if tip is None:
        raise wrong(f"{run.run} has no branch: it has changed nothing", "Go on with it instead")
    batch, task = task_onto(run, tip, onto, base)
    if any(one.run == task.name for one in here.runs()):
        raise wrong(
            f"the run {task.name} is there already",
            f"Go on with it: rooda fleet retry {task.name}; or remove it: rooda fleet forget "
            f"{task.name}",
        )
    add_tasks(
        here.place,
        batch,
        [task],
        here.tools,
        lambda: here.store.add(here.place.project, batch, [task]),
    )
    click.echo(f"Added {task.name}, which brings the work of {run.run} onto {onto}.")
    _say_who_works(here)


def _say_who_works(here: FleetHere) -> None:
    """Name the command that works on what was queued, if no worker is there."""
    if not has_worker(here.sight()):
        click.echo("Next: `rooda fleet run` works on it here.", err=True)


@group.command("forget")
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--force", is_flag=True, help="Also if uncommitted work of it is lost.")
def forget(*, runs: tuple[str, ...], force: bool) -> None:
    """Remove runs from the table, with their records in git. A branch that is not merged stays."""
    from rooda.fleet.actions.one_run import free_records, remove_record

    with fleet_here() as here:
        chosen = {found.run: found for found in map(here.run, runs)}.values()
        for found in chosen:
            if not found.state.is_end:
                advice = f"Stop it first: rooda fleet stop {found.run}"
                raise wrong(f"{found.run} has not ended: it is {found.state}", advice)
        for found in chosen:
            words = remove_record(found, here.place, here.tools, force=force)
            here.store.forget(found.project, found.run)
            click.echo(f"{found.run} is forgotten{words}.")
    free_records(here.place, here.tools)


@group.command("adopt")
@click.argument("remote", required=False)
@click.argument("flags", nargs=-1, type=click.UNPROCESSED)
@click.option("--trust", is_flag=True, help="Do not ask: run the commands that git has.")
@JSON
def adopt(*, remote: str | None, flags: tuple[str, ...], trust: bool, as_json: bool) -> int:
    """Queue the runs again that are in git and not in the database, as after its loss.

    Every person who can push there can write a run with any command, so rooda shows the commands
    and asks first. Without a terminal it needs --trust.

    FLAGS are flags of the runs whose values git does not keep, because they are secrets:
    `rooda fleet adopt origin -- --env API_TOKEN=...`
    """
    from rooda.fleet.actions.adopt_runs import adopt as adopt_records

    given = {} if remote is None else {"remote": ("REMOTE", remote)}
    with fleet_here(given) as here:
        agree = partial(_agree, here.place.shown_records, trust=trust)
        found = adopt_records(here.place, here.store, here.tools, flags, agree=agree)
    if as_json:
        click.echo(json.dumps([to_builtins(one) for one in found], indent=2))
    adopted = [one for one in found if not one.trouble]
    for one in [] if as_json else adopted:
        click.echo(f"{one.run}: {one.state}, iteration {one.iteration}")
    for one in found:
        if one.trouble:
            click.echo(f"Warning: {one.run} was left alone: {one.trouble}", err=True)
    if any(one.needs for one in found):
        click.echo("  Give them again: rooda fleet adopt REMOTE -- FLAGS", err=True)
    click.echo(f"{count(len(adopted), 'run')} adopted.", err=True)
    return 1 if len(adopted) < len(found) else 0


def _agree(remote: str, commands: Mapping[str, Sequence[str]], *, trust: bool) -> bool:
    """Show the commands that the records of the remote bring; return whether the user agrees.

    Raises InvalidInput if there is no terminal to ask on.
    """
    click.echo(
        "Workers would run these commands, and what rooda-config.yml names in each commit. "
        f"Everyone who can push to {remote} can write both:",
        err=True,
    )
    for command, runs in commands.items():
        click.echo(f"  {command}\n    for {', '.join(runs)}", err=True)
    if trust:
        return True
    if sys.stdin is None or not sys.stdin.isatty():
        raise wrong(
            "nothing was adopted: there is no terminal to ask whether these commands may run",
            "Read the commands above. If all of them are yours: rooda fleet adopt --trust",
        )
    if not click.confirm("Adopt these runs?", err=True):
        raise wrong(
            "nothing was adopted",
            "Delete a record that is not yours: git push REMOTE :refs/rooda/fleet/RUN",
        )
    return True
