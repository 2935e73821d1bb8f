"""Reads what a run has published in git: its record, and what it changed."""

from rooda.config.problems import InvalidInput, Problem
from rooda.fleet.model import BRANCHES, Run
from rooda.fleet.place import TITLE, Place
from rooda.fleet.remote.fence import Unreachable, scratch_remote
from rooda.workspace.git import Git, GitError
from rooda.workspace.tools import Tools

_DIFF = ("diff", "--no-color", "--no-ext-diff", "--no-textconv", "--find-renames")


def published_record(run: Run, place: Place, tools: Tools) -> bytes:
    """Return the record that the run published last; empty if it has published none.

    Raises InvalidInput.
    """
    with scratch_remote(place.remote, tools) as remote:
        try:
            record = remote.fetch(run.run)
        except Unreachable as error:
            raise unreachable(place, error) from None
        return b"" if record is None else record.record


def branch_commit(run: Run, place: Place, tools: Tools) -> str | None:
    """Return where the branch of a run is; None if it has none. Raises InvalidInput."""
    with scratch_remote(place.remote, tools) as remote:
        try:
            return remote.look(BRANCHES + run.run).get(BRANCHES + run.run)
        except Unreachable as error:
            raise unreachable(place, error) from None


def run_diff(run: Run, place: Place, tools: Tools, *, stat: bool) -> str:
    """Return what the run changed since the commit where it started. Raises InvalidInput."""
    words = (*_DIFF, *(["--stat"] if stat else []))
    base = run.task.base or run.batch.base
    if place.is_own_remote:
        return _diff(Git(place.top, tools), words, base, BRANCHES + run.run)
    with scratch_remote(place.remote, tools) as remote:
        try:
            record = remote.fetch(run.run)
            remote.ensure(base)
        except Unreachable as error:
            raise unreachable(place, error) from None
        branch = None if record is None else record.branch
        git = Git(remote.git_dir, tools, {"GIT_DIR": str(remote.git_dir)})
        return "" if branch is None else _diff(git, words, base, branch)


def _diff(git: Git, words: tuple[str, ...], base: str, tip: str) -> str:
    try:
        if git.ask("rev-parse", "--quiet", "--verify", f"{tip}^{{commit}}") is None:
            return ""
        return git(*words, f"{base}...{tip}", "--").decode("utf-8", "replace")
    except GitError as error:
        problem = Problem(f"git can't compare {base[:12]} and {tip}: {error}", title=TITLE)
        raise InvalidInput([problem]) from None


def unreachable(place: Place, error: Unreachable) -> InvalidInput:
    """Return the problem that the remote can't be reached."""
    message = f"{place.shown_remote} can't be reached: {error}"
    return InvalidInput([Problem(message, "Check that git can fetch from there", title=TITLE)])
