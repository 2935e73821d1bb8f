"""The tasks of a run's task file: how many are done, and whether a success leaves some open. Pure.

All views take the decision and the words from here. An agent can write any name of a task.
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec.structs import replace

from rooda.base.controls import one_line
from rooda.base.numbers import count
from rooda.loop.events.run import TasksLeft
from rooda.loop.state import Status
from rooda.loop.stops import known_rule
from rooda.world.tasks.standing import TaskCount

_NAMES = 3  # tasks by name
_LONGEST_NAME = 100  # characters
_MOST_KEPT = 20  # names in a summary


class HasTasks(Protocol):
    """A run: its row in the record, or its summary."""

    @property
    def status(self) -> str:
        """How it ended."""

    @property
    def rule(self) -> str | None:
        """The rule that ended it."""

    @property
    def tasks(self) -> TaskCount | None:
        """How many tasks are done; None without a task file."""

    @property
    def tasks_left(self) -> TasksLeft | None:
        """The tasks that are left at the end."""


def is_doubtful(run: HasTasks) -> bool:
    """Return whether the run is a success by the word of the agent, while tasks are open."""
    rule = known_rule(run.rule)
    if run.status != Status.SUCCESS or rule is None or not rule.row.doubt:
        return False
    return open_count(run) > 0


def open_count(run: HasTasks) -> int:
    """Return how many tasks are not done; blocked ones are among them."""
    if (known := known_count(run.tasks)) is not None:
        return known.open
    left = run.tasks_left  # without a count in records of earlier versions
    return len(left.open) + len(left.blocked) if left else 0


def known_count(tasks: TaskCount | None) -> TaskCount | None:
    """Return a count that makes sense, else None: an agent can write to the record."""
    if tasks is None or tasks.total < 1:
        return None
    makes_sense = 0 <= tasks.done <= tasks.total and 0 <= tasks.blocked <= tasks.open
    return tasks if makes_sense else None


def known_names(left: TasksLeft | None) -> TasksLeft | None:
    """Return the first names, each cut to a length that a summary can have."""
    file = left.file[:_LONGEST_NAME] if left else ""
    return left and replace(left, open=_first(left.open), blocked=_first(left.blocked), file=file)


def _first(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name[:_LONGEST_NAME] for name in names[:_MOST_KEPT])


def tasks_line(run: HasTasks) -> str:
    """Return `14 of 20 tasks; 6 open in PLAN.md: A, B, C, 3 more`; "" without a task file."""
    tasks = known_count(run.tasks)
    return "; ".join(filter(None, (tasks.words if tasks else "", left_words(run))))


def left_words(run: HasTasks) -> str:
    """Return `5 open in PLAN.md: A, B, C, 2 more; 1 blocked: D`, as far as that is known."""
    tasks, left = known_count(run.tasks), run.tasks_left or TasksLeft((), ())
    blocked = tasks.blocked if tasks else len(left.blocked)
    opened = tasks.open - blocked if tasks else len(left.open)
    place = f" in {one_line(left.file[:_LONGEST_NAME])}" if left.file else ""
    found: list[str] = []
    if left.open:
        found.append(f"{opened} open{place}: {_some(left.open, opened)}")
    if blocked:
        some = f": {_some(left.blocked, blocked)}" if left.blocked else ""
        found.append(f"{blocked} blocked{'' if found else place}{some}")
    return "; ".join(found)


def _some(names: Sequence[str], number: int) -> str:
    shown = [one_line(name[:_LONGEST_NAME]) for name in names[:_NAMES]]
    more = [f"{number - len(shown)} more"] if number > len(shown) else []
    return ", ".join(shown + more)


def still_open(run: HasTasks) -> str:
    """Return `6 of 20 tasks are not done.` for a success that leaves tasks open, else ""."""
    if not is_doubtful(run):
        return ""
    number, tasks = open_count(run), known_count(run.tasks)
    of = f"{number} of {count(tasks.total, 'task')}" if tasks else count(number, "task")
    return f"{of} {'is' if number == 1 else 'are'} not done."
