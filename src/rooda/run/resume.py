"""Restore the state of an earlier run, so that rooda can resume it."""

import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from rooda.base.numbers import count
from rooda.base.problems import InvalidInput, Problem
from rooda.loop.next_steps import RunCommands, resuming
from rooda.loop.result import Iteration
from rooda.loop.state import Limits, State, Status, limits_of
from rooda.loop.stops import Stop, StopRule, reason_of, stop
from rooda.plan.plan import Plan
from rooda.plan.settings.settings import GIT_BRANCH, GIT_COMMIT, GIT_PUSH
from rooda.record.json_objects import iteration_of, last_attempts
from rooda.record.reader import RecordReader
from rooda.record.rows import (
    IterationRow,
    NoRecord,
    NothingRecorded,
    RecordedRepository,
    RunRow,
    StoreError,
)
from rooda.world.git.git import GitError
from rooda.world.git.git_files import changed_link
from rooda.world.git.snapshots.repository import Repository
from rooda.world.tools import Tools

_T = TypeVar("_T")

TITLE = "Nothing to resume"
_OTHER = "Another repository"
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


class Resumed(Struct, frozen=True):
    """A resumed run: its state, and its iterations in their order."""

    row: RunRow
    state: State
    earlier: tuple[Iteration, ...]
    rows: tuple[IterationRow, ...] = ()  # every attempt


def resume(plan: Plan, wanted: str, commands: RunCommands | None = None) -> Resumed:
    """Return the run, ready to be resumed. Raises InvalidInput if there is nothing left to do."""
    reader = RecordReader(plan.state)
    return readable(lambda: _resume(plan, wanted, reader, commands))


def _resume(plan: Plan, wanted: str, reader: RecordReader, given: RunCommands | None) -> Resumed:
    row = reader.run(wanted or None)
    commands = row.known_commands if given is None else given.named(row.run)
    rows = list(reader.iterations(row.run))
    state = restored(row)
    next_one = state.iteration + 1
    attempts = max((one.attempt for one in rows if one.number == next_one), default=0)
    state = replace(state, attempt=attempts + 1)
    if row.status == Status.SUCCESS:
        raise nothing_to_resume(f"run {row.run} ended as success", new_run(commands.start))
    limits = limits_of(plan)
    found = stop(state, limits)
    if found is not None and found.rule.row.recounts:
        # The run was interrupted just before this rule would have aborted it.
        state = _recounted(state)
        found = stop(state, limits)
    if found is not None:
        raise _used_up(found, state, limits, commands, row.run)
    values = plan.values
    # With a record apart, the user has chosen the work tree with the current folder.
    if not plan.is_apart and (values[GIT_COMMIT] or values[GIT_PUSH] or values[GIT_BRANCH]):
        other = other_repository(row, plan.working_dir, plan.workspace, plan.tools)
        if other is not None:
            raise InvalidInput([other])
    earlier = tuple(map(iteration_of, last_attempts(rows)))
    return Resumed(row, state, earlier, tuple(rows))


def other_repository(row: RunRow, folder: Path, workspace: Path, tools: Tools) -> Problem | None:
    """Return the problem that git works with another repository than the run started in.

    A work tree that was moved as a whole has its repository in the same place of the workspace.
    """
    then = row.repository
    try:
        now = Repository.find(folder, tools)
        lacks = now is not None and then is not None and _lacks(now, then.head)
    except GitError:
        return None  # the first commit reports the error
    if now is None:
        return None  # as above
    if then is None:
        return _repository_problem(row.run, then, now)

    def is_elsewhere(before: str, place: Path) -> bool:
        is_moved = os.path.relpath(before, row.workspace) == os.path.relpath(place, workspace)
        return before != str(place) and not is_moved

    if is_elsewhere(then.git_dir, now.git_dir) or is_elsewhere(then.top, now.top):
        return _repository_problem(row.run, then, now)
    if then.common and is_elsewhere(then.common, now.common):
        return _led_elsewhere(row.run, now.git_dir / "commondir")
    if then.links is not None and (moved := changed_link(then.links, now.named_links())):
        return _led_elsewhere(row.run, Path(os.path.normpath(now.common / moved)))
    if lacks:
        message = f"run {row.run} started at the commit {then.head}, which {now.git_dir} lacks"
        advice = "Bring the repository of the run back, then resume; or start a new run"
        return Problem(message, advice, title=_OTHER)
    return None


def _lacks(repository: Repository, commit: str) -> bool:
    """Return whether a commit is missing. A forged record can have any word in its place."""
    if not _COMMIT.fullmatch(commit):
        return False
    return repository.git.ask("cat-file", "-e", commit) is None


def _led_elsewhere(run: str, path: Path) -> Problem:
    message = f"{path} leads git to another repository than the one that run {run} started in"
    advice = f"Put back what was in place of {path}, then resume; or start a new run"
    return Problem(message, advice, title=_OTHER)


def _repository_problem(run: str, then: RecordedRepository | None, now: Repository) -> Problem:
    if then is None:
        message = f"run {run} started without a repository, but git now works with {now.git_dir}"
        return Problem(message, "Start a new run to commit there", title=_OTHER)
    message = (
        f"run {run} started in the repository {then.git_dir}, but git now works with {now.git_dir}"
    )
    advice = f"Bring {then.git_dir} back, then resume; or start a new run"
    if now.top.is_relative_to(then.top) and now.top != Path(then.top):
        git = now.top / ".git"
        message = f"{message}: {git} was made after the start of the run"
        advice = f"Move {git} away, then resume; or start a new run to commit there"
    return Problem(message, advice, title=_OTHER)


def restored(row: RunRow) -> State:
    """Return the recorded state of a run. After an abort, failures are counted from 0 again."""
    if "state" in row.unreadable:
        message = f"the state of run {row.run} can't be read: {row.unreadable['state']}"
        raise InvalidInput([Problem(message, "Start a new run")])
    state = State() if row.state is None else State.restored(row.state)
    if row.baseline is not None:
        state = replace(state, failed_before=row.baseline.digest)
    # The user who continues an aborted run has removed the cause, or wants to try again.
    return _recounted(state) if row.status == Status.ABORTED else state


def _recounted(state: State) -> State:
    """Return the state without what the stop rules have counted."""
    new, names = State(), [name for rule in StopRule for name in rule.row.recounts]
    return replace(state, **{name: getattr(new, name) for name in names})


def _used_up(
    found: Stop, state: State, limits: Limits, commands: RunCommands, run: str
) -> InvalidInput:
    """Return the error that a limit leaves nothing to do, with the command that raises it."""
    ran = state.iteration
    if found.rule.row.next.limit:
        reached = replace(limits, max_iterations=ran)
        raised = resuming(commands, found.rule, partial(getattr, reached))
        advice = raised.command if raised else ""
        if found.reason:
            return nothing_to_resume(f"run {run}: {found.reason}", f"Raise that limit: {advice}")
        message = f"run {run} has run {count(ran, 'iteration')}, and no more are asked for"
        return nothing_to_resume(message, f"Ask for more in all: {advice}")
    why = reason_of(found.rule, found.reason, state.consecutive_failures, "")
    return nothing_to_resume(f"run {run}: {why}", new_run(commands.start))


def readable(answer: Callable[[], _T]) -> _T:
    """Return what the record answers. Raises InvalidInput if rooda can't read the record."""
    try:
        return answer()
    except NothingRecorded as error:
        raise nothing_to_resume(str(error), "Start a run, without resuming") from None
    except NoRecord as error:
        raise nothing_to_resume(
            str(error), "See which runs there are with `rooda history`"
        ) from None
    except StoreError as error:
        raise InvalidInput([Problem(str(error), "Start a new run, without resuming")]) from None


def new_run(start: str) -> str:
    """Return the advice to start a new run."""
    return f"Start a new run: {start}" if start else "Start a new run"


def nothing_to_resume(message: str, suggestion: str) -> InvalidInput:
    """Return the error that no run can be resumed."""
    return InvalidInput([Problem(message, suggestion, title=TITLE)])
