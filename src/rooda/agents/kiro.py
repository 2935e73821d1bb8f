"""Kiro CLI (`kiro-cli chat`)."""

from collections.abc import Sequence

from rooda.agents.adapter import Facts, Printed
from rooda.agents.endings import fault_in, is_complaint, last_line
from rooda.agents.notes import Notes
from rooda.agents.report import Fault, FaultKind, Form, Usage
from rooda.agents.values import Event


class Kiro:
    """Kiro CLI. It prints text alone, on either stream."""

    name = "kiro-cli"
    facts = Facts(
        install="see Kiro's documentation of its CLI",
        payers={"KIRO_API_KEY": "the account of the API key"},
        otherwise="the account that `kiro-cli login` chose",
        speaks_on_stderr=True,
        advice={FaultKind.AUTH: "Run `kiro-cli login`"},
    )

    def form(self, words: Sequence[str]) -> Form:  # noqa: ARG002 - one form for all
        """It has no other."""
        return Form.TEXT

    def read(self, event: Event, notes: Notes) -> None:
        """It prints no events."""

    def text_usage(self, printed: Printed) -> Usage:  # noqa: ARG002 - one form for all
        """As text it tells none."""
        return Usage()

    def last_words(self, printed: Printed) -> Fault | None:
        """Its errors are on standard error, as is what the assistant says: the last line counts."""
        line = last_line(printed.stderr)
        return fault_in(line) if printed.failed and is_complaint(line) else None
