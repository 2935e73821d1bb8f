"""A terminal for a test: a real pty, the bytes sent to it, and what a person would see."""

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from typing import Any

from support.workspace import ROODA, Workspace

_PIECE = re.compile(r"\x1b\[2K|\x1b\[J|\x1b\[[0-9]+A|[\r\n]|[^\r\n\x1b]|\x1b")
_COLOR = re.compile(r"\x1b\[[0-9;]*m")
# A pager that waits for keys would hang a test whose text is longer than the screen.
_ENVIRONMENT = {"TERM": "xterm", "COLUMNS": None, "LINES": None, "PAGER": "cat"}
# Make the pty on the descriptor the controlling terminal, then become rooda.
_LAUNCH = (
    "import fcntl, os, sys, termios; os.setsid(); fd = int(sys.argv[1]); "
    "fcntl.ioctl(fd, termios.TIOCSCTTY, 0); os.close(fd); os.execv(sys.argv[2], sys.argv[2:])"
)


class Screen:
    """Run rooda on its own pty. Always close it."""

    def __init__(self, columns: int = 100, rows: int = 24) -> None:
        self.master, self.slave = pty.openpty()
        self.columns = columns
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.set_blocking(self.master, False)
        self.sent = bytearray()
        self.process: subprocess.Popen[bytes] | None = None

    def start(
        self,
        workspace: Workspace,
        *args: str,
        stdout: int | None = None,
        env: Mapping[str, str | None] | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start rooda in its own session with this terminal; `stdout` may go elsewhere."""
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-c", _LAUNCH, str(self.slave), str(ROODA), *args],
            cwd=workspace.path,
            env=workspace.environ({**_ENVIRONMENT, **(env or {})}),
            stdin=self.slave,
            stdout=self.slave if stdout is None else stdout,
            stderr=self.slave,
            pass_fds=[self.slave],
        )
        return self.process

    def type(self, keys: bytes) -> None:
        """Send keys to the terminal."""
        os.write(self.master, keys)

    def read(self, seconds: float = 0) -> bool:
        """Read what has arrived; whether there was anything."""
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        with contextlib.suppress(BlockingIOError, OSError):
            data = os.read(self.master, 65536)
            self.sent += data
            return bool(data)
        return False

    def wait_for(self, words: str, timeout: float = 60) -> None:
        """Read until the words have been sent."""
        end = time.monotonic() + timeout
        while words.encode() not in self.sent:
            assert time.monotonic() < end, f"{words!r} was not shown: {bytes(self.sent)!r}"
            self.read(0.1)

    def finish(self, timeout: float = 60) -> int:
        """Read until rooda has exited, and return its exit code."""
        assert self.process is not None
        end = time.monotonic() + timeout
        while self.process.poll() is None:
            assert time.monotonic() < end, f"still running: {bytes(self.sent)!r}"
            self.read(0.05)
        while self.read():
            pass
        return self.process.returncode

    @property
    def settings(self) -> list[Any]:
        """The terminal's attributes."""
        return termios.tcgetattr(self.slave)

    @property
    def lines(self) -> list[str]:
        """The lines on the screen, without trailing spaces."""
        rows: list[list[str]] = [[]]
        column = at = 0
        for piece in _PIECE.findall(_COLOR.sub("", self.sent.decode())):
            if piece == "\r":
                column = 0
            elif piece == "\n":
                at += 1
            elif piece == "\x1b[2K":
                rows[at] = []
            elif piece == "\x1b[J":
                rows[at:] = [rows[at][:column]]
            elif piece.endswith("A") and piece != "A":
                at = max(0, at - int(piece[2:-1]))
            else:
                if column == self.columns:
                    at += 1
                    column = 0
                rows += [[] for _ in range(at + 1 - len(rows))]
                row = rows[at]
                row += " " * (column + 1 - len(row))
                row[column] = piece
                column += 1
            rows += [[] for _ in range(at + 1 - len(rows))]
        return ["".join(row).rstrip() for row in rows]

    def close(self) -> None:
        """Kill rooda and close the terminal."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        for fd in (self.master, self.slave):
            with contextlib.suppress(OSError):
                os.close(fd)
