"""A folder in which tests run the installed `rooda` as a user does."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rooda.world.state.folder import StateFolder, place_of
from rooda.world.state.home import VARIABLE
from support import rings
from support.finished import Finished
from support.in_process import run_in_process
from support.states import state_of

_SYSTEMD = Path("/run/systemd/system")
ROODA = Path(sysconfig.get_path("scripts")) / "rooda"

_READING = ("history", "show", "why")

# A run of a test does not ask systemd to keep the machine awake.
_NO_BUS = {"DBUS_SYSTEM_BUS_ADDRESS": "unix:path=/nowhere"} if _SYSTEMD.exists() else {}

PROCEDURE = """
procedures:
  work:
    observe: [{content: look}]
    orient: [{content: think}]
    decide: [{content: choose}]
    act: [{content: "do it, then say <promise>SUCCESS</promise> when done"}]
"""


@dataclass
class Running:
    """A run that has not ended yet."""

    process: subprocess.Popen[str]
    began: float

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def finish(self, timeout: float = 60) -> Finished:
        try:
            out, err = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            raise
        return Finished(self.process.returncode, out, err, time.monotonic() - self.began)


FLOOR = "ROODA_LOOP_MIN_FREE_DISK"
# On a machine with little free space, runs of the tests need less than others.
_ROOM = 4 * 1024**3  # bytes
_IS_SMALL = shutil.disk_usage(tempfile.gettempdir()).free < _ROOM
_NO_FLOOR: Mapping[str, str] = {FLOOR: "0"} if _IS_SMALL else {}
os.environ.update(_NO_FLOOR)  # for tests that run rooda within their own process


@dataclass
class Workspace:
    """A work folder with its own home folder, so that no config of the machine is read."""

    path: Path
    home: Path
    env: dict[str, str] = field(default_factory=dict)

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def sibling(self, name: str) -> "Workspace":
        """Another work folder of the same user; only one run may work in each."""
        path = self.path.parent / name
        path.mkdir()
        (path / "rooda-config.yml").write_text(PROCEDURE)
        return Workspace(path, self.home, self.env)

    def config(self, content: str) -> Path:
        return self.write("rooda-config.yml", content)

    def global_config(self, content: str) -> Path:
        return self.write(str(self.home / ".config/rooda/rooda-config.yml"), content)

    def agent(self, body: str, name: str = "agent.sh") -> str:
        """A shell script that plays the agent; returns the AI command."""
        path = self.write(name, f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return shlex.quote(str(path))

    def agents(self, *bodies: str) -> str:
        """An agent that runs the n-th body at its n-th start, and the last body from then on."""
        cases = [f"{n}) {body} ;;" for n, body in enumerate(bodies[:-1], 1)]
        lines = [
            f"n=$(($(cat {self._count} 2>/dev/null || echo 0) + 1)); echo $n > {self._count}",
            "case $n in",
            *cases,
            f"*) {bodies[-1]} ;;",
            "esac",
        ]
        return self.agent("\n".join(lines))

    @property
    def state(self) -> StateFolder:
        """The state folder of the work tree: rooda keeps the record there."""
        return state_of(self.path, self._own_environ())

    @property
    def _count(self) -> str:
        return shlex.quote(str(self.path / "starts"))

    @property
    def starts(self) -> int:
        """How often an agent made by `agents` was started."""
        file = self.path / "starts"
        return int(file.read_text()) if file.exists() else 0

    def kept(self, iteration: int = 1, attempt: int = 1) -> Path:
        """The folder in which the newest run keeps the files of an iteration."""
        return kept_in(self.state, iteration, attempt)

    def python_agent(self, body: str, name: str = "agent.py") -> str:
        """A Python script that plays the agent."""
        path = self.write(name, body)
        return shlex.join([sys.executable, "-S", str(path)])

    def environ(self, env: Mapping[str, str | None] | None = None) -> dict[str, str]:
        """The machine's environment without the variables that rooda reads.

        For the scripts of agents, `$STATE` is the state folder.
        """
        dropped = ("ROODA_", "XDG_", "CI", "GIT_", "NO_COLOR")
        base = {k: v for k, v in os.environ.items() if not k.startswith(dropped)}
        merged = {**base, **self._own_environ(), "STATE": str(self.state), **(env or {})}
        return {name: value for name, value in merged.items() if value is not None}

    def _own_environ(self) -> dict[str, str]:
        states = {VARIABLE: os.environ[VARIABLE]} if VARIABLE in os.environ else {}
        return {"HOME": str(self.home), **states, **_NO_BUS, **_NO_FLOOR, **self.env}

    def start(
        self, *args: str, env: Mapping[str, str | None] | None = None, stdin: str | None = None
    ) -> Running:
        process = subprocess.Popen(
            [str(ROODA), *args],
            cwd=self.path,
            env=self.environ(env),
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="surrogateescape",
        )
        return Running(process, time.monotonic())

    def inside(self, *args: str) -> Finished:
        """Run a command that starts no agent in this process."""
        return run_in_process("rooda", args, self.path, self.environ())

    def rooda(
        self, *args: str, env: Mapping[str, str | None] | None = None, timeout: float = 90
    ) -> Finished:
        """Run the command until it exits.

        In the first ring it runs in this process. In the others it is the installed command, but
        for commands that only read the record: those start in a fifth of the time here, and tests
        of pipes, signals and terminals start them as installed.
        """
        if rings.is_first() or (args and args[0] in _READING and env is None):
            return run_in_process("rooda", args, self.path, self.environ(env))
        return self.start(*args, env=env).finish(timeout)

    def work(
        self, command: str, *args: str, env: Mapping[str, str | None] | None = None
    ) -> Finished:
        """Run a small procedure with the given AI command."""
        if not (self.path / "rooda-config.yml").exists():
            self.config(PROCEDURE)
        return self.rooda("work", "--ai-cmd", command, *args, env=env)


def kept_in(state: Path, iteration: int = 1, attempt: int = 1) -> Path:
    """The folder of an iteration of the newest run, in a state folder or a copy of one."""
    newest = max((state / "runs").iterdir(), key=lambda run: run.stat().st_mtime_ns)
    return state / place_of(newest.name, iteration, attempt)


def wait_for(path: Path, timeout: float = 60) -> str:
    """Wait until a file exists and has content; return the content."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        try:
            if text := path.read_text():
                return text
        except (FileNotFoundError, ProcessLookupError):
            pass
        time.sleep(0.01)
    raise AssertionError(f"{path} did not appear within {timeout}s")


def alive(pid: int) -> bool:
    """Whether a process is running; a zombie is not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        if Path("/proc/self").exists():
            return False
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True
    return stat.rpartition(")")[2].split()[0] not in "ZX"
