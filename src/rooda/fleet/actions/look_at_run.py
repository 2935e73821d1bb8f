"""Reads what a run has published in git: its record, and what it changed."""

from collections.abc import Sequence

from rooda.base.problems import InvalidInput, Problem
from rooda.fleet.place import TITLE, Place
from rooda.fleet.remote.fence import Remote, remote_of
from rooda.fleet.remote.mirror import BranchMoved, unmirrored
from rooda.fleet.remote.replay import Conflict, TooOldGit, merged_base
from rooda.fleet.remote.server import Unreachable
from rooda.fleet.run_model import BRANCHES, Run
from rooda.world.git.git import Git, GitError
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
