"""Adds tasks to a fleet: their records to git first, then their rows to the database."""

import contextlib
import secrets
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from msgspec import Struct, json
from msgspec.structs import replace

from rooda.base.paths import first_names
from rooda.base.problems import InvalidInput, Problem
from rooda.fleet.place import Place
from rooda.fleet.remote.fence import RECORD_PLACES, AlreadyThere, Refused, remote_of
from rooda.fleet.remote.mirror import BranchMoved
from rooda.fleet.remote.record_commits import TASK
from rooda.fleet.remote.server import Unreachable
from rooda.fleet.run_model import Batch, FleetTask
from rooda.record.given_flags import split_flags
from rooda.world.git.git import Git, GitError
from rooda.world.tools import Tools

TITLE = "Fleet"
_HEADS = "refs/heads/"


class Added(Struct, frozen=True, omit_defaults=True):
    """What git keeps of a new run (`task.json`): enough to queue it again without a database.

    Flags whose values may be secrets are not in it: `left_out` has their names. `number` is the
    place of the task in its batch.
    """

    task: FleetTask
    batch: Batch
    left_out: tuple[str, ...] = ()
    number: int = 0


def records_of(batch: Batch, tasks: Sequence[FleetTask]) -> list[tuple[str, dict[str, bytes]]]:
    """Return the names of new runs with the first files of their records, for `Remote.add`."""
    given = split_flags(batch.flags).without_secrets()
    kept = replace(batch, flags=tuple(word for words in given.flags for word in words))
    added = (Added(task, kept, given.left_out, number) for number, task in enumerate(tasks, 1))
    return [(one.task.name, {TASK: json.encode(one)}) for one in added]


class Base(Struct, frozen=True):
    """The commit from which runs start, and its branch, if it is one."""

    commit: str
    branch: str = ""


def batch_name(now: datetime) -> str:
    """Return a new name for a batch."""
    return f"{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def find_base(git: Git, wanted: str | None) -> Base:
    """Return the commit that the user named, or that of HEAD. Raises InvalidInput."""
    name = wanted or "HEAD"
    asked = ("rev-parse", "--quiet", "--verify")
    try:
        commit = git.ask(*asked, "--end-of-options", f"{name}^{{commit}}")
        full = git.ask(*asked, "--symbolic-full-name", "--end-of-options", name) or ""
    except GitError as error:
        raise _wrong(f"git can't read {name}: {error}", "Check `git status`") from None
    if commit is None and wanted is None:
        raise _wrong("the repository has no commit yet", "Make one: runs start from a commit")
    if commit is None:
        raise _wrong(f"there is no commit {name!r}", "Name a branch or a commit (`git log`)")
    return Base(commit, full.removeprefix(_HEADS) if full.startswith(_HEADS) else "")


def with_bases(tasks: Sequence[FleetTask], git: Git) -> list[FleetTask]:
    """Return the tasks with commits as their bases: on other machines, branches are elsewhere."""
    return [
        task if task.base is None else replace(task, base=_base_of(task.name, task.base, git))
        for task in tasks
    ]


def _base_of(task: str, wanted: str, git: Git) -> str:
    try:
        return find_base(git, wanted).commit
    except InvalidInput as error:
        found = [replace(one, message=f"the task {task}: {one.message}") for one in error.problems]
        raise InvalidInput(found) from None


def check_is_shared(place: Place, git: Git, commits: Sequence[str]) -> None:
    """Raise InvalidInput if other machines can't know a base: no branch of the remote has it.

    Only for a remote with a name: of others the repository knows nothing.
    """
    if place.is_own_remote:
        return
    for commit in commits:
        try:
            found = git.line("branch", "--remotes", "--contains", commit, "--format=%(refname)")
            remotes = git.line("remote").splitlines()
        except GitError:
            return
        if remotes and not found:
            raise _wrong(
                f"the commit {commit[:12]} is on no branch of a remote: other machines can't "
                "start from it",
                "Push it first (`git push`), or name another base with --base origin/main",
            )


def add_tasks(
    place: Place,
    batch: Batch,
    tasks: Sequence[FleetTask],
    tools: Tools,
    add_rows: Callable[[], object],
) -> None:
    """Add the records to git, then the rows; without the rows, the records go away again.

    Raises InvalidInput.
    """
    with remote_of(place, tools) as remote:
        try:
            remote.add(records_of(batch, tasks))
        except AlreadyThere as error:
            raise _already_there(error.refs) from None
        except Unreachable as error:
            message = f"the runs can't be added to {place.shown_records}: {error}"
            raise _wrong(message, "Check that git can push there") from None
        try:
            add_rows()
        except BaseException:
            with contextlib.suppress(Unreachable, Refused, BranchMoved):
                for task in tasks:
                    record = remote.fetch(task.name)
                    if record is not None:
                        remote.delete(task.name, record)
            raise


def _already_there(refs: Sequence[str]) -> InvalidInput:
    """Return the problem that runs of these names are in git, or only their branches."""
    message = f"the repository already has {first_names(refs)}"
    if not any(ref.startswith(RECORD_PLACES) for ref in refs):  # a record may be a branch, too
        one = refs[0].removeprefix(_HEADS)
        advice = f"Give the task another name, or move the branch away: git branch -m {one} NAME"
    else:
        advice = (
            "Bring the runs back with `rooda fleet adopt` (then `rooda fleet forget RUN` removes "
            "one), or give the tasks other names"
        )
    return _wrong(message, advice)


def config_file_is_committed(git: Git, file: Path) -> bool:
    """Return whether HEAD has the file as it is now: slots read the one of the commit."""
    try:
        known = git.ask("ls-files", "--error-unmatch", "--", str(file))
        return known is not None and git.ask("diff", "--quiet", "HEAD", "--", str(file)) is not None
    except GitError:
        return True


def _wrong(message: str, advice: str) -> InvalidInput:
    return InvalidInput([Problem(message, advice, title=TITLE)])
