"""The `LOOP n` separators of rooda v1."""

from msgspec import Struct

from rooda.loop.emitter import Stamped
from rooda.loop.iteration_events import IterationEnded
from rooda.views.terminal import Terminal

_LINE = "=" * 24


class Separators(Struct, frozen=True):
    """A listener that draws a line after each iteration."""

    terminal: Terminal

    def __call__(self, stamped: Stamped) -> None:
        """Draw the line with the number of the iteration that ended."""
        event = stamped.event
        if isinstance(event, IterationEnded):
            self.terminal.log(f"\n\n{_LINE} LOOP {event.iteration} {_LINE}\n\n")
