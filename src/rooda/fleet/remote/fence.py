"""The two refs of a run on the git remote, and the pushes that move them.

The branch `rooda/RUN` has the work, and the record ref has a chain of commits that tell which
worker has the run and which iterations are done. Every push names the commits that it expects
there, so git refuses a worker that lost its run, whatever that worker believes.
"""

import contextlib
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from rooda.fleet.addresses import absolute_address, without_credentials
from rooda.fleet.remote.record_commits import (
    RECORD,
    RESULT,
    TASK,
    Facts,
    NewCommit,
    RecordCommits,
    RecordKind,
    has_unknown_iteration,
    read_commit,
)
from rooda.fleet.remote.replay import is_ancestor
from rooda.fleet.remote.run_record import Move, Record
from rooda.fleet.remote.transport import NAME, remove_stale_lock, transport
from rooda.fleet.run_model import BRANCHES, RECORDS, RunState
from rooda.text.controls import one_line
from rooda.text.paths import first_names
from rooda.workspace.git import INHERITED, Git, GitError
from rooda.workspace.tools import Tools

FALLBACK = "refs/heads/rooda-record/"  # for servers that accept nothing but branches and tags
RECORD_PLACES = (RECORDS, FALLBACK)
_SEEN_RECORDS, _SEEN_BRANCHES = "refs/rooda/seen/record/", "refs/rooda/seen/branch/"
_CHECKED_OUT = re.compile(r"refusing to (?:update checked out|delete the current) branch: (\S+)")
_REJECTED = "rejected"  # git's word for what the server refuses
_TRIES = 5  # to fetch refs that others move meanwhile
FETCH = (
    *("fetch", "--quiet", "--force", "--no-tags", "--no-prune", "--no-write-fetch-head"),
    *("--no-recurse-submodules", "--no-auto-maintenance"),
)
_PUSH = (
    *("push", "--quiet", "--no-verify", "--no-signed", "--no-follow-tags"),
    "--no-recurse-submodules",
)


class Refused(Exception):  # noqa: N818 - what the server did
    """The record of the run is not the one that this worker knows: another one has the run."""


class BranchMoved(Exception):  # noqa: N818 - what a person did
    """The record is still ours, but a person moved the branch, or deleted it (`actual` is None)."""

    def __init__(self, run: str, actual: str | None) -> None:
        what = f"moved the branch rooda/{run} to {actual}" if actual else f"deleted rooda/{run}"
        super().__init__(f"a person {what}")
        self.actual = actual


class Unreachable(Exception):  # noqa: N818 - where the server is
    """Git could not do it: the remote is away, or refuses. The caller tries again later."""


class BrokenRecord(Unreachable):
    """The record of the run is not one that rooda wrote. To try again does not help."""


class AlreadyThere(Exception):  # noqa: N818 - what was found
    """Runs of these names are on the remote already."""

    def __init__(self, refs: Sequence[str]) -> None:
        super().__init__(f"the remote already has {first_names(refs)}")
        self.refs = tuple(refs)


class Remote:
    """The remote of a fleet, as seen from one repository, whose git folder is `git_dir`.

    One thread at a time may use it. `records` is where `add` puts new records. `get_ready` is
    called before each `fetch`: it may repair the repository, or clone it again.
    """

    def __init__(
        self,
        url: str,
        git_dir: Path,
        tools: Tools,
        *,
        records: str = RECORDS,
        receive_pack: str | None = None,
        get_ready: Callable[[], object] = lambda: None,
    ) -> None:
        self.url = absolute_address(url)
        self.records = records
        self.git_dir = git_dir
        place = {"GIT_DIR": str(git_dir)}
        self._git = Git(git_dir, tools, place)
        self._asker, self._mover = transport(self.url, git_dir, tools, receive_pack)
        self._commits = RecordCommits(self._git)
        self._get_ready = get_ready

    @property
    def shown(self) -> str:
        """The address for messages."""
        return without_credentials(self.url)

    # -- read ------------------------------------------------------------------------------

    def look(self, *patterns: str) -> dict[str, str]:
        """Return the refs that are on the remote now. Raises Unreachable."""
        try:
            lines = self._asker.line("ls-remote", "--quiet", "--refs", NAME, *patterns).split("\n")
        except GitError as error:
            raise self._unreachable(error) from None
        pairs = (line.partition("\t") for line in lines if line)
        return {ref: sha for sha, _, ref in pairs}

    def fetch(self, run: str) -> Record | None:
        """Return the record of a run, with all its objects here; None if there is no such run.

        Raises Unreachable or BrokenRecord.
        """
        self._get_ready()
        return self._fetch(run)

    def _fetch(self, run: str) -> Record | None:
        branch = BRANCHES + run
        refs = (branch, *(place + run for place in RECORD_PLACES))
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
            # Git reads one ref after the other, and a push may have come in between.
            if record.branch == record.tip or self.look(*refs) == seen:
                return record
        raise Unreachable(f"the refs of {run} on {self.shown} changed while rooda fetched them")

    def ensure(self, commit: str) -> None:
        """Make sure that a commit is here, from any branch of the remote. Raises Unreachable."""
        if self._has(commit):
            return
        try:
            self._mover(*FETCH, NAME, "+refs/heads/*:refs/remotes/origin/*")
            if not self._has(commit):
                self._mover(*FETCH, NAME, commit)
        except GitError as error:
            reason = self._unreachable(error)
            raise Unreachable(
                f"the commit {commit} did not come from the remote: {reason}"
            ) from None

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

        `iteration` is the one at work; only `done` and `ended` count it as done. With `keep_branch`
        the branch stays where it is, and the work is in the record alone. Raises Refused,
        BranchMoved, or Unreachable.
        """
        facts = Facts(
            kind=kind,
            iteration=record.iteration if kind is RecordKind.WAITING else iteration,
            tip=tip,
            wip=wip,
            owner=record.owner,
            state=state,
        )
        subject = f"{kind} {state if kind is RecordKind.ENDED else iteration}"
        parents = tuple(one for one in (tip, wip) if one is not None)
        new = NewCommit(run, subject, facts, files, record.sha, parents)
        is_kept = keep_branch or tip is None or tip == record.branch
        move = None if is_kept else Move(BRANCHES + run, record.branch, tip)
        return self._move_on(record, new, move)

    def delete(self, run: str, record: Record) -> None:
        """Delete the record, and its branch if it has one, if both are as they were read.

        Raises the same as `publish`.
        """
        moves = [Move(record.ref, record.sha, None)]
        if record.branch is not None:
            moves.append(Move(BRANCHES + run, record.branch, None))
        if (error := self.push(moves)) is not None:
            self._explain(run, record, moves, error)

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
        leases, refspecs = zip(*(move.words for move in moves), strict=True)
        words = (*_PUSH, *(["--atomic"] if atomic else []), *leases, NAME, *refspecs)
        try:
            self._mover(*words, umask=INHERITED)
        except GitError as error:
            remove_stale_lock(self.url, (move.ref for move in moves), str(error))
            return self._unreachable(error)
        return None

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
                raise BranchMoved(run, seen.get(move.ref))
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
                self._mover(*FETCH, NAME, *(f"+{ref}:{here}" for ref, here in missing.items()))
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
        said = without_credentials(str(error))
        if (used := _CHECKED_OUT.search(said)) is None:
            return Unreachable(said)
        return Unreachable(
            f"{used[1]} is checked out in {self.shown}, and git does not change it under your "
            "hands: switch to another branch there"
        )


@contextlib.contextmanager
def scratch_remote(url: str, tools: Tools, *, records: str = RECORDS) -> Iterator[Remote]:
    """Yield the remote as seen from an empty repository, which is deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="rooda-fleet-") as folder:
        git_dir = Path(folder)
        Git(git_dir, tools)("init", "--quiet", "--bare", "--template=", str(git_dir))
        yield Remote(url, git_dir, tools, records=records)
