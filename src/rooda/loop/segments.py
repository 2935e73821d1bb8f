"""How an iteration spent its time, in parts."""

from enum import StrEnum

from msgspec import Struct


class SegmentKind(StrEnum):
    """What rooda did in a part of an iteration."""

    AGENT = "agent"
    VERIFY = "verify"
    COMMIT = "commit"
    PUSH = "push"
    HOOKS = "hooks"


class Segment(Struct, frozen=True):
    """A part of an iteration; times are in seconds, without the time that the machine slept."""

    kind: SegmentKind
    start: float  # since the start of the iteration
    seconds: float
