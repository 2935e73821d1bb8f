"""rooda's end of the warden: start a warden, give it orders, receive its messages."""

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

from rooda.world.process.first_moment import without_work_tree
from rooda.world.process.interrupts import WARDENS
from rooda.world.process.warden.channel import Channel, ChannelClosed, Message

PATIENCE = 15.0  # seconds for an answer that should take milliseconds
_SLICE = 0.2
_LAST_WAIT = 3.0  # seconds for a warden to stop its program and end, when a signal ends rooda
_LAST_STEP = 0.005

# Isolated, and without the user's start-up files: only this installation's path decides what is
# imported, and the warden starts in half the time.
PYTHON_FLAGS: tuple[str, ...] = ("-I", "-S")
# The interpreter itself and not the link in a virtual environment, which may be in the work tree.
PYTHON = os.path.realpath(sys.executable)
_PROGRAM = (
    "import sys; sys.path += sys.argv[1].split(chr(0x1f)); "
    "from rooda.world.process.warden.program import main; main(sys.argv[2:])"
)


def import_path() -> str:
    """Return where the warden finds modules: this installation of rooda first, no work tree."""
    root = str(Path(__file__).parents[4])
    return "\x1f".join([root, *filter(None, without_work_tree(sys.path))])


class StartRefused(Exception):  # noqa: N818 - what the system did
    """The system did not start the program."""

    def __init__(self, number: int, file: str, text: str) -> None:
        super().__init__(text)
        self.number = number or errno.EINVAL
        self.file = file
        self.text = text


class WardenDead(ChannelClosed):
    """The warden was gone before it could receive an order."""


class WardenClient:
    """A running warden.

    Every method may raise ChannelClosed: then the warden is dead, and its program is on its own.
    """

    def __init__(self, contain: str, environ: Mapping[str, str]) -> None:
        """Start a warden; raises OSError if the system can start no more processes."""
        own_end, warden_end = socket.socketpair()
        own_end.settimeout(PATIENCE)
        self._channel = Channel(own_end)
        self._pid = -1  # for `waitpid`: any child, until it is known
        WARDENS.add(self)
        with warden_end:
            try:
                self._process = subprocess.Popen(
                    [
                        *(PYTHON, *PYTHON_FLAGS, "-c", _PROGRAM, import_path()),
                        *(str(warden_end.fileno()), contain),
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=environ,
                    pass_fds=(warden_end.fileno(),),
                    start_new_session=True,
                )
                self._pid = self._process.pid
            except BaseException:
                WARDENS.discard(self)
                own_end.close()
                raise
        self._early: list[Message] = []
        self._poll = select.poll()
        self._poll.register(own_end, select.POLLIN)

    @property
    def pid(self) -> int:
        """The pid of the warden itself."""
        return self._pid

    def fileno(self) -> int:
        """A descriptor that is readable when the warden has sent a message."""
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
        jail: Sequence[str] = (),
    ) -> tuple[int, float]:
        """Start a program, in a sandbox if there is a `jail`; returns its pid and start time.

        Raises StartRefused with the system's reason, WardenDead if nothing can have been started,
        and ChannelClosed if that is not known.
        """
        given = (tuple(argv), str(folder), dict(environ), tuple(keep), mark, umask, tuple(jail))
        try:
            self._channel.send(("start", *given), files)
        except ChannelClosed as closed:
            raise WardenDead(str(closed)) from None
        match self._answer("started", "refused"):
            case ("started", int(pid), int(started) | float(started)):
                return pid, started
            case (_, int(number), str(file), str(text)):
                raise StartRefused(number, file, text)
        raise ChannelClosed("nonsense")

    def stop(self, grace: float) -> bool:
        """Stop the whole tree: SIGTERM, and SIGKILL after the grace. A second call can shorten it.

        False if the program itself had ended before; the warden stops its leftovers all the same.
        """
        self._channel.send(("stop", grace))
        return self._answer("stopping") == ("stopping", True)

    def pause(self) -> None:
        """Halt the whole tree; returns when it stands still."""
        self._channel.send(("pause",))
        self._answer("paused")

    def resume(self) -> None:
        """Continue a paused tree."""
        self._channel.send(("resume",))

    def keep_going(self) -> None:
        """Continue the warden itself, if a process has stopped it (the program may try that)."""
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGCONT)  # no effect on a running warden

    def is_held(self) -> bool:
        """Whether a process of the tree has the program's output open for writing."""
        self._channel.send(("held",))
        return self._answer("held") == ("held", True)

    def ask_for_cpu(self) -> None:
        """Ask for the CPU time of the tree in seconds; the answer comes as a message."""
        self._channel.send(("cpu",))

    @property
    def has_news(self) -> bool:
        """Whether messages came while another answer was awaited; `messages` returns them."""
        return bool(self._early)

    def messages(self) -> list[Message]:
        """The warden's messages; call this when the warden is readable or has news."""
        if self._early:
            early, self._early = self._early, []
            return early
        return self._receive()

    def _answer(self, *names: str) -> Message:
        """Wait for one of these messages, and keep all others for later."""
        end = time.monotonic() + PATIENCE
        while True:
            while not self._poll.poll(_SLICE * 1000):
                if time.monotonic() > end:
                    raise ChannelClosed("no answer")
                self.keep_going()
            messages = self._receive()
            self._early += [message for message in messages if message[0] not in names]
            if found := [message for message in messages if message[0] in names]:
                return found[0]

    def _receive(self) -> list[Message]:
        messages = self._channel.receive()
        for message in messages:
            if message[0] == "failed":
                raise ChannelClosed(*message[1:])
        return messages

    def end_at_once(self) -> None:
        """Let the warden end, and wait for it; for a signal handler, so it raises no error.

        `Popen.wait` is not possible: the interrupted code may be inside of it and hold its lock.
        """
        with contextlib.suppress(OSError):
            self._channel.close()
            if self.pid > 0:
                self.keep_going()
            end = time.monotonic() + _LAST_WAIT
            while os.waitpid(self.pid, os.WNOHANG)[0] == 0 and time.monotonic() < end:
                time.sleep(_LAST_STEP)

    def close(self) -> None:
        """Let the warden end. If a program still runs, the warden stops it first."""
        self._channel.close()
        try:
            self._process.wait(PATIENCE / 3)
        except subprocess.TimeoutExpired:
            self.kill()
        WARDENS.discard(self)

    def kill(self) -> None:
        """Kill a warden that does not answer."""
        self._channel.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait(PATIENCE)
