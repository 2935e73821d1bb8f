# ruff: noqa: PTH115, PTH208, T201
"""Tries with processes, descriptors, sockets, and the record of rooda."""

import contextlib
import os
import signal
import socket
from pathlib import Path

from support.escapes.common import (
    FACTS,
    LIBC,
    OUTSIDE,
    STATE,
    TREE,
    TRIES,
    HeldError,
    attempt,
    call,
    overwrite,
)

# -- rooda -------------------------------------------------------------------------------------


@attempt("change the prompt in the record")
def _() -> object:
    return overwrite("/proc/self/fd/0")


@attempt("change own transcript")
def _() -> object:
    print("the first words", flush=True)
    for number in (1, 2):
        os.truncate(f"/proc/self/fd/{number}", 0)
    return "truncated"


@attempt("read the record")
def _() -> object:
    found = os.listdir(STATE)
    if not found:
        raise HeldError("empty")
    return found


@attempt("write into the record")
def _() -> object:
    return overwrite(STATE / "evil")


@attempt("replace the record by a link")
def _() -> object:
    STATE.rename(TREE / "r2")
    STATE.symlink_to(OUTSIDE)
    return "replaced"


@attempt("delete the record")
def _() -> object:
    STATE.rmdir()
    return "deleted"


def other_processes() -> list[int]:
    """Return the processes that are not this one and not below it."""
    return [
        int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()
    ]


def is_outside(name: str) -> bool:
    """Return whether a command line is that of rooda, of its warden or of the victim."""
    return name.startswith("sleep 600") or " -m rooda" in name or "warden" in name


@attempt("see a process outside")
def _() -> object:
    names = {}
    for pid in other_processes():
        with contextlib.suppress(OSError):  # it has ended
            names[pid] = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    outside = {pid: name for pid, name in names.items() if is_outside(name)}
    if not outside:
        raise HeldError(str(len(names)))
    return outside


@attempt("signal a process outside")
def _() -> object:
    os.kill(FACTS["victim"], signal.SIGKILL)
    return "killed"


@attempt("signal the parents")
def _() -> object:
    os.kill(os.getppid(), 0)
    for pid in other_processes():
        if "python" in os.readlink(f"/proc/{pid}/exe") and pid not in (os.getppid(), 1):
            os.kill(pid, signal.SIGSTOP)
            return f"stopped {pid}"
    raise HeldError("there is no process of rooda")


@attempt("trace a process outside")
def _() -> object:
    call(LIBC.ptrace(16, FACTS["victim"], 0, 0))
    return "attached"


@attempt("memory of a process outside")
def _() -> object:
    with open(f"/proc/{FACTS['victim']}/mem", "r+b"):  # noqa: PTH123
        return "opened"


@attempt("root folder of another process")
def _() -> object:
    for pid in other_processes():
        canary = Path(f"/proc/{pid}/root{OUTSIDE}/canary")
        if canary.exists():
            return canary.read_text()
    raise HeldError("none")


@attempt("environment of all processes")
def _() -> object:
    found = Path("/proc/self/environ").read_bytes()
    with contextlib.suppress(OSError):
        found += Path("/proc/1/environ").read_bytes()
    return found.decode("utf-8", "replace")


@attempt("command lines of all processes")
def _() -> object:
    lines = (Path(f"/proc/{pid}/cmdline").read_bytes() for pid in other_processes())
    return b"".join(lines).decode("utf-8", "replace")


@attempt("inherited descriptors")
def _() -> object:
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[name] = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue
    own = ("/dev/null", "/proc/", "pipe:", "/memfd:", f"{STATE}/runs/")
    strange = {
        name: path
        for name, path in found.items()
        if not path.startswith(own) and not path.endswith("/results-1.jsonl")
    }
    if not strange:
        raise HeldError(str(found))
    return strange


@attempt("descriptors of the process above")
def _() -> object:
    found = []
    for pid in {1, os.getppid()}:
        for name in os.listdir(f"/proc/{pid}/fd"):
            path = os.readlink(f"/proc/{pid}/fd/{name}")
            if str(OUTSIDE) in path or path.startswith("socket:"):
                found.append(path)
    if not found:
        raise HeldError("none")
    return found


# -- sockets -----------------------------------------------------------------------------------


def connect(address: str | bytes) -> str:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        client.connect(address)
        return "connected"


@attempt("abstract socket")
def _() -> object:
    return connect(b"\0" + FACTS["abstract"].encode())


@attempt("sockets of the system")
def _() -> object:
    for path in (
        *("/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock"),
        *("/run/dbus/system_bus_socket", f"/run/user/{os.getuid()}/bus", "/tmp/.X11-unix/X0"),
        *("/run/systemd/private", "/run/podman/podman.sock", "/dev/log"),
    ):
        if Path(path).exists():
            return connect(path)
    raise HeldError("none")


@attempt("variables that name sockets")
def _() -> object:
    names = (
        "SSH_AUTH_SOCK",
        "DBUS_SESSION_BUS_ADDRESS",
        "DOCKER_HOST",
        "DISPLAY",
        "GPG_AGENT_INFO",
    )
    found = [name for name in names if name in os.environ]
    if not found:
        raise HeldError("none")
    return found


def add_sockets() -> None:
    for name, path in FACTS["sockets"].items():
        TRIES[f"socket: {name}"] = lambda path=path: connect(path)  # type: ignore[misc]
