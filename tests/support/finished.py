"""What a command printed, and how it ended."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Finished:
    """Exit code, output and duration of a command."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def log(self) -> list[str]:
        """The lines of standard error that start with a time, without the time."""
        lines = [line for line in self.err.splitlines() if line.startswith("[")]
        return [line.partition("] ")[2] for line in lines]


Rooda = Callable[..., Finished]  # runs `rooda` with the given words
