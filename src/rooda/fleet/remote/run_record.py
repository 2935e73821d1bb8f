"""The record of a run as a worker read it, and a ref that a push moves."""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from rooda.fleet.remote.record_commits import RECORD, RESULT, TASK, Facts, Mirror, RecordKind
from rooda.fleet.run_model import RunState


class Record(Struct, frozen=True):
    """The record of a run as it was read, and where its branch really is."""

    run: str
    ref: str  # of the record
    sha: str  # of the record
    kind: RecordKind
    branch: str | None  # where the branch is; None if there is none
    is_torn: bool = False  # the branch has half of a push: the record does not know of its end
    tip: str | None = None  # of the branch, as published last
    wip: str | None = None  # a commit of the uncommitted work on top of `tip`
    iteration: int = 0  # the last one that is done
    claims_since: int = 0  # claims since the last commit of another kind
    owner: str = ""  # the worker that claimed last
    state: RunState | None = None  # how it ended
    mirror: Mirror | None = None  # what the user's branch has not got yet
    task: bytes = b""
    result: bytes = b""
    record: bytes = b""

    @property
    def start(self) -> str | None:
        """The commit from which the next iteration starts; None for the base of the run.

        What a person did with the branch counts; a branch that is gone comes back.
        """
        return self.tip if self.is_torn else self.branch or self.tip

    def telling(self, facts: Facts, files: Mapping[str, bytes]) -> "Record":
        """Return the same record with what its commit tells."""
        return replace(
            self,
            kind=facts.kind,
            tip=facts.tip,
            wip=facts.wip,
            iteration=facts.iteration,
            claims_since=facts.claims,
            owner=facts.owner,
            state=facts.state,
            mirror=facts.mirror,
            task=files.get(TASK, b""),
            result=files.get(RESULT, b""),
            record=files.get(RECORD, b""),
        )


class Move(Struct, frozen=True):
    """A ref on the remote that a push moves, makes or deletes."""

    ref: str
    old: str | None  # None: there is no such ref
    new: str | None  # None: delete it

    @property
    def words(self) -> tuple[str, str]:
        """The lease and the refspec."""
        return f"--force-with-lease={self.ref}:{self.old or ''}", f"{self.new or ''}:{self.ref}"
