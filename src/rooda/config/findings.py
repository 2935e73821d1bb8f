"""What is wrong with one config file, as it is found: each with its line and its field."""

from collections.abc import Iterable

from msgspec import Struct

from rooda.config.problems import Problem
from rooda.config.settings import BY_KEY, SECTIONS
from rooda.text.lookup import did_you_mean, near_miss


class Findings(Struct, frozen=True):
    """Collects the problems of a file that messages call `file`."""

    file: str
    problems: list[Problem]

    def problem(self, message: str, suggestion: str, line: int, field: str) -> None:
        """Something is wrong here."""
        self.problems.append(Problem(message, suggestion, file=self.file, line=line, field=field))

    def unknown(self, key: str, line: int, field: str, known: Iterable[str]) -> None:
        """A key that rooda does not know is an error: a misspelled budget would hold nothing."""
        self.problem(
            f"unknown key {key.rpartition('.')[2]!r}",
            _advice(key, list(known))
            or "Remove it, or see `rooda config schema` for the keys there are",
            line,
            f"{field}.{key}" if field else key,
        )


def _advice(key: str, known: list[str]) -> str:
    """What was most likely meant; `key` has its section in front."""
    section, dot, name = key.partition(".")
    if key in BY_KEY and dot:
        return f"Write `{section}:` and `{name}:` below it"
    if key in BY_KEY or key in SECTIONS:
        return "It belongs below `loop`"
    # Without the section, which would make all of its keys look alike.
    inner = [one.partition(".")[2] for one in known if dot and one.startswith(f"{section}.")]
    if guess := near_miss(name, inner):
        return f"Did you mean '{section}.{guess}'?"
    if not inner and (advice := did_you_mean(key, known)):
        return advice
    elsewhere = near_miss(name if inner else key, BY_KEY)
    return f"Did you mean 'loop.{elsewhere}'?" if elsewhere else ""
