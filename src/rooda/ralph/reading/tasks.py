"""The tasks of a plan, as people and agents write them in Markdown.

A task is a heading with a `Status:` line below it, or a check box. The check boxes below such a
heading are its steps. A heading above such headings is a group of tasks and none itself,
whatever status it has; so is the title of the plan.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rooda.ralph.reading.inline import plain, shortened
from rooda.ralph.reading.markdown import Kind, lines_of
from rooda.ralph.reading.outline import Box, Heading, outline_of
from rooda.ralph.reading.task_status import TaskStatus

_PLAN = re.compile(r"\b(?:plan|tasks|to-?do|roadmap|backlog)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Task:
    """One task: its name on one line of at most 100 characters, and the spec it names."""

    name: str
    spec: str | None = None
    status: TaskStatus = TaskStatus.OPEN


def tasks_in(text: str) -> tuple[Task, ...]:
    """Every task of the plan, in its order."""
    found = outline_of(text)
    headings = [entry for entry in found if isinstance(entry, Heading)]
    for heading in headings:
        if heading.is_task:
            for group in heading.above:
                group.is_group = True
    if len(headings) < len(found) and _has_title(headings):
        headings[0].is_group = True
    return tuple(_tasks(found))


def current(tasks: Sequence[Task]) -> Task | None:
    """The task at hand: the one in progress, else the first open one."""
    for status in (TaskStatus.IN_PROGRESS, TaskStatus.OPEN):
        for task in tasks:
            if task.status is status:
                return task
    return None


def became_complete(before: Sequence[Task], after: Sequence[Task]) -> Task | None:
    """The first task that is complete now and was not before; a known one before a new one."""
    known = Counter(task.name.casefold() for task in before)
    complete = Counter(task.name.casefold() for task in before if task.status == "complete")
    new: Task | None = None
    for task in after:
        name = task.name.casefold()
        if task.status is not TaskStatus.COMPLETE:
            continue
        if complete[name]:  # several tasks may have one name
            complete[name] -= 1
        elif known[name]:
            return task
        else:
            new = new or task
    return new


def first_heading(prompt: str) -> str | None:
    """The first heading of a text that says anything."""
    for line in lines_of(prompt):
        name = shortened(plain(line.text)) if line.kind is Kind.HEADING else ""
        if name:
            return name
    return None


def _has_title(headings: Sequence[Heading]) -> bool:
    """Whether the first heading stands for the whole plan; its check boxes are tasks then."""
    if not headings or headings[0].level > 1 or headings[0].is_numbered:
        return False
    others = headings[1:]
    if any(heading.level == 1 for heading in others):
        return False
    return bool(others) or _PLAN.search(headings[0].name) is not None


def _tasks(found: Sequence[Heading | Box]) -> Iterator[Task]:
    for entry in found:
        spec = next((e.spec for e in (entry, *reversed(entry.above)) if e.spec), None)
        if isinstance(entry, Heading):
            if entry.is_task and entry.status is not None:
                yield Task(entry.name, spec, entry.status)
        elif entry.name and not any(heading.is_task for heading in entry.above):
            yield Task(entry.name, spec, entry.status)
