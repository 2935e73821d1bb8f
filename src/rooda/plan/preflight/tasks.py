"""Finds the task file of a run, and checks it where the end of the run depends on it."""

from collections.abc import Iterator
from pathlib import Path

from rooda.base.origin import Tier
from rooda.base.paths import file_mode, shown_from
from rooda.base.problems import Problem, Severity
from rooda.plan.preflight.work import names_tracker
from rooda.plan.resolve import Values
from rooda.plan.settings.settings import (
    DONE_WHEN,
    GIT_BRANCH,
    HOOKS_LOOP_START,
    REQUIRED_FILE,
    SANDBOX_WRITABLE,
    TASKS,
)
from rooda.plan.settings.text_kinds import BY_TASKS
from rooda.plan.world import World
from rooda.world.files.sight import Sight
from rooda.world.git.work_tree import work_tree
from rooda.world.tasks.task_file import TaskFile, TaskFileError


def find_task_file(values: Values, working_dir: Path, world: World) -> TaskFile | None:
    """Return the task file that the settings name.

    That of a built-in procedure is in the working folder or at the top of the work tree. It does
    not count if AGENTS.md says that the tasks are elsewhere: then PLAN.md is only a draft.
    """
    name = values[TASKS]
    if name is None:
        return None
    top = work_tree(working_dir)
    folders = tuple(dict.fromkeys((working_dir, top)))
    path = Path(name)
    if values.origin(TASKS).tier is Tier.BUILTIN:
        if values[DONE_WHEN] != BY_TASKS and names_tracker(folders):
            return None
        found = (folder / name for folder in folders)
        path = next((one for one in found if file_mode(one)), working_dir / name)
    writable: tuple[str, ...] = values[SANDBOX_WRITABLE]
    return task_file(path, world, (*folders, *map(Path, writable)))


def check_tasks(values: Values, working_dir: Path, world: World) -> Iterator[Problem]:
    """Yield a problem if the tasks decide when the work of a new run is done, and there are none.

    For a run that continues, a file without tasks means that the work is not done. Where the tasks
    are only shown, a file that rooda can't read is a warning.
    """
    file = find_task_file(values, working_dir, world)
    if values[DONE_WHEN] != BY_TASKS:
        if file is not None and file_mode(file.path):
            yield from _unreadable(file)
        return
    if file is None:
        yield Problem.at(
            values.origin(DONE_WHEN),
            values.field(DONE_WHEN),
            "the tasks decide when the work is done, but this run has no task file",
            f"Name it with {TASKS.flag_name} FILE, or set {DONE_WHEN.key} only for a procedure "
            "that has one (procedures.build)",
            title="No tasks",
        )
        return
    if values[REQUIRED_FILE] == str(file.path) and not file.path.exists():
        return  # the loop reports it
    try:
        what = "" if file.read() else "has no tasks"
    except TaskFileError as error:
        what = str(error)
    if what:
        # A hook before the first iteration may write the file, and another branch may have it.
        may_appear = bool(values[HOOKS_LOOP_START]) or values[GIT_BRANCH] is not None
        yield Problem(
            f"the tasks decide when the work is done ({DONE_WHEN.key}), but {file.shown} {what}",
            "Write a heading with `Status: open` below it, or `- [ ] TASK`, for each task; or name "
            f"another file with {TASKS.flag_name}",
            severity=Severity.WARNING if may_appear else Severity.ERROR,
            title="No tasks",
        )


def _unreadable(file: TaskFile) -> Iterator[Problem]:
    try:
        file.read()
    except TaskFileError as error:
        yield Problem(
            f"rooda counts no tasks, because {file.shown} {error}",
            f"Correct the file, or name another one with {TASKS.flag_name}",
            severity=Severity.WARNING,
        )


def task_file(path: Path, world: World, inside: tuple[Path, ...]) -> TaskFile:
    """Return the task file at this path; links may not lead out of the folders `inside`."""
    shown = shown_from(world.folder, path, world.home)
    return TaskFile(path, shown, Sight(tuple(folder.resolve() for folder in inside)))
