"""Our end of the warden: start one, tell it what to do, hear what it has to say."""

import contextlib
import errno
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from rooda.process.warden.channel import Channel, Closed, Message

PATIENCE = 15.0  # for an answer that should take milliseconds
_SLICE = 0.2

# Isolated, and without the user's start-up files: nothing but our own path decides what is
# imported, and it starts in half the time.
PYTHON_FLAGS: tuple[str, ...] = ("-I", "-S")
# The interpreter itself and not the link in a virtual environment, which may be in the work tree.
PYTHON = os.path.realpath(sys.executable)
_PROGRAM = (
    "import sys; sys.path += sys.argv[1].split(chr(0x1f)); "
    "from rooda.process.warden.program import main; main(sys.argv[2:])"
)


def _path() -> str:
    """Where we find modules ourselves, this very installation first."""
    root = str(Path(__file__).parents[3])
    return "\x1f".join([root, *filter(None, sys.path)])


class Refused(Exception):  # noqa: N818 - what the system did
    """The program could not be started."""

    def __init__(self, number: int, file: str, text: str) -> None:
        super().__init__(text)
        self.number = number or errno.EINVAL
        self.file = file
        self.text = text


class Dead(Closed):
    """It was gone before it could be told anything."""


class Warden:
    """A running warden. Every method may raise Closed: then it is dead, and with it our hold."""

    def __init__(self, contain: str, environ: Mapping[str, str]) -> None:
        """Start it; raises OSError where the system has no room for one more process."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._process = subprocess.Popen(
                    [
                        *(PYTHON, *PYTHON_FLAGS, "-c", _PROGRAM, _path()),
                        *(str(theirs.fileno()), contain),
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=environ,
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )
            except BaseException:
                ours.close()
                raise
        ours.settimeout(PATIENCE)
        self._channel = Channel(ours)
        self._early: list[Message] = []
        self._poll = select.poll()
        self._poll.register(ours, select.POLLIN)

    @property
    def pid(self) -> int:
        """Of the warden itself."""
        return self._process.pid

    def fileno(self) -> int:
        """Readable when it has something to say."""
        return self._channel.fileno()

    def start(
        self,
        argv: Sequence[str],
        folder: Path,
        environ: Mapping[str, str],
        files: tuple[int, int, int],
        keep: Sequence[str],
        mark: str,
        umask: int = -1,
    ) -> tuple[int, float]:
        """Start a program; its pid and start time.

        Raises Refused with the system's reason, Dead when nothing can have been started, and
        Closed when that is not known.
        """
        request = ("start", tuple(argv), str(folder), dict(environ), tuple(keep), mark, umask)
        try:
            self._channel.send(request, files)
        except Closed as closed:
            raise Dead(str(closed)) from None
        match self._answer("started", "refused"):
            case ("started", int(pid), int(started) | float(started)):
                return pid, started
            case (_, int(number), str(file), str(text)):
                raise Refused(number, file, text)
        raise Closed("nonsense")

    def stop(self, grace: float) -> bool:
        """Stop the whole tree: SIGTERM, and SIGKILL after the grace. Again to hurry.

        False when the program itself had ended before; what it left is stopped all the same.
        """
        self._channel.send(("stop", grace))
        return self._answer("stopping") == ("stopping", True)

    def pause(self) -> None:
        """Hold the whole tree where it is, and return when it stands."""
        self._channel.send(("pause",))
        self._answer("paused")

    def resume(self) -> None:
        """Let it go on."""
        self._channel.send(("resume",))

    def keep_going(self) -> None:
        """If somebody has stopped the warden itself (the program may try), continue it."""
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGCONT)  # does nothing to one that runs

    def is_held(self) -> bool:
        """Whether somebody of the tree has the program's output open for writing."""
        self._channel.send(("held",))
        return self._answer("held") == ("held", True)

    def ask_for_cpu(self) -> None:
        """The answer comes as a message: the seconds that the tree has used."""
        self._channel.send(("cpu",))

    @property
    def has_news(self) -> bool:
        """Whether it said something while we waited for another answer: read without waiting."""
        return bool(self._early)

    def messages(self) -> list[Message]:
        """What it has said; call when it is readable or has news."""
        if self._early:
            early, self._early = self._early, []
            return early
        return self._receive()

    def _answer(self, *names: str) -> Message:
        """Wait for one of these; what else it says meanwhile is kept for later."""
        end = time.monotonic() + PATIENCE
        while True:
            while not self._poll.poll(_SLICE * 1000):
                if time.monotonic() > end:
                    raise Closed("no answer")
                self.keep_going()
            messages = self._receive()
            self._early += [message for message in messages if message[0] not in names]
            if found := [message for message in messages if message[0] in names]:
                return found[0]

    def _receive(self) -> list[Message]:
        messages = self._channel.receive()
        for message in messages:
            if message[0] == "failed":
                raise Closed(*message[1:])
        return messages

    def close(self) -> None:
        """Let it end. It has nothing to do any more, or sees to it by itself."""
        self._channel.close()
        try:
            self._process.wait(PATIENCE / 3)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End one that does not work any more."""
        self._channel.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait(PATIENCE)
