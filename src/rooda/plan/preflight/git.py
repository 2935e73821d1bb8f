"""Checks before the first iteration that git can do what the settings ask of it."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from rooda.base.controls import one_line
from rooda.base.paths import first_names, is_folder
from rooda.base.problems import Problem, Severity, Tier
from rooda.base.secrets.sensitive import IGNORE_OR_ALLOW
from rooda.plan.own_files import pathspecs
from rooda.plan.resolve import Values
from rooda.plan.settings.setting import Setting
from rooda.plan.settings.settings import (
    GIT_ALLOW_SECRETS,
    GIT_BRANCH,
    GIT_COMMIT,
    GIT_DIRTY,
    GIT_PUSH,
    GIT_REQUIRE_CHANGES,
    VERIFY_CLEAN,
)
from rooda.world.git.branches import Branches, is_branch_name, push_remote
from rooda.world.git.git import Git, GitError, unfinished_in
from rooda.world.git.git_files import check_git_folder, check_rules
from rooda.world.git.identity import unknown_identity
from rooda.world.git.new_files import NewSecrets
from rooda.world.git.work_tree import explain_refusal
from rooda.world.tools import Tools

_NEEDING: tuple[Setting[Any], ...] = (GIT_COMMIT, GIT_PUSH, GIT_REQUIRE_CHANGES, VERIFY_CLEAN)
TITLE = "git can't be used"
MOST_LISTED = 20
FINISH_IT = "Finish or abort it first (git status shows it)"
_NO_WORK_TREE = ("not a git repository", "must be run in a work tree")
_TRY = "Check that `git status` works here"
_INSTALL = "Install git; rooda does not run a git that is in the work tree"
_STATUS = (
    *("status", "--porcelain", "-z", "--no-renames"),
    "--ignore-submodules=dirty",  # else git runs with the settings of each submodule
)


class Obstacle(Struct, frozen=True):
    """Why git can't work here, and what the user can do."""

    reason: str
    fix: str


def check_git(
    values: Values, folder: Path, tools: Tools, *, is_needed: bool = False
) -> Iterator[Problem]:
    """Yield what keeps git from its work, and a warning about files that look like secrets.

    `is_needed`: the run needs a repository, whatever the settings say.
    """
    asked = [row for row in _NEEDING if values[row]]
    if not (asked or is_needed) or not is_folder(folder):
        return
    top = find_top(folder, tools)
    if isinstance(top, Obstacle) and is_needed:
        yield Problem(top.reason, top.fix, title=TITLE)
    elif isinstance(top, Obstacle):
        yield from (_unable(row, values, top) for row in asked)
    elif values[GIT_COMMIT]:
        yield from _warn_of_secrets(values, top, tools)


def check_clean(values: Values, folder: Path, tools: Tools) -> Iterator[Problem]:
    """Yield the tracked files whose changes the user has not committed: rooda would commit them.

    Files that rooda writes itself do not count. If git can't be used, `check_git` says so.
    A branch to switch to has its own check, and so has an unfinished merge or rebase.
    """
    if not values[GIT_COMMIT] or values[GIT_DIRTY] == "commit" or not is_folder(folder):
        return
    if values[GIT_BRANCH] is not None:
        return
    top = find_top(folder, tools)
    if isinstance(top, Obstacle):
        return
    try:
        found = [] if unfinished_in(Git(top, tools)) else changed_files(values, top, tools)
    except GitError as error:
        message = f"rooda could not check whether tracked files have changes: {error}"
        yield _warning(values, message, _TRY)
        return
    if found:
        yield dirty_problem(values, found)


def dirty_problem(values: Values, found: Sequence[str]) -> Problem:
    """Return the error that tracked files have changes of the user."""
    names = first_names(found, most=MOST_LISTED)
    return Problem.at(
        values.origin(GIT_COMMIT),
        values.field(GIT_COMMIT),
        f"git.commit is on, but tracked files have uncommitted changes: {names}",
        "Commit them, put them aside with `git stash`, or let rooda commit them with the "
        f"agent's work: {GIT_DIRTY.flag_name} commit",
        title="Uncommitted changes",
    )


def untracked_problem(values: Values, found: Sequence[str], *, is_noted: bool) -> Problem:
    """Return the warning about the untracked files that a resumed run finds.

    `is_noted`: rooda noted what the run left as it ended, and these files are not in that note.
    """
    names, stay_out = first_names(found), "they stay out of commits until the agent changes them"
    if is_noted:
        message = f"untracked files are new or changed since the run ended; {stay_out}: {names}"
        return _warning(values, message, "If they belong to the work, commit them by hand")
    unknown = (
        "rooda can't tell who made these untracked files: the run was killed, or had no commits"
    )
    if values[GIT_DIRTY] == "commit":
        message = f"{unknown}; {GIT_DIRTY.key} is commit, so commits contain them: {names}"
        return _warning(values, message, "Move files that are yours out of the work tree")
    fix = f"If they are the agent's, let rooda commit them: {GIT_DIRTY.flag_name} commit"
    return _warning(values, f"{unknown}; {stay_out}: {names}", fix)


def changed_files(values: Values, top: Path, tools: Tools) -> list[str]:
    """Return the tracked files with uncommitted changes, without rooda's own. Raises GitError."""
    return _status(values, top, tools, "no")[0]


def uncommitted_files(values: Values, top: Path, tools: Tools) -> tuple[list[str], list[str]]:
    """Return the tracked files with uncommitted changes, and the untracked files.

    Files that rooda writes itself are in neither list. Raises GitError.
    """
    return _status(values, top, tools, "all")


def _status(values: Values, top: Path, tools: Tools, untracked: str) -> tuple[list[str], list[str]]:
    others = (f":(exclude,top,{kind}){name}" for kind, name in pathspecs(values, str(top)))
    shown = f"--untracked-files={untracked}"
    check_rules(top)
    printed = Git(top, tools)(*_STATUS, shown, "--", ":/", *others)
    found: tuple[list[str], list[str]] = ([], [])
    for entry in filter(None, printed.split(b"\0")):
        found[entry.startswith(b"??")].append(os.fsdecode(entry[3:]))
    return found


def find_top(folder: Path, tools: Tools) -> Path | Obstacle:
    """Return the top of the work tree, or why there is none."""
    if tools.git is None:
        return Obstacle("git is not installed", _INSTALL)
    try:
        check_git_folder(folder)
        top = Path(Git(folder, tools).line("rev-parse", "--show-toplevel"))
        check_rules(top)
    except GitError as error:
        if any(sign in str(error) for sign in _NO_WORK_TREE):
            fix = "Start in a repository, or make one with `git init`"
            return Obstacle(f"{folder} is in no git work tree", fix)
        return Obstacle(*explain_refusal(folder, str(error)))
    return top


def _unable(row: Setting[Any], values: Values, obstacle: Obstacle) -> Problem:
    origin = values.origin(row)
    # A push that only the preset asks for can be left out. Without commits or changes, every
    # iteration would fail.
    was_asked_for = origin.tier > Tier.PRESET or row is not GIT_PUSH
    message = f"{row.key} is on, but {obstacle.reason}"
    off = f"turn it off with --no-{row.flag_name.removeprefix('--')}"
    if row is VERIFY_CLEAN:
        message = f"{row.key} needs git, but {obstacle.reason}"
        off = f"unset it with {row.flag_name} none"
    return Problem.at(
        origin,
        values.field(row),
        message,
        f"{obstacle.fix}, or {off}",
        Severity.ERROR if was_asked_for else Severity.WARNING,
        title=TITLE,
    )


def _warn_of_secrets(values: Values, top: Path, tools: Tools) -> Iterator[Problem]:
    """Warn about the files that look like secrets and that every commit would leave out."""
    secrets = NewSecrets(Git(top, tools), values[GIT_ALLOW_SECRETS])
    try:
        found = sorted({*secrets.untracked(), *secrets.staged()})
    except GitError as error:
        message = f"rooda could not look for files that look like secrets: {error}"
        yield _warning(values, message, _TRY)
        return
    if found:
        shown = first_names(found)
        message = f"new files look like secrets, so rooda will not commit them: {shown}"
        yield _warning(values, message, IGNORE_OR_ALLOW)


def _warning(values: Values, message: str, fix: str) -> Problem:
    origin, field = values.origin(GIT_COMMIT), values.field(GIT_COMMIT)
    return Problem.at(origin, field, message, fix, Severity.WARNING)


# Checks before the first iteration that rooda can switch to the branch of the settings.


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


# Checks before the first iteration that the commits and pushes of the user's settings can work.


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
        yield from (_at_publishing(values, row, str(error), fix) for row in asked[:1])
        return
    if operation is not None:
        # git can push during a merge. It can't during a rebase, which detaches HEAD.
        held = [row for row in wanted if row is GIT_COMMIT or branch is None]
        yield from (_unfinished(values, row, operation) for row in held)
    elif branch is None:
        why = "HEAD is detached, so there is no branch to commit to or to push"
        yield from (_at_publishing(values, row, why, "Start with --branch NAME") for row in asked)
    if unknown is not None:
        yield _at_publishing(
            values, GIT_COMMIT, unknown.reason, f"Tell git who you are: {unknown.fix}"
        )
    if branch is not None and GIT_PUSH in asked:
        yield from _check_remote(values, git, branch)


def _unfinished(values: Values, row: Setting[bool], operation: str) -> Problem:
    problem = _at_publishing(values, row, operation, FINISH_IT)
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
    yield _at_publishing(values, GIT_PUSH, why, fix)


def _at_publishing(values: Values, row: Setting[bool], reason: str, fix: str) -> Problem:
    off = f"or turn it off with --no-{row.flag_name.removeprefix('--')}"
    message = f"{row.key} is on, but {reason}"
    return Problem.at(values.origin(row), values.field(row), message, f"{fix}, {off}", title=TITLE)
