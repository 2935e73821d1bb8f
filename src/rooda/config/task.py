"""What an iteration works on, as far as somebody but the agent knows."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class CurrentTask:
    """A task, and the specification that it belongs to."""

    task: str = ""
    spec: str = "none"


class TaskSource(Protocol):
    """Knows what is worked on."""

    def now(self) -> CurrentTask:
        """What the next iteration will work on."""

    def done(self, before: CurrentTask) -> CurrentTask:
        """What the agent has worked on, now that it has ended."""


@dataclass(frozen=True, slots=True)
class FixedTask:
    """Always the same: a procedure has no plan that we could read."""

    work: CurrentTask

    def now(self) -> CurrentTask:
        """What the procedure is for."""
        return self.work

    def done(self, before: CurrentTask) -> CurrentTask:
        """The same."""
        return before
