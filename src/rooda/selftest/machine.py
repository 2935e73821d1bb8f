"""What this machine lacks for a promise, with the reason in words."""

import os
import platform
import shutil
from collections.abc import Mapping
from pathlib import Path

from rooda.selftest.trial import Need


def missing(environ: Mapping[str, str]) -> dict[Need, str]:
    """Return what this machine lacks, each with the reason."""
    found = {
        Need.GIT: _git(environ),
        Need.SUBREAPER: _subreaper(),
        Need.PROC: _proc(),
        Need.PIDFD: _pidfd(),
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
