"""Checks before the first iteration that git can do what the settings ask of it."""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from rooda.config.origin import Tier
from rooda.config.own_files import pathspecs
from rooda.config.problems import Problem, Severity
from rooda.config.resolve import Values
from rooda.config.sensitive import TOKEN_HOLDERS, holds_a_token, looks_like_a_secret
from rooda.config.setting import Setting
from rooda.config.settings import GIT_COMMIT, GIT_DIRTY, GIT_PUSH, GIT_REQUIRE_CHANGES
from rooda.text.controls import one_line
from rooda.text.paths import is_folder
from rooda.text.plain_files import read_plain_file
from rooda.workspace.git import Git, GitError
from rooda.workspace.git_files import check_git_folder
from rooda.workspace.tools import Tools
from rooda.workspace.work_tree import explain_refusal

_NEEDING = (GIT_COMMIT, GIT_PUSH, GIT_REQUIRE_CHANGES)
TITLE = "git can't be used"
_MOST_NAMED = 5
_MOST_LISTED = 20
_MOST_READ = 64 * 1024
_NO_WORK_TREE = ("not a git repository", "must be run in a work tree")
_TRY = "Check that `git status` works here"
_INSTALL = "Install git; rooda does not run a git that is in the work tree"
_STATUS = (
    *("status", "--porcelain", "-z", "--untracked-files=all", "--no-renames"),
    "--ignore-submodules=dirty",  # else git runs with the settings of each submodule
)
_STATUS_OF_TRACKED = (*_STATUS, "--untracked-files=no")


class Obstacle(Struct, frozen=True):
    """Why git can't work here, and what the user can do."""

    reason: str
    fix: str


def check_git(
    values: Values, folder: Path, tools: Tools, *, is_needed: bool = False
) -> Iterator[Problem]:
    """Yield what keeps git from its work, and a warning if it would commit secrets.

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
    """
    if not values[GIT_COMMIT] or values[GIT_DIRTY] == "commit" or not is_folder(folder):
        return
    top = find_top(folder, tools)
    if isinstance(top, Obstacle):
        return
    try:
        found = changed_files(values, top, tools)
    except GitError as error:
        message = f"rooda could not check whether tracked files have changes: {error}"
        yield _warning(values, message, _TRY)
        return
    if found:
        yield Problem.at(
            values.origin(GIT_COMMIT),
            values.field(GIT_COMMIT),
            f"git.commit is on, but tracked files have uncommitted changes: {_listed(found)}",
            "Commit them, put them aside with `git stash`, or let rooda commit them with the "
            f"agent's work: {GIT_DIRTY.flag_name} commit",
            title="Uncommitted changes",
        )


def changed_files(values: Values, top: Path, tools: Tools) -> list[str]:
    """Return the tracked files with uncommitted changes, without rooda's own. Raises GitError."""
    others = (f":(exclude,top,{kind}){name}" for kind, name in pathspecs(values, str(top)))
    printed = Git(top, tools)(*_STATUS_OF_TRACKED, "--", ":/", *others)
    return [os.fsdecode(entry[3:]) for entry in printed.split(b"\0") if entry]


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(one_line, names[:_MOST_LISTED]))
    return f"{shown} and {len(names) - _MOST_LISTED} more" if names[_MOST_LISTED:] else shown


def find_top(folder: Path, tools: Tools) -> Path | Obstacle:
    """Return the top of the work tree, or why there is none."""
    if tools.git is None:
        return Obstacle("git is not installed", _INSTALL)
    try:
        check_git_folder(folder)
        return Path(Git(folder, tools).line("rev-parse", "--show-toplevel"))
    except GitError as error:
        if any(sign in str(error) for sign in _NO_WORK_TREE):
            fix = "Start rooda in a repository, or make one with `git init`"
            return Obstacle(f"{folder} is in no git work tree", fix)
        return Obstacle(*explain_refusal(folder, str(error)))


def _unable(row: Setting[Any], values: Values, obstacle: Obstacle) -> Problem:
    origin = values.origin(row)
    # A push that only the preset asks for can be left out. Without commits or changes, every
    # iteration would fail.
    was_asked_for = origin.tier > Tier.PRESET or row is not GIT_PUSH
    return Problem.at(
        origin,
        values.field(row),
        f"{row.key} is on, but {obstacle.reason}",
        f"{obstacle.fix}, or turn it off with --no-{row.flag_name.removeprefix('--')}",
        Severity.ERROR if was_asked_for else Severity.WARNING,
        title=TITLE,
    )


def _warn_of_secrets(values: Values, top: Path, tools: Tools) -> Iterator[Problem]:
    try:
        listed = Git(top, tools)(*_STATUS)
    except GitError as error:
        message = f"rooda could not check whether secrets would be committed: {error}"
        yield _warning(values, message, _TRY)
        return
    found = list(_sensitive(would_be_committed(listed), top))
    if found:
        shown = ", ".join(map(one_line, found[:_MOST_NAMED]))
        more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
        message = f"what looks like a secret would be committed: {shown}{more}"
        yield _warning(values, message, "Add it to .gitignore, or move it out of the repository")


def would_be_committed(status: bytes) -> Iterator[str]:
    """Yield the files that `git status --porcelain -z` prints, without deleted ones."""
    for entry in status.split(b"\0"):
        state, name = entry[:2], entry[3:]
        if name and state[1:] != b"D" and state != b"D ":
            yield os.fsdecode(name)


def _sensitive(names: Iterable[str], top: Path) -> Iterator[str]:
    for name in names:
        may_hold_token = Path(name).name in TOKEN_HOLDERS
        if looks_like_a_secret(name) or (may_hold_token and _has_token(top / name)):
            yield name


def _has_token(path: Path) -> bool:
    try:
        return holds_a_token(read_plain_file(path, _MOST_READ))
    except OSError:
        return False


def _warning(values: Values, message: str, fix: str) -> Problem:
    origin, field = values.origin(GIT_COMMIT), values.field(GIT_COMMIT)
    return Problem.at(origin, field, message, fix, Severity.WARNING)
