"""Who we are, so that others can tell whether we are still there."""

import os
from dataclasses import dataclass

from rooda.process.leftovers import start_time
from rooda.workspace.lock import here


@dataclass(frozen=True, slots=True)
class Ourselves:
    """Our own process. Its pid comes with its start time, and counts for one boot of one host."""

    pid: int
    started: float
    host: str
    boot: str


def ourselves() -> Ourselves:
    """Who we are."""
    pid = os.getpid()
    return Ourselves(pid, start_time(pid) or 0.0, *here())
