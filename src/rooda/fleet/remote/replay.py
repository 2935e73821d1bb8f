"""Puts work on top of other work: what a person pushed, or what other runs made."""

import os
import re
from collections.abc import Sequence

from rooda.base.paths import first_names
from rooda.world.git.git import Git, GitError, GitStoppedError

_OLDEST = (2, 38)  # the first git with `merge-tree --write-tree`


class Conflict(Exception):  # noqa: N818 - what git found
    """Two changes do not fit together in these files."""

    def __init__(self, what: str, files: Sequence[str]) -> None:
        super().__init__(f"{what}: {first_names(files)}" if files else what)
        self.files = tuple(files)


class TooOldGit(Exception):  # noqa: N818 - what was found
    """The installed git can't merge without a work tree."""


def merge_trees(git: Git, ours: str, theirs: str) -> tuple[str, tuple[str, ...]]:
    """Return the tree of a merge of two commits, and the files that conflict. Raises GitError.

    The tree is of no use if files conflict. Git needs no work tree and no index for this.
    """
    words = ("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs)
    code, printed = git.answer(*words)
    tree, *files = os.fsdecode(printed).rstrip("\0").split("\0")
    return tree, tuple(files) if code else ()


def check_version(git: Git) -> None:
    """Raise TooOldGit if this git can't merge without a work tree."""
    said = git.line("version")
    numbers = re.search(r"(\d+)\.(\d+)", said)
    if numbers and (int(numbers[1]), int(numbers[2])) < _OLDEST:
        raise TooOldGit(f"merging needs git 2.38 or newer; this is {said}: install a newer git")


def merged_base(git: Git, base: str, tips: Sequence[tuple[str, str]]) -> str:
    """Return a commit with the work of all tips, merged one after another on a base.

    Each tip is the name of its run and its commit. Raises Conflict, TooOldGit or GitError.
    """
    check_version(git)
    merged, names = base, list[str]()
    for run, tip in tips:
        if is_ancestor(git, tip, merged):
            continue
        if is_ancestor(git, merged, tip):
            merged = tip
        else:
            try:
                tree, files = merge_trees(git, merged, tip)
            except GitStoppedError:
                raise
            except GitError as error:  # to try again does not help
                what = f"{run} can't be merged with what was merged before it: {error}"
                raise Conflict(what, ()) from None
            if files:
                before = f" ({', '.join(names)})" if names else ""
                raise Conflict(f"{run} conflicts with what was merged before it{before}", files)
            merged = commit_merge(git, tree, [merged, tip], f"Merge rooda/{run}")
        names.append(run)
    return merged


def commit_merge(git: Git, tree: str, parents: Sequence[str], message: str) -> str:
    """Return a new commit of a tree."""
    words = [word for parent in parents for word in ("-p", parent)]
    return git.line("commit-tree", tree, *words, "-m", message)


def is_ancestor(git: Git, ancestor: str, commit: str) -> bool:
    """Return whether a commit has another one in its history. Raises GitError."""
    return git.ask("merge-base", "--is-ancestor", ancestor, commit) is not None


def unmerged_files(git: Git) -> list[str]:
    """Return the files of the work tree in which git found a conflict. Raises GitError."""
    names = os.fsdecode(git("diff", "--name-only", "--diff-filter=U", "-z")).split("\0")
    return [name for name in names if name]


def rebase(git: Git, start: str, last: str, onto: str) -> str:
    """Replay the commits after `start`, up to `last`, on another commit; return the last new one.

    The work tree has to be clean. It has the new commit afterwards, without a branch, or is as
    before after a conflict. Raises Conflict or GitError.
    """
    options = ("--quiet", "--empty=keep", "--reapply-cherry-picks", "--no-autostash", "--no-stat")
    try:
        git("rebase", *options, "--no-verify", "--onto", onto, start, last)
    except GitError as error:
        files = unmerged_files(git)
        git.ask("rebase", "--abort")
        if files:
            raise Conflict("the work conflicts with what a person pushed", files) from None
        raise error from None
    return git.line("rev-parse", "HEAD")
