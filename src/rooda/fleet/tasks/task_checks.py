"""Checks of several tasks together: their names, and what they wait for. Pure."""

import hashlib
import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from msgspec import Struct

from rooda.base.lookup import did_you_mean
from rooda.base.problems import Problem
from rooda.base.secrets.token_formats import without_tokens
from rooda.fleet.run_model import FleetTask
from rooda.record.run_names import wrong_name

# Names of runs, from the words of the user: safe parts of branches, refs and folders. Pure.


_LONGEST = 48  # characters; a longer title is cut between words
_OTHERS = re.compile(r"[^a-z0-9._]+")
_DOTS = re.compile(r"\.{2,}")


def run_name(title: str) -> str:
    """Return the name of the run for a title: `Add a login page` becomes `add-a-login-page`.

    Words in letters that have no counterpart from a to z become `task-` and a number of their own.
    So does a word that means something else to rooda or git: `last` becomes `task-last`.
    """
    shown = without_tokens(title)  # the name is published, as that of a branch
    plain = unicodedata.normalize("NFKD", shown.casefold()).encode("ascii", "ignore").decode()
    name = _shortened(_DOTS.sub(".", _OTHERS.sub("-", plain.lower())).strip("-._"))
    if not name:
        return f"task-{hashlib.sha256(title.encode('utf-8', 'replace')).hexdigest()[:8]}"
    if name.endswith(".lock"):  # git refuses a branch with this end
        return f"{name.removesuffix('.lock')}-lock"
    return f"task-{name}" if wrong_name(name) else name


def is_run_name(text: str) -> bool:
    """Return whether the text can be the name of a run."""
    return not wrong_name(text) and text == text.lower()


def _shortened(name: str) -> str:
    if len(name) <= _LONGEST:
        return name
    cut = name[: _LONGEST + 1]
    words = cut.rpartition("-")[0]
    return (words if len(words) > _LONGEST // 2 else cut[:_LONGEST]).strip("-._")


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
