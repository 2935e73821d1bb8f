"""What a look has found: a mark, a sentence, and how to mend it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum


class Mark(StrEnum):
    """How a thing stands, best first."""

    OK = "ok"
    ABSENT = "absent"  # not there, and nobody asks for it
    UNKNOWN = "unknown"
    WARNING = "warning"
    PROBLEM = "problem"


_IN_ORDER = tuple(Mark)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; `topic` is its name for programs."""

    topic: str
    mark: Mark
    text: str
    advice: str = ""

    def to_json(self) -> dict[str, str]:
        """For programs."""
        return {
            "topic": self.topic,
            "mark": str(self.mark),
            "text": self.text,
            "advice": self.advice,
        }


def worst(findings: Iterable[Finding]) -> Mark:
    """The mark of them all together."""
    return max((one.mark for one in findings), key=_IN_ORDER.index, default=Mark.OK)


def is_broken(findings: Iterable[Finding]) -> bool:
    """Whether one of them is a problem."""
    return worst(findings) is Mark.PROBLEM


def softened(findings: Iterable[Finding]) -> list[Finding]:
    """The same of something that nobody has chosen: what is wrong with it breaks nothing."""
    return [
        replace(one, mark=Mark.WARNING) if one.mark is Mark.PROBLEM else one for one in findings
    ]
