"""How many tasks of the task file are done, also if an agent removes or moves some. Pure."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from rooda.base.controls import one_line
from rooda.world.tasks.task_file import Task, TaskStatus

_MOST_NAMED = 5  # tasks in one message
_MOST_KEPT = 1000  # tasks that the record keeps, so that it stays small


class TaskCount(Struct, frozen=True):
    """How many tasks of the task file are done; blocked ones are not."""

    done: int  # how many tasks are done
    total: int  # how many tasks there are
    blocked: int = 0  # how many of the others are blocked

    @property
    def open(self) -> int:
        """How many are not done; blocked ones are among them."""
        return self.total - self.done

    @property
    def words(self) -> str:
        """`14 of 20 tasks`."""
        return f"{self.done} of {self.total} task{'s' * (self.total != 1)}"


class TaskLedger(Struct, frozen=True):
    """What became of tasks that are not in the task file any more. The record keeps it."""

    removed: tuple[Task, ...] = ()  # open ones that an agent removed: they still count as open
    moved: tuple[str, ...] = ()  # the keys of done ones: they still count as done

    def after_agent(
        self, before: Sequence[Task], now: Sequence[Task], archive: Sequence[Task]
    ) -> "TaskLedger":
        """Return the ledger after an agent has changed the file; `archive` is its PLAN-DONE.md."""
        archived = {key: task for task in archive if task.is_done for key in _keys(task)}
        numbers = Counter(task.key for task in before)
        removed: dict[str, Task] = {}
        moved = dict.fromkeys(self.moved)
        for gone in _missing((*before, *self.removed), now):
            # If each phase of the plan counts from 1, only the name tells the tasks apart.
            task = replace(gone, number="") if numbers[gone.key] > 1 else gone
            if task.is_done or any(_is_same(task, archived.get(key)) for key in _keys(task)):
                moved[task.key] = None
            else:
                removed[task.key] = task
        return TaskLedger(tuple(removed.values())[:_MOST_KEPT], tuple(moved)[-_MOST_KEPT:])

    def standing(self, tasks: Sequence[Task]) -> "TaskStanding":
        """Return where the run stands with these tasks in the file."""
        present = {key for task in tasks for key in _keys(task)}
        unfinished = [task for task in tasks if not task.is_done]
        removed = [task.name for task in self.removed if task.key not in present]
        moved = sum(key not in present for key in self.moved)
        blocked = [task.name for task in unfinished if task.status is TaskStatus.BLOCKED]
        count = TaskCount(
            done=len(tasks) - len(unfinished) + moved,
            total=len(tasks) + moved + len(removed),
            blocked=len(blocked),
        )
        names = [task.name for task in unfinished if task.status is not TaskStatus.BLOCKED]
        return TaskStanding(
            count, tuple(names[:_MOST_KEPT]), tuple(blocked[:_MOST_KEPT]), tuple(removed)
        )


class TaskStanding(Struct, frozen=True):
    """Where a run stands: the count, and the names of the tasks that are not done.

    `removed` are open tasks that an agent has removed from the file. `trouble` is why rooda can't
    read the file.
    """

    count: TaskCount = TaskCount(0, 0)
    open: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    trouble: str = ""

    @property
    def unfinished(self) -> tuple[str, ...]:
        """The names of the tasks that are neither done nor blocked."""
        return (*self.open, *self.gone)

    @property
    def gone(self) -> tuple[str, ...]:
        """The names of the removed tasks, with words that say so."""
        return tuple(f"{name} (was removed)" for name in self.removed)

    @property
    def known_count(self) -> TaskCount | None:
        """The count; None if there is no task."""
        return self.count if self.count.total else None

    @property
    def is_done(self) -> bool:
        """Whether all tasks are done."""
        return not self.trouble and self.count.total > 0 and not self.count.open

    @property
    def is_blocked(self) -> bool:
        """Whether tasks are left, and all of them are blocked."""
        return not self.trouble and self.count.open == self.count.blocked > 0


def some(names: Sequence[str]) -> str:
    """Return the first names on one line."""
    more = len(names) - _MOST_NAMED
    shown = "; ".join(one_line(name) for name in names[:_MOST_NAMED])
    return f"{shown}; and {more} more" if more > 0 else shown


def _keys(task: Task) -> tuple[str, str]:
    return task.key, task.name.casefold()


def _is_same(task: Task, archived: Task | None) -> bool:
    """Return whether it is the same task; an earlier plan may have used its number, too."""
    if archived is None:
        return False
    names = sorted((task.name.casefold(), archived.name.casefold()), key=len)
    return names[1].startswith(names[0])


def _missing(before: Sequence[Task], now: Sequence[Task]) -> list[Task]:
    """Return the tasks that are not there any more; several may have the same key.

    A name that only became longer is the same task: `Add a test (in tests/x.py)`.
    """
    left = Counter(task.key for task in now)
    same = Counter(map(_keys, now))
    others: list[Task] = []
    for task in before:
        if same[_keys(task)]:
            same[_keys(task)] -= 1
            left[task.key] -= 1
        else:
            others.append(task)
    missing = [task for task in others if not _take(left, task.key)]
    names = sorted(key for key in left if left[key])
    return [task for task in missing if task.number or not _take_longer(left, names, task.key)]


def _take(left: Counter[str], key: str) -> bool:
    """Return whether a task with this key is left, and take it."""
    is_left = left[key] > 0
    left[key] -= is_left
    return is_left


def _take_longer(left: Counter[str], names: Sequence[str], key: str) -> bool:
    """Return whether a task is left whose name begins with the words of the key, and take it."""
    begin = f"{key} "
    at = bisect_left(names, begin)
    return at < len(names) and names[at].startswith(begin) and _take(left, names[at])
