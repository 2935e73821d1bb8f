"""The two refs of a run on the git remote, and the pushes that move them.

The branch `rooda/RUN` has the work, and the record ref has a chain of commits that tell which
worker has the run and which iterations are done. Every push names the commits that it expects
there, so git refuses a worker that lost its run, whatever that worker believes.
"""

import contextlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from rooda.base.controls import one_line
from rooda.base.paths import first_names
from rooda.fleet.crash_points import reach
from rooda.fleet.place import Place, without_credentials
from rooda.fleet.remote.mirror import MIRRORED, BranchMoved, FencedServer
from rooda.fleet.remote.record_commits import (
    RECORD,
    RESULT,
    TASK,
    Facts,
    Mirror,
    Move,
    NewCommit,
    Record,
    RecordCommits,
    RecordKind,
    has_unknown_iteration,
    read_commit,
)
from rooda.fleet.remote.replay import is_ancestor
from rooda.fleet.remote.server import Server, Unreachable, borrow_objects
from rooda.fleet.run_model import BRANCHES, RECORDS, RunState
from rooda.world.git.git import Git, GitError
from rooda.world.tools import Tools

FALLBACK = "refs/heads/rooda-record/"  # for servers that accept nothing but branches and tags
RECORD_PLACES = (RECORDS, FALLBACK)
_SEEN_RECORDS, _SEEN_BRANCHES = "refs/rooda/seen/record/", "refs/rooda/seen/branch/"
_REJECTED = "rejected"  # git's word for what the server refuses
_TRIES = 5  # to fetch refs that others move meanwhile


class Refused(Exception):  # noqa: N818 - what the server did
    """The record of the run is not the one that this worker knows: another one has the run."""


class BrokenRecord(Unreachable):
    """The record of the run is not one that rooda wrote. To try again does not help."""


class AlreadyThere(Exception):  # noqa: N818 - what was found
    """Runs of these names are on the remote already."""

    def __init__(self, refs: Sequence[str]) -> None:
        super().__init__(f"the remote already has {first_names(refs)}")
        self.refs = tuple(refs)


class Remote:
    """The remote of a fleet, as seen from one repository, whose git folder is `git_dir`.

    One thread at a time may use it. `records` is where `add` puts new records. With a `fence` the
    records are there, and the repository at `url` gets branches alone. `get_ready` is called before
    each `fetch`: it may repair the repository, or clone it again.
    """

    def __init__(
        self,
        url: str,
        git_dir: Path,
        tools: Tools,
        *,
        fence: Path | None = None,
        records: str = RECORDS,
        receive_pack: str | None = None,
        get_ready: Callable[[], object] = lambda: None,
    ) -> None:
        branches = Server(url, git_dir, tools, receive_pack)
        self.url = branches.url
        self._fenced = None if fence is None else FencedServer(branches, fence, git_dir, tools)
        self._server = self._fenced or branches
        self.records = records
        self.git_dir = git_dir
        place = {"GIT_DIR": str(git_dir)}
        self._git = Git(git_dir, tools, place)
        self._commits = RecordCommits(self._git)
        self._get_ready = get_ready

    @property
    def shown(self) -> str:
        """The address of the records for messages."""
        return self._server.shown

    # -- read ------------------------------------------------------------------------------

    def look(self, *patterns: str) -> dict[str, str]:
        """Return the refs that are on the remote now. Raises Unreachable."""
        return self._server.look(*patterns)

    def fetch(self, run: str) -> Record | None:
        """Return the record of a run, with all its objects here; None if there is no such run.

        Raises Unreachable or BrokenRecord.
        """
        self._get_ready()
        return self._fetch(run)

    def _fetch(self, run: str) -> Record | None:
        branch = BRANCHES + run
        refs = (branch, *(place + run for place in (*RECORD_PLACES, MIRRORED)))
        for _ in range(_TRIES):
            seen = self.look(*refs)
            ref = next((place + run for place in RECORD_PLACES if place + run in seen), None)
            if ref is None:
                return None
            wanted = {ref: _SEEN_RECORDS + run}
            if branch in seen:
                wanted[branch] = _SEEN_BRANCHES + run
            if not self._bring(wanted, seen):
                continue
            record = self._read(run, ref, seen[ref], seen.get(branch))
            if seen.get(MIRRORED + run) == record.sha:
                record = replace(record, mirror=None)
            # Git reads one ref after the other, and a push may have come in between.
            if record.branch == record.tip or self.look(*refs) == seen:
                return record
        raise Unreachable(f"the refs of {run} on {self.shown} changed while rooda fetched them")

    def fetch_last(self, wanted: Mapping[str, str]) -> None:
        """Fetch the last commits of many records: patterns of refs, and places here.

        Raises Unreachable.
        """
        server = self._server.sources[-1]
        if server.look(*wanted):  # a repository without any ref is an error for `fetch --depth`
            server.fetch(*(f"+{ref}:{here}" for ref, here in wanted.items()), depth=1)

    def ensure(self, commit: str) -> None:
        """Make sure that a commit is here, from any branch of the remote. Raises Unreachable."""
        if self._has(commit):
            return
        first, *others = self._server.sources
        tries = [partial(first.fetch, "+refs/heads/*:refs/remotes/origin/*")]
        tries += [partial(server.fetch, commit) for server in (first, *others)]
        reason: Unreachable | None = None
        for fetch in tries:
            try:
                fetch()
            except Unreachable as error:
                reason = error
            if self._has(commit):
                return
        raise Unreachable(f"the commit {commit} did not come from the remote: {reason}")

    # -- write -----------------------------------------------------------------------------

    def add(self, runs: Iterable[tuple[str, Mapping[str, bytes]]]) -> None:
        """Put the records of new runs on the remote, all or none. Raises AlreadyThere, Unreachable.

        The files of a run are its first ones, such as task.json.
        """
        new = [NewCommit(run, "added", Facts(RecordKind.ADDED), files) for run, files in runs]
        made = dict(zip((one.run for one in new), self.make(new), strict=True))
        error = self._add(made)
        # Some servers accept nothing but branches and tags.
        if error is not None and self.records == RECORDS and _REJECTED in str(error):
            self.records = FALLBACK
            if self._add(made) is None:
                return
            self.records = RECORDS
        if error is not None:
            raise error

    def claim(self, run: str, record: Record, worker: str) -> Record:
        """Make the worker the owner of the run. Raises Refused or Unreachable."""
        facts = Facts(
            kind=RecordKind.CLAIM,
            iteration=record.iteration,
            tip=record.tip,
            wip=record.wip,
            claims=record.claims_since + 1,
            owner=worker,
            state=record.state if record.mirror else None,  # the end is to be published again
            mirror=record.mirror,
        )
        new = NewCommit(run, f"claim {worker}", facts, {}, record.sha)
        return self._move_on(record, new, None)

    def publish(
        self,
        run: str,
        record: Record,
        *,
        kind: RecordKind,
        iteration: int,
        tip: str | None,
        wip: str | None,
        files: Mapping[str, bytes],
        state: RunState | None = None,
        keep_branch: bool = False,
    ) -> Record:
        """Move the branch to `tip` and add to the record, both or neither; return the new record.

        With a fence, the record decides, and the branch follows. `iteration` is the one at work;
        only `done` and `ended` count it as done. With `keep_branch` the branch stays where it is,
        and the work is in the record alone. Raises Refused, BranchMoved, or Unreachable.
        """
        is_kept = keep_branch or tip is None or tip == record.branch
        facts = Facts(
            kind=kind,
            iteration=record.iteration if kind is RecordKind.WAITING else iteration,
            tip=tip,
            wip=wip,
            owner=record.owner,
            state=state,
            mirror=Mirror(tip, record.branch) if self._fenced and tip and not is_kept else None,
        )
        subject = f"{kind} {state if kind is RecordKind.ENDED else iteration}"
        parents = tuple(one for one in (tip, wip) if one is not None)
        new = NewCommit(run, subject, facts, files, record.sha, parents)
        if self._fenced is None:
            move = None if is_kept else Move(BRANCHES + run, record.branch, tip)
            return self._move_on(record, new, move)
        decided = self._move_on(record, new, None)
        reach("between-pushes", run, iteration)
        return self._fenced.mirror(decided, is_new=True)

    def mirror(self, record: Record) -> Record:
        """Give the branch what an earlier process published and did not bring there any more.

        Raises BranchMoved if a person moved the branch meanwhile, or Unreachable.
        """
        return record if self._fenced is None else self._fenced.mirror(record)

    def delete(self, run: str, record: Record) -> None:
        """Delete the record, and its branch if it has one, if both are as they were read.

        Raises the same as `publish`.
        """
        moves = [Move(record.ref, record.sha, None)]
        if record.branch is not None:
            moves.append(Move(BRANCHES + run, record.branch, None))
        if (error := self.push(moves)) is not None:
            self._explain(run, record, moves, error)
        if self._fenced is not None:
            self._fenced.forget(run)

    # -- helpers ---------------------------------------------------------------------------

    def _move_on(self, record: Record, new: NewCommit, branch: Move | None) -> Record:
        """Push a record commit, and the branch with it; return the record after that."""
        (sha,) = self.make([new])
        moves = [Move(record.ref, record.sha, sha), *([branch] if branch else [])]
        if (error := self.push(moves)) is not None:
            self._explain(new.run, record, moves, error)
        before = {TASK: record.task, RESULT: record.result, RECORD: record.record}
        now = replace(record, sha=sha)
        if branch is not None:
            now = replace(now, branch=branch.new, is_torn=False)
        return now.telling(new.facts, {**before, **new.files})

    def forget_made(self) -> None:
        """Forget the record commits that were made here: the repository is a new one."""
        self._commits = RecordCommits(self._git)

    def make(self, new: Sequence[NewCommit]) -> list[str]:
        """Make record commits here; return their names. Raises Unreachable."""
        try:
            return self._commits.make(new)
        except GitError as error:
            raise self._unreachable(error) from None

    def push(self, moves: Sequence[Move], *, atomic: bool = True) -> Unreachable | None:
        """Push; return why git says that it failed, which need not be true."""
        return self._server.push(moves, atomic=atomic)

    def _add(self, made: Mapping[str, str]) -> Unreachable | None:
        """Push new records by their names; return why git could not. Raises AlreadyThere."""
        moves = [Move(self.records + run, None, sha) for run, sha in made.items()]
        if not moves or self._are_there(made, moves):
            return None
        error = self.push(moves)
        return None if error is None or self._are_there(made, moves) else error

    def _are_there(self, runs: Iterable[str], moves: Sequence[Move]) -> bool:
        """Return whether our new records are on the remote. Raises AlreadyThere for others."""
        seen = self.look()
        if all(seen.get(move.ref) == move.new for move in moves):
            return True
        wanted = {place + run for run in runs for place in (BRANCHES, *RECORD_PLACES)}
        wanted.add(BRANCHES.removesuffix("/"))  # beside a branch `rooda` there is no `rooda/RUN`
        if found := sorted(wanted & seen.keys()):
            raise AlreadyThere(found)
        return False

    def _explain(self, run: str, record: Record, moves: Sequence[Move], error: Unreachable) -> None:
        """Return if the push was taken after all; raise what happened if it was not.

        The connection may have died after the server took the push, and another worker may have
        claimed the run since.
        """
        try:
            seen = self.look(*(move.ref for move in moves))
        except Unreachable:
            raise error from None
        first = moves[0]
        now = seen.get(first.ref)
        if now == first.new or self._is_below(run, first):
            return
        if now != record.sha:
            raise Refused(f"{run} has another owner now: {first.ref} on {self.shown} moved")
        for move in moves[1:]:
            if seen.get(move.ref) != move.old:
                raise BranchMoved(run, seen.get(move.ref), record)
        raise error

    def _is_below(self, run: str, move: Move) -> bool:
        """Return whether the record on the remote is built on our commit."""
        if move.new is None or (now := self._fetch(run)) is None:
            return False
        return is_ancestor(self._git, move.new, now.sha)

    def _bring(self, wanted: Mapping[str, str], seen: Mapping[str, str]) -> bool:
        """Fetch refs whose commits are not here; return whether the commits that were seen are."""
        missing = {ref: here for ref, here in wanted.items() if not self._has(seen[ref])}
        try:
            if missing:
                self._server.fetch_refs(missing)
            for ref, here in wanted.items():
                if not self._has(seen[ref]):
                    return False
                self._git("update-ref", here, seen[ref])
        except GitError as error:
            raise self._unreachable(error) from None
        return True

    def _has(self, commit: str) -> bool:
        try:
            return self._git.ask("cat-file", "-e", f"{commit}^{{commit}}") is not None
        except GitError:  # a name that git can't resolve
            return False

    def _read(self, run: str, ref: str, sha: str, branch: str | None) -> Record:
        try:
            facts, files = read_commit(self._git, sha)
            is_torn = branch is not None and has_unknown_iteration(self._git, run, branch, facts)
        except GitError as error:
            raise BrokenRecord(f"its record {ref} can't be read: {one_line(str(error))}") from None
        return Record(run, ref, sha, facts.kind, branch, is_torn).telling(facts, files)

    def _unreachable(self, error: Exception) -> Unreachable:
        return Unreachable(without_credentials(str(error)))


@contextlib.contextmanager
def scratch_remote(
    url: str, tools: Tools, *, fence: Path | None = None, records: str = RECORDS
) -> Iterator[Remote]:
    """Yield the remote as seen from an empty repository, which is deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="rooda-fleet-") as folder:
        git_dir = Path(folder)
        Git(git_dir, tools)("init", "--quiet", "--bare", "--template=", str(git_dir))
        if fence is not None:
            borrow_objects(git_dir, fence)  # nothing has to be copied
        yield Remote(url, git_dir, tools, fence=fence, records=records)


def remote_of(place: Place, tools: Tools) -> contextlib.AbstractContextManager[Remote]:
    """Yield the remote of a fleet as seen from an empty repository, which is deleted afterwards."""
    return scratch_remote(place.remote, tools, fence=place.fence)
