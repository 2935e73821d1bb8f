"""Which agent CLI a command line starts."""

from collections.abc import Sequence
from dataclasses import dataclass

from rooda.agents.adapter import Adapter
from rooda.agents.flags import flag_value
from rooda.agents.launching import program_name
from rooda.agents.registry import ADAPTERS, KNOWN, PLAIN
from rooda.agents.report import Form


@dataclass(frozen=True, slots=True)
class Program:
    """The CLI that is started, the form of its output, and the model that was asked for."""

    adapter: Adapter
    form: Form
    model: str | None = None

    @property
    def is_known(self) -> bool:
        """Whether we know more of it than that it is a command."""
        return self.adapter is not PLAIN

    @property
    def prints_events(self) -> bool:
        """Whether its standard output is not for people, as far as anybody can tell."""
        return self.is_known and self.form is not Form.TEXT


def program_of(words: Sequence[str], adapter: str | None = None) -> Program:
    """By the name of the adapter where one is given, else by the name of the program."""
    name = program_name(words)
    chosen = ADAPTERS[adapter] if adapter is not None else KNOWN.get(name, PLAIN)
    if chosen is PLAIN:
        return Program(PLAIN, Form.TEXT)
    # Flags of a program that we don't know may mean anything: its first line shows the form.
    form = chosen.form(words) if name == chosen.name else Form.UNKNOWN
    model = flag_value(words, "--model", "-m") if name == chosen.name else None
    return Program(chosen, form, model)
