"""rooda's end of the process that sends messages. Nothing here waits, and nothing here raises."""

import contextlib
import json
import os
import subprocess
from collections.abc import Mapping, Sequence

from msgspec import Struct, to_builtins

from rooda.plan.settings.settings import NOTIFY_URLS
from rooda.views.messages.message import Message
from rooda.views.messages.notifier import program
from rooda.views.messages.targets import Target
from rooda.world.process.runner import unmarked
from rooda.world.process.warden.client import PYTHON, PYTHON_FLAGS, import_path

_CHUNK = 65536


class Failure(Struct, frozen=True):
    """A message that was not delivered."""

    moment: str
    target: str
    reason: str


def without_addresses(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the addresses of services, and without marks of a run."""
    return {name: text for name, text in unmarked(environ).items() if name != NOTIFY_URLS.variable}


def delivery_command() -> list[str]:
    """Return the command of a process that sends one message."""
    return program((PYTHON, *PYTHON_FLAGS), "delivery", import_path())


class NotifierClient:
    """The process of one run. `log` is a descriptor for its log, which stays the caller's."""

    def __init__(self, targets: Sequence[Target], log: int) -> None:
        self.trouble = ""
        self._rest = b""
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._process = subprocess.Popen(
                [*program((PYTHON, *PYTHON_FLAGS), "notifier", import_path()), str(log)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                cwd="/",
                env=without_addresses(os.environ),
                pass_fds=(log,),
                start_new_session=True,
            )
        except OSError as error:
            self.trouble = f"the process that sends them can't be started: {error.strerror}"
            return
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
        self._order({"targets": to_builtins(targets), "check": True})

    @property
    def pid(self) -> int:
        """The pid of the process; 0 if there is none."""
        return 0 if self._process is None else self._process.pid

    def send(self, moment: str, message: Message) -> None:
        """Send a message to all targets."""
        self._order({"moment": moment, "send": to_builtins(message)})

    def leave(self, message: Message | None) -> None:
        """Leave a message that is sent if rooda is killed; None takes it back."""
        self._order({"last": to_builtins(message)})

    def _order(self, order: Mapping[str, object]) -> None:
        if self._process is None or self._process.stdin is None:
            return
        line = json.dumps(order).encode() + b"\n"
        try:
            written = os.write(self._process.stdin.fileno(), line)
        except OSError:  # it is gone, or has not read for so long that the pipe is full
            written = 0
        if written != len(line):
            self.trouble = "the process that sends them does not answer"
            self.close()

    def news(self) -> list[Failure]:
        """Return the failures since the last look."""
        if self._process is None or self._process.stdout is None:
            return []
        try:
            data = os.read(self._process.stdout.fileno(), _CHUNK)
        except OSError:
            return []
        *lines, self._rest = (self._rest + data).split(b"\n")
        found = []
        for line in lines:
            with contextlib.suppress(ValueError, TypeError):
                found.append(Failure(**json.loads(line)))
        return found

    def close(self) -> None:
        """Let the process end after its last delivery; rooda does not wait for it."""
        process, self._process = self._process, None
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        if process.poll() is None:
            process.returncode = 0  # it goes on alone: Python is not to complain about that
