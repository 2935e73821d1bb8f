"""What the record of a run tells of its progress: `result.json`."""

from msgspec import MsgspecError, json

from rooda.fleet.remote.record_commits import Number
from rooda.fleet.remote.run_record import Record
from rooda.fleet.run_model import RunProgress, RunState


class PublishedResult(RunProgress, frozen=True):
    """What the record tells of the run so far."""

    turn: Number = 0
    life: str = ""  # of the run, when this was published
    state: RunState = RunState.WORKING
    reason: str = ""


def read_published(record: Record) -> PublishedResult:
    """Return what the record tells of the run; nothing if that can't be read."""
    try:
        return json.decode(record.result, type=PublishedResult)
    except MsgspecError:
        return PublishedResult()
