"""What this machine lacks for a promise, with the reason in words."""

import os
import platform
import shutil
from collections.abc import Mapping
from pathlib import Path

from rooda.front.selftest.trial import Need
from rooda.world.process.libc import has_socket_scopes
from rooda.world.sandbox.probe import try_bwrap
from rooda.world.sandbox.sandbox_plan import SandboxError
from rooda.world.tools import Tools


def missing(environ: Mapping[str, str]) -> dict[Need, str]:
    """Return what this machine lacks, each with the reason."""
    found = {
        Need.GIT: _git(environ),
        Need.SUBREAPER: _subreaper(),
        Need.PROC: _proc(),
        Need.PIDFD: _pidfd(),
        Need.BWRAP: _bwrap(environ),
        Need.SCOPE: _scope(),
    }
    return {need: reason for need, reason in found.items() if reason}


def _git(environ: Mapping[str, str]) -> str:
    is_there = shutil.which("git", path=environ.get("PATH", os.defpath)) is not None
    return "" if is_there else "git is not installed: no snapshots, no commits"


def _subreaper() -> str:
    if platform.system() == "Linux":
        return ""
    return (
        "this system has no child subreaper: a process that leaves its group, its session and its "
        "environment is not found"
    )


def _proc() -> str:
    try:
        is_ours = Path("/proc/self").readlink().name == str(os.getpid())
    except OSError:
        is_ours = False
    return "" if is_ours else "there is no /proc of this machine's own processes"


def _pidfd() -> str:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        return (
            "this system has no pidfd: rooda checks a process before each signal, but the pid may "
            "belong to another process a moment later"
        )
    return ""


def _bwrap(environ: Mapping[str, str]) -> str:
    try:
        try_bwrap(Tools(environ))
    except SandboxError as error:
        return f"{error}. {error.fix}"
    return ""


def _scope() -> str:
    if has_socket_scopes():
        return ""
    return (
        "this kernel has no Landlock scopes (Linux 6.12): with a network, the sandbox does not "
        "keep an agent from abstract sockets, such as those of a desktop"
    )
