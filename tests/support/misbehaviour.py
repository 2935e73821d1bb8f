"""Every way in which an agent may misbehave, every way in which it may end, and what must remain.

This module is a registry only: it starts no process and needs no test framework, so that it can be
shipped as a self-test. The caller runs `Misbehaviour.script` with `sys.executable -S` and the word
of the end in an empty folder, ends the agent when there is a file `ready`, and then checks
`survivors` and `Kept`.

Each script writes `NAME.pid` (pid and start time) for every process that it starts, and for its own
parent; `mark` (the run that it belongs to); `1.taken` and `2.taken` (how many bytes the OS accepted
on each stream). All processes hold a lock on `tree.lock`, except those that close all descriptors:
so even a process that forks faster than a scan is detected. All processes exit after two minutes,
or when there is a file `stop`.
"""

import contextlib
import fcntl
import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

Capture = Literal["file", "pipe"]

CAPTURES: tuple[Capture, Capture] = ("file", "pipe")
MARK = "ROODA_RUN"

# -- ends ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class End:
    """How an iteration ends: the agent exits, a clock expires, or rooda gets a signal."""

    name: str
    code: int  # exit code of rooda, for one iteration and a failure threshold of 1
    word: str = "stay"  # argument of the agent: exit (clean, failing) or stay
    last_words: bytes = b""  # what the agent prints before it exits
    sent: signal.Signals | None = None  # to rooda
    is_timeout: bool = False

    @property
    def is_death(self) -> bool:
        """Whether the end gives rooda no time to react."""
        return self.sent is signal.SIGKILL


AT_MAXIMUM = 2  # the exit code of a run in which the agent promised nothing

ENDS: tuple[End, ...] = (
    End("clean exit", 0, "clean", b"<promise>SUCCESS</promise>\n"),
    End("failing exit", 1, "failing", b"I give up\n"),
    End("timeout", 1, is_timeout=True),
    End("SIGINT", 130, sent=signal.SIGINT),
    End("SIGTERM", 130, sent=signal.SIGTERM),
    End("SIGHUP", 130, sent=signal.SIGHUP),
    End("SIGKILL", -signal.SIGKILL, sent=signal.SIGKILL),
)

# -- parts of an agent's script ------------------------------------------------------------

_LAST_WORDS = f"LAST_WORDS = { {end.word: end.last_words for end in ENDS}!r}"

_PRELUDE = r"""
import fcntl, os, signal, sys, time

END = sys.argv[1]
HERE, LEADER, LATEST = os.getcwd(), os.getpid(), time.monotonic() + 120
taken, cut = {1: 0, 2: 0}, set()


def write(name, text):
    "Write a complete file at once."
    draft = os.path.join(HERE, f"{name}.{os.getpid()}.new")
    with open(draft, "w") as file:
        file.write(str(text))
    os.rename(draft, os.path.join(HERE, name))


def stat(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()


def state(pid):
    if os.path.exists("/proc/self/stat"):
        return stat(pid)[0]
    return os.popen(f"ps -o state= -p {pid}").read().strip()[:1]


def note(name, pid=None):
    pid = pid or os.getpid()
    write(f"{name}.pid", f"{pid} {stat(pid)[19] if os.path.exists('/proc/self/stat') else 0}")


def is_on():
    return time.monotonic() < LATEST and not os.path.exists(os.path.join(HERE, "stop"))


def stay():
    while is_on():
        time.sleep(0.5)


def child(name, act=lambda: None, apart=False):
    pid = os.fork()
    if pid == 0:
        try:
            if apart:
                os.setsid()
            note(name)
            act()
            stay()
        finally:
            os._exit(1)
    return pid


def wait_for(*names):
    while not all(os.path.exists(os.path.join(HERE, name)) for name in names):
        time.sleep(0.002)


def ignore_signals():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def say(words, fd=1):
    "If the reader is too slow for a non-blocking stream, print nothing more to it."
    rest = memoryview(words)
    while rest and fd not in cut:
        try:
            count = os.write(fd, rest)
        except BlockingIOError:
            cut.add(fd)
        else:
            taken[fd] += count
            rest = rest[count:]
    write(f"{fd}.taken", taken[fd])


def say_last_words():
    if words := LAST_WORDS.pop(END, b""):
        say(words)


LOCK = os.open("tree.lock", os.O_RDWR | os.O_CREAT, 0o600)
os.set_inheritable(LOCK, True)
fcntl.flock(LOCK, fcntl.LOCK_SH)
note("leader")
note("warden", os.getppid())
write("mark", os.environ.get("ROODA_RUN", ""))
say(b"started\n")
say(b"a warning\n", 2)
"""

_ENDING = r"""
write("ready", "yes")
say_last_words()
if END == "stay":
    stay()
os._exit({"clean": 0, "failing": 7}.get(END, 1))
"""

_HELLO, _WARNING = b"started\n", b"a warning\n"
_FLOOD = b"".join(b"%063d\n" % number for number in range(131_072))  # 8 MB


@dataclass(frozen=True, slots=True)
class Kept:
    """The expected transcripts. For a stream in `cut`, only the bytes that the OS accepted."""

    stdout: bytes = _HELLO
    stderr: bytes = _WARNING
    cut: tuple[int, ...] = ()

    def after(self, end: End) -> "Kept":
        """With the last words of the agent."""
        return replace(self, stdout=self.stdout + end.last_words)

    def of(self, folder: Path) -> "Kept":
        """Without the bytes that did not fit into a pipe."""
        return Kept(self._taken(folder, 1), self._taken(folder, 2))

    def _taken(self, folder: Path, fd: int) -> bytes:
        words = (self.stdout, self.stderr)[fd - 1]
        return words[: int((folder / f"{fd}.taken").read_text())] if fd in self.cut else words


@dataclass(frozen=True, slots=True)
class Misbehaviour:
    """One way to misbehave: its script, and the transcripts that must remain."""

    name: str
    about: str
    body: str
    in_file: Kept = Kept()
    in_pipe: Kept = Kept()

    @property
    def script(self) -> str:
        """The complete program."""
        return _LAST_WORDS + _PRELUDE + self.body + _ENDING

    def kept(self, capture: Capture, end: End) -> Kept:
        """The transcripts that the capture guarantees after this end."""
        return (self.in_file if capture == "file" else self.in_pipe).after(end)


# -- the misbehaviours ---------------------------------------------------------------------

_IGNORES = r"""
ignore_signals()
child("child", lambda: child("grandchild"))
wait_for("child.pid", "grandchild.pid")
"""

_SETSID = r"""
child("escaped", lambda: child("escaped-child"), apart=True)
wait_for("escaped.pid", "escaped-child.pid")
"""

_DAEMON = r"""
first = os.fork()
if first == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    try:
        os.closerange(0, 256)
        note("daemon")
        os.chdir("/")
        stay()
    finally:
        os._exit(1)
os.waitpid(first, 0)
wait_for("daemon.pid")
"""

_FORGETS = r"""
UNKNOWN = '''
import os, time
open("unknown.up", "w").write("yes")
end = time.monotonic() + 120
while time.monotonic() < end and not os.path.exists("stop"):
    time.sleep(0.5)
'''
def exec_without_environment():
    os.execve(sys.executable, [sys.executable, "-S", "-c", UNKNOWN], {})
"""

_BARE = (
    _FORGETS
    + r"""
child("unknown", exec_without_environment, apart=True)
wait_for("unknown.pid", "unknown.up")
"""
)

_HOLDS = r"""
child("holder", apart=True)
wait_for("holder.pid")
"""

_BOMB = r"""
def bomb():
    ignore_signals()
    born = living = 0
    while is_on():
        while living < 50:
            if os.fork() == 0:
                time.sleep(0.05 + 0.002 * (born % 50))
                os._exit(0)
            born, living = born + 1, living + 1
            if born == 60:
                write("bomb.up", "yes")
        os.wait()
        living -= 1
child("bomb", bomb)
wait_for("bomb.pid", "bomb.up")
"""

_COMET = r"""
def comet():
    ignore_signals()
    born = 0
    while is_on():
        if os.fork():
            os._exit(0)
        os.setsid()
        born += 1
        if born == 20:
            write("comet.up", "yes")
child("comet", comet)
wait_for("comet.pid", "comet.up")
"""

_CLOSES = r"""
say_last_words()
for fd in range(3):
    os.close(fd)
"""

_STOPS = r"""
def wake():
    while state(LEADER) != "T":
        time.sleep(0.002)
    write("ready", "yes")
    if END != "stay":
        os.kill(LEADER, signal.SIGCONT)
os.waitpid(child("stopped", lambda: os.kill(os.getpid(), signal.SIGSTOP)), os.WUNTRACED)
child("waker", wake)
wait_for("waker.pid")
os.kill(LEADER, signal.SIGSTOP)
"""

_FLOODS = r"""
def flood(fd):
    os.set_blocking(fd, False)
    say(b"".join(b"%063d\n" % number for number in range(131072)), fd)
"""

_REOPENS = r"""
for fd, name in ((1, "stdout"), (2, "stderr")):
    with open(f"/dev/{name}", "w") as reopened:
        reopened.write("again\n")
    taken[fd] += 6
"""

_TERMINAL = r"""
import pty
pid, master = pty.fork()
if pid == 0:
    try:
        ignore_signals()
        note("terminal")
        os.write(1, b"in a terminal\n")
        stay()
    finally:
        os._exit(1)
seen = b""
while not seen.endswith(b"\n"):
    seen += os.read(master, 100)
wait_for("terminal.pid")
say(seen)
"""
_SEEN = b"in a terminal\r\n"

_BOTH = Kept(_HELLO + b"again\n", _WARNING + b"again\n")
# On Linux, reopening a file truncates it. A pipe can't be truncated; other systems reopen nothing.
_REOPENED = Kept(b"again\n", b"again\n") if sys.platform == "linux" else _BOTH

MISBEHAVIOURS: tuple[Misbehaviour, ...] = (
    Misbehaviour("ignores TERM", "with its child and grandchild", _IGNORES),
    Misbehaviour("setsid", "a child and a grandchild in their own session", _SETSID),
    Misbehaviour("daemon", "forked twice, closed all descriptors, left the folder", _DAEMON),
    Misbehaviour("cleared environment", "a child in its own session without environment", _BARE),
    Misbehaviour("holds descriptors", "a background child keeps the streams open", _HOLDS),
    Misbehaviour("bomb", "fifty children that exit and are replaced forever", _BOMB),
    Misbehaviour("comet", "each process forks and exits at once, each in a new session", _COMET),
    Misbehaviour("closes its streams", "all three, long before it exits", _CLOSES),
    Misbehaviour("stops itself", "with SIGSTOP, and so does a child", _STOPS),
    Misbehaviour(
        "non-blocking",
        "prints 8 MB without waiting for its reader, and exits",
        _FLOODS + "flood(1)\n",
        Kept(_HELLO + _FLOOD),
        Kept(_HELLO + _FLOOD, cut=(1,)),
    ),
    Misbehaviour("reopens /dev/stdout", "as does `echo > /dev/stdout`", _REOPENS, _REOPENED, _BOTH),
    Misbehaviour(
        "terminal",
        "a child on a pseudo-terminal that ignores the hang-up",
        _TERMINAL,
        Kept(_HELLO + _SEEN),
        Kept(_HELLO + _SEEN),
    ),
    Misbehaviour(
        "everything",
        "all of the above",
        _IGNORES + _SETSID + _DAEMON + _BARE + _HOLDS + _BOMB + _COMET + _REOPENS + _TERMINAL
        + _FLOODS + "flood(2)\n" + _CLOSES + _STOPS,
        Kept(_REOPENED.stdout + _SEEN, _REOPENED.stderr + _FLOOD),
        Kept(_BOTH.stdout + _SEEN, _BOTH.stderr + _FLOOD, cut=(2,)),
    ),
)  # fmt: skip

# -- processes that can be found without a warden ------------------------------------------

_PLAIN = r"""
child("plain")
wait_for("plain.pid")
"""

_SILENT = (
    _FORGETS
    + r"""
def close_streams_and_exec():
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    exec_without_environment()
child("unknown", close_streams_and_exec)
wait_for("unknown.pid", "unknown.up")
"""
)

_WRITER = (
    _FORGETS
    + r"""
first = os.fork()
if first == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    note("unknown")
    exec_without_environment()
os.waitpid(first, 0)
wait_for("unknown.pid", "unknown.up")
"""
)

# rooda finds these by the mark in the environment, the agent's session, or the agent's files.
FINDABLE: tuple[Misbehaviour, ...] = (
    Misbehaviour("plain child", "an ordinary background process", _PLAIN),
    Misbehaviour("setsid child", "in its own session", _SETSID),
    Misbehaviour("unmarked child", "with no environment, in the agent's session", _SILENT),
    Misbehaviour("stubborn child", "that ignores SIGTERM", _IGNORES),
)
FINDABLE_IN_FILES = Misbehaviour("writer", "an orphan that still holds the files", _WRITER)

# -- survivors -----------------------------------------------------------------------------

_PROC = Path("/proc")


def survivors(folder: Path) -> list[str]:
    """The running processes of an agent of this folder, found by pid, mark, cwd and lock."""
    found = [f"{why}: pid {pid}" for pid, why in (*_recorded(folder), *_found(folder))]
    return found if _is_free(folder / "tree.lock") else [*found, "a process holds tree.lock"]


def end_all(folder: Path, patience: float = 10) -> None:
    """Kill all processes of the agent, to clean up after a test."""
    (folder / "stop").write_text("now")
    end = time.monotonic() + patience
    while survivors(folder) and time.monotonic() < end:
        for pid, _ in (*_recorded(folder), *_found(folder)):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def record(folder: Path, name: str) -> tuple[int, int]:
    """Return pid and start time of a process that the agent has recorded."""
    pid, started = (folder / f"{name}.pid").read_text().split()
    return int(pid), int(started)


def is_alive(pid: int, started: int) -> bool:
    """Whether this process is running: not a zombie, and no later process with the same pid."""
    if not _PROC.joinpath("self").exists():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 0)
            return True
        return False
    fields = _stat(pid)
    return bool(fields) and fields[0] not in "ZX" and int(fields[19]) == started


def _recorded(folder: Path) -> Iterator[tuple[int, str]]:
    for file in folder.glob("*.pid"):
        pid, started = record(folder, file.stem)
        if is_alive(pid, started):
            yield pid, file.stem


def _is_free(lock: Path) -> bool:
    """Whether all processes that inherited the lock are gone: no fork can outrun this check."""
    try:
        with lock.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return True
    except BlockingIOError:
        return False
    return True


def _found(folder: Path) -> Iterator[tuple[int, str]]:
    """All processes with the mark of the run, or with their cwd in the folder (Linux)."""
    mark = folder / "mark"
    wanted = os.fsencode(f"{MARK}={mark.read_text()}") if mark.exists() else None
    pids = [int(file.name) for file in _PROC.glob("[0-9]*")]
    for pid in pids:
        if pid == os.getpid() or (_stat(pid) or "Z")[0] in "ZX":
            continue
        with contextlib.suppress(OSError):
            if wanted in (_PROC / str(pid) / "environ").read_bytes().split(b"\0"):
                yield pid, "has the mark of the run"
                continue
            if (_PROC / str(pid) / "cwd").readlink().is_relative_to(folder.resolve()):
                yield pid, "is in the folder"


def _stat(pid: int) -> list[str]:
    try:
        return (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
