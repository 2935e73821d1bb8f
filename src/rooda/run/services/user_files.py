"""Tell the user's uncommitted files from those of the run, at its start and when it is resumed."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from rooda.base.problems import InvalidInput, Problem
from rooda.plan.plan import Plan
from rooda.plan.preflight.git import dirty_problem, uncommitted_files, untracked_problem
from rooda.plan.settings.settings import GIT_COMMIT, GIT_DIRTY, GIT_UNTRACKED
from rooda.world.files.plain_files import read_plain_file
from rooda.world.git.git import GitError, GitInterruptedError
from rooda.world.git.git_files import links_in
from rooda.world.git.noted_files import NotedFiles
from rooda.world.git.pin import Pin
from rooda.world.git.user_changes import Uncommitted, UserFiles
from rooda.world.state.folder import LEFT, UNTRACKED, keep_file, remove_file

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
