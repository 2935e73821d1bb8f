"""Removes what git has of a run, but nothing that is not elsewhere, too."""

import contextlib
import shlex

from msgspec.structs import replace

from rooda.base.problems import InvalidInput, Problem
from rooda.fleet.actions.look_at_run import unreachable
from rooda.fleet.place import TITLE, Place
from rooda.fleet.remote.fence import Refused, remote_of
from rooda.fleet.remote.mirror import BranchMoved
from rooda.fleet.remote.own_fence import free_objects
from rooda.fleet.remote.run_record import Record
from rooda.fleet.remote.server import Unreachable
from rooda.fleet.run_model import BRANCHES, Run
from rooda.world.git.git import Git, GitError
from rooda.world.state.fleet_state import alone_in
from rooda.world.tools import Tools


def remove_record(run: Run, place: Place, tools: Tools, *, force: bool = False) -> str:
    """Remove the record of a run, and its branch if it is merged; return words about the branch.

    Raises InvalidInput if uncommitted work would be lost, unless `force`.
    """
    with remote_of(place, tools) as remote:
        try:
            record = remote.fetch(run.run)
            if record is None:
                return ""
            with contextlib.suppress(BranchMoved):
                record = remote.mirror(record)
            if (record.wip or record.mirror) and not force:
                raise _has_work(run, record, place)
            is_merged = _is_merged(record, place, tools)
            remote.delete(run.run, record if is_merged else replace(record, branch=None))
        except Unreachable as error:
            raise unreachable(place, error) from None
        except (Refused, BranchMoved) as error:
            problem = Problem(f"the record of {run.run} moved: {error}", "Try again", title=TITLE)
            raise InvalidInput([problem]) from None
    if record.branch is None:
        return ""
    return ", with its branch" if is_merged else f"; its branch {run.branch} stays"


def free_records(place: Place, tools: Tools) -> None:
    """Free the space of removed records, unless another process of the fleet is at work now.

    A failure is no error: the next call frees the space.
    """
    if place.state is None or place.fence is None:
        return
    with contextlib.suppress(GitError, OSError), alone_in(place.state) as is_alone:
        if is_alone:
            free_objects(place.fence, tools)


def _has_work(run: Run, record: Record, place: Place) -> InvalidInput:
    message = f"{run.run} has uncommitted work that is in its record alone"
    if record.mirror is not None:
        message = f"{run.run} has work that its branch, which a person moved, has not got"
    fetch = f"git fetch {shlex.quote(place.shown_records)} {record.ref}"
    keep = f"git branch {run.run}-rest {record.wip or record.tip}"
    advice = f"Keep it with `{fetch} && {keep}`, or add --force"
    return InvalidInput([Problem(message, advice, title=TITLE)])


def _is_merged(record: Record, place: Place, tools: Tools) -> bool:
    """Return whether another branch of the user's repository has all commits of the run."""
    if not place.is_own_remote or record.branch is None:
        return False
    git = Git(place.top, tools)
    try:
        heads = git.line("for-each-ref", "--contains", record.branch, "--format=%(refname)", "refs")
    except GitError:
        return False
    others = (ref for ref in heads.splitlines() if ref.startswith(("refs/heads/", "refs/remotes/")))
    return any(not ref.startswith(BRANCHES) for ref in others)
