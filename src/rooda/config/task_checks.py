"""Finds the task file of a run, and checks it where the end of the run depends on it."""

from pathlib import Path

from rooda.config.origin import Tier
from rooda.config.resolve import Values
from rooda.config.settings import TASKS
from rooda.config.work_checks import names_tracker
from rooda.config.world import World
from rooda.tasks.task_file import TaskFile
from rooda.text.paths import file_mode, shown_from
from rooda.workspace.work_tree import work_tree


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
        if names_tracker(folders):
            return None
        found = (folder / name for folder in folders)
        path = next((one for one in found if file_mode(one)), working_dir / name)
    return task_file(path, world, folders)


def task_file(path: Path, world: World, inside: tuple[Path, ...]) -> TaskFile:
    """Return the task file at this path; links may not lead out of the folders `inside`."""
    shown = shown_from(world.folder, path, world.home)
    return TaskFile(path, shown, tuple(folder.resolve() for folder in inside))
