"""Make the machine fail around rooda: limits, full disks, missing rights; find survivors.

A test that needs root or a Linux tool is skipped, with the reason, where that is missing.
"""

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from rooda.world.state.home import VARIABLE
from support.children import until
from support.finished import Finished
from support.workspace import FLOOR, Workspace, alive


def agent_by_turns(workspace: Workspace, *bodies: str) -> str:
    """As `Workspace.agents`, but stored in the home: the workspace may be deleted or full."""
    cases = [f"{number}) {body} ;;" for number, body in enumerate(bodies[:-1], 1)]
    lines = [
        'home=$(dirname "$0")',
        'n=$(($(cat "$home/starts" 2>/dev/null || echo 0) + 1)); echo $n > "$home/starts"',
        "case $n in",
        *cases,
        f"*) {bodies[-1]} ;;",
        "esac",
    ]
    return workspace.agent("\n".join(lines), name=str(workspace.home / "agent.sh"))


def turns(workspace: Workspace) -> int:
    """How often this agent was started."""
    file = workspace.home / "starts"
    return int(file.read_text()) if file.exists() else 0


def processes_of(workspace: Workspace) -> list[int]:
    """The pids of all processes that rooda started in this workspace, known by their HOME."""
    mark = os.fsencode(f"HOME={workspace.home}")
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if mark in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue
    return [pid for pid in found if pid != os.getpid() and alive(pid)]


def check(done: Finished, workspace: Workspace, *codes: int) -> None:
    """Check that rooda ended cleanly, with one of these codes, and that no process is left."""
    # What a check printed is indented.
    assert not re.search("^Traceback", done.err, re.MULTILINE), done.err
    assert "Internal error" not in done.err, done.err
    assert done.code in codes, done.err
    until(lambda: not processes_of(workspace), "all processes exit")


def require(*programs: str) -> None:
    """Skip the test if one of these programs is missing."""
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


def limited(*limits: str) -> tuple[str, ...]:
    """A command prefix that sets limits, such as `nofile=8` or `nproc=1`."""
    require("prlimit")
    return ("prlimit", *(f"--{limit}:{limit.partition('=')[2]}" for limit in limits))


def _tried(*before: str) -> tuple[str, ...]:
    done = subprocess.run([*before, "true"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{before[0]} can't do that here: {done.stderr.strip()}")
    return before


def powerless() -> tuple[str, ...]:
    """A command prefix that makes file modes apply to root too."""
    if os.geteuid() != 0:
        return ("env",)
    require("setpriv")
    return _tried("setpriv", "--inh-caps=-all", "--bounding-set=-all")


@dataclass(frozen=True)
class Stranger:
    """A user without other processes, and a workspace that belongs to this user."""

    before: tuple[str, ...]  # a command prefix that runs a command as this user
    workspace: Workspace


@contextlib.contextmanager
def a_stranger(config: str) -> Iterator[Stranger]:
    """Create a user, so that a limit on processes counts only the processes of the test.

    The folder is not below pytest's, which other users may not enter. The user may read every file:
    the interpreter may be in root's home.
    """
    if os.geteuid() != 0:
        pytest.skip("only root can change the user")
    require("setpriv")
    number = 100_000 + os.getpid()
    before = _tried(
        "setpriv",
        f"--reuid={number}",
        f"--regid={number}",
        "--clear-groups",
        "--inh-caps=-all,+dac_read_search",
        "--ambient-caps=+dac_read_search",
        "--bounding-set=-all,+dac_read_search",
    )
    with tempfile.TemporaryDirectory(prefix="rooda-stranger-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        states = {VARIABLE: str(folder / "home/states")}
        workspace = Workspace(folder / "work", folder / "home", states)
        for path in (workspace.path, workspace.home):
            path.mkdir()
            os.chown(path, number, number)
        workspace.config(config)
        try:
            yield Stranger(before, workspace)
        finally:
            for pid in processes_of(workspace):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


@cache
def _why_no_disk() -> str:
    if os.geteuid() != 0:
        return "only root can mount one"
    if shutil.which("unshare") is None:
        return "unshare is not installed"
    with tempfile.TemporaryDirectory() as folder:
        mount = f"mount -t tmpfs -o size=64k tmpfs {shlex.quote(folder)}"
        command = ["unshare", "-m", "sh", "-c", mount]
        return subprocess.run(command, capture_output=True, text=True, check=False).stderr


def small_disk(workspace: Workspace, size: str, then: str = ":") -> tuple[str, ...]:
    """A command prefix that mounts a disk of this size, with the workspace and its records.

    Only the command sees the disk. The workspace is copied to it, and `then` runs there. The disk
    is smaller than what a run asks for, so there is no floor unless a flag sets one.
    """
    if reason := _why_no_disk():
        pytest.skip(f"no small disk: {reason}")
    folder, disk = (shlex.quote(str(workspace.path.parent / name)) for name in ("work", "disk"))
    states = shlex.quote(workspace.environ()[VARIABLE])
    script = (
        f"export {FLOOR}=0; mkdir -p {disk} {states} && "
        f"mount -t tmpfs -o size={size},mode=755 tmpfs {disk} && "
        f"cp -a {folder} {disk}/work && mkdir {disk}/states && "
        f"mount --bind {disk}/work {folder} && mount --bind {disk}/states {states} && "
        f'cd {folder} && {{ {then}; }} && exec "$@"'
    )
    return ("unshare", "-m", "sh", "-c", script, "sh")


@cache
def starts_with(descriptors: int) -> bool:
    """Whether the interpreter starts with so few descriptors, and can import a module."""
    command = [*limited(f"nofile={descriptors}"), sys.executable, "-c", "import json"]
    done = subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    return done.returncode == 0 and not done.stderr
