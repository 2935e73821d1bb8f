"""Publish the work of a slot: with patience, and on top of what a person pushed meanwhile."""

from collections.abc import Callable, Mapping
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from rooda.fleet.remote.mirror import BranchMoved
from rooda.fleet.remote.patience import until_reached
from rooda.fleet.remote.record_commits import Record, RecordKind
from rooda.fleet.remote.replay import Conflict
from rooda.fleet.remote.server import Unreachable
from rooda.fleet.run_model import RunState
from rooda.fleet.slot.slot import Slot, Snapshot


class Publication(Struct, frozen=True):
    """What a publication tells: see `Remote.publish`."""

    kind: RecordKind
    iteration: int
    files: Mapping[str, bytes]
    state: RunState | None = None  # how the run ended


class PublishedConflict(Exception):  # noqa: N818 - what happened
    """The work does not fit on what a person pushed; it is in the record, and the run has ended."""

    def __init__(self, conflict: Conflict, record: Record) -> None:
        super().__init__(str(conflict))
        self.files = conflict.files
        self.record = record


def publish_work(
    slot: Slot,
    run: str,
    record: Record,
    work: Snapshot,
    what: Publication,
    *,
    is_stopped: Callable[[], bool],
    tell: Callable[[str], object],
) -> Record:
    """Publish the work of a slot; return the record after that.

    Tries again while the remote is away, until `is_stopped` (then it raises Unreachable). If a
    person moved the branch, the work is put on top of that, and published there; a fence may have
    taken it before. Raises PublishedConflict if it does not
    fit there, Refused if another worker has the run, GitError; SlotGone or SlotChanged if the slot
    is not the one in which the work was done.
    """

    def push(*, keep_branch: bool = False) -> Record:
        slot.check()
        try:
            return slot.remote.publish(
                run,
                record,
                kind=what.kind,
                iteration=what.iteration,
                tip=work.tip,
                wip=work.wip,
                files=what.files,
                state=what.state,
                keep_branch=keep_branch,
            )
        except Unreachable:
            slot.check_whole()
            raise

    def pushed(*, keep_branch: bool = False) -> Record:
        again = partial(push, keep_branch=keep_branch)
        return until_reached(again, is_stopped=is_stopped, tell=tell)

    while True:
        try:
            published = pushed()
        except BranchMoved as moved:
            actual, record = moved.actual, moved.record
        else:
            slot.note_published(work)
            return published
        record = replace(record, branch=actual)
        if actual in (None, work.tip):  # deleted; or half of our own push, whose git was killed
            continue
        tell(f"a person moved the branch rooda/{run}: rooda puts the work on top of that")
        until_reached(partial(slot.remote.ensure, actual), is_stopped=is_stopped, tell=tell)
        try:
            work = slot.rebase(work, actual, run)
        except Conflict as conflict:
            what = replace(what, kind=RecordKind.ENDED, state=RunState.CONFLICT)
            raise PublishedConflict(conflict, pushed(keep_branch=True)) from None
