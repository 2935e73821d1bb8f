"""The types of a record, made ready for reading in several threads."""

import contextlib

from msgspec import ValidationError, convert

from rooda.record.rows import IterationRow, RunRow
from rooda.world.state.lock_note import LockNote


def prepare_types() -> None:
    """Let msgspec examine the types of a record; a view calls it before it starts its threads.

    msgspec examines a type when it first reads a value of it. If two threads do that at the same
    moment, the process crashes (seen with 0.22).
    """
    for kind in (RunRow, IterationRow, LockNote):
        with contextlib.suppress(ValidationError):
            convert({}, kind)
