"""Findings: a mark, a sentence and advice. Findings never contain the values of secrets."""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from rooda.base.controls import one_line
from rooda.base.secrets.masking import Masker
from rooda.base.secrets.sensitive import HIDDEN, without_secret_values

_ASSIGNMENT = re.compile(r"\A([A-Za-z_][A-Za-z0-9_]*)=.+", re.DOTALL)


class Mark(StrEnum):
    """The result of a check, best first."""

    OK = "ok"
    ABSENT = "absent"  # not installed, and not chosen by the configuration
    UNKNOWN = "unknown"
    WARNING = "warning"
    PROBLEM = "problem"


_IN_ORDER = tuple(Mark)


class Finding(Struct, frozen=True):
    """The result of one check; `topic` is the name of the check in the JSON output."""

    topic: str
    mark: Mark
    text: str
    advice: str = ""

    def to_json(self) -> dict[str, str]:
        """Return the fields by name."""
        return {
            "topic": self.topic,
            "mark": str(self.mark),
            "text": self.text,
            "advice": self.advice,
        }


def worst(findings: Iterable[Finding]) -> Mark:
    """Return the worst mark, or OK without findings."""
    return max((one.mark for one in findings), key=_IN_ORDER.index, default=Mark.OK)


def has_problem(findings: Iterable[Finding]) -> bool:
    """Return whether one of the findings is a problem."""
    return worst(findings) is Mark.PROBLEM


def as_warnings(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings with problems turned into warnings.

    Used for agents that the configuration does not choose, because they cannot break a run.
    """
    return [
        replace(one, mark=Mark.WARNING) if one.mark is Mark.PROBLEM else one for one in findings
    ]


# -- secrets ---------------------------------------------------------------------------------


def shown_command(words: Sequence[str]) -> str:
    """Return a command line on one line, without the values of variables and secrets."""
    shown = (_ASSIGNMENT.sub(rf"\1={HIDDEN}", word) for word in words)
    return one_line(without_secret_values(shlex.join(shown)))


def without_secrets(text: str, environ: Mapping[str, str]) -> str:
    """Return the text of a program on one line, without the values of secret variables."""
    return Masker(environ).text(one_line(text))
