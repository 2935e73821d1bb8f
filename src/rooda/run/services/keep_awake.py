"""Keep the machine from sleeping while a run is at work (`keep_awake`).

`systemd-inhibit` and `caffeinate` prevent sleep while the program that they start is running. That
program is `cat`, which reads a pipe that only rooda holds: however rooda ends, the kernel closes
the pipe, `cat` ends, and so does the inhibitor. They are in a session of their own, so the keys of
the terminal don't reach them, and no part of the agent's process tree.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from rooda.base.controls import one_line
from rooda.base.event import Event
from rooda.loop.events.emitter import Emitter, Stamped
from rooda.loop.events.run import KeptAwake, NotKeptAwake
from rooda.plan.plan import Plan
from rooda.plan.settings.settings import KEEP_AWAKE
from rooda.world.process.runner import unmarked
from rooda.world.tools import Tools

# What comes between the program and the command that it starts; `{why}` is a sentence.
_PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "systemd-inhibit": ("--what=idle:sleep", "--who=rooda", "--why={why}", "--mode=block"),
    "caffeinate": ("-i",),
}
_SYSTEMD = Path("/run/systemd/system")
_UNIX = "unix:path="
_BUS = Path("/run/dbus/system_bus_socket")
_SIGN = b"awake\n"  # the inhibitor has started its program, so the machine stays awake
_SCRIPT = 'echo awake; exec "$0"'
_MOST = 4096  # bytes of what a program that refuses prints
_LAST_WAIT = 0.2  # seconds for the program to end


class KeepAwake:
    """The inhibitor of a run: a listener that reports once whether the machine stays awake."""

    def __init__(self, name: str = "", *, is_demanded: bool = False) -> None:
        """`is_demanded`: a failure is a warning."""
        self._name = name
        self._is_demanded = is_demanded
        self._printed = b""
        self._trouble = f"there is no {' or '.join(_PROGRAMS)} that works here"
        self._process: subprocess.Popen[bytes] | None = None
        self._emit: Callable[[Event], None] | None = None

    def start(self, argv: list[str]) -> None:
        """Start the program, and do not wait for it."""
        environ = unmarked(os.environ)
        try:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                bufsize=0,
                cwd="/",
                env=environ,
                start_new_session=True,
            )
        except OSError as error:
            self._trouble = f"{self._name} can't be started: {error.strerror}"
        else:
            os.set_blocking(self._output, False)

    @property
    def _output(self) -> int:
        if self._process is None or self._process.stdout is None:
            raise AssertionError("the program has not been started")
        return self._process.stdout.fileno()

    def listen(self, emitter: Emitter) -> None:
        """Report to the listeners, at the next event."""
        self._emit = emitter
        emitter.add(self)

    def __call__(self, stamped: Stamped) -> None:
        """Look whether the program has said something; that costs nothing after the report."""
        del stamped
        if self._emit is None:
            return
        news = self._news()
        if news is not None:
            emit, self._emit = self._emit, None
            emit(news)

    def _news(self) -> Event | None:
        """Return what the program has done; None while that is not known."""
        if self._process is None:
            return NotKeptAwake(self._trouble, self._is_demanded)
        data = self._read()
        if _SIGN in self._printed:
            return KeptAwake(self._name)
        if data or data is None:
            return None
        words = one_line(self._printed.decode("utf-8", "replace"))
        trouble = f"{self._name} refuses: {words}" if words else f"{self._name} ended at once"
        return NotKeptAwake(trouble, self._is_demanded)

    def _read(self) -> bytes | None:
        """Return what the program has printed since the last look; None: nothing yet."""
        try:
            data = os.read(self._output, _MOST)
        except BlockingIOError:
            return None
        self._printed = (self._printed + data)[-_MOST:]
        return data

    def close(self) -> None:
        """Let the machine sleep again."""
        if self._process is None:
            return
        self._read()
        is_hanging = _SIGN not in self._printed
        process, self._process, self._emit = self._process, None, None
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            process.wait(_LAST_WAIT)
        except subprocess.TimeoutExpired:
            if is_hanging:  # it has not started `cat`, which would end now
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


class _Off(KeepAwake):
    """No inhibitor: the user wants none."""

    def listen(self, emitter: Emitter) -> None:
        """Report nothing."""


@contextlib.contextmanager
def keep_awake(plan: Plan, run: str) -> Iterator[KeepAwake]:
    """Keep the machine awake as the settings say, where that is possible.

    Call this before the first agent starts: the program comes from outside of the work tree.
    """
    wish = plan.values[KEEP_AWAKE]
    if wish == "false":
        yield _Off()
        return
    name, path = _find(plan.tools, is_demanded=wish == "true")
    awake = KeepAwake(name, is_demanded=wish == "true")
    if path is not None:
        why = f"{plan.procedure} is at work (run {run})"
        options = [option.replace("{why}", why) for option in _PROGRAMS[name]]
        waiting = [plan.tools.program("sh"), "-c", _SCRIPT, plan.tools.program("cat")]
        awake.start([path, *options, *waiting])
    try:
        yield awake
    finally:
        awake.close()


def _find(tools: Tools, *, is_demanded: bool) -> tuple[str, str | None]:
    """Return the name and the path of the program that can keep this machine awake."""
    for name in _PROGRAMS:
        is_usable = is_demanded or name != "systemd-inhibit" or has_systemd()
        if is_usable and (path := tools.find(name)) is not None:
            return name, path
    return "", None


def has_systemd() -> bool:
    """Return whether systemd runs on this machine, and can be asked; a container has neither."""
    address = os.environ.get("DBUS_SYSTEM_BUS_ADDRESS", "")
    named = address.removeprefix(_UNIX).partition(",")[0]
    bus = Path(named) if address.startswith(_UNIX) else _BUS
    return _SYSTEMD.is_dir() and bus.exists()
