"""What the remote of a fleet can do, found out with pushes that are taken back."""

import secrets
from collections.abc import Sequence

from msgspec import Struct

from rooda.fleet.remote.fence import FALLBACK, Remote
from rooda.fleet.remote.record_commits import Facts, Move, NewCommit, RecordKind
from rooda.fleet.remote.server import Unreachable
from rooda.fleet.run_model import BRANCHES, RECORDS


class Probe(Struct, frozen=True):
    """What the remote can do. `words` has the reason of the first thing that it can't do."""

    is_reachable: bool
    can_push: bool = False
    is_atomic: bool = False
    takes_custom_refs: bool = False
    words: str = ""

    @property
    def records(self) -> str | None:
        """Where records can be; None if the remote is of no use to a fleet."""
        if not self.can_push or not self.is_atomic:
            return None
        return RECORDS if self.takes_custom_refs else FALLBACK


def probe(remote: Remote) -> Probe:
    """Return what the remote can do. All refs that this makes there are deleted again."""
    run = f"probe-{secrets.token_hex(6)}"
    branch = BRANCHES + run
    refs = [RECORDS + run, FALLBACK + run, branch]
    try:
        remote.look(branch)
        (sha,) = remote.make([NewCommit(run, "probe", Facts(RecordKind.ADDED), {})])
    except Unreachable as error:
        return Probe(is_reachable=False, words=str(error))
    try:
        return _try(remote, sha, *refs)
    finally:
        _clean_up(remote, refs)


def _try(remote: Remote, sha: str, custom: str, fallback: str, branch: str) -> Probe:
    refused = _refusal(remote, sha, [custom, branch], atomic=True)
    if not refused:
        return Probe(is_reachable=True, can_push=True, is_atomic=True, takes_custom_refs=True)
    if not _refusal(remote, sha, [fallback, branch], atomic=True):
        return Probe(is_reachable=True, can_push=True, is_atomic=True, words=refused)
    if cause := _refusal(remote, sha, [branch], atomic=False):
        return Probe(is_reachable=True, words=cause)
    takes_custom = not _refusal(remote, sha, [custom], atomic=False)
    return Probe(is_reachable=True, can_push=True, takes_custom_refs=takes_custom, words=refused)


def _refusal(remote: Remote, sha: str, refs: Sequence[str], *, atomic: bool) -> str:
    """Return why the remote does not take new refs; empty if it does. Leaves none of them."""
    error = remote.push([Move(ref, None, sha) for ref in refs], atomic=atomic)
    _clean_up(remote, refs)
    return "" if error is None else str(error)


def _clean_up(remote: Remote, refs: Sequence[str]) -> None:
    try:
        seen = remote.look(*refs)
    except Unreachable:
        return
    if moves := [Move(ref, seen[ref], None) for ref in refs if ref in seen]:
        remote.push(moves, atomic=False)
