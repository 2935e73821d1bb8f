"""The report of a CLI about itself: the answer, usage, the result, a failure."""

import operator
from enum import StrEnum
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import asdict, astuple

from rooda.world.agents.failure_kinds import FailureKind


class Form(StrEnum):
    """The form of a CLI's output according to its flags."""

    TEXT = "text"
    EVENTS = "events"  # one JSON object per line
    DOCUMENT = "document"  # one JSON value at the end
    UNKNOWN = "unknown"  # to be detected from the first line of output


class Fault(Struct, frozen=True):
    """A failure that the CLI itself reports.

    `evidence` is the beginning of the message on one line, `words` is the whole message.
    `advice` overrides the general advice for this kind of failure.
    `resets` is the unix time at which a limit ends, and `retry_after` the remaining seconds of a
    limit or an outage, if the CLI gives them as numbers.
    """

    kind: FailureKind
    evidence: str
    advice: str = ""
    words: str = ""
    resets: float | None = None
    retry_after: float | None = None


class Tokens(Struct, frozen=True):
    """Tokens as the CLI counts them."""

    input: int = 0  # read by the model
    output: int = 0  # written by the model
    cache_read: int = 0  # read from the cache
    cache_write: int = 0  # written to the cache
    reasoning: int = 0  # written by the model while it was thinking
    total: int = 0  # everything that the model read and wrote

    def __add__(self, other: "Tokens") -> "Tokens":
        return Tokens(*map(operator.add, astuple(self), astuple(other)))


class SaidKind(StrEnum):
    """The kind of a readable line."""

    TEXT = "text"  # text of the assistant
    TOOL = "tool"  # the assistant's use of a tool
    NOTE = "note"  # a message of the CLI
    ERROR = "error"


class Said(NamedTuple):
    """A readable line."""

    kind: SaidKind
    text: str


class SessionFacts(Struct, frozen=True):
    """What a CLI reports about one run of it, and the record keeps; unknown values are None."""

    model: str | None = None  # the name of the model
    session_id: str | None = None  # the id of the CLI's session
    turns: int | None = None  # requests to the model
    tokens: Tokens | None = None  # what the model read and wrote
    cost: float | None = None  # US dollars
    messages: int | None = None  # texts that the assistant wrote

    @property
    def session(self) -> dict[str, Any]:
        """These facts alone, by their names."""
        return {name: getattr(self, name) for name in SessionFacts.__struct_fields__}


class Usage(SessionFacts, frozen=True):
    """The usage of one run of a CLI; unknown values are None."""

    context_percent: int | None = None  # how full the model's context is

    def to_json(self) -> dict[str, Any]:
        """Return the values that are stored in the record."""
        return {
            "model": self.model,
            "session_id": self.session_id,
            "turns": self.turns,
            "messages": self.messages,
            "tokens": self.tokens and asdict(self.tokens),
            "cost": self.cost,
        }


class AgentReport(Struct, frozen=True):
    """The report about a CLI after its end.

    `speaks_events`: the output has events; then `spoken` is the end of the assistant's text, with
    its messages joined, and `closing` is the beginning of the last message. Otherwise the whole
    output is the assistant's text. `truncated`: the beginning of `spoken` is missing. `answered`:
    the assistant's text is not empty. `is_mute`: the flags ask for events, but none was printed.
    `is_complete`: the last event is a result, or there are no events. `ended_well`: the verdict of
    that result, or None without one. `complaint`: the message of a bad result. `retrying`: the
    request that the CLI was retrying when it was stopped.
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
    closing: str = ""
