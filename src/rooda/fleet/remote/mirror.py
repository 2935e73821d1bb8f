"""A fleet on one machine: a private fence decides, and the user's repository gets the branches.

The fence is a bare repository in the state folder of rooda. It has the records, and a push there
decides. A second push gives the branch `rooda/RUN` to the user's repository, which gets nothing
else. A process may die between both: `MIRRORED` names the record whose branch has arrived, so the
next process knows what is still due.
"""

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from rooda.fleet.remote.record_commits import Move, Record, read_commit
from rooda.fleet.remote.replay import is_ancestor
from rooda.fleet.remote.server import Server, Unreachable
from rooda.fleet.run_model import BRANCHES, RECORDS
from rooda.world.git.git import Git, GitError
from rooda.world.tools import Tools

MIRRORED = "refs/rooda/mirrored/"  # in the fence, below it the name of a run
_RIVAL = BRANCHES.removesuffix("/")  # beside a branch `rooda` there is no `rooda/RUN`
_SEEN = "refs/rooda/seen/branch/"
_TRIES = 5  # while others move the branch


class BranchMoved(Exception):  # noqa: N818 - what a person did
    """The record is still ours, but a person moved the branch, or deleted it (`actual` is None).

    `record` is the record of the run as it is now.
    """

    def __init__(self, run: str, actual: str | None, record: Record) -> None:
        what = f"moved the branch rooda/{run} to {actual}" if actual else f"deleted rooda/{run}"
        super().__init__(f"a person {what}")
        self.actual = actual
        self.record = record


class FencedServer:
    """The user's repository for branches, and a fence for everything else, as if they were one."""

    def __init__(self, user: Server, fence: Path, git_dir: Path, tools: Tools) -> None:
        self._user = user
        self._fence = Server(str(fence), git_dir, tools)
        self._git = Git(git_dir, tools, {"GIT_DIR": str(git_dir)})
        self._git_of_fence = Git(fence, tools, {"GIT_DIR": str(fence)})

    @property
    def shown(self) -> str:
        """The address of the records for messages."""
        return self._fence.shown

    @property
    def sources(self) -> tuple[Server, ...]:
        """The repositories that may have a commit."""
        return self._user, self._fence

    def look(self, *patterns: str) -> dict[str, str]:
        """Return the records of the fence and the branches of the user. Raises Unreachable.

        A record in the user's repository counts for nothing: an agent may have made it.
        """
        decided, branches = self._fence.look(*patterns), self._user.look(*patterns)
        found = {ref: sha for ref, sha in branches.items() if ref == _RIVAL or _is_branch(ref)}
        return found | {ref: sha for ref, sha in decided.items() if not _is_branch(ref)}

    def fetch_refs(self, wanted: Mapping[str, str]) -> None:
        """Fetch refs, each to its place here. Raises Unreachable."""
        for server in self.sources:
            if mine := {ref: here for ref, here in wanted.items() if self._of(ref) is server}:
                server.fetch_refs(mine)

    def push(self, moves: Sequence[Move], *, atomic: bool = True) -> Unreachable | None:
        """Push the branches, then the rest; return why git says that it failed."""
        for server in self.sources:
            mine = [move for move in moves if self._of(move.ref) is server]
            if mine and (error := server.push(mine, atomic=atomic)) is not None:
                return error
        return None

    def mirror(self, record: Record, *, is_new: bool = False) -> Record:
        """Give the user's branch what the fence decided, if that is due; return the record.

        A second call changes nothing. Raises BranchMoved if a person moved the branch, or
        Unreachable. A person may have added commits to work that arrived; with `is_new`, rooda puts
        uncommitted work on top of these commits.
        """
        if (wanted := record.mirror) is None:
            return record
        branch = BRANCHES + record.run
        expected = wanted.onto
        for _ in range(_TRIES):
            error = self._user.push([Move(branch, expected, wanted.to)])
            if error is None:
                return self._note(record, wanted.to)
            actual = self._user.look(branch).get(branch)
            has_arrived = actual == wanted.to or not (is_new and record.wip)
            if actual and has_arrived and self._has(record.run, actual, wanted.to):
                return self._note(record, actual)
            if actual == expected:
                raise error
            if actual not in (None, wanted.onto):
                raise BranchMoved(record.run, actual, record)
            expected = actual  # a branch that a person deleted comes back
        raise Unreachable(f"{branch} moved again and again while rooda pushed to it")

    def forget(self, run: str) -> None:
        """Forget what was mirrored of a run that has no record any more."""
        with contextlib.suppress(GitError):
            self._git_of_fence("update-ref", "-d", MIRRORED + run)

    def _of(self, ref: str) -> Server:
        return self._user if _is_branch(ref) else self._fence

    def _has(self, run: str, actual: str, wanted: str) -> bool:
        """Return whether the branch has the commit: a person may have continued from there."""
        if actual == wanted:
            return True
        self._user.fetch_refs({BRANCHES + run: _SEEN + run})
        try:
            return is_ancestor(self._git, wanted, actual)
        except GitError:  # the branch moved meanwhile
            return False

    def _note(self, record: Record, branch: str) -> Record:
        """Note that the branch has the work, unless the record has moved on since."""
        run = record.run
        orders = f"verify {record.ref} {record.sha}\nupdate {MIRRORED}{run} {record.sha}\n"
        with contextlib.suppress(GitError):
            self._git_of_fence("update-ref", "--stdin", given=orders.encode())
        return replace(record, branch=branch, mirror=None, is_torn=False)


def _is_branch(ref: str) -> bool:
    return ref.startswith(BRANCHES)


def unmirrored(fence: Path, tools: Tools) -> set[str]:
    """Return the runs whose branches have not got what was published last."""
    git = Git(fence, tools, {"GIT_DIR": str(fence)})
    try:
        listed = git.line("for-each-ref", "--format=%(objectname) %(refname)", RECORDS, MIRRORED)
        found = {ref: sha for sha, _, ref in (one.partition(" ") for one in listed.splitlines())}
        names = (ref.removeprefix(RECORDS) for ref in found if ref.startswith(RECORDS))
        late = [name for name in names if found[RECORDS + name] != found.get(MIRRORED + name)]
        return {name for name in late if read_commit(git, found[RECORDS + name])[0].mirror}
    except GitError:  # what is wrong with a record is told where it is read
        return set()
