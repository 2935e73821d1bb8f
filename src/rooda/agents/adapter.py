"""What an adapter is: all that we know of one agent CLI."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

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
    """One agent CLI."""

    @property
    def name(self) -> str:
        """Its name: of the alias, of the program, of the adapter."""

    @property
    def facts(self) -> Facts:
        """What is known of it beside its output."""

    def form(self, words: Sequence[str]) -> Form:
        """The form of its output, by the flags of a command line."""

    def read(self, event: Event, notes: Notes) -> None:
        """Take note of what an event tells."""

    def text_usage(self, printed: Printed) -> Usage:
        """The numbers that it tells as text, around what the assistant says."""

    def last_words(self, printed: Printed) -> Fault | None:
        """The failure that it speaks of outside of its events: on standard error, or as text."""
