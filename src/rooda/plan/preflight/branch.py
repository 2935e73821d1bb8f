"""Checks before the first iteration that rooda can switch to the branch of the settings."""

from collections.abc import Iterator
from pathlib import Path

from rooda.base.controls import one_line
from rooda.base.paths import first_names, is_folder
from rooda.base.problems import Problem
from rooda.plan.preflight.git import (
    FINISH_IT,
    MOST_LISTED,
    Obstacle,
    changed_files,
    check_clean,
    find_top,
)
from rooda.plan.resolve import Values
from rooda.plan.settings.settings import GIT_BRANCH
from rooda.world.git.branches import Branches, is_branch_name
from rooda.world.git.git import Git, GitError, unfinished_in
from rooda.world.tools import Tools

_HEADS = ("refs/heads/", "heads/")
_REMOTES = ("refs/remotes/", "remotes/", "")
_TITLE = "Branch can't be used"


def check_changes(
    values: Values, folder: Path, tools: Tools, *, resumed: bool
) -> Iterator[Problem]:
    """Yield what the run would mix up with its own work, or what keeps it from its branch.

    Commits that a killed run left in the agent's own git folder look like changes, until rooda has
    taken them over.
    """
    if not resumed:
        yield from check_clean(values, folder, tools)
    yield from check_branch(values, folder, tools, resumed=resumed)


def check_branch(
    values: Values, folder: Path, tools: Tools, *, resumed: bool = False
) -> Iterator[Problem]:
    """Yield what keeps git from switching to the branch.

    A resumed run that is on the branch already switches to nothing, so its tree may have changes.
    """
    name = values[GIT_BRANCH]
    if name is None or not is_folder(folder):
        return
    top = find_top(folder, tools)
    if isinstance(top, Obstacle):
        yield _problem(values, top.reason, f"{top.fix}, or leave the branch out")
        return
    git = Git(top, tools)
    if not is_branch_name(git, name):
        message = f"{name!r} is not a name that git accepts for a branch"
        yield _problem(values, message, "Choose another, such as night-1")
        return
    try:
        yield from _check(values, name, git, tools, resumed=resumed)
    except GitError as error:
        yield _problem(values, str(error), "Check that `git status` works here")


def _check(
    values: Values, name: str, git: Git, tools: Tools, *, resumed: bool
) -> Iterator[Problem]:
    branches = Branches.find(git)
    if branches.current == name and resumed:
        return
    if name not in branches.used_in and (plain := _meant(name, git)):
        message = f"{name} is not the name of a new branch: it means the branch {plain}"
        advice = f"Write {plain}; for a branch with that very name, create it: git branch {name}"
        yield _problem(values, message, advice)
        return
    if elsewhere := branches.used_elsewhere(name, git.folder):
        message = f"the branch {name} is checked out in another work tree: {one_line(elsewhere)}"
        yield _problem(values, message, "Start rooda there, or choose another branch")
    if rival := branches.rival(name):
        message = f"git can't create the branch {name} beside the branch {rival}"
        yield _problem(values, message, "Choose a name that does not begin with another one")
    if reason := unfinished_in(git):
        yield _problem(values, reason, FINISH_IT)
    elif changed := changed_files(values, git.folder, tools):
        message = (
            f"tracked files have uncommitted changes: {first_names(changed, most=MOST_LISTED)}"
        )
        yield _problem(values, message, "Commit them, or put them aside with `git stash`")


def _meant(name: str, git: Git) -> str:
    """Return the branch that `refs/heads/x`, `heads/x` or `origin/x` means; "" for a plain name."""
    remotes = (git.ask("remote") or "").split() if "/" in name else []
    of_remotes = [f"{prefix}{remote}/" for prefix in _REMOTES for remote in remotes]
    prefixes = [*_HEADS, *of_remotes]
    return next((name.removeprefix(one) for one in prefixes if name.startswith(one)), "")


def _problem(values: Values, message: str, fix: str) -> Problem:
    origin, field = values.origin(GIT_BRANCH), values.field(GIT_BRANCH)
    return Problem.at(origin, field, message, fix, title=_TITLE)
