"""What the warden does differently for a program in a sandbox (bubblewrap).

bubblewrap ends as soon as its program ends, and the kernel then kills everything inside: a filter
such as `exec > >(tee log)` would lose its last lines. So the warden makes bubblewrap start a
keeper, a small shell script. The keeper starts the program, tells the warden how it ended, and
stays until no other process is left inside. The warden then treats the rest like any leftovers.

The processes from the warden to the program: bubblewrap, its process 1 inside, the keeper. None of
them is part of the program: they get no SIGTERM, they hold no output, and no message names them.
"""

import contextlib
import fcntl
import os
from collections.abc import Sequence

from rooda.world.process.libc import join_new_keyring, scope_abstract_sockets
from rooda.world.process.tree.processes import Process

STATUS_FD = 3  # what the keeper writes to; a shell can name only one digit

# `kill -s 0 -- -1` finds every process inside, except for process 1 and the shell itself. A signal
# to the whole group of the program (`kill 0`) must not end the keeper. The program does not inherit
# the descriptor for the warden. A shell says on standard error that a signal has ended its program:
# that is no output of the program.
_KEEPER = """\
trap : TERM INT HUP QUIT USR1 USR2 ALRM TSTP PIPE
command -v -- "$1" >/dev/null || { echo missing >&3; exit 127; }
echo run >&3
exec 4>&2 2>/dev/null
(exec "$@" 2>&4 3>&- 4>&-)
code=$?
exec >/dev/null </dev/null 4>&-
echo "exit $code" >&3
while kill -s 0 -- -1; do sleep 0.03; done
exit $code
"""
_SHELL = ("/bin/sh", "-c", _KEEPER, "sh")
_MOST = 4096  # bytes of the keeper's messages: a program can find the pipe, and write to it
_LARGEST_CODE = 255

Keys = set[tuple[int, float]]
_OWN_PROCESSES = 3  # from the leader down to the keeper


def command_line(prefix: Sequence[str], argv: Sequence[str]) -> list[str]:
    """Return the words that start a keeper with the program in a sandbox."""
    return [*prefix, *_SHELL, *argv]


def isolate() -> None:
    """Cut this process off from what a sandbox can't hide; called between fork and exec."""
    join_new_keyring()
    scope_abstract_sockets()


def reserve_status_fd() -> None:
    """Put nothing into the place of the keeper's descriptor, so that no other file gets it."""
    nothing = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    if nothing != STATUS_FD:
        os.dup2(nothing, STATUS_FD, inheritable=False)
        os.close(nothing)


def away_from_status_fd(number: int) -> int:
    """Return the descriptor, or a copy of it if it has the number of the keeper's descriptor."""
    if number != STATUS_FD:
        return number
    copy = fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(number)
    return copy


class Jail:
    """The sandbox of one program: what its keeper has told, and which processes it consists of."""

    def __init__(self) -> None:
        self._reader, writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.dup2(writer, STATUS_FD, inheritable=False)
        os.close(writer)
        self._told = b""
        self._own: Keys = set()
        self._program: Keys = set()
        self._keeper = 0  # its pid
        self.is_silent = False  # no process can tell more

    def fileno(self) -> int:
        """For a selector: readable when the keeper has told something."""
        return self._reader

    def close(self) -> None:
        """Close the pipe."""
        os.close(self._reader)

    def listen(self) -> None:
        """Read what the keeper has told."""
        with contextlib.suppress(BlockingIOError):
            while len(self._told) < _MOST and not self.is_silent:
                piece = os.read(self._reader, _MOST)
                if not piece:
                    self.is_silent = True
                    break
                self._told += piece
            self.is_silent = True

    @property
    def _lines(self) -> list[str]:
        return self._told.decode("ascii", "replace").split("\n")[:-1]

    @property
    def trouble(self) -> str:
        """Why the program did not run; empty if it did: "setup" or "missing"."""
        lines = self._lines
        if "missing" in lines[:1]:
            return "missing"
        return "" if "run" in lines[:1] else "setup"

    @property
    def code(self) -> int | None:
        """The exit code of the program, as a shell reports it; None while it runs."""
        for line in self._lines:
            word, _, number = line.partition(" ")
            if word == "exit" and number.isdecimal() and int(number) <= _LARGEST_CODE:
                return int(number)
        return None

    def own(self, processes: Sequence[Process], leader: int) -> Keys:
        """Return the keys of the sandbox's own processes: bubblewrap, its process 1, the keeper.

        The keeper is the first child of process 1; orphans become children of it later. After the
        end of the program, the keeper has no children but those that it waits with.
        """
        self._find(processes, leader)
        if self.code is None or self._keeper == 0:
            return self._own
        return self._own | {one.key for one in processes if one.parent == self._keeper}

    def program(self, processes: Sequence[Process], leader: int) -> Keys:
        """Return the key of the program itself, which messages about leftovers do not name."""
        self._find(processes, leader)
        return self._program

    @property
    def keeper(self) -> int:
        """The pid of the keeper; 0 if it is not known."""
        return self._keeper

    def _find(self, processes: Sequence[Process], leader: int) -> None:
        is_over = self.code is not None
        if self._keeper and (self._program or is_over):
            return
        line = [one for one in processes if one.pid == leader]
        while line and len(line) <= _OWN_PROCESSES:
            below = [one for one in processes if one.parent == line[-1].pid]
            if not below:
                break
            line.append(min(below, key=lambda one: (one.started, one.pid)))
        self._own |= {one.key for one in line[:_OWN_PROCESSES]}
        if len(line) >= _OWN_PROCESSES:
            self._keeper = line[_OWN_PROCESSES - 1].pid
        self._program = set() if is_over else {one.key for one in line[_OWN_PROCESSES:]}
