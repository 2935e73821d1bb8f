"""What an adapter is: all that we know of one agent CLI."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from rooda.agents.notes import Notes
from rooda.agents.report import Fault, FaultKind, Form, Usage
from rooda.agents.values import Event


@dataclass(frozen=True, slots=True)
class Printed:
    """The end of what a CLI printed on each stream, as text without control codes.

    `beginning` is the start of standard error. `failed`: it did not exit with 0.
    """

    stdout: str
    stderr: str
    beginning: str
    failed: bool
    form: Form


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a CLI beside its output.

    `nesting` are variables by which it sees that it runs inside of another agent, and may refuse.
    `payers` are variables that decide which account pays, and what each means. `tells_cost`: its
    output has dollars. `speaks_on_stderr`: what the assistant says may be there too.
    """

    install: str
    nesting: tuple[str, ...] = ()
    payers: Mapping[str, str] = field(default_factory=dict)
    otherwise: str = "its own login"
    tells_cost: bool = False
    speaks_on_stderr: bool = False
    advice: Mapping[FaultKind, str] = field(default_factory=dict)


class Adapter(Protocol):
    """One agent CLI: its name (of alias, program and adapter), and what is known of it.

    Each says what is different about it; as it stands here it prints text, and tells nothing.
    """

    name: ClassVar[str]
    facts: ClassVar[Facts]

    def form(self, words: Sequence[str]) -> Form:  # noqa: ARG002 - others look at them
        """The form of its output, by the flags of a command line."""
        return Form.TEXT

    def read(self, event: Event, notes: Notes) -> None:  # noqa: ARG002 - others look at it
        """Take note of what an event tells."""
        return  # else it would count as abstract

    def text_usage(self, printed: Printed) -> Usage:  # noqa: ARG002 - others look at it
        """The numbers that it tells as text, around what the assistant says."""
        return Usage()

    def last_words(self, printed: Printed) -> Fault | None:  # noqa: ARG002 - others look at it
        """The failure that it speaks of outside of its events: on standard error, or as text."""
        return None
