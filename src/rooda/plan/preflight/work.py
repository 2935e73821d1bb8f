"""Checks that the built-in `build` has something to work on, before an agent costs money."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from rooda.base.origin import Tier
from rooda.base.paths import file_mode
from rooda.base.problems import Problem, Severity
from rooda.plan.layers import PhaseValue
from rooda.plan.prompts.parts import Context
from rooda.world.files.sight import read_named
from rooda.world.git.work_tree import work_tree

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
