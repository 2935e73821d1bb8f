"""The work tree before the first iteration: its branch, the user's changes, protected files."""

import contextlib
import os
import shlex
from collections.abc import Iterator
from pathlib import Path

from rooda.base.controls import one_line
from rooda.base.paths import PathPatterns
from rooda.base.problems import InvalidInput, Problem
from rooda.loop.events.emitter import Emitter
from rooda.loop.events.protect import ProtectionStarted
from rooda.loop.events.work import BranchSwitched
from rooda.loop.publish.user_git import UserGit
from rooda.plan.plan import Plan
from rooda.plan.preflight.git import dirty_problem, uncommitted_files, untracked_problem
from rooda.plan.settings.settings import (
    GIT_BRANCH,
    GIT_COMMIT,
    GIT_DIRTY,
    GIT_UNTRACKED,
    PROTECT_ON_CHANGE,
    PROTECT_PATHS,
)
from rooda.run.services.recording import looked_at
from rooda.world.files.plain_files import read_plain_file
from rooda.world.files.protected_files import CannotProtect, ProtectedFiles, matching_files
from rooda.world.git.branches import Branches
from rooda.world.git.git import Git, GitError, GitInterruptedError
from rooda.world.git.git_files import links_in
from rooda.world.git.noted_files import NotedFiles, Uncommitted, UserFiles
from rooda.world.git.pin import Pin
from rooda.world.state.folder import LEFT, UNTRACKED, keep_file, remove_file

_SHOWN = 1000


def switch_branch(plan: Plan) -> BranchSwitched | None:
    """Create the branch or switch to it, with the user's git; None if there is nothing to do.

    Raises InvalidInput if git refuses. After a signal the caller ends the run.
    """
    name, tools = plan.values[GIT_BRANCH], plan.tools
    if name is None:
        return None
    try:
        branches = Branches.find(Git(plan.working_dir, tools))
    except GitInterruptedError:
        return None
    except GitError as error:
        raise _refused(plan, str(error)) from None
    if branches.current == name:
        return None
    arguments = branches.way_to(name)
    finished = UserGit(plan, tools, None).run("switch", "--quiet", *arguments)
    if finished.was_interrupted:
        return None
    if not finished.passed:
        said = one_line(finished.last_words(_SHOWN)) or finished.error
        if _is_on(plan, name):
            raise _failed_after_switch(plan, name, branches.current, said)
        raise _refused(plan, f"git switch: {said}")
    return BranchSwitched(name, "-c" in arguments, branches.current)


def _is_on(plan: Plan, name: str) -> bool:
    """Return whether HEAD is on the branch now."""
    try:
        return Branches.find(Git(plan.working_dir, plan.tools)).current == name
    except GitError:
        return False


def _failed_after_switch(plan: Plan, name: str, before: str | None, said: str) -> InvalidInput:
    """Return the error of a hook `post-checkout`: git runs it on the new branch."""
    message = f"git has switched to the branch {name}, and failed after that: {said}"
    back = f"; to go back: git switch {shlex.quote(before)}" if before else ""
    fix = f"Check the hook post-checkout; the next start with this branch runs no switch{back}"
    return _problem(plan, message, fix)


def _refused(plan: Plan, reason: str) -> InvalidInput:
    message = f"rooda could not switch to the branch {plan.values[GIT_BRANCH]}: {reason}"
    return _problem(plan, message, "Switch to it by hand (git switch), then start again")


def _problem(plan: Plan, message: str, fix: str) -> InvalidInput:
    values = plan.values
    origin, field = values.origin(GIT_BRANCH), values.field(GIT_BRANCH)
    return InvalidInput([Problem.at(origin, field, message, fix, title="Branch can't be used")])


_LARGEST_LIST = 256 * 1024 * 1024  # bytes of a list of files


def user_files(
    plan: Plan, run: str, pin: Pin | None, *, is_new: bool
) -> tuple[UserFiles | None, list[Problem]]:
    """Return the user's files that commits leave out, and warnings about them.

    None if commits leave out nothing. In a resumed run, what changed since the run ended is the
    user's: untracked files stay out of commits, and changed tracked files are an error, as at a
    first start. Raises InvalidInput.
    """
    values = plan.values
    leaves_tracked = values[GIT_DIRTY] != "commit"
    leaves_untracked = values[GIT_UNTRACKED] != "commit"
    if pin is None or not values[GIT_COMMIT] or not (leaves_tracked or leaves_untracked):
        return None, []
    top, tools = pin.top, plan.tools

    def is_hurried() -> bool:
        signals = tools.interrupts
        return signals is not None and len(signals.received) > signals.acknowledged

    def find() -> Uncommitted:
        links_in([pin.git_dir, pin.common], index=True)  # a pipe in them would block git
        tracked, untracked = uncommitted_files(values, top, tools)
        files = NotedFiles.note(top, [*tracked, *untracked], is_hurried, known)
        return Uncommitted(files, frozenset(tracked))

    problems: list[Problem] = []
    known = NotedFiles(top) if is_new else _read(plan, run, UNTRACKED, top) or NotedFiles(top)
    try:
        now = find()
    except GitInterruptedError:
        return None, []  # the run ends before its first iteration
    except GitError as error:
        message = f"git can't list the untracked files, which stay out of commits: {error}"
        fix = "Check that `git status` works here"
        raise InvalidInput([Problem(message, fix, title="git can't be used")]) from None
    left = NotedFiles(top) if is_new else _read(plan, run, LEFT, top)
    changed = (left or NotedFiles(top)).changed(now.files)
    others = [name for name in changed if name not in now.tracked]
    if not is_new and leaves_untracked:
        new = sorted({*others} - {*known.unchanged(others)})
        problems = [untracked_problem(values, new, is_noted=left is not None)] if new else []
    if not is_new and leaves_tracked and (found := sorted(now.tracked.intersection(changed))):
        raise InvalidInput([dirty_problem(values, found), *problems])
    # After SIGKILL rooda does not know whose files they are: the user decides with `git.dirty`.
    if leaves_untracked and (left is not None or leaves_tracked):
        known = known.joined(now.files, others)
    files = UserFiles(find, known, leaves_tracked=leaves_tracked, leaves_untracked=leaves_untracked)
    return files, problems


@contextlib.contextmanager
def noted_for_resume(files: UserFiles | None, plan: Plan, run: str) -> Iterator[None]:
    """Note which uncommitted files are the run's as its loop ends; `resume` compares with them.

    After a kill or an error within the context there is no note.
    """
    if files is None:
        yield
        return
    with contextlib.suppress(OSError):
        remove_file(plan.state, _place(run, LEFT))
    keep_file(plan.state, _place(run, UNTRACKED), files.known.saved())
    yield
    keep_file(plan.state, _place(run, UNTRACKED), files.known.saved())
    with plan.tools.noting(), contextlib.suppress(GitError):
        keep_file(plan.state, _place(run, LEFT), files.left_by_run().saved())


def _read(plan: Plan, run: str, name: str, top: Path) -> NotedFiles | None:
    with contextlib.suppress(OSError, ValueError):
        saved = read_plain_file(plan.state / _place(run, name), _LARGEST_LIST)
        return NotedFiles.restored(top, saved)
    return None


def _place(run: str, name: str) -> str:
    return f"runs/{run}/{name}"


_NAMES = "protected"  # the file with the names, in the folder of a run
_LARGEST_PROTECTED = 64 * 1024 * 1024  # bytes


def protected_files(
    plan: Plan, run: str, emitter: Emitter, *, is_new: bool
) -> ProtectedFiles | None:
    """Return the protected files as they are now; None if there are none. Raises InvalidInput.

    What the agent of an earlier start has created is its own: a resumed run protects the files
    that existed when the run was new.
    """
    given = plan.values[PROTECT_PATHS]
    if not given:
        return None
    top = looked_at(plan)
    try:
        names = [*matching_files(top, PathPatterns(given))]
        if not is_new:
            known = _known_names(plan, run)
            names = [name for name in names if known is None or name in known]
        found = ProtectedFiles(top, names)
    except CannotProtect as error:
        raise InvalidInput([_protection_problem(plan, str(error))]) from None
    if is_new:
        keep_file(plan.state, f"runs/{run}/{_NAMES}", b"\0".join(map(os.fsencode, names)))
    unmatched = [one for one in given if not any(map(PathPatterns([one]).match, names))]
    action = plan.values[PROTECT_ON_CHANGE]
    emitter(ProtectionStarted(len(found), action, tuple(unmatched) if is_new else ()))
    return found


def _known_names(plan: Plan, run: str) -> set[str] | None:
    """Return the names that a new run wrote down; None if they are gone."""
    path = plan.state / f"runs/{run}/{_NAMES}"
    with contextlib.suppress(OSError):
        return {
            os.fsdecode(name) for name in read_plain_file(path, _LARGEST_PROTECTED).split(b"\0")
        }
    return None


def _protection_problem(plan: Plan, message: str) -> Problem:
    values = plan.values
    advice = "Name fewer files in protect.paths, or make them readable"
    origin, field = values.origin(PROTECT_PATHS), values.field(PROTECT_PATHS)
    return Problem.at(origin, field, f"can't protect files: {message}", advice)
