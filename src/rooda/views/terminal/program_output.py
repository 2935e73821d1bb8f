"""Listeners that write to the terminal: the output of agents and of verify, separators."""

from msgspec import Struct, field

from rooda.base.controls import one_line
from rooda.base.secrets.masking import Masker, SafeStream
from rooda.loop.events.agent import AgentSaid
from rooda.loop.events.emitter import Stamped
from rooda.loop.events.iteration import IterationEnded, IterationStarted
from rooda.loop.events.verify import CleanCheckEnded, VerifyRetried
from rooda.loop.events.work import BaselineEnded, CommandOutput, CommandStarted, VerifyEnded
from rooda.views.terminal.terminal import Terminal
from rooda.world.process.events import Output

_SEPARATOR = "=" * 24


class AgentOutput(Struct):
    """A listener that streams what the agent prints, and what `verify` prints."""

    terminal: Terminal
    to_stderr: bool
    masker: Masker = field(default_factory=Masker)
    streams: dict[str, SafeStream] = field(default_factory=dict)
    is_read: bool = False  # standard output has events; `AgentSaid` has the readable lines

    def __call__(self, stamped: Stamped) -> None:
        """Show output at once, and at the end what was held back."""
        event = stamped.event
        match event:
            case IterationStarted():
                self.is_read = event.is_read
            case Output():
                if not (self.is_read and event.stream == "stdout"):
                    self._stream(event.stream, event.data)
            case AgentSaid() if self.is_read:
                self._stream("events", f"{event.readable()}\n".encode("utf-8", "replace"))
            case CommandStarted() if event.what == "verify":
                self._finish()
                line = f"[verify] {one_line(event.command)}"
                self.terminal.between(line, to_stderr=self.to_stderr)
            case CommandOutput():
                self._stream(event.stream, event.data)
            case IterationEnded():
                self._finish()
            case VerifyEnded() | VerifyRetried() | BaselineEnded() | CleanCheckEnded():
                self._finish()
                self.terminal.end_output()
            case _:
                pass

    def _stream(self, stream: str, data: bytes) -> None:
        if stream not in self.streams:
            self.streams[stream] = self.masker.cleaner()
        self._show(self.streams[stream].feed(data))

    def _finish(self) -> None:
        """Show what was held back: the program has ended."""
        for stream in self.streams.values():
            self._show(stream.finish())
        self.streams.clear()

    def _show(self, words: str) -> None:
        self.terminal.agent(words, to_stderr=self.to_stderr)


class Separators(Struct, frozen=True):
    """A listener that draws a line after each iteration."""

    terminal: Terminal

    def __call__(self, stamped: Stamped) -> None:
        """Draw the line with the number of the iteration that ended."""
        event = stamped.event
        if isinstance(event, IterationEnded):
            self.terminal.log(f"\n\n{_SEPARATOR} LOOP {event.facts.number} {_SEPARATOR}\n\n")
