"""Reads the task file before and after the agent, which may change it, remove it or forge it."""

from msgspec.structs import replace

from rooda.loop.context import IterationContext
from rooda.plan.plan import Plan
from rooda.world.tasks.markdown_tasks import Task
from rooda.world.tasks.standing import TaskLedger, TaskStanding
from rooda.world.tasks.task_file import TaskFile, TaskFileError


def standing_of(plan: Plan, ledger: TaskLedger) -> TaskStanding | None:
    """Return where the run stands with its tasks now; None if it has no task file."""
    return None if plan.tasks is None else _standing(ledger, *_read(plan.tasks))


def note_tasks(context: IterationContext) -> None:
    """Note the tasks before the agent starts: what is gone after it, the agent has removed."""
    if context.plan.tasks is not None:
        context.tasks_before, _ = _read(context.plan.tasks)


def read_tasks(context: IterationContext) -> None:
    """Find out what the agent did to the tasks."""
    file = context.plan.tasks
    if file is None or not context.is_started:
        return
    now, trouble = _read(file)
    context.ledger = context.ledger.after_agent(context.tasks_before, now, file.read_done())
    context.standing = _standing(context.ledger, now, trouble)
    context.learn(tasks=context.standing.known_count)


def _read(file: TaskFile) -> tuple[tuple[Task, ...], str]:
    """Return the tasks, and why rooda can't read them."""
    try:
        return file.read(), ""
    except TaskFileError as error:
        return (), f"{file.shown} {error}"


def _standing(ledger: TaskLedger, tasks: tuple[Task, ...], trouble: str) -> TaskStanding:
    return replace(ledger.standing(tasks), trouble=trouble)
