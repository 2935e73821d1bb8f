"""Checks before the first iteration that git can do what the settings ask of it."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from rooda.base.origin import Tier
from rooda.base.paths import first_names, is_folder
from rooda.base.problems import Problem, Severity
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
from rooda.world.git.git import Git, GitError, unfinished_in
from rooda.world.git.git_files import check_git_folder, check_rules
from rooda.world.git.new_secrets import NewSecrets
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
