"""Makes the fence of a fleet on one machine, and takes over the records of version 0.1.

The fence borrows the history of the user's repository, and what runs make lies in it: their work
reaches it before it reaches the user's repository.
"""

import os
import tempfile
from pathlib import Path

from rooda.fleet.remote.borrowed_objects import borrow_objects
from rooda.fleet.run_model import BRANCHES, RECORDS
from rooda.workspace.git import Git
from rooda.workspace.tools import Tools


def make_fence(fence: Path, git_dir: Path, tools: Tools) -> int:
    """Make the fence if there is none; return how many records of version 0.1 it took over.

    Raises GitError or OSError.
    """
    if fence.exists():
        borrow_objects(fence, git_dir)  # the repository may have moved
        return 0
    user = Git(git_dir, tools, {"GIT_DIR": str(git_dir)})
    with tempfile.TemporaryDirectory(prefix="fence-", dir=fence.parent) as folder:
        new = new_fence(Path(folder), git_dir, tools)
        taken = _take_records(user, new, tools)
        try:
            new.rename(fence)
        except OSError:
            if not fence.exists():  # else another process was faster
                raise
            return 0
    _delete_refs(user, taken)
    return len(taken)


def new_fence(folder: Path, git_dir: Path, tools: Tools) -> Path:
    """Return a new fence without any record. Raises GitError or OSError."""
    fence = folder / "fence.git"
    user = Git(git_dir, tools, {"GIT_DIR": str(git_dir)})
    kind = user.line("rev-parse", "--show-object-format")
    words = ("--quiet", "--bare", "--template=", f"--object-format={kind}")
    Git(folder, tools)("init", *words, str(fence))
    # A slot of a repository without its whole history has no more of it.
    Git(fence, tools, {"GIT_DIR": str(fence)})("config", "receive.shallowUpdate", "true")
    borrow_objects(fence, git_dir)
    return fence


def _take_records(user: Git, fence: Path, tools: Tools) -> dict[str, str]:
    """Copy the records of version 0.1 with what only they have; return their refs."""
    refs = _records(user)
    if not refs:
        return refs
    own = ("--not", f"--exclude={BRANCHES}*", "--branches", "--remotes", "--tags")
    bundle = fence / "records.bundle"
    user("bundle", "create", "--quiet", str(bundle), *refs, *own)
    git = Git(fence, tools, {"GIT_DIR": str(fence)})
    git("bundle", "unbundle", str(bundle))
    bundle.unlink()
    orders = "".join(f"create {ref} {sha}\n" for ref, sha in refs.items())
    git("update-ref", "--stdin", given=os.fsencode(orders))
    return refs


def _records(user: Git) -> dict[str, str]:
    lines = user.line("for-each-ref", "--format=%(objectname) %(refname)", RECORDS).splitlines()
    return {ref: sha for sha, _, ref in (line.partition(" ") for line in lines)}


def _delete_refs(user: Git, taken: dict[str, str]) -> None:
    """Delete the records in the user's repository: the fence has them."""
    if taken:
        orders = "".join(f"delete {ref} {sha}\n" for ref, sha in taken.items())
        user("update-ref", "--stdin", given=os.fsencode(orders))
