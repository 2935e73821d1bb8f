"""What follows an iteration of a run. Pure."""

from typing import Literal

from msgspec import Struct

from rooda.fleet.run_model import RunState


class Next(Struct, frozen=True):
    """What the turn does next: one more iteration, wait, end, or nothing (`gone`)."""

    move: Literal["again", "wait", "end", "gone"]
    seconds: float = 0.0  # how long to wait
    reason: str = ""
    state: RunState = RunState.QUEUED  # for an end
    iteration: int = 0
