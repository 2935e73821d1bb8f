"""What is wrong with the input: collected, so that all of it can be said at once."""

from collections.abc import Iterable, Sequence
from enum import StrEnum

from msgspec import Struct

from rooda.config.origin import Origin, Tier
from rooda.text.controls import one_line

CONFIG_TITLE = "Config validation failed"


class Severity(StrEnum):
    """Errors end the run before it starts; warnings don't."""

    ERROR = "error"
    WARNING = "warning"


class Problem(Struct, frozen=True):
    """One thing to change, and where (seed 004's ValidationError)."""

    message: str
    suggestion: str = ""
    file: str = ""
    line: int | None = None
    field: str = ""
    severity: Severity = Severity.ERROR
    title: str = CONFIG_TITLE

    @classmethod
    def at(
        cls,
        origin: Origin,
        field: str,
        message: str,
        suggestion: str,
        severity: Severity = Severity.ERROR,
        title: str = CONFIG_TITLE,
    ) -> "Problem":
        """A problem with a value, where the value came from; only files have lines."""
        in_file = origin.tier in (Tier.WORKSPACE, Tier.GLOBAL)
        file = origin.source if in_file else ""
        return cls(message, suggestion, file, origin.line, field, severity, title)

    @property
    def place(self) -> str:
        """`file:line: field`, as far as known."""
        where = f"{self.file}:{self.line}" if self.file and self.line else self.file
        return ": ".join(word for word in (where, self.field) if word)


_SEVERITY_WORDS = {Severity.ERROR: "Error", Severity.WARNING: "Warning"}


def problems_text(problems: Iterable[Problem]) -> str:
    """Return the problems for people: `Error: file:12: field: message`, and the advice below it."""
    lines = []
    for problem in problems:
        place = f"{problem.place}: " if problem.place else ""
        words = one_line(place + problem.message)
        lines.append(f"{_SEVERITY_WORDS[problem.severity]}: {words}\n")
        if problem.suggestion:
            lines.append(f"  {one_line(problem.suggestion)}\n")
    return "".join(lines)


def errors(problems: Iterable[Problem]) -> list[Problem]:
    """The problems that forbid a run."""
    return [p for p in problems if p.severity is Severity.ERROR]


def warnings(problems: Iterable[Problem]) -> list[Problem]:
    """The problems that a run can live with."""
    return [p for p in problems if p.severity is Severity.WARNING]


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """By file and line; what stands in no file comes last."""
    return sorted(problems, key=lambda p: (not p.file, p.file, p.line or 0))


class InvalidInput(Exception):  # noqa: N818 - it is the input that is wrong
    """The input can't be used; carries every problem that was found."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(p.message for p in problems))
        self.problems = tuple(problems)
