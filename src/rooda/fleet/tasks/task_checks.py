"""Checks of several tasks together: their names, and what they wait for. Pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from msgspec import Struct

from rooda.base.lookup import did_you_mean
from rooda.base.problems import Problem
from rooda.fleet.run_model import FleetTask


class Placed(Struct, frozen=True):
    """A task, and where the user wrote it; `lines` are those of its keys."""

    task: FleetTask
    file: str
    line: int | None = None
    lines: Mapping[str, int] = {}

    @property
    def place(self) -> str:
        """The place in words."""
        return f"{self.file}:{self.line}" if self.line else self.file

    def problem(self, message: str, advice: str, key: str = "") -> Problem:
        """Return a problem with the task, or with one of its keys."""
        return Problem(message, advice, self.file, self.lines.get(key, self.line), key)


def check_names(placed: Sequence[Placed], known: Mapping[str, str]) -> Iterator[Problem]:
    """Yield a problem for each task without a name, or with that of another one or of a run.

    `known` are the texts of the runs by their names. A task with the name and the text of a run is
    that run.
    """
    first: dict[str, Placed] = {}
    for one in placed:
        name = one.task.name
        if not one.task.title:
            yield one.problem("the heading is empty", "Write the name of the task into it")
        elif name in first:
            message = f"a second task has the name {name!r} (the first: {first[name].place})"
            yield one.problem(message, "Give one of the two another name")
        elif name in known and not _is_same(known[name], one.task.text):
            yield one.problem(
                f"the project has a run {name!r} already, with another text",
                f"Give the task another name, or remove the run: rooda fleet forget {name}",
            )
        first.setdefault(name, one)


def _is_same(known: str, text: str) -> bool:
    """Return whether a run has this text; that of `--context` may be before it."""
    return known == text or known.endswith(f"\n\n{text}")


def check_order(placed: Sequence[Placed], known: Collection[str]) -> Iterator[Problem]:
    """Yield a problem for each name in `after` that is unknown, and one for a circle."""
    names = {one.task.name for one in placed}
    for one in placed:
        for other in one.task.after:
            if other not in names and other not in known:
                yield one.problem(
                    f"waits for {other!r}, and there is no such task",
                    did_you_mean(other, [*names, *known]) or "Correct the name",
                    "after",
                )
    waits = {one.task.name: [name for name in one.task.after if name in names] for one in placed}
    try:
        TopologicalSorter(waits).prepare()
    except CycleError as error:
        circle = list(reversed(error.args[1]))
        at = next(one for one in placed if one.task.name == circle[0])
        words = " waits for ".join(circle)
        yield at.problem(f"no task can start first: {words}", "Remove one of them", "after")
