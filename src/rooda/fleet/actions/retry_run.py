"""A run that goes on after its end, or whose work another run brings onto a branch."""

from msgspec.structs import replace

from rooda.base.controls import one_line
from rooda.base.problems import InvalidInput, Problem
from rooda.base.times import local_now
from rooda.fleet.actions.add_tasks import Base, batch_name
from rooda.fleet.display.run_words import NO_REQUEST, next_words
from rooda.fleet.place import TITLE
from rooda.fleet.run_model import Batch, FleetTask, Run, RunState
from rooda.fleet.tasks.task_names import run_name

_WORDS = """\
The work on the task below is done, in the commit {tip} (the branch {branch}). It does not merge
into {onto} by itself{why}.

Bring it there: you are on top of {onto}. Run `git merge {tip}`, resolve every conflict so that both
sides keep their meaning, commit, and check that all of it works.

The task was:

{task}
"""


def refuse_success(run: Run) -> None:
    """Raise InvalidInput if the run ended as success: it has nothing left to do."""
    if run.state is RunState.SUCCESS:
        message = f"{run.run} ended as success: it has nothing left to do"
        advice = f"To bring its work onto a branch: rooda fleet retry {run.run} --onto BRANCH"
        if run.ended.startswith(NO_REQUEST):
            advice = f"Its branch has the work: {next_words(run)}"
        raise InvalidInput([Problem(message, advice, title=TITLE)])


def with_limits(task: FleetTask, most: int | None, cost: float | None) -> FleetTask:
    """Return the task with other limits; None leaves a limit as it is."""
    task = task if most is None else replace(task, max_iterations=most)
    return task if cost is None else replace(task, max_cost=cost)


def task_onto(run: Run, tip: str, onto: str, base: Base) -> tuple[Batch, FleetTask]:
    """Return an ordinary run, in a batch of its own, that brings the work of a run onto a branch.

    `tip` is the last commit of the run. The new run starts from the branch.
    """
    why = run.ended if run.ended.startswith(("conflict", "verify failed")) else ""
    text = _WORDS.format(
        tip=tip,
        branch=run.branch,
        onto=onto,
        why=f" ({one_line(why)})" if why else "",
        task=run.task.text,
    )
    name = run_name(f"{run.run} onto {onto}")
    title = f"{run.task.title or run.run} onto {onto}"
    task = replace(run.task, name=name, title=title, text=text, base=None, after=())
    batch = replace(
        run.batch,
        name=batch_name(local_now()),
        base=base.commit,
        base_branch=base.branch,
    )
    return batch, task
