"""Problems with the input. rooda collects them and reports all at once."""

from collections.abc import Iterable, Sequence
from enum import IntEnum, StrEnum
from pathlib import Path

from msgspec import Struct

from rooda.base.controls import one_line

# Where a value came from.


class Tier(IntEnum):
    """The layers of configuration, weakest first, so that they can be compared."""

    BUILTIN = 0
    PRESET = 1
    GLOBAL = 2
    WORKSPACE = 3
    ENVIRONMENT = 4
    CLI = 5

    @property
    def label(self) -> str:
        """The tier's name as users see it."""
        return _LABELS[self]


_LABELS = {
    Tier.BUILTIN: "built-in",
    Tier.PRESET: "preset",
    Tier.GLOBAL: "global",
    Tier.WORKSPACE: "workspace",
    Tier.ENVIRONMENT: "env",
    Tier.CLI: "cli",
}


class Origin(Struct, frozen=True):
    """A tier and what the value is called there: a file, a variable, a flag, a preset.

    `tree` is the work tree that the file belongs to, if others than the user write that file.
    `note` says why another value does not count.
    """

    tier: Tier
    source: str = ""
    line: int | None = None
    tree: Path | None = None
    note: str = ""

    def __str__(self) -> str:
        """Return tier and source, as the dry run shows them: `workspace: ./rooda-config.yml`."""
        return self._with_note(self._place)

    @property
    def exact(self) -> str:
        """The same with the line: `workspace: ./rooda-config.yml:12`."""
        return self._with_note(f"{self._place}:{self.line}" if self.line else self._place)

    @property
    def _place(self) -> str:
        if not self.source:
            return self.tier.label
        is_bare_file = self.line is not None and not self.source.startswith(("/", "~", "."))
        return f"{self.tier.label}: {'./' if is_bare_file else ''}{self.source}"

    def _with_note(self, place: str) -> str:
        return f"{place}; {self.note}" if self.note else place


BUILTIN = Origin(Tier.BUILTIN)


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
