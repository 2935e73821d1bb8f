"""Any command that we know nothing of: text, and what seed 000's matrix makes of it."""

from collections.abc import Sequence

from rooda.agents.adapter import Facts, Printed
from rooda.agents.notes import Notes
from rooda.agents.report import Fault, Form, Usage
from rooda.agents.values import Event


class Plain:
    """Text on either stream. It is never said to have failed but by its exit and its signals."""

    name = "text"
    facts = Facts(install="", otherwise="whatever it was set up with", speaks_on_stderr=True)

    def form(self, words: Sequence[str]) -> Form:  # noqa: ARG002 - one form for all
        """There is no other."""
        return Form.TEXT

    def read(self, event: Event, notes: Notes) -> None:
        """There are no events."""

    def text_usage(self, printed: Printed) -> Usage:  # noqa: ARG002 - one form for all
        """As text it tells none."""
        return Usage()

    def last_words(self, printed: Printed) -> Fault | None:  # noqa: ARG002 - one form for all
        """Nobody knows whose words these are."""
        return None
