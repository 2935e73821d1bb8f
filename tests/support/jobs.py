"""Run rooda as the job of a shell on a terminal, so that Ctrl+Z and `fg` work as there."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from support.children import until
from support.screen import Screen
from support.workspace import ROODA, Workspace, wait_for

# The session leader. It starts one job, takes the terminal when the job is stopped, gives the
# terminal back on SIGUSR1, and exits with the job's exit code. Without this parent the job would be
# in an orphaned process group, and the kernel ignores Ctrl+Z there.
_SHELL = """
import fcntl, os, pathlib, signal, sys, termios
fd = int(sys.argv[1])
os.setsid()
fcntl.ioctl(fd, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
job = os.fork()
if job == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(fd, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    os.close(fd)
    pathlib.Path("rooda.pid").write_text(str(os.getpid()))
    os.execv(sys.argv[2], sys.argv[2:])
def foreground(*_):
    os.tcsetpgrp(fd, job)
    os.killpg(job, signal.SIGCONT)
signal.signal(signal.SIGUSR1, foreground)
while True:
    status = os.waitpid(job, os.WUNTRACED)[1]
    if not os.WIFSTOPPED(status):
        break
    os.tcsetpgrp(fd, os.getpgrp())
code = os.waitstatus_to_exitcode(status)
os._exit(code if code >= 0 else 128 - code)
"""


class Job(Screen):
    """A screen on which rooda is the job of a small shell. Always close it."""

    folder: Path

    def start(
        self,
        workspace: Workspace,
        *args: str,
        stdout: int | None = None,
        env: Mapping[str, str | None] | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start rooda; `process` is the shell, which exits with the exit code of rooda."""
        self.folder = workspace.path
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-c", _SHELL, str(self.slave), str(ROODA), *args],
            cwd=workspace.path,
            env=workspace.environ({"TERM": "xterm", "COLUMNS": None, "LINES": None, **(env or {})}),
            stdin=self.slave,
            stdout=self.slave if stdout is None else stdout,
            stderr=self.slave,
            pass_fds=[self.slave],
        )
        return self.process

    @property
    def rooda(self) -> int:
        """The pid of rooda, not of the shell."""
        return int(wait_for(self.folder / "rooda.pid"))

    def press_ctrl_z(self) -> None:
        """Press Ctrl+Z, and wait until the shell has the terminal back."""
        self.type(b"\x1a")
        self.wait_until_stopped()

    def wait_until_stopped(self) -> None:
        """Wait until rooda is stopped and the shell has the terminal."""
        shell = self._shell

        def shell_has_the_terminal() -> bool:
            self.read()
            return is_stopped(self.rooda) and os.tcgetpgrp(self.master) == shell

        until(shell_has_the_terminal, "rooda is stopped")

    def foreground(self) -> None:
        """Do what `fg` does: give the terminal to rooda, and continue it."""
        os.kill(self._shell, signal.SIGUSR1)
        until(lambda: os.tcgetpgrp(self.master) == self.rooda, "rooda is in the foreground")

    @property
    def _shell(self) -> int:
        assert self.process is not None
        return self.process.pid


def state(pid: int) -> str:
    """The state letter of a process, such as `R`, `S` or `T`; `X` if it is gone (Linux)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"


def is_stopped(pid: int) -> bool:
    """Whether a process is stopped by a signal."""
    return state(pid) == "T"
