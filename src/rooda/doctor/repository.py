"""Git, and the repository that we are in."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from rooda.config.git_checks import Obstacle, find_top
from rooda.doctor.findings import Finding, Mark
from rooda.text.controls import one_line
from rooda.workspace.git import Git, GitError, unfinished
from rooda.workspace.tools import Tools

_WHO = (
    ("name", "user.name", ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME")),
    ("email", "user.email", ("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL")),
)


def look_at_git(folder: Path, tools: Tools, *, needed: bool = False) -> Iterator[Finding]:
    """Whether git is there and knows the user, and what state the repository is in.

    `needed`: the settings ask git for its part, so what keeps it from that is a problem.
    """
    bad = Mark.PROBLEM if needed else Mark.WARNING
    if tools.git is None:
        text = "git is not installed: no snapshots, no diff, no commits"
        yield Finding("git", bad, text, "Install git")
        return
    git = Git(folder, tools)
    try:
        yield Finding("git", Mark.OK, one_line(git.line("version")))
        yield _identity(git, tools.environ, bad)
    except GitError as error:
        yield Finding("git", bad, str(error), "See whether `git --version` works here")
        return
    top = find_top(folder, tools)
    if isinstance(top, Obstacle):
        yield Finding("repository", bad, top.reason, top.fix)
        return
    yield Finding("repository", Mark.OK, f"inside the work tree {top}")
    yield from _state(git)


def _identity(git: Git, environ: Mapping[str, str], bad: Mark) -> Finding:
    missing = [
        (word, key)
        for word, key, variables in _WHO
        if not git.ask("config", "--get", key) and not all(environ.get(one) for one in variables)
    ]
    if not missing:
        return Finding("identity", Mark.OK, "git knows a name and an email for commits")
    words = " and no ".join(word for word, _ in missing)
    advice = "; ".join(f"git config --global {key} ..." for _, key in missing)
    return Finding("identity", bad, f"git knows no {words} for commits", advice)


def _state(git: Git) -> Iterator[Finding]:
    """What would surprise an agent, or whoever looks at its commits in the morning."""
    try:
        folder = Path(git.line("rev-parse", "--absolute-git-dir"))
        is_detached = git.ask("symbolic-ref", "--quiet", "HEAD") is None
    except GitError as error:
        yield Finding("repository", Mark.WARNING, str(error), "See what `git status` says")
        return
    if is_detached:
        text = "HEAD is detached: commits would belong to no branch"
        yield Finding("head", Mark.WARNING, text, "git switch -c BRANCH")
    if (words := unfinished(folder)) is not None:
        advice = "Finish it or call it off, as `git status` says"
        yield Finding("unfinished", Mark.WARNING, words, advice)
    lock = folder / "index.lock"
    if os.path.lexists(lock):
        text = f"git's index is locked: {lock}"
        advice = "If no git command is at work here, one was killed: remove that file"
        yield Finding("index", Mark.WARNING, text, advice)
