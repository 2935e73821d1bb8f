"""`rooda fleet run`, `rooda fleet add` and `rooda worker`: tasks in, and the work on them."""

import contextlib
import json
import sys
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from rooda.base.controls import one_line
from rooda.base.numbers import count
from rooda.base.paths import first_names
from rooda.base.problems import InvalidInput, Problem, Severity, errors, problems_text
from rooda.base.times import local_now
from rooda.fleet.display.fleet_progress import going_on
from rooda.fleet.display.fleet_table import table_text
from rooda.fleet.display.run_words import state_words
from rooda.fleet.run_model import Batch, Finish, FleetTask, Run, RunState
from rooda.fleet.tasks.read_tasks import By, Wanted, read_tasks, sight_of_tasks
from rooda.front.cli.fleet_flags import check_run_flags, fleet_flags, fleet_options, run_words
from rooda.front.cli.fleet_here import NO_RUN, FleetHere, fleet_here, wrong
from rooda.front.color import painter, room
from rooda.front.command_table import HELP_FLAGS, RESERVED, CliContext
from rooda.front.flags import config_option
from rooda.front.masking import masker_here
from rooda.front.options import RunCommand
from rooda.plan.preflight.programs import check_contexts
from rooda.plan.preflight.validate import unknown_procedure
from rooda.plan.prompting import choose_contexts
from rooda.plan.prompts.parts import in_sight
from rooda.plan.settings.fleet_settings import (
    COPY,
    FINISH,
    JOBS,
    LABELS,
    MAX_COST,
    PROCEDURE,
    SETUP,
    SETUP_INPUTS,
    TAKEOVER,
)
from rooda.world.process.interrupts import INTERRUPTED

if TYPE_CHECKING:
    from rooda.fleet.worker.slot_plan import SlotPlan
    from rooda.fleet.worker.supervisor import Worker

    Meanwhile = Callable[[Worker, Sequence[Run], Callable[[str], object]], object]

_LARGEST_CONTEXT = 1_000_000  # bytes


class _FleetRun(RunCommand):
    examples = """\
  rooda fleet run TASKS.md -j 3 -a claude
  rooda fleet run specs/*.md --verify "make test" -n 20 --max-cost 40
  rooda fleet run fleet.yml --finish pr
  rooda fleet run                              go on with what waits
"""


class _FleetAdd(RunCommand):
    examples = """\
  rooda fleet add TASKS.md -a claude
  rooda fleet add specs/ --base develop --verify "make test"
  rooda fleet add fleet.yml --max-cost 40
"""


@click.pass_context
def _add(ctx: click.Context, /, **parameters: Any) -> None:
    with fleet_here(fleet_flags(parameters), parameters["config"]) as here:
        added = _add_tasks(here, ctx)
    if parameters["as_json"]:
        click.echo(json.dumps([{"run": name, "branch": f"rooda/{name}"} for name in added]))
        return
    if not added:
        click.echo("No task is new. `rooda fleet` shows the runs.", err=True)
        return
    names = ", ".join(added[:10]) + (", ..." if len(added) > 10 else "")  # noqa: PLR2004
    click.echo(f"Added {count(len(added), 'run')}: {names}")
    click.echo("Next: `rooda worker` works on them, `rooda fleet` shows them.", err=True)


@click.pass_context
def _run(ctx: click.Context, /, **parameters: Any) -> int:
    session: CliContext = ctx.obj
    with fleet_here(fleet_flags(parameters), parameters["config"], is_worker=True) as here:
        if parameters["files"]:
            _add_tasks(here, ctx)
        waiting = going_on(here.runs(), here.values[LABELS])
        if not waiting:
            left = left_words(here)
            message = f"no run can start here: {left}" if left else "no run waits for a worker"
            advice = "Name a file with new tasks, or go on with a run: rooda fleet retry RUN"
            advice = "See `rooda fleet`" if left else advice
            raise wrong(message, advice)
        names = frozenset(run.run for run in waiting)
        code = work(here, session, until=lambda runs: not _own(going_on(runs), names))
        ended = _own(here.runs(), names)
        text = table_text(masker_here().tree(here.sight(ended)), room=room(), paint=painter("auto"))
        click.echo(f"\n{text}", nl=False)
    if code == 0 and any(run.state is not RunState.SUCCESS for run in ended):
        return 1
    return code


def left_words(here: FleetHere) -> str:
    """Return which runs have not ended, and what each waits for; empty if all have."""
    sight = here.sight()
    return ", ".join(
        one_line(f"{run.run} ({state_words(run, sight.states, sight.now)})")
        for run in sight.runs
        if not run.state.is_end
    )


def _own(runs: Sequence[Run], names: frozenset[str]) -> list[Run]:
    return [run for run in runs if run.run in names]


def _add_tasks(here: FleetHere, ctx: click.Context) -> list[str]:
    """Add the runs of the files that the user named; return their names. Raises InvalidInput."""
    from rooda.fleet.actions.add_tasks import (
        add_tasks,
        batch_name,
        check_is_shared,
        find_base,
        with_bases,
    )
    from rooda.fleet.store.store import NameTaken

    parameters = ctx.params
    known = {run.run: run.task.text for run in here.runs()}
    by = None if parameters["by"] is None else By(parameters["by"])
    wanted = Wanted(
        parameters["files"],
        here.world.folder,
        by,
        here.values[PROCEDURE],
        partial(_check_task, here),
    )
    tasks = _new(read_tasks(wanted, known), known)
    if not tasks:
        return []
    tasks = _with_context(tasks, parameters["contexts"], here)
    flags = run_words(ctx, here.world.folder)
    check_run_flags(parameters, tasks, here.world, parameters["config"])
    tasks = with_bases(tasks, here.git)
    base = find_base(here.git, parameters["base"])
    bases = [base.commit, *(task.base for task in tasks if task.base is not None)]
    check_is_shared(here.place, here.git, bases)
    _warn_of_config(here)
    _warn_of_finish(here)
    batch = Batch(
        batch_name(local_now()),
        base.commit,
        base.branch,
        flags,
        here.values[MAX_COST],
        Finish(here.values[FINISH]),
    )
    project = here.place.project
    try:
        add_tasks(
            here.place,
            batch,
            tasks,
            here.tools,
            lambda: here.store.add(project, batch, tasks),
        )
    except NameTaken as taken:
        raise wrong(f"the project has these runs already: {taken}", "Use other names") from None
    return [task.name for task in tasks]


def _check_task(here: FleetHere, task: FleetTask) -> list[Problem]:
    """Return what is wrong with the commit and the procedure that a task names."""
    from rooda.fleet.actions.add_tasks import find_base

    problems: list[Problem] = []
    name = task.procedure
    if name is not None and name not in here.layers.names_to_run():
        found = unknown_procedure(name, here.layers, RESERVED)
        problems.append(replace(found, field="procedure"))
    if task.base is not None:
        try:
            find_base(here.git, task.base)
        except InvalidInput as error:
            problems += [replace(one, field="base") for one in error.problems]
    return problems


def _new(tasks: Sequence[FleetTask], known: Collection[str]) -> list[FleetTask]:
    """Return the tasks that are no runs yet, and tell the user of the others."""
    there = [task.name for task in tasks if task.name in known]
    if there:
        names = first_names(there)
        click.echo(f"Not added, since the project has them already: {names}.", err=True)
    return [task for task in tasks if task.name not in known]


def _with_context(
    tasks: list[FleetTask], contexts: Sequence[str], here: FleetHere
) -> list[FleetTask]:
    """Return the tasks with the texts of `--context` before their own."""
    problems: list[Problem] = []
    sight = sight_of_tasks(here.world.folder)
    chosen = choose_contexts(contexts, here.world.folder, problems, _LARGEST_CONTEXT)
    found = [in_sight(one, sight) for one in chosen]
    checks = check_contexts(found, _LARGEST_CONTEXT)
    problems += [one.problem for one in checks if one.problem is not None]
    if errors(problems):
        raise InvalidInput(problems)
    click.echo(problems_text(problems), err=True, nl=False)
    texts = [one.source.read(_LARGEST_CONTEXT).strip() for one in found]
    if not texts:
        return tasks
    return [replace(task, text="\n\n".join([*texts, task.text]).strip()) for task in tasks]


def _warn_of_config(here: FleetHere) -> None:
    """Tell the user of a config file that the slots do not have: they are clones."""
    from rooda.fleet.actions.add_tasks import config_file_is_committed

    file = here.layers.workspace.file
    if not file or config_file_is_committed(here.git, here.world.folder / file):
        return
    problem = Problem(
        "is not committed as it is now: the runs read the config file of their commit",
        "Commit it, or give the flags to this command",
        file=file,
        severity=Severity.WARNING,
    )
    click.echo(problems_text([problem]), err=True, nl=False)


def _warn_of_finish(here: FleetHere) -> None:
    """Tell the user now, not after the work, that runs can't become pull requests from here."""
    from rooda.fleet.remote.pull_request import trouble_ahead

    if here.values[FINISH] != Finish.PR:
        return
    if trouble := trouble_ahead(here.place.remote, here.tools):
        message = f"a run that ends here will not become a pull request: {trouble}"
        problem = Problem(message, field="finish", severity=Severity.WARNING)
        click.echo(problems_text([problem]), err=True, nl=False)


def work(
    here: FleetHere,
    session: CliContext,
    until: Callable[[Sequence[Run]], bool] | None,
    meanwhile: "Meanwhile" = lambda *_: None,
) -> int:
    """Run a worker on this machine, and show what happens; return the exit code.

    `meanwhile` is called again and again with the worker, the runs, and what prints a line.
    """
    from sqlalchemy.exc import SQLAlchemyError

    from rooda.fleet.display.fleet_progress import Display, Viewer
    from rooda.fleet.worker.supervisor import Worker, run_worker
    from rooda.views.terminal.terminal import Sink, Terminal

    err = Sink(sys.stderr.fileno())
    terminal = Terminal(Sink(sys.stdout.fileno()), err)
    display = Display(terminal, is_live=err.is_terminal, masker=masker_here())
    last: tuple[Sequence[Run], float] = (here.runs(), here.store.now())

    def look() -> tuple[Sequence[Run], float]:
        nonlocal last
        # The database may be away for a moment: the agents go on.
        with contextlib.suppress(SQLAlchemyError):
            last = here.runs(), here.store.now()
        return last

    viewer = Viewer(look, display, session.interrupts, with_worker=True)
    worker_ = Worker(_plans(here), display.say)

    def show() -> None:
        viewer.show()
        meanwhile(worker_, viewer.runs, display.say)

    try:
        is_done = run_worker(
            worker_,
            session.interrupts,
            is_done=lambda: until is not None and until(viewer.runs),
            show=show,
        )
        viewer.show_now()  # what the slots did last
    finally:
        display.close()
    if session.interrupts.received:
        click.echo("Go on with `rooda fleet run` or `rooda worker`.", err=True)
        return INTERRUPTED
    return 0 if is_done else 1


def _plans(here: FleetHere) -> "list[SlotPlan]":
    from rooda.fleet.worker.slot_plan import SlotPlan

    values, place = here.values, here.place
    return [
        SlotPlan(
            place.url,
            place.remote,
            place.project,
            slot,
            state=None if place.needed_state is None else str(place.needed_state),
            fence=None if place.fence is None else str(place.fence),
            checkout=str(place.top),
            labels=values[LABELS],
            takeover=values[TAKEOVER],
            setup=values[SETUP],
            setup_inputs=values[SETUP_INPUTS],
            copy=values[COPY],
        )
        for slot in range(1, values[JOBS] + 1)
    ]


@click.command("worker", context_settings=HELP_FLAGS)
@click.option("-j", "--jobs", metavar="N", help=f"{JOBS.help} [default: {JOBS.default}].")
@click.option("--labels", metavar="A,B", help=f"{LABELS.help}.")
@click.option("--drain", is_flag=True, help="End when no run waits any more.")
@click.option("--takeover", metavar="DURATION", help=f"{TAKEOVER.help} [default: 60s].")
@config_option
@click.pass_obj
def worker(
    session: CliContext,
    /,
    *,
    jobs: str | None,
    labels: str | None,
    drain: bool,
    takeover: str | None,
    config: str | None,
) -> int:
    """Work on the runs of a fleet, on this machine.

    SIGTERM or Ctrl+C: the iterations at work end, and other workers go on with the runs. Twice: at
    once. With PostgreSQL (fleet.url), any number of machines work on the same runs.
    """
    given = {"jobs": ("--jobs", jobs), "labels": ("--labels", labels)}
    given["takeover"] = ("--takeover", takeover)
    flags = {key: (flag, text) for key, (flag, text) in given.items() if text is not None}
    with fleet_here(flags, config, is_worker=True) as here:
        own = here.values[LABELS]
        if drain and not here.runs():
            click.echo(NO_RUN, err=True)
            return 0
        code = work(here, session, until=(lambda runs: not going_on(runs, own)) if drain else None)
        if drain and code == 0:
            left = left_words(here)
            words = f"Not ended: {left}" if left else "All runs have ended: see `rooda fleet`"
            click.echo(f"{words}.", err=True)
        return code


_JSON = click.Option(["--json", "as_json"], is_flag=True, help="Print JSON.")

run_ = _FleetRun(
    "run",
    callback=_run,
    context_settings=HELP_FLAGS,
    params=fleet_options(with_jobs=True),
    help="Add a run for each task in FILES, and work here until all have ended.",
    epilog="FILES are Markdown, folders of it, or fleet.yml. `--help-all` shows all flags; those "
    "of `rooda loop` hold for each run. Ctrl+C: the iterations at work end. Twice: at once.",
)
add = _FleetAdd(
    "add",
    callback=_add,
    context_settings=HELP_FLAGS,
    params=[*fleet_options(with_jobs=False), _JSON],
    help="Add a run for each task in FILES. Workers take them up.",
    epilog="FILES are Markdown, folders of it, or fleet.yml. `--help-all` shows all flags; those "
    "of `rooda loop` hold for each run.",
)
