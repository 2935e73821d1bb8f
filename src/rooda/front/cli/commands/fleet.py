"""`rooda fleet`: the table of all runs, and what a user can do with them."""

import json
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import click
from msgspec import to_builtins

from rooda.base.numbers import count
from rooda.fleet.display.fleet_table import as_object, has_worker, table_text
from rooda.fleet.run_model import Order, Run
from rooda.front.cli.commands.fleet_demo import demo
from rooda.front.cli.commands.fleet_look import diff, follow, show, why
from rooda.front.cli.commands.fleet_merge import merge
from rooda.front.cli.commands.fleet_run import add, run_
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
from rooda.front.masking import masker_here
from rooda.front.options import JSON, PlainGroup
from rooda.front.pager import print_paged

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
    from rooda.fleet.actions.retry_run import refuse_success, with_limits

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
    from rooda.fleet.actions.look_at_run import branch_commit
    from rooda.fleet.actions.retry_run import task_onto

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
    from rooda.fleet.actions.forget_run import free_records, remove_record

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
