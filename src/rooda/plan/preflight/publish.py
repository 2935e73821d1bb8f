"""Checks before the first iteration that the commits and pushes of the user's settings can work."""

from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from rooda.base.controls import one_line
from rooda.base.origin import Tier
from rooda.base.paths import is_folder
from rooda.base.problems import Problem, Severity
from rooda.plan.preflight.git import FINISH_IT, TITLE, Obstacle, find_top
from rooda.plan.resolve import Values
from rooda.plan.settings.setting import Setting
from rooda.plan.settings.settings import GIT_BRANCH, GIT_COMMIT, GIT_DIRTY, GIT_PUSH
from rooda.world.git.branches import Branches, push_remote
from rooda.world.git.git import Git, GitError, unfinished_in
from rooda.world.git.identity import unknown_identity
from rooda.world.tools import Tools


def check_publishing(values: Values, folder: Path, tools: Tools) -> Iterator[Problem]:
    """Yield why rooda could not commit or push, where the user and not a preset asks for it.

    An unfinished merge or rebase is named for a preset too, as a warning. If git can't be used at
    all, `check_git` says so.
    """
    wanted = [row for row in (GIT_COMMIT, GIT_PUSH) if values[row]]
    top = find_top(folder, tools) if wanted and is_folder(folder) else None
    if top is None or isinstance(top, Obstacle):
        return
    asked = [row for row in wanted if values.origin(row).tier > Tier.PRESET]
    git = Git(top, tools)
    try:
        operation = unfinished_in(git)
        branch = values[GIT_BRANCH] or Branches.find(git).current
        unknown = unknown_identity(git, tools) if GIT_COMMIT in asked else None
    except GitError as error:
        fix = "Check that `git status` works here"
        yield from (_problem(values, row, str(error), fix) for row in asked[:1])
        return
    if operation is not None:
        # git can push during a merge. It can't during a rebase, which detaches HEAD.
        held = [row for row in wanted if row is GIT_COMMIT or branch is None]
        yield from (_unfinished(values, row, operation) for row in held)
    elif branch is None:
        why = "HEAD is detached, so there is no branch to commit to or to push"
        yield from (_problem(values, row, why, "Start with --branch NAME") for row in asked)
    if unknown is not None:
        yield _problem(values, GIT_COMMIT, unknown.reason, f"Tell git who you are: {unknown.fix}")
    if branch is not None and GIT_PUSH in asked:
        yield from _check_remote(values, git, branch)


def _unfinished(values: Values, row: Setting[bool], operation: str) -> Problem:
    problem = _problem(values, row, operation, FINISH_IT)
    # A preset that does not commit the user's own changes must not do so after the merge either.
    keeps_out = row is GIT_COMMIT and values[GIT_DIRTY] == "stop"
    is_asked_for = values.origin(row).tier > Tier.PRESET or keeps_out
    return problem if is_asked_for else replace(problem, severity=Severity.WARNING)


def _check_remote(values: Values, git: Git, branch: str) -> Iterator[Problem]:
    def ask(*arguments: str) -> str:
        try:
            return git.ask(*arguments) or ""
        except GitError:
            return ""

    remote, remotes = push_remote(ask, branch), ask("remote").split()
    if not remotes:
        why, fix = "the repository has no remote", "Add one with `git remote add origin URL`"
    elif not remote:
        why = f"git can't tell which of its remotes to push to: {one_line(', '.join(remotes))}"
        fix = "Choose one with `git config remote.pushDefault NAME`"
    elif remote not in remotes and not any(sign in remote for sign in "/:"):
        why = f"the remote that git would push to does not exist: {one_line(remote)}"
        fix = f"Add it with `git remote add {one_line(remote)} URL`"
    else:
        return
    yield _problem(values, GIT_PUSH, why, fix)


def _problem(values: Values, row: Setting[bool], reason: str, fix: str) -> Problem:
    off = f"or turn it off with --no-{row.flag_name.removeprefix('--')}"
    message = f"{row.key} is on, but {reason}"
    return Problem.at(values.origin(row), values.field(row), message, f"{fix}, {off}", title=TITLE)
