"""Whether bubblewrap works on this machine; if not, why, and what the user can do.

bubblewrap itself is asked: the system's switches differ between distributions, and lie in
containers.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from rooda.base.paths import file_mode
from rooda.world.process.exits import Exited
from rooda.world.process.request import Wrapped
from rooda.world.sandbox.sandbox_plan import SandboxError, SandboxKind, SandboxPlan
from rooda.world.tools import Command, Tools

PROGRAM = "bwrap"
# Always: namespaces of its own, no capabilities, no way to make more namespaces, no terminal.
OPTIONS = (
    *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
    *("--disable-userns", "--cap-drop", "ALL", "--new-session", "--die-with-parent"),
)
_TRIAL = (*OPTIONS, "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev")
_TIMEOUT = 20.0

_INSTALL = "Install it: `apt-get install bubblewrap` (Debian, Ubuntu) or `dnf install bubblewrap`"
_APPARMOR = (
    "Ubuntu 23.10 and newer: add an AppArmor profile for /usr/bin/bwrap with `userns,`, and reload "
    "it with `apparmor_parser -r`"
)
_CONTAINER = (
    "Let the container itself hold the agent (sandbox: none, or sandbox: command), or start it "
    "with `--security-opt seccomp=unconfined`"
)


class _Cause(Struct, frozen=True):
    """What bubblewrap prints, what that means, and what to do."""

    sign: str
    message: str
    fix: str


_CAUSES = (
    _Cause(
        "No permissions to create new namespace",
        "this container or kernel does not allow user namespaces",
        _CONTAINER,
    ),
    _Cause(
        "ENOSPC",
        "no more user namespaces are allowed here: `sysctl user.max_user_namespaces` is 0, or "
        "rooda already runs in a sandbox",
        "Raise the limit, or use sandbox: none within the outer sandbox",
    ),
    _Cause(
        "Can't mount proc on",
        "this container masks parts of /proc",
        "Start it with `--security-opt systempaths=unconfined` (Docker)",
    ),
    _Cause("setting up uid map", "the system forbids user namespaces to bubblewrap", _APPARMOR),
    _Cause("RTM_NEWADDR", "the system forbids user namespaces to bubblewrap", _APPARMOR),
    _Cause(
        "Creating new namespace failed",
        "this container or kernel does not allow user namespaces",
        _CONTAINER,
    ),
    _Cause("Unknown option", "bubblewrap is too old", "Install version 0.8 or newer"),
)


def find_bwrap(tools: Tools) -> str:
    """Return the path of bubblewrap, outside of the work tree. Raises SandboxError."""
    if sys.platform != "linux":
        fix = "Use sandbox: command, for example with Docker or sandbox-runtime"
        raise SandboxError("sandbox bwrap works on Linux only", fix)
    found = tools.find(PROGRAM)
    if found is None:
        raise SandboxError("sandbox bwrap needs bubblewrap, which is not installed", _INSTALL)
    return found


def try_bwrap(tools: Tools) -> str:
    """Start a program in a minimal sandbox; return the path of bubblewrap. Raises SandboxError."""
    path = find_bwrap(tools)
    try_out(tools, Wrapped((path, *_TRIAL, "--"), (tools.program("true"),), {"PATH": tools.path}))
    return path


def try_out(tools: Tools, wrapped: Wrapped) -> None:
    """Start a program that ends at once in a sandbox. Raises SandboxError if it can't start."""
    program, environ = wrapped.program, wrapped.environ
    trial = Command("", program, Path("/"), environ, _TIMEOUT, outside=True, jail=wrapped.jail)
    finished = tools.run(trial)
    if finished.passed or finished.was_interrupted:
        return
    said = finished.last_words(1000) or finished.error
    raise why_not(said if not isinstance(finished.exit, Exited) else f"{said} ({finished.error})")


def why_not(said: str) -> SandboxError:
    """Return the error for what bubblewrap has printed."""
    for cause in _CAUSES:
        if cause.sign in said:
            return SandboxError(f"sandbox bwrap does not work here: {cause.message}", cause.fix)
    last = [line.removeprefix("bwrap: ") for line in said.splitlines() if line.strip()][-1:]
    as_root = " as root" if os.geteuid() == 0 else ""
    return SandboxError(
        ": ".join([f"sandbox bwrap does not work here{as_root}", *last]),
        "Try `bwrap --unshare-user --ro-bind / / true`, or use sandbox: none",
    )


# What speaks against a sandbox before a run starts. Changes nothing.


def check_plan(plan: SandboxPlan) -> Iterator[SandboxError]:
    """Yield what is wrong with the folders of a sandbox."""
    if plan.kind is not SandboxKind.BWRAP:
        return
    yield from _check_tree(plan)
    for path in plan.readable:
        yield from _check_path("readable", path, plan)
    for path in plan.writable:
        yield from _check_path("writable", path, plan)
        if plan.tree.is_relative_to(_real(path)):
            yield SandboxError(
                f"sandbox.writable contains the work tree: {path}", "Name a folder next to it"
            )


def _check_tree(plan: SandboxPlan) -> Iterator[SandboxError]:
    tree = plan.tree
    if _real(plan.home).is_relative_to(tree):
        yield SandboxError(
            f"the work tree {tree} contains your home folder, so the agent could read all of it",
            "Start in a folder of its own",
        )
        return
    try:
        owner = tree.stat().st_uid
    except OSError:
        return
    if os.geteuid() == 0 and owner != 0:
        yield SandboxError(
            f"{tree} belongs to another user, so root can't write to it in the sandbox",
            f"Start rooda as that user, or run `chown -R root {tree}`",
        )


def _check_path(name: str, path: Path, plan: SandboxPlan) -> Iterator[SandboxError]:
    if not file_mode(path):
        yield SandboxError(f"sandbox.{name} does not exist: {path}", "Correct the path")
    elif _real(plan.home).is_relative_to(_real(path)):
        yield SandboxError(
            f"sandbox.{name} contains your home folder: {path}", "Name the folders that are needed"
        )


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
