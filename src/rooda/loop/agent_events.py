"""What known agents do, and what the run does about their limits and failures."""

from datetime import datetime

from msgspec import Struct

from rooda.loop.waits import WaitKind


class AgentSaid(Struct, frozen=True):
    """A known agent did something: a line that a person can read (`text`, `tool`, `note`, ...)."""

    iteration: int
    kind: str
    text: str


class UsageSeen(Struct, frozen=True):
    """A known agent tells what the iteration has used so far."""

    iteration: int
    model: str | None
    tokens: int | None
    cost: float | None


class AgentChanged(Struct, frozen=True):
    """Another agent does the work from now on."""

    iteration: int
    before: str
    agent: str
    reason: str


class WaitStarted(Struct, frozen=True):
    """The run waits: for a usage limit or an outage of `what`, or before the next try after `what`.

    `tries` is how often in a row that happened, `known` whether the agent said itself until when,
    `capped` whether that is later than may be waited for. `outage` is the kind of outage, `lasted`
    for how many seconds it has lasted so far.
    """

    iteration: int
    kind: WaitKind
    what: str
    reason: str
    until: datetime
    seconds: float
    tries: int
    known: bool
    capped: bool = False
    outage: str = ""
    lasted: float | None = None


class StillWaiting(Struct, frozen=True):
    """The run waits, and this is how much longer."""

    iteration: int
    kind: WaitKind
    left: float


class WaitEnded(Struct, frozen=True):
    """The wait has ended: it is over and the run goes on, or somebody or something ended it."""

    iteration: int
    kind: WaitKind
    seconds: float
    is_over: bool = True


AgentEvent = AgentSaid | UsageSeen | AgentChanged | WaitStarted | StillWaiting | WaitEnded
