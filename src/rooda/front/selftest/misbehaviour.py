"""Every way in which an agent may misbehave, every way in which it may end, and what must remain.

This module is a registry only: it starts no process. `rooda selftest` runs each misbehaviour once,
the kill matrix of the tests runs each one with every end. The caller runs `Misbehaviour.script`
with `sys.executable -S` and the word of the end in an empty folder, ends the agent when there is a
file `ready`, and then checks `survivors` and `Kept`.

Each script writes `NAME.pid` (pid and start time) for every process that it starts, and for its own
parent; `mark` (the run that it belongs to); `1.taken` and `2.taken` (how many bytes the OS accepted
on each stream). All processes hold a lock on `tree.lock`, except those that close all descriptors:
so even a process that forks faster than a scan is detected. All processes exit after two minutes,
or when there is a file `stop`.
"""

import signal
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from rooda.front.selftest import agent_scripts as scripts

Capture = Literal["file", "pipe"]

CAPTURES: tuple[Capture, Capture] = ("file", "pipe")

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
        return _LAST_WORDS + scripts.PRELUDE + self.body + scripts.ENDING

    def kept(self, capture: Capture, end: End) -> Kept:
        """The transcripts that the capture guarantees after this end."""
        return (self.in_file if capture == "file" else self.in_pipe).after(end)


# -- the misbehaviours ---------------------------------------------------------------------

_BOTH = Kept(_HELLO + b"again\n", _WARNING + b"again\n")
# On Linux, reopening a file truncates it. A pipe can't be truncated; other systems reopen nothing.
_REOPENED = Kept(b"again\n", b"again\n") if sys.platform == "linux" else _BOTH

MISBEHAVIOURS: tuple[Misbehaviour, ...] = (
    Misbehaviour("ignores TERM", "with its child and grandchild", scripts.IGNORES),
    Misbehaviour("setsid", "a child and a grandchild in their own session", scripts.SETSID),
    Misbehaviour(
        "daemon",
        "forked twice, closed all descriptors, left the folder, keeps writing to a file",
        scripts.DAEMON,
    ),
    Misbehaviour(
        "cleared environment", "a child in its own session without environment", scripts.BARE
    ),
    Misbehaviour("holds descriptors", "a background child keeps the streams open", scripts.HOLDS),
    Misbehaviour("bomb", "fifty children that exit and are replaced forever", scripts.BOMB),
    Misbehaviour(
        "comet", "each process forks and exits at once, each in a new session", scripts.COMET
    ),
    Misbehaviour("closes its streams", "all three, long before it exits", scripts.CLOSES),
    Misbehaviour("stops itself", "with SIGSTOP, and so does a child", scripts.STOPS),
    Misbehaviour(
        "non-blocking",
        "prints 8 MB without waiting for its reader, and exits",
        scripts.FLOODS + "flood(1)\n",
        Kept(_HELLO + _FLOOD),
        Kept(_HELLO + _FLOOD, cut=(1,)),
    ),
    Misbehaviour(
        "reopens /dev/stdout", "as does `echo > /dev/stdout`", scripts.REOPENS, _REOPENED, _BOTH
    ),
    Misbehaviour(
        "terminal",
        "a child on a pseudo-terminal that ignores the hang-up",
        scripts.TERMINAL,
        Kept(_HELLO + scripts.SEEN),
        Kept(_HELLO + scripts.SEEN),
    ),
    Misbehaviour(
        "everything",
        "all of the above",
        scripts.IGNORES
        + scripts.SETSID
        + scripts.DAEMON
        + scripts.BARE
        + scripts.HOLDS
        + scripts.BOMB
        + scripts.COMET
        + scripts.REOPENS
        + scripts.TERMINAL
        + scripts.FLOODS
        + "flood(2)\n"
        + scripts.CLOSES
        + scripts.STOPS,
        Kept(_REOPENED.stdout + scripts.SEEN, _REOPENED.stderr + _FLOOD),
        Kept(_BOTH.stdout + scripts.SEEN, _BOTH.stderr + _FLOOD, cut=(2,)),
    ),
)

# -- processes that can be found without a warden ------------------------------------------

# rooda finds these by the mark in the environment, the agent's session, or the agent's files.
FINDABLE: tuple[Misbehaviour, ...] = (
    Misbehaviour("plain child", "an ordinary background process", scripts.PLAIN),
    Misbehaviour("setsid child", "in its own session", scripts.SETSID),
    Misbehaviour("unmarked child", "with no environment, in the agent's session", scripts.SILENT),
    Misbehaviour("stubborn child", "that ignores SIGTERM", scripts.IGNORES),
)
FINDABLE_IN_FILES = Misbehaviour("writer", "an orphan that still holds the files", scripts.WRITER)
