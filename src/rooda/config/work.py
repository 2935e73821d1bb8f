"""What an iteration works on, as far as somebody but the agent knows."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Work:
    """A task, and the specification that it belongs to."""

    task: str = ""
    spec: str = "none"


class Works(Protocol):
    """Knows what is worked on."""

    def now(self) -> Work:
        """What the next iteration will work on."""

    def done(self, before: Work) -> Work:
        """What the agent has worked on, now that it has ended."""


@dataclass(frozen=True, slots=True)
class SameWork:
    """Always the same: a procedure has no plan that we could read."""

    work: Work

    def now(self) -> Work:
        """What the procedure is for."""
        return self.work

    def done(self, before: Work) -> Work:
        """The same."""
        return before
