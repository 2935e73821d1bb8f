"""A real terminal with a screen of its own (tmux), for programs that fill the screen."""

import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from support.workspace import ROODA, Workspace

_PACE = 0.05
_ENVIRONMENT = {"TERM": "xterm-256color", "COLUMNS": None, "LINES": None}


class Tmux:
    """One terminal. The text that stays after the program has ended is `exit CODE`."""

    def __init__(self, columns: int = 100, rows: int = 30) -> None:
        # The path of a socket must be short.
        self._folder = Path(tempfile.mkdtemp(prefix="rooda-tmux-"))
        self._socket = str(self._folder / "tmux")
        self._size = ("-x", str(columns), "-y", str(rows))

    def start(
        self, workspace: Workspace, *args: str, env: Mapping[str, str | None] | None = None
    ) -> None:
        """Start `rooda ARGS` in a folder."""
        words = shlex.join([str(ROODA), *args])
        line = f"{words}; echo exit $?; exec cat"
        environ = workspace.environ({**_ENVIRONMENT, **(env or {})})
        command = ["tmux", "-S", self._socket, "-f", "/dev/null", "new-session", "-d", *self._size]
        subprocess.run(
            [*command, "sh", "-c", line], cwd=workspace.path, env=environ, check=True, timeout=30
        )

    def press(self, *keys: str) -> None:
        """Press keys by their tmux names, such as `Enter`."""
        self._tmux("send-keys", *keys)

    def type(self, text: str) -> None:
        """Type a text."""
        self._tmux("send-keys", "-l", text)

    def text(self, *flags: str) -> str:
        """What the terminal shows; `-e` keeps its colors."""
        return self._tmux("capture-pane", "-p", *flags)

    def wait_for(self, *words: str, timeout: float = 90) -> str:
        """Wait until all of the words are visible, and return all that is."""
        end = time.monotonic() + timeout
        while True:
            text = self.text()
            flat = " ".join(text.split())  # a message may be on two lines
            if all(one in flat for one in words):
                return text
            assert time.monotonic() < end, f"{words} not within {timeout}s:\n{text}"
            time.sleep(_PACE)

    @property
    def pid(self) -> int:
        """The process of the terminal's shell."""
        return int(self._tmux("display-message", "-p", "#{pane_pid}"))

    def close(self) -> None:
        """End the terminal and what runs in it."""
        subprocess.run(
            ["tmux", "-S", self._socket, "kill-server"],
            check=False,
            capture_output=True,
            timeout=30,
        )
        shutil.rmtree(self._folder, ignore_errors=True)

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", self._socket, *words],
            check=True,
            capture_output=True,
            text=True,
            timeout=30,
        )
        return done.stdout
