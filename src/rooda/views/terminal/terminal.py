"""The terminal: output that never blocks for long, and the live line.

A terminal that was stopped with Ctrl+S, or a pager that the user does not scroll, must not stop a
night's work: after a while without progress a sink drops the rest, and says so when there is room
again.
"""

import errno
import os
import select
import stat
import time
from collections.abc import Callable

from msgspec import Struct, field

from rooda.base.controls import one_line
from rooda.base.secrets.masking import Masker, SafeStream
from rooda.base.widths import width
from rooda.loop.events.agent import AgentSaid
from rooda.loop.events.emitter import Stamped
from rooda.loop.events.iteration import IterationEnded, IterationStarted
from rooda.loop.events.verify import CleanCheckEnded, VerifyRetried
from rooda.loop.events.work import BaselineEnded, CommandOutput, CommandStarted, VerifyEnded
from rooda.world.process.events import Output

PATIENCE = 2.0
HURRIED_PATIENCE = 0.3  # after Ctrl+C: enough for a slow reader to get the last words
_SLICE = 0.1
# A terminal that polls as writable takes so many bytes without blocking.
_TERMINAL_CHUNK = 256
_CLEAR = "\r\x1b[2K"
_CLEAR_BELOW = "\r\x1b[J"


def _unblocked(fd: int) -> int:
    """Return the terminal, opened again: the shell's descriptor must not become non-blocking."""
    try:
        return os.open(os.ttyname(fd), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return fd


class Sink:
    """An output that never blocks for long and never raises."""

    def __init__(self, fd: int, hurried: Callable[[], bool] = lambda: False) -> None:
        self.fd = fd
        self.is_terminal = os.isatty(fd)
        self._hurried = hurried
        self._closed = False
        self._stalled = False
        self._dropped = 0
        self._lost = 0  # to a full disk
        if self.is_terminal:
            fd = self.fd = _unblocked(fd)
        self._chunk = _TERMINAL_CHUNK if self.is_terminal else select.PIPE_BUF
        try:
            mode = os.fstat(fd).st_mode
            self._may_block = not stat.S_ISREG(mode)
        except OSError:
            self._closed = True
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)

    @property
    def missing(self) -> int:
        """Bytes that were dropped or lost, and that no notice has counted yet."""
        return self._dropped + self._lost

    def write(self, text: str) -> None:
        """Write the text, or as much of it as can be written."""
        if self._closed or not text:
            return
        if self._dropped and self._writable(0):
            notice = f"\n[{self._dropped:,} bytes not shown: nothing read them]\n"
            self._dropped = 0
            self._stalled = False
            self._put(notice.encode())
        self._put(text.encode("utf-8", "replace"))

    def _put(self, data: bytes) -> None:
        rest = memoryview(data)
        began = time.monotonic()
        while rest and not self._closed:
            if self._may_block and not self._wait():
                self._dropped += len(rest)
                return
            try:
                written = os.write(self.fd, rest[: self._chunk] if self._may_block else rest)
            except BlockingIOError:
                # The descriptor polls as writable, but has no room for this piece.
                if self._stalled or time.monotonic() - began > self._patience():
                    self._stalled = True
                    self._dropped += len(rest)
                    return
                time.sleep(_SLICE / 10)
                continue
            except OSError as error:
                # The run goes on if the reader has left or the disk is full.
                self._closed = error.errno != errno.ENOSPC
                self._lost += 0 if self._closed else len(rest)
                return
            rest = rest[written:]

    def _wait(self) -> bool:
        """Wait for room, but not for long, and not at all if the last wait was in vain."""
        if self._writable(0):
            self._stalled = False
            return True
        began = time.monotonic()
        while not self._stalled and time.monotonic() - began < self._patience():
            if self._writable(_SLICE):
                return True
        self._stalled = True
        return False

    def _patience(self) -> float:
        return HURRIED_PATIENCE if self._hurried() else PATIENCE

    def _writable(self, seconds: float) -> bool:
        return bool(self._poll.poll(seconds * 1000))


class Terminal:
    """Keeps log lines, the agent's output and the live line apart."""

    def __init__(self, out: Sink, err: Sink) -> None:
        self._out = out
        self._err = err
        self._status = ""
        self._mid_line: Sink | None = None
        self._is_shared = _is_same_file(out, err)

    @property
    def width(self) -> int:
        """Columns of the terminal that the live line is drawn on."""
        try:
            return os.get_terminal_size(self._err.fd).columns or 80
        except OSError:
            return 80

    def log(self, text: str) -> None:
        """Write log lines."""
        self.hide_status()
        self.end_line()
        self._err.write(text)

    def agent(self, text: str, *, to_stderr: bool) -> None:
        """Write what the agent printed."""
        if not text:
            return
        self.hide_status()
        sink = self._err if to_stderr else self._out
        sink.write(text)
        self._mid_line = None if text.endswith("\n") else sink

    def between(self, line: str, *, to_stderr: bool) -> None:
        """Write a line of rooda between the output of two programs."""
        self.end_output()
        self.agent(f"{line}\n", to_stderr=to_stderr)

    def end_output(self) -> None:
        """End a half line, wherever it was written: the output of another program follows it."""
        if self._mid_line is not None:
            self.hide_status()
            self._mid_line.write("\n")
            self._mid_line = None

    def end_line(self) -> None:
        """End a half line of the agent where a log line follows it: on a terminal, after `2>&1`."""
        half = self._mid_line
        if half is not None and (half.is_terminal or half is self._err or self._is_shared):
            half.write("\n")
        self._mid_line = None

    def show_status(self, line: str) -> None:
        """Draw the live line, or several of them, in place of those before."""
        if self._mid_line is not None or not self._is_ours():
            return
        self.hide_status()
        self._status = line
        self._err.write(line)

    def hide_status(self) -> None:
        """Remove the live lines; one has several rows if the terminal has become narrower."""
        if self._status:
            wide = max(1, self.width)
            lines = self._status.split("\n")
            rows = sum(1 + max(0, width(line) - 1) // wide for line in lines) - 1
            self._status = ""
            self._err.write(f"\x1b[{rows}A{_CLEAR_BELOW}" if rows else _CLEAR)

    def close(self) -> None:
        """Remove the live line, and report how much of the agent's output was not shown."""
        self.hide_status()
        if self._out.missing:
            self.log(f"[{self._out.missing:,} bytes of the agent's output were not shown]\n")

    def _is_ours(self) -> bool:
        """Whether rooda is in the foreground; else it would draw over what the user types."""
        try:
            return os.tcgetpgrp(self._err.fd) == os.getpgrp()
        except OSError:
            return True


def _is_same_file(one: Sink, other: Sink) -> bool:
    """Return whether both write to the same file or pipe."""
    try:
        return os.path.samestat(os.fstat(one.fd), os.fstat(other.fd))
    except OSError:
        return False


# Listeners that write to the terminal: the output of agents and of verify, separators.


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
