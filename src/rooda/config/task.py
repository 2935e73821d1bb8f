"""What an iteration works on, as far as somebody but the agent knows."""

from typing import Protocol

from msgspec import Struct


class CurrentTask(Struct, frozen=True):
    """A task, and the specification that it belongs to."""

    task: str = ""
    spec: str = "none"


class TaskSource(Protocol):
    """Knows what is worked on."""

    def now(self) -> CurrentTask:
        """What the next iteration will work on."""

    def done(self, before: CurrentTask) -> CurrentTask:
        """What the agent has worked on, now that it has ended."""


class FixedTask(Struct, frozen=True):
    """Always the same: a procedure has no plan that we could read."""

    work: CurrentTask

    def now(self) -> CurrentTask:
        """What the procedure is for."""
        return self.work

    def done(self, before: CurrentTask) -> CurrentTask:
        """The same."""
        return before
