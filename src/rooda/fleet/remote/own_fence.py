"""Makes the fence of a fleet on one machine, and takes over the records of version 0.1.

The fence borrows the history of the user's repository, and what runs make lies in it: their work
reaches it before it reaches the user's repository.
"""

import contextlib
import os
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path

from rooda.fleet.remote.server import borrow_objects
from rooda.fleet.run_model import BRANCHES, RECORDS
from rooda.world.git.git import Git, GitError
from rooda.world.tools import Tools

_TAKEN = "taken-over"  # orders that delete records in the user's repository
_MOST_LOOSE = 6700  # as for `git gc --auto`
_OBJECT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")


def make_fence(fence: Path, git_dir: Path, tools: Tools) -> int:
    """Make the fence if there is none; return how many records of version 0.1 it took over.

    Raises GitError or OSError.
    """
    user = Git(git_dir, tools, {"GIT_DIR": str(git_dir)})
    if fence.exists():
        borrow_objects(fence, git_dir)  # the repository may have moved
        _delete_taken(user, fence)
        pack_loose_objects(fence, tools)
        return 0
    with tempfile.TemporaryDirectory(prefix="fence-", dir=fence.parent) as folder:
        new = new_fence(Path(folder), git_dir, tools)
        taken = _take_records(user, new, tools)
        try:
            new.rename(fence)
        except OSError:
            if not fence.exists():  # else another process was faster
                raise
            return 0
    _delete_taken(user, fence)
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
    branches = BRANCHES.removeprefix("refs/heads/")  # as --branches wants its patterns
    own = ("--not", f"--exclude={branches}*", "--branches", "--remotes", "--tags")
    bundle = fence / "records.bundle"
    user("bundle", "create", "--quiet", str(bundle), *refs, *own)
    git = Git(fence, tools, {"GIT_DIR": str(fence)})
    git("bundle", "unbundle", str(bundle))
    bundle.unlink()
    orders = "".join(f"create {ref} {sha}\n" for ref, sha in refs.items())
    git("update-ref", "--stdin", given=os.fsencode(orders))
    gone = "".join(f"delete {ref} {sha}\n" for ref, sha in refs.items())
    (fence / _TAKEN).write_bytes(os.fsencode(gone))
    return refs


def _records(user: Git) -> dict[str, str]:
    lines = user.line("for-each-ref", "--format=%(objectname) %(refname)", RECORDS).splitlines()
    return {ref: sha for sha, _, ref in (line.partition(" ") for line in lines)}


def _delete_taken(user: Git, fence: Path) -> None:
    """Delete the records in the user's repository that the fence has, also after a crash."""
    orders = fence / _TAKEN
    if orders.exists():
        with contextlib.suppress(GitError):  # a worker of version 0.1 has moved one
            user("update-ref", "--stdin", given=orders.read_bytes())
        orders.unlink(missing_ok=True)


def pack_loose_objects(fence: Path, tools: Tools, most: int = _MOST_LOOSE) -> None:
    """Pack the loose objects of the fence, if there are many. Raises GitError.

    `git gc` would delete objects that the user's repository has, too, and may delete later.
    """
    loose = _loose_objects(fence)
    if len(loose) <= most:
        return
    _write_pack(Git(fence, tools, {"GIT_DIR": str(fence)}), fence, loose)
    for path in loose.values():
        path.unlink(missing_ok=True)


def free_objects(fence: Path, tools: Tools) -> None:
    """Delete the objects that no record needs; no other process uses the fence. Raises GitError.

    What a record needs stays here, also if the user's repository has it: see above.
    """
    git = Git(fence, tools, {"GIT_DIR": str(fence)})
    loose, indexes = _loose_objects(fence), [*_packs(fence).glob("*.idx")]
    packed = (git("show-index", given=index).split(b"\n") for index in indexes)
    here = {*loose, *(line.split()[1].decode() for lines in packed for line in lines if line)}
    commits = here.intersection(git.line("rev-list", "--all").split())
    asked = "".join(f"{name}\n" for name in commits).encode()
    walk = ("rev-list", "--objects", "--no-object-names", "--no-walk", "--stdin")
    needed = here.intersection(git(*walk, given=asked).decode().split() if commits else ())
    if needed == here:
        return
    new = _write_pack(git, fence, needed) if needed else ""
    for path in loose.values():
        path.unlink(missing_ok=True)
    for index in indexes:
        if index.stem != f"pack-{new}":
            index.unlink(missing_ok=True)
            index.with_suffix(".pack").unlink(missing_ok=True)


def _loose_objects(fence: Path) -> dict[str, Path]:
    """Return the loose objects and their files, without the temporary files of git."""
    found = (fence / "objects").glob("[0-9a-f][0-9a-f]/*")
    named = ((path.parent.name + path.name, path) for path in found)
    return {name: path for name, path in named if _OBJECT.fullmatch(name)}


def _packs(fence: Path) -> Path:
    return fence / "objects" / "pack"


def _write_pack(git: Git, fence: Path, names: Iterable[str]) -> str:
    listed = "".join(f"{name}\n" for name in names).encode()
    printed = git("pack-objects", "--quiet", str(_packs(fence) / "pack"), given=listed)
    return printed.decode().strip()
