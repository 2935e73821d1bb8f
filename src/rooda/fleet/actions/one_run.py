"""What a user does with one run: look at what it published, run it again, remove it."""

import contextlib
import shlex
from collections.abc import Sequence

from msgspec.structs import replace

from rooda.base.controls import one_line
from rooda.base.problems import InvalidInput, Problem
from rooda.base.times import local_now
from rooda.fleet.actions.add_tasks import Base, batch_name
from rooda.fleet.display.run_words import NO_REQUEST, next_words
from rooda.fleet.place import TITLE, Place
from rooda.fleet.remote.fence import Refused, Remote, remote_of
from rooda.fleet.remote.mirror import BranchMoved, unmirrored
from rooda.fleet.remote.own_fence import free_objects
from rooda.fleet.remote.record_commits import Record
from rooda.fleet.remote.replay import Conflict, TooOldGit, merged_base
from rooda.fleet.remote.server import Unreachable
from rooda.fleet.run_model import BRANCHES, Batch, FleetTask, Run, RunState
from rooda.fleet.tasks.task_checks import run_name
from rooda.world.git.git import Git, GitError
from rooda.world.state.record_place import alone_in
from rooda.world.tools import Tools

_DIFF = ("diff", "--no-color", "--no-ext-diff", "--no-textconv", "--find-renames")
# Of merge commits that exist only while two trees are compared.
_IDENTITY = {
    f"GIT_{role}_{kind}": value
    for role in ("AUTHOR", "COMMITTER")
    for kind, value in (("NAME", "rooda"), ("EMAIL", "rooda"))
}


def published_record(run: Run, place: Place, tools: Tools) -> bytes:
    """Return the record that the run published last; empty if it has published none.

    Raises InvalidInput.
    """
    with remote_of(place, tools) as remote:
        try:
            record = remote.fetch(run.run)
        except Unreachable as error:
            raise unreachable(place, error) from None
        return b"" if record is None else record.record


def branch_commit(run: Run, place: Place, tools: Tools) -> str | None:
    """Return where the branch of a run is; None if it has none. Raises InvalidInput."""
    bring_branches([run], place, tools)
    with remote_of(place, tools) as remote:
        try:
            return remote.look(BRANCHES + run.run).get(BRANCHES + run.run)
        except Unreachable as error:
            raise unreachable(place, error) from None


def bring_branches(runs: Sequence[Run], place: Place, tools: Tools) -> None:
    """Bring to the user's branches what a worker published before it died.

    A branch that a person moved stays as it is. Raises InvalidInput.
    """
    if place.fence is None or not (due := unmirrored(place.fence, tools)):
        return
    with remote_of(place, tools) as remote:
        for name in (run.run for run in runs if run.run in due):
            try:
                if (record := remote.fetch(name)) is not None:
                    remote.mirror(record)
            except BranchMoved:
                continue
            except Unreachable as error:
                raise unreachable(place, error) from None


def run_diff(run: Run, place: Place, tools: Tools, *, stat: bool) -> str:
    """Return what the run changed since the commit where it started. Raises InvalidInput."""
    words = (*_DIFF, *(["--stat"] if stat else []))
    base = run.task.base or run.batch.base
    bring_branches([run], place, tools)
    if place.is_own_remote and not run.task.after:
        return _diff(Git(place.top, tools), words, base, BRANCHES + run.run)
    with remote_of(place, tools) as remote:
        git = Git(remote.git_dir, tools, {"GIT_DIR": str(remote.git_dir), **_IDENTITY})
        try:
            record = remote.fetch(run.run)
            remote.ensure(base)
            start = _start_of(run, base, remote, git)
        except Unreachable as error:
            raise unreachable(place, error) from None
        branch = None if record is None else record.branch
        # The branch contains no commit that was merged just now: the two are compared as they are.
        between = "..." if start == base else ".."
        return "" if branch is None else _diff(git, words, start, branch, between)


def _start_of(run: Run, base: str, remote: Remote, git: Git) -> str:
    """Return the commit where a run started: the base with the work of the runs before it."""
    records = [(name, remote.fetch(name)) for name in run.task.after]
    tips = [(name, found.tip) for name, found in records if found and found.tip]
    try:
        return merged_base(git, base, tips)
    except (Conflict, TooOldGit, GitError):
        return base  # a branch has moved since then


def _diff(git: Git, words: tuple[str, ...], base: str, tip: str, between: str = "...") -> str:
    try:
        if git.ask("rev-parse", "--quiet", "--verify", f"{tip}^{{commit}}") is None:
            return ""
        return git(*words, f"{base}{between}{tip}", "--").decode("utf-8", "replace")
    except GitError as error:
        problem = Problem(f"git can't compare {base[:12]} and {tip}: {error}", title=TITLE)
        raise InvalidInput([problem]) from None


def unreachable(place: Place, error: Unreachable) -> InvalidInput:
    """Return the problem that the remote can't be reached."""
    message = f"{place.shown_records} can't be reached: {error}"
    return InvalidInput([Problem(message, "Check that git can fetch from there", title=TITLE)])


_WORDS = """\
The work on the task below is done, in the commit {tip} (the branch {branch}). It does not merge
into {onto} by itself{why}.

Bring it there: you are on top of {onto}. Run `git merge {tip}`, resolve every conflict so that both
sides keep their meaning, commit, and check that all of it works.

The task was:

{task}
"""


def refuse_success(run: Run) -> None:
    """Raise InvalidInput if the run ended as success: it has nothing left to do."""
    if run.state is RunState.SUCCESS:
        message = f"{run.run} ended as success: it has nothing left to do"
        advice = f"To bring its work onto a branch: rooda fleet retry {run.run} --onto BRANCH"
        if run.ended.startswith(NO_REQUEST):
            advice = f"Its branch has the work: {next_words(run)}"
        raise InvalidInput([Problem(message, advice, title=TITLE)])


def with_limits(task: FleetTask, most: int | None, cost: float | None) -> FleetTask:
    """Return the task with other limits; None leaves a limit as it is."""
    task = task if most is None else replace(task, max_iterations=most)
    return task if cost is None else replace(task, max_cost=cost)


def task_onto(run: Run, tip: str, onto: str, base: Base) -> tuple[Batch, FleetTask]:
    """Return an ordinary run, in a batch of its own, that brings the work of a run onto a branch.

    `tip` is the last commit of the run. The new run starts from the branch.
    """
    why = run.ended if run.ended.startswith(("conflict", "verify failed")) else ""
    text = _WORDS.format(
        tip=tip,
        branch=run.branch,
        onto=onto,
        why=f" ({one_line(why)})" if why else "",
        task=run.task.text,
    )
    name = run_name(f"{run.run} onto {onto}")
    title = f"{run.task.title or run.run} onto {onto}"
    task = replace(run.task, name=name, title=title, text=text, base=None, after=())
    batch = replace(
        run.batch,
        name=batch_name(local_now()),
        base=base.commit,
        base_branch=base.branch,
    )
    return batch, task


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
