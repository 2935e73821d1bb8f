"""Standard output and error of one run, and the live line that shares the screen with them."""

import os

from rooda.views.sink import Sink

_CLEAR = "\r\x1b[2K"
_CLEAR_BELOW = "\r\x1b[J"


class Terminal:
    """Keeps log lines, the agent's output and the live line apart."""

    def __init__(self, out: Sink, err: Sink) -> None:
        self._out = out
        self._err = err
        self._status = ""
        self._mid_line: Sink | None = None

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

    def end_line(self) -> None:
        """On a terminal, let a log line never stand behind half a line of the agent's."""
        if self._mid_line is not None and self._mid_line.is_terminal:
            self._mid_line.write("\n")
        self._mid_line = None

    def show_status(self, line: str) -> None:
        """Draw the live line in place of the one before."""
        if self._mid_line is not None or not self._is_ours():
            return
        self.hide_status()
        self._status = line
        self._err.write(line)

    def hide_status(self) -> None:
        """Take the live line away; it has more rows when the terminal became narrower since."""
        if self._status:
            rows = (len(self._status) - 1) // max(1, self.width)
            self._status = ""
            self._err.write(f"\x1b[{rows}A{_CLEAR_BELOW}" if rows else _CLEAR)

    def close(self) -> None:
        """Take the live line away, and say what was not shown while there was room to say it."""
        self.hide_status()
        if self._out.missing:
            self.log(f"[{self._out.missing:,} bytes of the agent's output were not shown]\n")

    def _is_ours(self) -> bool:
        """Whether we are in the foreground; behind a prompt we would draw over what is typed."""
        try:
            return os.tcgetpgrp(self._err.fd) == os.getpgrp()
        except OSError:
            return True
