"""Listeners that write to the terminal: the agent's output, separators."""

from msgspec import Struct, field

from rooda.loop.agent_events import AgentSaid
from rooda.loop.emitter import Stamped
from rooda.loop.iteration_events import IterationEnded, IterationStarted
from rooda.process.events import Output
from rooda.text.controls import StreamCleaner
from rooda.views.terminal import Terminal

_SEPARATOR = "=" * 24


class AgentOutput(Struct):
    """A listener that streams what the agent prints."""

    terminal: Terminal
    to_stderr: bool
    cleaners: dict[str, StreamCleaner] = field(default_factory=dict)
    is_read: bool = False  # standard output has events; `AgentSaid` has the readable lines

    def __call__(self, stamped: Stamped) -> None:
        """Show output at once, and at the end of an iteration what the cleaner held back."""
        event = stamped.event
        if isinstance(event, IterationStarted):
            self.is_read = event.is_read
        elif isinstance(event, Output) and not (self.is_read and event.stream == "stdout"):
            cleaner = self.cleaners.setdefault(event.stream, StreamCleaner())
            self.terminal.agent(cleaner.feed(event.data), to_stderr=self.to_stderr)
        elif isinstance(event, AgentSaid) and self.is_read:
            self.terminal.agent(f"{event.readable()}\n", to_stderr=self.to_stderr)
        elif isinstance(event, IterationEnded):
            for cleaner in self.cleaners.values():
                self.terminal.agent(cleaner.finish(), to_stderr=self.to_stderr)
            self.cleaners.clear()


class Separators(Struct, frozen=True):
    """A listener that draws a line after each iteration."""

    terminal: Terminal

    def __call__(self, stamped: Stamped) -> None:
        """Draw the line with the number of the iteration that ended."""
        event = stamped.event
        if isinstance(event, IterationEnded):
            self.terminal.log(f"\n\n{_SEPARATOR} LOOP {event.iteration} {_SEPARATOR}\n\n")
