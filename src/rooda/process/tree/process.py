"""A process as the system shows it, and what a census of all of them must offer."""

from typing import NamedTuple, Protocol


class Process(NamedTuple):
    """One process. Pid and start time together name it for ever; a pid alone is used again.

    A tuple and no dataclass: those cost the warden two megabytes.
    """

    pid: int
    parent: int
    group: int
    session: int
    started: float  # in the system's own unit: only ever compared for equality and order
    ended: bool  # a zombie: dead, and not yet waited for
    cpu: float  # seconds, with those of children that it has waited for
    name: str
    halted: bool = False  # by SIGSTOP or Ctrl+Z

    @property
    def key(self) -> tuple[int, float]:
        """What tells it from a later process with the same pid."""
        return (self.pid, self.started)


class Census(Protocol):
    """How a system tells who is there."""

    def now(self) -> float:
        """The start time that a process gets now; it is coarse, and rounded down."""

    def everyone(self) -> list[Process]:
        """All processes that can be seen."""

    def look_at(self, pid: int) -> Process | None:
        """One process, or None when it is gone."""

    def words(self, pid: int) -> list[str]:
        """The command line; empty where it can't be read."""

    def has_mark(self, pid: int, mark: str) -> bool:
        """Whether `NAME=value` was in the environment that it was started with."""

    def folder(self, pid: int) -> str | None:
        """Its current folder, where that can be read."""

    def writes_to(self, pid: int, files: frozenset[tuple[int, int]]) -> bool:
        """Whether it has one of these files (device, inode) open for writing."""


LONGEST_NAME = 200


def title(process: Process, words: list[str]) -> str:
    """The command line as people know it, of a bounded length."""
    text = " ".join(words) or process.name
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 3] + "..."
