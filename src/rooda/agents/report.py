"""What an agent's CLI tells of itself: answer, numbers, how it ended."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, NamedTuple


class Form(StrEnum):
    """The form in which a CLI prints, as far as its flags tell."""

    TEXT = "text"
    EVENTS = "events"  # one JSON object a line
    DOCUMENT = "document"  # one JSON value, at the end
    UNKNOWN = "unknown"  # the first line shows it


class FaultKind(StrEnum):
    """Why a CLI could not do its work."""

    LIMIT = "limit"
    OVERLOADED = "overloaded"
    OFFLINE = "offline"
    AUTH = "auth"
    CONTEXT = "context"
    USAGE = "usage"
    EMPTY = "empty"  # the model gave no answer, and the CLI says so


# An outage: the service comes back by itself.
OUTAGES = (FaultKind.OVERLOADED, FaultKind.OFFLINE)


@dataclass(frozen=True, slots=True)
class Fault:
    """A failure that the CLI itself speaks of, and the words that tell.

    `resets` is the unix time at which a limit ends, `retry_after` how many seconds are left of it
    or of an outage, where the CLI gives either as a number. `advice` is what to do about this very
    one. `words` is the whole message, where the evidence is only its beginning.
    """

    kind: FaultKind
    evidence: str
    advice: str = ""
    words: str = ""
    resets: float | None = None
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens as the CLI counts them; `total` is all that was read and written."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    total: int = 0

    def __add__(self, other: "Tokens") -> "Tokens":
        return Tokens(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def to_json(self) -> dict[str, int]:
        """Every count by its name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Tokens":
        """The counts that were written; raises KeyError, TypeError or ValueError."""
        return cls(*(int(data[field.name]) for field in fields(cls)))


class SaidKind(StrEnum):
    """What a readable line is about."""

    TEXT = "text"  # the assistant speaks
    TOOL = "tool"  # it uses a tool
    NOTE = "note"  # the CLI says something
    ERROR = "error"


class Said(NamedTuple):
    """A line that a person can read."""

    kind: SaidKind
    text: str


@dataclass(frozen=True, slots=True)
class Usage:
    """The numbers of one run of a CLI; what is unknown is None."""

    model: str | None = None
    session_id: str | None = None
    turns: int | None = None
    tokens: Tokens | None = None
    cost: float | None = None
    context_percent: int | None = None

    def to_json(self) -> dict[str, Any]:
        """As the record has it."""
        return {
            "model": self.model,
            "session_id": self.session_id,
            "turns": self.turns,
            "tokens": self.tokens and self.tokens.to_json(),
            "cost": self.cost,
        }


@dataclass(frozen=True, slots=True)
class Report:
    """What can be said of a CLI once it has ended.

    `spoken` is the end of the assistant's own text, its messages joined, where it `speaks_events`;
    else that is all it printed. `answered`: it said anything at all. `is_mute`: events were to be
    expected, and none came. `is_complete`: the last event was its result, or there are none at all.
    `ended_well` is what that result says, None where there is none. `complaint` are the words of an
    end that was not good. `retrying` is what it tried again when it was cut off.
    """

    spoken: bytes = b""
    truncated: bool = False
    speaks_events: bool = False
    answered: bool = True
    is_mute: bool = False
    is_complete: bool = True
    ended_well: bool | None = None
    complaint: str = ""
    retrying: str = ""
    fault: Fault | None = None
    usage: Usage = Usage()
