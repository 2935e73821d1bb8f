"""The uncommitted work of a slot as a commit, and back again."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from rooda.fleet.remote.replay import Conflict, unmerged_files
from rooda.fleet.slot.slot_clone import SlotClone, has_flags, make_writable, remove_tree
from rooda.world.git.git import INHERITED, Git, GitError, listed
from rooda.world.git.new_files import NewSecrets, staged_files, untracked_files
from rooda.world.state.home import OLD_FOLDER

_MESSAGE = "uncommitted work"


def commit_uncommitted(
    clone: SlotClone, tip: str, index: Path, *, allowed: tuple[str, ...], left_out: Iterable[str]
) -> str | None:
    """Return a commit of the uncommitted work on top of `tip`; None if there is none.

    Untracked files are in it, but no ignored ones, no secrets, no repositories within the work
    tree, and none of the files that are `left_out`. `index` is a file to work with. Raises
    GitError.
    """
    remove_tree(index)
    git = clone.with_index(index)
    own = clone.git_dir / "index"
    if own.is_file() and not has_flags(clone.git):
        shutil.copyfile(own, index)  # it knows which files git need not read again
    else:
        git("read-tree", tip)
    try:
        return _commit(git, tip, allowed, left_out)
    except GitError:
        make_writable(clone.work)  # an agent may have made a file unreadable
        return _commit(git, tip, allowed, left_out)
    finally:
        index.unlink(missing_ok=True)


def _commit(git: Git, tip: str, allowed: tuple[str, ...], left_out: Iterable[str]) -> str | None:
    secrets = NewSecrets(git, allowed)
    git("add", "--update", "--", ":/")
    others = untracked_files(git)
    hidden = {*secrets.among(others), *left_out}
    new = [name for name in others if name not in hidden and _is_work(name)]
    git("update-index", "--add", "-z", "--stdin", given=listed(new))
    staged = staged_files(git)
    hidden.update(secrets.staged())
    has_submodules = (git.folder / ".gitmodules").is_file()
    gone = [
        one.name
        for one in staged
        if one.name in hidden or (one.is_repository and not has_submodules)
    ]
    git("update-index", "--force-remove", "-z", "--stdin", given=listed(gone))
    tree = git.line("write-tree")
    if tree == git.line("rev-parse", f"{tip}^{{tree}}"):
        return None
    return git.line("commit-tree", tree, "-p", tip, "-m", _MESSAGE)


def _is_work(name: str) -> bool:
    """Return whether an untracked name is a file of the agent, and no repository or state."""
    return not name.endswith("/") and OLD_FOLDER not in name.split("/")


def bring_back(git: Git, wip: str, start: str) -> None:
    """Make the changes of a commit uncommitted changes of a clean work tree at `start`.

    Raises Conflict if they do not fit there, or GitError.
    """
    if git.line("rev-parse", f"{wip}^") == start:
        git("read-tree", "-m", "-u", start, wip, umask=INHERITED)
    else:
        _pick(git, wip)
    git("reset", "--quiet")


def _pick(git: Git, wip: str) -> None:
    """Apply the changes of a commit to another one than its parent."""
    try:
        git("cherry-pick", "--no-commit", "--allow-empty", wip, umask=INHERITED)
    except GitError as error:
        if files := unmerged_files(git):
            what = "the uncommitted work conflicts with what a person pushed"
            raise Conflict(what, files) from None
        raise error from None
