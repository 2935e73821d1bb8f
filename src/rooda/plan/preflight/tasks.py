"""Finds the task file of a run, and checks it where the end of the run depends on it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from rooda.base.paths import file_mode, shown_from
from rooda.base.problems import Problem, Severity, Tier
from rooda.plan.layers import PhaseValue
from rooda.plan.prompts.parts import Context
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
from rooda.world.files.sight import Sight, read_named
from rooda.world.git.work_tree import work_tree
from rooda.world.tasks.task_file import TaskFile, TaskFileError

# Checks that the built-in `build` has something to work on, before an agent costs money.


_BUILD = "build"
_TASK_FILES = ("PLAN.md", "TASK.md")
_AGENTS_FILE = "AGENTS.md"
_LONGEST = 256 * 1024  # bytes of AGENTS.md
# The agent decides what AGENTS.md means. These words only suppress warnings, so a line has to name
# a tracker: one about known issues or tracked files does not.
_TRACKER = re.compile(
    r"work tracking\W*:\s*\S|\btracker\b|\bbeads\b|\bbd (?:ready|list)\b|\bjira\b"
    r"|\b(?:gh|glab) issue\b|\bgit(?:hub|lab|ea) issues\b|\bin (?-i:Linear)\b"
    r"|\b(?:tasks?|work|todos?|backlog)\b.*\b(?:issues|tickets|track\w*|backlog)\b",
    re.IGNORECASE,
)
_NO_TRACKER = re.compile(r"\b(?:no|none|without|not|never)\b", re.IGNORECASE)
_HEADING = re.compile(r"^#+ *(.*?)\s*\n\s*", re.MULTILINE)  # it says what the next line is about
_ELSEWHERE = re.compile(r"(?:[\w-]|\.\.)/(?:[A-Z]+-)?(?:PLAN|TASK)\.md")
_AT_ROOT = re.compile(r"(?<![\w/])(?:\./)?(?:PLAN|TASK)\.md")


def warn_of_no_work(
    procedure: str,
    phases: Mapping[str, PhaseValue],
    contexts: Sequence[Context],
    working_dir: Path,
) -> Iterator[Problem]:
    """Warn if the built-in `build` finds neither plan, task, context nor a tracker.

    A user who replaces a phase decides what the agent works on.
    """
    is_built_in = all(value.origin.tier is Tier.BUILTIN for value in phases.values())
    if procedure != _BUILD or not phases or not is_built_in or contexts:
        return
    folders = dict.fromkeys((working_dir, work_tree(working_dir)))
    if any(file_mode(folder / name) for folder in folders for name in _TASK_FILES):
        return
    if names_tracker(folders):
        return
    yield Problem(
        f"`{_BUILD}` has nothing to work on: there is no PLAN.md and no TASK.md in {working_dir}, "
        "no --context, and no AGENTS.md that names a tracker",
        "Write the task into TASK.md, pass it with -c TEXT, or draft a plan first: "
        "rooda draft-plan-impl-feat",
        severity=Severity.WARNING,
    )


def names_tracker(folders: Iterable[Path]) -> bool:
    """Return whether AGENTS.md in one of the folders keeps the tasks elsewhere than in PLAN.md."""
    return any(_names_tracker(_read(folder / _AGENTS_FILE)) for folder in folders)


def _names_tracker(agents: str) -> bool:
    """Return whether AGENTS.md keeps the tasks elsewhere: in a tracker or in another folder."""
    if _ELSEWHERE.search(agents):
        return True
    if _AT_ROOT.search(agents):
        return False
    lines = _HEADING.sub(r"\1: ", agents).splitlines()
    return any(_TRACKER.search(line) and not _NO_TRACKER.search(line) for line in lines)


def _read(path: Path) -> str:
    """Return the text of a file; empty if it can't be read."""
    try:
        return read_named(path, _LONGEST).decode("utf-8", "replace")
    except OSError:
        return ""


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
