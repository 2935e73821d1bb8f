"""What is wrong with one config file, as it is found: each with its line and its field."""

from collections.abc import Iterable
from dataclasses import dataclass

from rooda.config.problems import Problem, Severity
from rooda.config.settings import BY_KEY
from rooda.text.nearmiss import did_you_mean, near_miss


@dataclass(frozen=True, slots=True)
class Findings:
    """Collects the problems of a file that messages call `file`."""

    file: str
    problems: list[Problem]

    def problem(
        self,
        message: str,
        suggestion: str,
        line: int,
        field: str,
        severity: Severity = Severity.ERROR,
    ) -> None:
        """Something is wrong here."""
        self.problems.append(
            Problem(message, suggestion, file=self.file, line=line, field=field, severity=severity)
        )

    def unknown(self, key: str, line: int, field: str, known: Iterable[str]) -> None:
        """A key that nobody knows is a warning, with a guess at what was meant."""
        name = key.rpartition(".")[2]
        outer, dot, inner = key.partition(".")
        if key in BY_KEY and dot:
            suggestion = f"Write `{outer}:` and `{inner}:` below it"
        elif key in BY_KEY:
            suggestion = "It belongs below `loop`"
        elif not (suggestion := did_you_mean(key, known)) and (elsewhere := near_miss(key, BY_KEY)):
            suggestion = f"Did you mean 'loop.{elsewhere}'?"
        self.problem(
            f"unknown key {name!r}",
            suggestion or "Remove it, or see `rooda config schema` for the keys there are",
            line,
            f"{field}.{key}" if field else key,
            Severity.WARNING,
        )
