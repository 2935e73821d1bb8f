"""Make the machine fail around rooda: limits, full disks, users without rights; and see who lives.

What needs root or a tool of Linux is skipped, with the reason, where that is missing.
"""

import contextlib
import os
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

from support.children import until
from support.workspace import Finished, Workspace, alive


def by_turns(workspace: Workspace, *bodies: str) -> str:
    """As `Workspace.agents`, but kept in the home: the workspace may be deleted, or full."""
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
    """How often such an agent was started."""
    file = workspace.home / "starts"
    return int(file.read_text()) if file.exists() else 0


def kin(workspace: Workspace) -> list[int]:
    """Everyone who was started by rooda in this workspace: its home is in their environment."""
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
    """It ended in order, with one of these codes, and nothing of it is alive."""
    assert "Traceback" not in done.err, done.err
    assert "Internal error" not in done.err, done.err
    assert done.code in codes, done.err
    until(lambda: not kin(workspace), "the end of everyone", timeout=5)


def require(*programs: str) -> None:
    """Skip the test where one of these is missing."""
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


def limited(*limits: str) -> tuple[str, ...]:
    """What to put before a command, so that it runs within limits: `nofile=8`, `nproc=1`."""
    require("prlimit")
    return ("prlimit", *(f"--{limit}:{limit.partition('=')[2]}" for limit in limits))


def _tried(*before: str) -> tuple[str, ...]:
    done = subprocess.run([*before, "true"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{before[0]} can't do that here: {done.stderr.strip()}")
    return before


def powerless() -> tuple[str, ...]:
    """What to put before a command, so that the modes of files hold even for root."""
    if os.geteuid() != 0:
        return ("env",)
    require("setpriv")
    return _tried("setpriv", "--inh-caps=-all", "--bounding-set=-all")


@dataclass(frozen=True)
class Stranger:
    """A user without any other process, and a workspace of theirs."""

    before: tuple[str, ...]  # what to put before a command, so that they run it
    workspace: Workspace


@contextlib.contextmanager
def a_stranger(config: str) -> Iterator[Stranger]:
    """Limits on the number of processes hold for theirs alone. Not below pytest's own folder, which
    nobody else may enter. They may read everything: the interpreter may be in root's home.
    """
    if os.geteuid() != 0:
        pytest.skip("only root can be somebody else")
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
        workspace = Workspace(folder / "work", folder / "home")
        for path in (workspace.path, workspace.home):
            path.mkdir()
            os.chown(path, number, number)
        workspace.config(config)
        try:
            yield Stranger(before, workspace)
        finally:
            for pid in kin(workspace):
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
    """What to put before a command, so that the workspace is a disk of this size.

    It can be seen from within alone. The workspace is copied to it, and `then` is done there.
    """
    if reason := _why_no_disk():
        pytest.skip(f"no small disk: {reason}")
    folder, copy = (shlex.quote(str(workspace.path.parent / name)) for name in ("work", "copy"))
    script = (
        f"cp -a {folder} {copy} && mount -t tmpfs -o size={size},mode=755 tmpfs {folder} && "
        f'cp -a {copy}/. {folder} && cd {folder} && {{ {then}; }} && exec "$@"'
    )
    return ("unshare", "-m", "sh", "-c", script, "sh")


@cache
def starts_with(descriptors: int) -> bool:
    """Whether the interpreter itself starts with so few descriptors, and can load a module."""
    command = [*limited(f"nofile={descriptors}"), sys.executable, "-c", "import json"]
    done = subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    return done.returncode == 0 and not done.stderr
