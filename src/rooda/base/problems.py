"""Problems with the input. rooda collects them and reports all at once."""

from collections.abc import Iterable, Sequence
from enum import StrEnum

from msgspec import Struct

from rooda.base.controls import one_line
from rooda.base.origin import Origin, Tier

CONFIG_TITLE = "Config validation failed"


class Severity(StrEnum):
    """An error prevents the run, a warning does not."""

    ERROR = "error"
    WARNING = "warning"


class Problem(Struct, frozen=True):
    """One thing to change, and where it is."""

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
        """Return a problem at the origin of a value; only files have lines."""
        in_file = origin.tier in (Tier.WORKSPACE, Tier.GLOBAL)
        file = origin.source if in_file else ""
        return cls(message, suggestion, file, origin.line, field, severity, title)

    @property
    def place(self) -> str:
        """The place as `file:line: field`, without the parts that are unknown."""
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
    """Return the problems that prevent a run."""
    return [p for p in problems if p.severity is Severity.ERROR]


def warnings(problems: Iterable[Problem]) -> list[Problem]:
    """Return the problems that do not prevent a run."""
    return [p for p in problems if p.severity is Severity.WARNING]


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """Return the problems by file and line; those without a file come last."""
    return sorted(problems, key=lambda p: (not p.file, p.file, p.line or 0))


class InvalidInput(Exception):
    """The input can't be used; carries every problem that was found."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(p.message for p in problems))
        self.problems = tuple(problems)
