"""A process, what a process table offers, and which processes belong together.

The warden imports this module, so it does without `typing`, `dataclasses` and `re`: they would cost
the warden three megabytes.
"""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from os.path import basename

LONGEST_NAME = 200


class Process:
    """One process. A pid can be reused; pid and start time together identify a process."""

    __slots__ = (
        "cpu",
        "ended",
        "group",
        "halted",
        "name",
        "parent",
        "pid",
        "session",
        "started",
    )

    def __init__(
        self,
        pid: int,
        parent: int,
        group: int,
        session: int,
        started: float,
        *,
        ended: bool,
        cpu: float,
        name: str,
        halted: bool = False,
    ) -> None:
        self.pid = pid
        self.parent = parent
        self.group = group
        self.session = session
        self.started = started  # in the system's own unit: compare it, and nothing else
        self.ended = ended  # a zombie: dead, and its parent has not waited for it
        self.cpu = cpu  # seconds, with those of children that it has waited for
        self.name = name
        self.halted = halted  # by SIGSTOP or Ctrl+Z

    @property
    def key(self) -> tuple[int, float]:
        """What tells this process from a later one with the same pid."""
        return (self.pid, self.started)


class ProcessTable(ABC):
    """The processes of this machine."""

    @abstractmethod
    def now(self) -> float:
        """The start time that a process gets now; it is coarse, and rounded down."""

    @abstractmethod
    def all_processes(self) -> list[Process]:
        """All processes that can be seen."""

    @abstractmethod
    def find(self, pid: int) -> Process | None:
        """One process, or None if it is gone."""

    @abstractmethod
    def command_line(self, pid: int) -> list[str]:
        """The words of its command line; empty where it can't be read."""

    @abstractmethod
    def has_mark(self, pid: int, mark: str) -> bool:
        """Whether `NAME=value` was in the environment that it was started with."""

    @abstractmethod
    def folder(self, pid: int) -> str | None:
        """Its current folder, where that can be read."""

    @abstractmethod
    def writes_to(self, pid: int, files: frozenset[tuple[int, int]]) -> bool:
        """Whether it has one of these files (device, inode) open for writing."""


def named(table: ProcessTable, process: Process) -> tuple[int, str]:
    """The pid, and the name for messages."""
    return process.pid, title(process, table.command_line(process.pid))


def title(process: Process, words: list[str]) -> str:
    """The command line, or else the name, cut to a length that fits into a message."""
    text = " ".join(words) or process.name
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 3] + "..."


def descendants(processes: Iterable[Process], roots: Collection[int]) -> list[Process]:
    """Children of these pids, their children, and so on, without the roots themselves."""
    children: defaultdict[int, list[Process]] = defaultdict(list)
    for process in processes:
        children[process.parent].append(process)
    found: list[Process] = []
    waiting, seen = list(roots), set(roots)
    while waiting:
        for child in children[waiting.pop()]:
            if child.pid not in seen:
                seen.add(child.pid)
                found.append(child)
                waiting.append(child.pid)
    return found


def without_kept(
    members: Collection[Process], is_kept: Callable[[Process], bool], never: int
) -> list[Process]:
    """Members except for those to keep and their descendants; the pid `never` is not kept."""
    kept = {member.pid for member in members if member.pid != never and is_kept(member)}
    if not kept:
        return list(members)
    shielded = {member.pid for member in descendants(members, kept)} - {never}
    return [member for member in members if member.pid not in kept | shielded]


def is_named(process: Process, words: list[str], patterns: Iterable[str]) -> bool:
    """Whether a pattern fits the process's name, its program's name or its whole command line."""
    from fnmatch import fnmatchcase  # noqa: PLC0415 - imports `re`, and is rarely needed

    names = {process.name, " ".join(words)}
    if words:
        names.add(basename(words[0]))  # noqa: PTH119 - pathlib would cost the warden memory
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)
